"""Whatever a log holds, a verdict comes out, and a pass is one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify import statement
from interlace.verify.signatures import signatures
from tests.unit.verify.scenes import HEALTHY, judged, line, said, table, times

TABLES = (
    table(HEALTHY),
    table(times(rate=90, floor_us=900), wrong=3),
    table(times(rate=3.5, floor_us=90), wrong="N/A", collective="all_reduce"),
    table(HEALTHY, cut=5, footer=False),
    table(times(rate=440, floor_us=20, ranks=8), ranks=8, nodes=1),
)
SAID = (said(), said(network="Socket", direct=False), said(ranks=8, nodes=2, mnnvl=True), said(channels=False)[:9])
SIGNS = tuple(
    [line(3, 8, example) if "NCCL " in example else example] for each in signatures() for example in each.example
)
PIECES = st.lists(st.sampled_from((*TABLES, *SAID, *SIGNS)) | st.text(max_size=60).map(lambda text: [text]), max_size=5)


@settings(max_examples=40, deadline=None)
@given(PIECES, st.sampled_from(["a3-mega", "a3-high", "gb200-nvl72", None]), st.sampled_from([None, 1, 2, 18]))
def test_any_log_is_judged_and_a_pass_rests_on_checked_data_and_no_fault(
    pieces: list[list[str]], family: str | None, nodes: int | None
) -> None:
    judgement = judged([each for piece in pieces for each in piece], family=family, nodes=nodes)
    assert judgement.verdict in ("pass", "degraded", "fail", "cannot tell")
    assert judgement.cause
    assert "\n" not in judgement.cause
    assert all(text.isprintable() for text in statement.lines(judgement))
    assert statement.document(judgement)["verdict"] == judgement.verdict
    if judgement.verdict == "pass":
        assert judgement.causes == ()
        assert family is not None
        judged_runs = [each.run for each in judgement.assessments if each.judged]
        assert judged_runs
        assert all(run.rows and (run.ranks or 0) > 1 and not run.wrong_total for run in judged_runs)
        assert all(half.wrong is not None for run in judged_runs for row in run.rows for _, half in row.halves())


@settings(max_examples=24, deadline=None)
@given(st.permutations(range(4)))
def test_the_order_of_files_with_times_does_not_matter(order: list[int]) -> None:
    parts = [
        f"2026-05-04T10:00:0{at}Z {text}"
        for at, text in enumerate(
            (
                "ssh: connect to host worker-1 port 222: Connection refused",
                line(9, 8, "init.cc:1 NCCL WARN Duplicate GPU detected : rank 9 and rank 8"),
                line(0, 8, "misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer x<1>"),
                "mpirun noticed that process rank 9 with PID 0 on node x exited on signal 9 (Killed).",
            )
        )
    ]
    from tests.unit.verify.test_judging_causes import judged_together

    judgement = judged_together({str(at): [parts[at]] for at in order})
    assert [each.signature.id for each in judgement.causes] == ["gpu-twice"]
    assert [each.signature.id for each in judgement.noted] == ["sshd-absent"]

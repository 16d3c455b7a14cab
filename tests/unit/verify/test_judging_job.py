"""The logs of a Job's Pods, read over HTTP and judged together."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from interlace.fabric.family import find
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.errors import Forbidden
from interlace.verify.judgement import Judgement, judge
from interlace.verify.podlogs import JobLogs, job_logs
from tests.unit.cli.programs import interlace
from tests.unit.verify.jobserver import JobServer, job_server, stamped
from tests.unit.verify.scenes import HEALTHY, SWEEP, line, said, table, with_lines

GOOD = with_lines(table(HEALTHY), said())
NO_ROWS = with_lines(table(HEALTHY, cut=len(SWEEP), footer=False), said())


async def logs_of(server: JobServer, name: str = "nccl") -> JobLogs:
    async with Client(Config(server=server.url), user_agent="test") as client:
        return await job_logs(client, name, namespace="default")


def judged(logs: JobLogs) -> Judgement:
    return judge(logs.runs, logs.events, family=find("a3-mega"))


async def test_the_table_in_the_log_of_one_pod_is_the_measurement() -> None:
    async with job_server() as server:
        server.add("nccl-0", {"test": stamped(GOOD), "tcpxo-daemon": stamped(["Buffers are ready"])})
        server.add("nccl-1", {"test": stamped(["waiting"])})
        server.add("other-0", {"test": stamped(table(HEALTHY))}, job="other")
        logs = await logs_of(server)
    assert logs.pods == ("nccl-0", "nccl-1")
    assert len(logs.runs) == 1
    assert judged(logs).verdict == "pass"
    assert judged(logs).assessments[0].run.source == "nccl-0/test"
    assert all("timestamps=true" in each for each in server.asked if "/log" in each)


async def test_the_first_cause_is_found_among_all_pods_and_containers() -> None:
    closed = line(0, 8, "misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer worker-1<4>")
    async with job_server() as server:
        server.add("nccl-0", {"test": stamped([*NO_ROWS, closed], second=20)})
        server.add(
            "nccl-1", {"test": stamped(["starting"]), "tcpxo-daemon": stamped(["Failed to initialize DXS"], second=5)}
        )
        judgement = judged(await logs_of(server))
    assert judgement.verdict == "fail"
    assert judgement.causes[0].signature.id == "dxs"
    assert judgement.evidence[0].source == "nccl-1/tcpxo-daemon"
    assert [each.signature.id for each in judgement.causes[0].consequences] == ["peer-closed"]


async def test_pods_that_never_started_are_no_fault_of_the_fabric() -> None:
    unschedulable = {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/20 nodes are available: 20 Insufficient nvidia.com/gpu.",
                "lastTransitionTime": "2026-05-04T09:59:01Z",
            }
        ],
    }
    async with job_server() as server:
        server.add("nccl-0", {"test": ""}, status=unschedulable)
        judgement = judged(await logs_of(server))
    assert judgement.verdict == "cannot tell"
    assert "the scheduler found no node" in judgement.cause
    assert judgement.evidence[0].source == "pod/nccl-0"
    assert judgement.evidence[0].log == "kubernetes"


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ({"waiting": {"reason": "ErrImagePull", "message": "not found"}}, "image of a Pod"),
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "memory limit"),
    ],
)
async def test_the_state_of_a_container_is_evidence(state: dict[str, object], cause: str) -> None:
    status = {"phase": "Pending", "containerStatuses": [{"name": "test", "state": state}]}
    async with job_server() as server:
        server.add("nccl-0", {"test": ""}, status=status)
        judgement = judged(await logs_of(server))
    assert judgement.verdict == "cannot tell"
    assert cause in judgement.cause


async def test_warnings_about_its_pods_are_read_and_those_of_others_are_not() -> None:
    async with job_server() as server:
        server.add("nccl-0", {"test": ""})
        server.tell("nccl-0", "FailedPrepareDynamicResources", "context deadline exceeded")
        server.tell("other-0", "FailedScheduling", "0/20 nodes are available")
        judgement = judged(await logs_of(server))
    assert [each.signature.id for each in judgement.causes] == ["container-start-refused"]


async def test_events_that_may_not_be_read_are_said_and_no_error() -> None:
    async with job_server() as server:
        server.forbidden.add("events")
        server.add("nccl-0", {"test": stamped(GOOD)})
        logs = await logs_of(server)
    assert judged(logs).verdict == "pass"
    assert logs.missing == ("events of namespace default may not be read",)


async def test_a_log_that_is_too_long_is_cut_and_said_to_be() -> None:
    async with job_server() as server, Client(Config(server=server.url), user_agent="test") as client:
        server.add("nccl-0", {"test": stamped(GOOD)})
        logs = await job_logs(client, "nccl", namespace="default", most_bytes=4000)
    assert logs.missing == ("the log of nccl-0/test was cut at 4000 bytes",)
    assert judged(logs).verdict == "cannot tell"


async def test_logs_that_may_not_be_read_are_an_error() -> None:
    async with job_server() as server:
        server.forbidden.add("log")
        server.add("nccl-0", {"test": stamped(GOOD)})
        with pytest.raises(ExceptionGroup) as caught:
            await logs_of(server)
    assert caught.group_contains(Forbidden)


async def test_reading_can_be_cancelled_while_a_log_is_on_its_way() -> None:
    async with job_server() as server, asyncio.timeout(30):
        server.add("nccl-0", {"test": stamped(GOOD)})
        server.answering.clear()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(logs_of(server))
            await server.reading.wait()
            task.cancel()
        assert task.cancelled()
        server.answering.set()
        assert (await logs_of(server)).pods == ("nccl-0",)


async def test_the_command_judges_a_job_on_the_current_cluster(tmp_path: Path) -> None:
    async with job_server() as server:
        server.add("nccl-0", {"test": stamped(GOOD)})
        config = str(server.kubeconfig(tmp_path))
        ended = await interlace("verify", "judge", "job/nccl", "--family", "a3-mega", "--json", "--kubeconfig", config)
        absent = await interlace("verify", "judge", "job/none", "--family", "a3-mega", env={"KUBECONFIG": config})
    assert (ended.code, ended.errors) == (0, "")
    assert json.loads(ended.out)["verdict"] == "pass"
    assert (absent.code, absent.out) == (3, "")
    assert "Job default/none has no Pods" in absent.errors


async def test_a_job_is_reported_and_compared_like_the_log_of_its_pod(tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("\n".join(GOOD) + "\n")
    async with job_server() as server:
        server.add("nccl-0", {"test": stamped(GOOD)})
        config = str(server.kubeconfig(tmp_path))
        page, csv = tmp_path / "report.html", tmp_path / "rows.csv"
        wanted = ("-o", str(page), "--csv", str(csv), "--family", "a3-mega", "--kubeconfig", config)
        reported = await interlace("verify", "report", "job/nccl", *wanted)
        absent = await interlace("verify", "report", "job/none", "--json", "--kubeconfig", config)
        pair = (str(tmp_path / "nccl.log"), "job/nccl")
        compared = await interlace("verify", "compare", *pair, "--json", "--kubeconfig", config)
        own = await interlace("verify", "compare", str(tmp_path / "nccl.log"), "./job/nccl", "--kubeconfig", config)
    assert (reported.code, reported.errors) == (0, "")
    assert reported.out.startswith("pass: ")
    assert "nccl-0/test" in page.read_text()
    assert len(csv.read_text().splitlines()) == 1 + 2 * len(SWEEP)
    assert (absent.code, absent.out) == (3, "")
    assert "Job default/none has no Pods" in absent.errors
    assert compared.code == 0
    assert {each["meaning"] for each in json.loads(compared.out)["changes"]} == {"same"}
    assert own.code == 2
    assert "./job/nccl: No such file" in own.errors


async def test_a_cluster_that_does_not_answer_ends_the_command_in_one_sentence(tmp_path: Path) -> None:
    async with job_server() as server:
        config = str(server.kubeconfig(tmp_path))
    ended = await interlace("verify", "judge", "job/nccl", "--kubeconfig", config)
    assert ended.code == 4
    assert ended.errors.count("\n") == 1

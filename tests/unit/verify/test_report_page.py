"""The page: the verdict first, a figure for everything that was measured, and the same bytes each time."""

from __future__ import annotations

import html
import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import msgspec
import pytest

from interlace.fabric.family import find
from interlace.verify.judgement import judge
from interlace.verify.report import figures, heatmap
from interlace.verify.report.content import Report, groups, highlights
from interlace.verify.report.page import page
from interlace.verify.report.palette import HEAT
from interlace.verify.report.picture import Picture
from interlace.verify.report.topology import topology
from interlace.verify.run import Half, Row, Run
from tests.unit.verify.recorded import published
from tests.unit.verify.reports import EVIL, matrix_of, of_lines, pairs_document
from tests.unit.verify.scenes import HEALTHY, said, table, times

SLOW_NODE = pairs_document(nodes=6, slow="node-04", cut=("node-00", "node-01"))


@pytest.fixture(scope="module")
def both() -> Report:
    return of_lines(published("nccl-tcpxo"), matrix=matrix_of(SLOW_NODE))


@pytest.fixture(scope="module")
def written(both: Report) -> str:
    return page(both)


def shapes(picture: Picture) -> ET.Element:
    return ET.fromstring(picture.svg)


def texts(picture: Picture) -> list[str]:
    return [each.text or "" for each in shapes(picture).iter("text")]


def test_the_first_words_are_the_verdict_and_its_cause(both: Report, written: str) -> None:
    body = re.sub(r"<[^>]*>", "", written[written.index("<main>") :])
    assert html.unescape(" ".join(body.split())).startswith(f"✕ fail {both.cause}.")
    assert "61% of the bound" in both.cause


def test_the_same_report_is_the_same_bytes_whatever_matplotlib_is_set_to(both: Report, written: str) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"lines.linewidth": 9, "svg.hashsalt": None, "font.size": 22, "text.usetex": True}):
        assert page(both) == written


def test_a_page_that_stands_alone_names_no_address_and_runs_nothing(written: str) -> None:
    assert not re.search(r"https?:|//\w|<script|@import|\bsrc=|<link|\son\w+=", written)
    assert "default-src &#x27;none&#x27;" in written
    for place in re.findall(r"href=\"([^\"]*)\"|url\(([^)]*)\)", written):
        assert "".join(place).startswith("#")


def test_ids_of_a_page_are_unique_and_every_reference_is_met(written: str) -> None:
    ids = re.findall(r"\sid=\"([^\"]+)\"", written)
    assert len(ids) == len(set(ids))
    wanted = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", written))
    for names in re.findall(r"aria-labelledby=\"([^\"]+)\"", written):
        wanted |= set(names.split())
    assert wanted
    assert wanted <= set(ids)


def test_every_figure_has_a_name_a_description_and_a_table(written: str) -> None:
    found = re.findall(r"<figure.*?</figure>", written, flags=re.DOTALL)
    assert len(found) == 4  # bandwidth, time, map, topology
    for each in found:
        assert re.search(r'<svg role="img" aria-labelledby="\S+-title \S+-desc"', each)
        assert re.search(r"<title[^>]*>\S.*?</title><desc[^>]*>\S", each, flags=re.DOTALL)
        assert re.search(r"<details>.*<td>.*</details>", each, flags=re.DOTALL)


def test_the_curve_shows_band_and_bound_from_the_size_where_they_hold(both: Report) -> None:
    picture = figures.bandwidth(groups(both)[0], id="x")
    shown = texts(picture)
    assert {"1 MiB", "1 GiB", "pass from 160", "degraded from 130", "bound, 200 GB/s"} <= set(shown)
    assert "bound is 200 GB/s; from 256 MiB on a run passes from 160 GB/s" in picture.description
    assert picture.rows[0] == ("1 MiB", "1048576", "0.21", "0.25", "-")
    assert picture.rows[-1] == ("1 GiB", "1073741824", "122.14", "120.19", "61%")


def test_the_time_has_the_floor_that_was_expected(both: Report) -> None:
    picture = figures.times(groups(both)[0], id="x")
    assert {"1 ms", "at most 300 us at 1 MiB"} <= set(texts(picture))
    assert "from 4.65 ms to 8.24 ms" in picture.description
    assert [row[0] for row in picture.rows][:2] == ["1 MiB", "2 MiB"]


def test_sizes_stand_on_a_logarithmic_axis(both: Report) -> None:
    drawn = figures.bandwidth(groups(both)[0], id="x").svg
    found = re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>\d+ [MG]iB</text>', drawn)
    steps = {round(float(right) - float(left), 1) for left, right in pairwise(found)}
    assert len(found) >= 4
    assert max(steps) - min(steps) <= 0.2


def test_several_runs_of_one_thing_share_a_picture_and_their_median_is_the_table() -> None:
    report = of_lines([*table(times(rate=150, floor_us=130)), *table(HEALTHY), *table(HEALTHY, collective="alltoall")])
    found = groups(report)
    assert [(each.collective, len(each.assessments)) for each in found] == [("all_gather", 2), ("alltoall", 1)]
    picture = figures.bandwidth(found[0], id="x")
    assert "2 runs are thin lines, the median of all is a thick one" in picture.description
    assert "out-of-place, median of 2 runs" in texts(picture)
    first, second = (each.run.rows[-1].oop for each in found[0].assessments)
    assert first is not None
    assert second is not None
    assert float(picture.rows[-1][2]) == pytest.approx((first.busbw + second.busbw) / 2, rel=1e-4)
    assert "No band was used" in figures.bandwidth(found[1], id="x").description


def test_a_curve_above_the_line_rate_is_shown_below_what_no_algorithm_exceeds() -> None:
    above, below = (of_lines(table(HEALTHY, collective=name)) for name in ("all_reduce", "all_gather"))
    assert "most of any algorithm, 375 GB/s" in texts(figures.bandwidth(groups(above)[0], id="x"))
    assert "most of any algorithm, 375 GB/s" not in texts(figures.bandwidth(groups(below)[0], id="x"))
    assert "No algorithm exceeds 375 GB/s." in figures.bandwidth(groups(below)[0], id="x").description


def test_wrong_data_are_marked_in_the_curve() -> None:
    right, wrong = (of_lines(table(HEALTHY, wrong=count)) for count in (0, 5))
    assert "wrong data" not in texts(figures.bandwidth(groups(right)[0], id="x"))
    assert "wrong data" in texts(figures.bandwidth(groups(wrong)[0], id="x"))


def test_a_baseline_is_drawn_beside_the_run() -> None:
    report = of_lines(table(HEALTHY))
    before = of_lines(table(times(rate=170, floor_us=140))).assessments[0].run
    with_it = msgspec.structs.replace(report, baseline=(before,))
    assert "baseline, median" in texts(figures.bandwidth(groups(with_it)[0], id="x"))
    assert "baseline, median" not in texts(figures.bandwidth(groups(report)[0], id="x"))


def test_latency_knee_and_peak_are_picked_out_of_a_run(both: Report) -> None:
    slow = {each.what: each for each in highlights(both, both.assessments[0])}
    assert {what: each.point.size >> 20 for what, each in slow.items()} == {"latency": 1, "peak": 1024}
    assert slow["latency"].most_us == 300
    assert slow["peak"].bound == 200
    report = of_lines(table(HEALTHY))
    found = [each.point.size >> 20 for each in highlights(report, report.assessments[0])]
    assert found == [1, 32, 1024]


def test_the_scale_of_the_map_is_fixed_to_the_band_and_not_to_what_was_reached() -> None:
    def cells(**rates: float) -> list[str]:
        document = pairs_document(nodes=4)
        for pair in document["pairs"]:
            pair["busbw"] = rates.get(f"{pair['a'][-1]}{pair['b'][-1]}".join("x_"), rates["others"])
        svg = shapes(heatmap.heatmap(matrix_of(document), rail=None, id="x"))
        found = [each.get("style", "") for each in svg.iter() if each.find("title") is not None]
        return [next((colour for colour in HEAT if colour in style), "") for style in found]

    assert set(cells(others=199.0)) == {HEAT[4], ""}
    assert set(cells(others=197.0)) == {HEAT[4], ""}, "noise must not look like a fault"
    assert set(cells(others=161.0)) == {HEAT[3], ""}
    assert set(cells(others=131.0)) == {HEAT[2], ""}
    assert set(cells(others=129.0)) == {HEAT[1], ""}
    assert set(cells(others=1.0)) == {HEAT[0], ""}


def test_a_cell_tells_its_pair_and_what_it_reached(both: Report) -> None:
    assert both.matrix is not None
    picture = heatmap.heatmap(both.matrix, rail=None, id="x")
    told = [each.text for each in shapes(picture).iter("title")][1:]
    assert len(told) == 36
    assert "node-00 and node-02: 180 GB/s" in told
    assert "node-00 and node-01: failed" in told
    assert texts(picture).count("✕") == 2
    assert "named as bad" in texts(picture)
    assert picture.rows[0] == ("node-00", "node-01", "-", "-", "failed: no answer")
    assert picture.rows[1][2:] == ("108", "54%", "fail")


def test_each_rail_has_a_map_of_its_own() -> None:
    document = pairs_document(nodes=3)
    document["pairs"] = [{**pair, "rail": rail} for rail in range(2) for pair in document["pairs"]]
    written = page(Report(matrix=matrix_of(document)))
    assert re.findall(r"<h3>(Rail \d)</h3>", written) == ["Rail 0", "Rail 1"]
    assert written.count('<figure class="heatmap"') == 2


def test_a_finding_of_one_rail_is_outlined_in_the_map_of_that_rail_alone() -> None:
    document = pairs_document(nodes=3)
    document["pairs"] = [{**pair, "rail": rail} for rail in range(2) for pair in document["pairs"]]
    document["findings"] = [{"kind": "node", "names": ["node-01"], "text": "node node-01 on rail 1 is slow", "rail": 1}]
    drawn = [heatmap.heatmap(matrix_of(document), rail=rail, id="x").svg for rail in range(2)]
    assert ["stroke: var(--bad)" in each for each in drawn] == [False, True]
    assert ["node-01 on rail 1" in each for each in drawn] == [False, True]


def test_what_a_node_reaches_with_all_others_stands_beside_its_row() -> None:
    document = pairs_document(nodes=3)
    assert "node's own share" not in texts(heatmap.heatmap(matrix_of(document), rail=None, id="x"))
    document["nodes"][1]["share"] = 0.61
    assert {"node's own share", "61%"} <= set(texts(heatmap.heatmap(matrix_of(document), rail=None, id="x")))


def test_many_nodes_get_a_table_instead_of_a_map_that_nobody_can_read() -> None:
    report = Report(matrix=matrix_of(pairs_document(nodes=heatmap.MOST_NODES + 2, slow="node-07")))
    written = page(report)
    assert '<figure class="heatmap"' not in written
    assert f"{heatmap.MOST_NODES + 2} nodes are too many for a map" in written
    assert "<td>54%</td>" in written


def test_the_topology_shows_racks_cliques_and_what_is_bad(both: Report) -> None:
    picture = topology(both, id="x")
    assert picture is not None
    shown = texts(picture)
    assert {"rack rack-0", "rack rack-1", "A: clique cluster.0", "B: clique cluster.1", "node-05", "✕ slow"} <= set(
        shown
    )
    assert "6 nodes in 2 racks." in picture.description
    assert ("node-04", "rack-1", "cluster.1", "-", "✕ slow") in picture.rows


def test_the_hosts_of_a_log_are_a_topology_whose_racks_nobody_knows() -> None:
    picture = topology(of_lines(table(HEALTHY)), id="x")
    assert picture is not None
    assert [row[0] for row in picture.rows] == ["worker-0", "worker-1"]
    assert "nobody said in which racks" in picture.description


def test_without_names_of_nodes_there_is_no_topology(both: Report) -> None:
    report = of_lines(published("nccl-tcpx"))
    assert topology(report, id="x") is None
    assert "No node is known by name" in page(report)


def test_a_bad_link_is_drawn_between_its_nodes() -> None:
    text = "link node-01 - node-03 reaches 70 % of what it should"
    link = {"kind": "link", "names": ["node-01", "node-03"], "text": text}
    picture = topology(Report(matrix=matrix_of(pairs_document(nodes=4, findings=[link]))), id="x")
    assert picture is not None
    assert [each.findtext("title") for each in shapes(picture).iter("path")] == [text]


def test_what_is_simulated_says_so() -> None:
    label = "Simulated: no hardware was measured"
    assert label in page(Report(matrix=matrix_of(pairs_document(simulated=True))))
    assert label not in page(Report(matrix=matrix_of(pairs_document())))
    lines = [each.replace("version 2.19.6", "version 2.19.6-simulated") for each in table(HEALTHY)]
    assert label in page(of_lines(lines))


def test_evidence_and_what_was_not_tested_stand_in_the_page() -> None:
    report = of_lines([*said(network="Socket"), *table(times(rate=4, floor_us=130))])
    written = html.unescape(page(report))
    assert report.judgement is not None
    assert report.judgement.evidence
    for each in (*(one.text for one in report.judgement.evidence), *report.judgement.not_tested):
        assert each in written


def test_hostile_names_of_hosts_and_nodes_stay_words() -> None:
    lines = [each.replace("worker-", "</script><b>") for each in table(HEALTHY)]
    report = of_lines(lines, matrix=matrix_of(pairs_document(nodes=4, names=EVIL)))
    written = page(report)
    assert "<img" not in written
    assert "<script" not in written
    assert "</script" not in written
    assert html.escape(f"{EVIL}00") in written


@pytest.mark.parametrize("name", ["机架-一", "نود", "\U0001f680", "a\x00b", "$x^2$", "&amp;", "x" * 300])
def test_names_that_no_font_of_ours_measures_are_drawn_all_the_same(name: str) -> None:
    written = page(Report(matrix=matrix_of(pairs_document(nodes=3, names=name))))
    assert '<figure class="heatmap"' in written


def test_nothing_measured_is_a_page_that_cannot_tell() -> None:
    written = page(of_lines(["nothing here"]))
    assert "? cannot tell</span>" in written
    assert "No run has a size to draw." in written
    assert "No pairs were measured" in written


@pytest.mark.parametrize("value", [0.0, 1e-9, 1e300, math.inf, math.nan])
def test_no_number_of_a_log_keeps_a_page_from_being_written(value: float) -> None:
    good = Half(time_us=10.0, algbw=1.0, busbw=1.0, wrong=0)
    odd = Half(time_us=value, algbw=value, busbw=value, wrong=0)
    halves = ((8, good), (1, odd), (1 << 20, odd), (10**30, odd))
    rows = tuple(Row(size=size, count=1, type="float", oop=half) for size, half in halves)
    run = Run(collective="all_gather", ranks=16, rows=rows, nodes=2)
    written = page(Report(judgement=judge((run,), (), family=find("a3-mega"))))
    assert written.count('<figure class="curve"') == 2

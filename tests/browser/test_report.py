"""The report in a browser: it shows verdict, curves and map, asks nobody for anything, and can be read."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import pytest_asyncio
from click.testing import CliRunner
from playwright.async_api import BrowserContext

from interlace.cli.main import main
from interlace.verify.report.palette import contrast
from tests.browser.chromium import NAMES, browsing, executable, visiting
from tests.holding import hold
from tests.unit.verify.recorded import published
from tests.unit.verify.reports import EVIL, pairs_document
from tests.unit.verify.scenes import HEALTHY, table

pytestmark = pytest.mark.asyncio(loop_scope="module")
SCREENSHOTS = Path(__file__).parents[2] / "reports" / "screenshots"
READ = (Path(__file__).parent / "contrast.js").read_text()
PAIRS = pairs_document(nodes=18, slow="node-04", cut=("node-00", "node-01"), simulated=True)
PAIRS["nodes"] = [{**each, "share": 0.6 if each["name"] == "node-04" else 1.0} for each in PAIRS["nodes"]]
THEMES: list[Literal["light", "dark"]] = ["light", "dark"]


def write(folder: Path, lines: list[str], pairs: dict[str, Any]) -> Path:
    """A report as a user makes it."""
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    (folder / "pairs.json").write_bytes(msgspec.json.encode(pairs))
    page = folder / "report.html"
    arguments = ["verify", "report", "run.log", "--pairs", "pairs.json", "--family", "a3-mega", "-o", "report.html"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 1, ended.output
    return page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BrowserContext]:
    """One browser for all, with a profile of its own."""
    async with hold(browsing(tmp_path_factory.mktemp("profile"))) as context:
        yield context


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published run that was too slow, with a slow node."""
    return write(tmp_path_factory.mktemp("report"), published("nccl-tcpxo"), PAIRS)


def as_hex(parts: list[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)


async def test_the_page_shows_verdict_curves_map_and_topology_and_asks_for_nothing(
    browser: BrowserContext, report: Path
) -> None:
    async with visiting(browser, report) as visited:
        page = visited.page
        heading = page.get_by_role("heading", level=1)
        assert (await heading.inner_text()).startswith("✕ fail")
        assert "61% of the bound" in await heading.inner_text()
        assert await heading.evaluate("each => each.getBoundingClientRect().top") < 100
        for kind, number, shapes in (("curve", 2, "path"), ("heatmap", 1, "path"), ("topology", 1, "rect")):
            figures = page.locator(f"figure.{kind} svg[role=img]")
            assert await figures.count() == number
            for at in range(number):
                box = await figures.nth(at).bounding_box()
                assert box is not None
                assert min(box["width"], box["height"]) > 100
                assert await figures.nth(at).locator(shapes).count() > 10
        for name in (
            "Bus bandwidth of all_gather",
            "Time of all_gather",
            "Bandwidth of each pair",
            "Racks and cliques",
        ):
            assert await page.get_by_role("img", name=name).count() == 1
        cells = page.locator("figure.heatmap svg title", has_text="node-04 and node-05: 108 GB/s")
        assert await cells.count() == 1
        assert await page.locator("svg text", has_text="bound, 200 GB/s").count() == 1
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert visited.requests == [report.as_uri()]
        assert visited.trouble == []


async def test_the_numbers_of_a_figure_open_from_the_keyboard(browser: BrowserContext, report: Path) -> None:
    async with visiting(browser, report) as visited:
        details = visited.page.locator("figure.curve details").first
        assert not await details.locator("table").is_visible()
        await details.locator("summary").focus()
        await visited.page.keyboard.press("Enter")
        await details.locator("table").wait_for(state="visible")
        assert await details.get_by_role("cell", name="122.14", exact=True).is_visible()


@pytest.mark.parametrize("theme", THEMES)
async def test_all_text_can_be_read(browser: BrowserContext, report: Path, theme: Literal["light", "dark"]) -> None:
    async with visiting(browser, report, scheme=theme) as visited:
        for summary in await visited.page.locator("details").all():
            await summary.evaluate("each => { each.open = true; }")
        found = await visited.page.evaluate(READ)
        assert len(found) > 500
        assert {"✕ fail", "node-04", "180", "1 GiB", "pass from 160", "✕ slow", "node's own share"} <= {
            each["text"] for each in found
        }
        assert [each["text"] for each in found if not each["whole"]] == []
        page = as_hex(next(each["ground"] for each in found if each["text"] == "Curves"))
        assert page == {"light": "#ffffff", "dark": "#14171a"}[theme]
        weak = [
            (each["text"], colours)
            for each in found
            if contrast(*(colours := (as_hex(each["colour"]), as_hex(each["ground"])))) < 4.5
        ]
        assert weak == []


@pytest.mark.parametrize("theme", [*THEMES, "print"])
async def test_pictures_of_the_page_are_kept(browser: BrowserContext, report: Path, theme: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    scheme: Literal["light", "dark"] = "light" if theme == "light" else "dark"
    async with visiting(browser, report, scheme=scheme) as visited:
        if theme == "print":
            await visited.page.emulate_media(media="print")
            ground = await visited.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == "rgb(255, 255, 255)", "paper is light, whatever the screen prefers"
            await visited.page.pdf(path=SCREENSHOTS / "report.pdf", prefer_css_page_size=True)
            assert (SCREENSHOTS / "report.pdf").read_bytes().startswith(b"%PDF")
        shot = await visited.page.screenshot(path=SCREENSHOTS / f"report-{theme}.png", full_page=True)
        assert shot.startswith(b"\x89PNG")


async def test_a_narrow_screen_needs_no_scrolling_to_the_side(browser: BrowserContext, report: Path) -> None:
    async with visiting(browser, report) as visited:
        await visited.page.set_viewport_size({"width": 400, "height": 800})
        assert await visited.page.evaluate("document.documentElement.scrollWidth") <= 400


async def test_names_that_are_made_to_break_out_are_only_shown(browser: BrowserContext, tmp_path: Path) -> None:
    lines = [each.replace("worker-", "</script><img/src=x/onerror=alert(2)>") for each in table(HEALTHY)]
    text = f"node {EVIL}00 {EVIL}"
    pairs = pairs_document(nodes=4, names=EVIL, slow=f"{EVIL}00", verdict="fail", cause=text, remedy=EVIL)
    page = write(tmp_path, lines, pairs)
    async with visiting(browser, page) as visited:
        assert visited.trouble == []
        assert visited.requests == [page.as_uri()]
        assert await visited.page.locator("script, img, iframe, link, object, form").count() == 0
        assert await visited.page.evaluate("[...document.querySelectorAll('*')].every(each => ![...each.attributes]"
                                           ".some(one => one.name.startsWith('on')))")  # fmt: skip
        assert EVIL in await visited.page.get_by_role("heading", level=1).inner_text()
        assert await visited.page.locator("figure.topology g title", has_text="</script>").count() > 0


async def test_a_missing_browser_is_told_by_the_name_of_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not any(shutil.which(name) for name in NAMES)
    with pytest.raises(AssertionError, match="install the package chromium"):
        executable()

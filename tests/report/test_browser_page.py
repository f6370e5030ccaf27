"""The browser of cases in a real Chromium, from disk: filters, views, keys, links, hostile names, accessibility."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browser_parts import EVIL, with_thumbnails
from report_parts import invocation, make_suite

from medtest.report.finish import Finished, finish
from medtest.runner.reporting.outcome import RunOutcome
from medtest.suite.model import Gate

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = Path(__file__).parents[1] / "data" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"),
]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, RunOutcome]:
    home = tmp_path_factory.mktemp("pages")
    suite = make_suite(gates=(Gate(max_percent=1),))
    outcome = with_thumbnails(home, suite, ("alpha", "beta"), seeds=8)
    return finish(suite, invocation(home), outcome), outcome


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Reader:
    """A window on a page from disk; keeps every message of its console."""

    def __init__(self, browser: Any, path: Path, *, anchor: str = "", **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": DESKTOP, **context})
        self.context.set_default_timeout(60_000)
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: self.messages.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self._requested(request.url))
        self.page.goto(f"{path.as_uri()}{anchor}")

    def _requested(self, url: str) -> None:
        if not url.startswith(("file:", "data:")):
            self.messages.append(f"request {url}")

    def count(self) -> int:
        return int(self.page.inner_text(".browser .count").split(" of ")[0].replace(",", ""))

    def choose(self, name: str, value: str) -> None:
        self.page.select_option(f".browser select[name={name}]", value)

    def images(self) -> list[str]:
        return list(self.page.eval_on_selector_all(".browser .stage img", "all => all.map(one => one.src)"))


@pytest.fixture
def reader(chromium: Any, finished: Any) -> Iterator[Reader]:
    window = Reader(chromium, finished[0].reports[0])
    yield window
    window.context.close()
    assert window.messages == []


def violations(outcome: RunOutcome) -> pd.DataFrame:
    return pd.read_csv(outcome.systems[0].folder / "tables" / "violations.csv")


def test_filters_count_what_the_tables_count(reader: Reader, finished: Any) -> None:
    table = violations(finished[1])
    frame = pd.read_parquet(finished[1].systems[0].folder / "records.parquet")
    followups = frame[frame.relation != "source"]
    assert reader.count() == len(table)
    reader.choose("relation", "blur")
    assert reader.count() == (table.relation == "blur").sum()
    reader.choose("severity", "5")
    assert reader.count() == ((table.relation == "blur") & (table.severity == 5)).sum()
    reader.page.click(".browser .filters button")
    assert reader.count() == len(followups)
    reader.page.fill(".browser input[name=least]", "0.5")
    reader.page.fill(".browser input[name=most]", "0.8")
    reader.page.keyboard.press("Tab")
    assert reader.count() == followups.dice.between(0.5, 0.8).sum()
    reader.page.click(".browser .filters button")
    reader.choose("factor", "factor_polyp_area")
    reader.page.fill(".browser input[name=from]", "0.1")
    reader.page.keyboard.press("Tab")
    assert reader.count() == (followups.factor_polyp_area >= 0.1).sum()


def test_cases_are_sorted_by_loss(reader: Reader, finished: Any) -> None:
    first = reader.page.locator(".browser .card-button").first
    first.click()
    worst = violations(finished[1]).iloc[0]
    assert worst.address in reader.page.inner_text(".browser .single dl")
    reader.page.keyboard.press("Escape")
    assert reader.page.evaluate("document.activeElement.matches('.card-button')")


def test_keys_flicker_overlay_zoom_and_change_the_case(reader: Reader) -> None:
    page = reader.page
    page.locator(".browser .card-button").first.click()
    source, followup = reader.images()
    assert source != followup
    page.keyboard.press("Space")
    assert reader.images() == [source, source]
    page.keyboard.press("Space")
    assert reader.images() == [source, followup]
    assert page.locator(".browser .stage path.expected").count() == 2
    page.keyboard.press("e")
    assert page.locator(".browser .stage path.expected").count() == 0
    assert page.locator(".browser .stage path.answered").count() == 2
    page.keyboard.press("a")
    assert page.locator(".browser .stage path").count() == 0
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")  # moves the picture while it is enlarged
    moved = page.eval_on_selector_all(".browser .stage .face", "all => all.map(one => one.style.transform)")
    assert len(set(moved)) == 1 and "scale(1.5)" in moved[0] and "translate(10%" in moved[0]
    box = page.locator(".browser .stage .frame").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.4 * box["height"])
    page.mouse.up()
    dragged = page.eval_on_selector_all(".browser .stage .face", "all => all.map(one => one.style.transform)")
    assert len(set(dragged)) == 1 and dragged != moved
    page.focus(".browser .stage")
    page.keyboard.press("0")
    before = page.url
    page.keyboard.press("ArrowRight")
    assert page.url != before and reader.images() != [source, followup]
    page.keyboard.press("ArrowLeft")
    assert page.url == before and reader.images() == [source, followup]


def test_the_grid_is_walked_with_arrow_keys(reader: Reader) -> None:
    page = reader.page
    cards = page.locator(".browser .card-button")
    cards.first.focus()
    page.keyboard.press("ArrowRight")
    assert cards.nth(1).evaluate("one => one === document.activeElement")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector(".browser .stage")
    assert page.evaluate("document.activeElement.matches('.stage')")


def test_a_link_leads_back_to_the_same_view(reader: Reader, chromium: Any, finished: Any) -> None:
    reader.choose("relation", "blur")
    reader.choose("sort", "score")
    shown = reader.count()
    reader.page.locator(".browser .card-button").nth(1).click()
    anchor = reader.page.url.partition("#")[2]
    other = Reader(chromium, finished[0].reports[0], anchor=f"#{anchor}")
    assert other.images() == reader.images()
    other.page.keyboard.press("Escape")
    other.page.focus(".browser .tools button")
    other.page.click(".browser .tools button")
    assert other.count() == shown
    assert other.page.input_value(".browser select[name=sort]") == "score"
    assert other.messages == []
    other.context.close()


def test_an_opened_case_is_in_view(reader: Reader) -> None:
    """This holds for a tile and for a link on the same page."""
    page = reader.page
    page.locator(".browser .card-button").first.focus()
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("Enter")
    assert _is_whole_in_view(page)
    anchor = page.evaluate("location.hash")
    page.keyboard.press("Escape")
    page.evaluate("scrollTo(0, 0)")
    page.evaluate("anchor => { location.hash = anchor; }", anchor)
    page.wait_for_selector(".browser .stage")
    assert _is_whole_in_view(page)


def _is_whole_in_view(page: Any) -> bool:
    box = page.locator(".browser .stage").bounding_box()
    return bool(box["y"] >= 0 and box["y"] + box["height"] <= DESKTOP["height"])


def test_hostile_names_are_text_and_their_command_is_quoted(chromium: Any, finished: Any, reader: Reader) -> None:
    frame = pd.read_parquet(finished[1].systems[0].folder / "records.parquet")
    hostile = frame[(frame.seed_id == EVIL) & (frame.relation == "blur")].iloc[0]
    reader.page.evaluate(
        "address => { location.hash = '#cases:' + new URLSearchParams({ case: address }); }", hostile.address
    )
    reader.page.wait_for_selector(".browser .single")
    assert hostile.address in reader.page.inner_text(".browser .single dl")
    command = reader.page.inner_text(".browser .replay code")
    import shlex

    assert shlex.split(command) == ["medtest", "replay", "suite=synthetic", hostile.address]
    reader.page.click(".browser .replay button")
    assert reader.page.locator("img[src=x]").count() == 0


def test_without_javascript_the_strips_are_shown(chromium: Any, finished: Any) -> None:
    window = Reader(chromium, finished[0].reports[0], java_script_enabled=False)
    assert window.page.is_visible(".strips img")
    assert not window.page.is_visible(".browser")
    window.context.close()


def test_folded_sections_open_by_their_links_and_for_the_printer(reader: Reader) -> None:
    page = reader.page
    assert not page.is_visible("#again dl")
    page.click("nav a[href='#again']")
    assert page.is_visible("#again dl")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].some(one => !one.open)")


def test_the_first_page_is_one_sheet(chromium: Any, finished: Any) -> None:
    window = Reader(chromium, finished[0].reports[0], viewport={"width": 718, "height": 1047})  # A4 less 10 mm margins
    window.page.emulate_media(media="print")
    assert 300 < window.page.evaluate("document.querySelector('.front').offsetHeight") <= 1047
    window.context.close()


def test_a_comparison_names_who_fails(chromium: Any, finished: Any) -> None:
    window = Reader(chromium, finished[0].comparison)
    everything = window.count()
    counts = []
    for system in ("0", "1"):
        window.choose("only", system)
        counts.append(window.count())
    assert sum(counts) == everything and min(counts) > 0
    window.page.locator(".browser .card-button").first.click()
    window.page.select_option(".browser .tools select", "1")
    assert "system=1" in window.page.url and len(window.images()) == 2
    assert window.messages == []
    window.context.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_is_wider_than_the_screen_and_axe_finds_no_serious_fault(
    chromium: Any, finished: Any, size: dict[str, int]
) -> None:
    for path in (finished[0].reports[0], finished[0].comparison):
        # axe is put into the page, which its policy forbids to everyone else.
        window = Reader(chromium, path, viewport=size, bypass_csp=True)
        window.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        window.page.add_script_tag(path=str(AXE))
        for view in ("grid", "single"):
            if view == "single":
                window.page.locator(".browser .card-button").first.click()
            assert window.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            result = window.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
            serious = [
                (rule["id"], rule["impact"], [node["html"][:160] for node in rule["nodes"][:3]])
                for rule in result["violations"]
                if rule["impact"] in ("serious", "critical")
            ]
            assert serious == [], (path.name, view)
            assert len(result["passes"]) > 20  # the rules were run
        window.context.close()

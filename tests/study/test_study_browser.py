"""A study in a real Chromium, from the link to the last item, by two annotators at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_parts import make_small, serving

from medtest.study.store import StudyStore

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"),
]

DESKTOP: dict[str, Any] = {"viewport": {"width": 1366, "height": 768}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Annotator:
    """A browser window; keeps every message of its console."""

    def __init__(self, browser: Any, link: str, device: dict[str, Any]) -> None:
        self.context = browser.new_context(**device)
        self.context.set_default_timeout(180_000)
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.goto(link)

    def count(self) -> str:
        return str(self.page.inner_text("#count"))

    def shown(self, name: str) -> None:
        self.page.wait_for_selector(f"#{name}:not([hidden])")

    def at(self, phase: str, position: int, total: int) -> None:
        """Wait until an item is open and its frames are decoded.

        By locators: a function that is polled in the page would be stopped by the page's own policy against eval.
        """
        self.expect("#phase").to_have_text(phase)
        self.expect("#count").to_have_text(f"{position} of {total}")
        self.expect("#judge").to_be_visible()
        self.expect("#save").to_be_enabled()

    def expect(self, selector: str) -> Any:
        """Return assertions on an element that wait as long as a loaded machine may need."""
        from playwright.sync_api import LocatorAssertions, expect

        expect.set_options(timeout=180_000)
        assertions: LocatorAssertions = expect(self.page.locator(selector))
        return assertions

    def picture(self, to: Path) -> None:
        self.page.screenshot(path=str(to))


def _by_keys(annotator: Annotator, phase: str, position: int, total: int) -> None:
    annotator.at(phase, position, total)
    annotator.page.keyboard.press("5")
    annotator.page.keyboard.press("4")
    annotator.page.keyboard.press("Enter")
    if phase == "Training":
        annotator.page.wait_for_selector("#feedback:not([hidden])")
        annotator.page.keyboard.press("Enter")


def _by_touch(annotator: Annotator, phase: str, position: int, total: int) -> None:
    annotator.at(phase, position, total)
    annotator.page.tap("label:has([name=diagnosis][value='2'])")
    annotator.page.tap("label:has([name=realism][value='3'])")
    annotator.page.tap("#save")
    if phase == "Training":
        annotator.page.wait_for_selector("#feedback:not([hidden])")
        annotator.page.tap("#save")


def test_two_annotators_from_link_to_last_item(chromium: Any, folder: Path, tmp_path: Path) -> None:
    with serving(folder) as served:
        first = Annotator(chromium, served.links[1], DESKTOP)
        second = Annotator(chromium, served.links[2], PHONE)
        for person in (first, second):
            person.shown("welcome")
            assert person.page.url.endswith(f":{served.port}/")  # the token left the address bar
            person.picture(tmp_path / "welcome.png")
        first.page.keyboard.press("Tab")
        first.page.focus("#begin")
        first.page.keyboard.press("Enter")
        second.page.tap("#begin")
        for position in range(1, 5):
            _by_keys(first, "Training", position, 4)
            _by_touch(second, "Training", position, 4)
        for person in (first, second):
            person.shown("turn")
        first.page.focus("#start-main")
        first.page.keyboard.press("Enter")
        second.page.tap("#start-main")
        with StudyStore(folder) as store:
            total = store.progress(1, "main")[0]
        for position in range(1, total + 1):
            if position == 5:  # another device, with the same link: back at the same place
                first.at("Item", 5, total)
                first.context.close()
                first = Annotator(chromium, served.links[1], DESKTOP)
            _by_keys(first, "Item", position, total)
            _by_touch(second, "Item", position, total)
        for person in (first, second):
            person.shown("done")
            assert person.messages == []  # no error, nothing that the policy had to stop
        assert first.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert second.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with StudyStore(folder) as store:
        for annotator, levels in ((1, (5, 4)), (2, (2, 3))):
            answers = [a for a in store.answers(annotator) if a.phase == "main"]
            assert len(answers) == total
            assert {(a.diagnosis, a.realism) for a in answers} == {levels}
            assert all(a.elapsed_ms > 0 for a in answers)


def test_looking_closer_going_back_and_incomplete_answers(chromium: Any, folder: Path) -> None:
    with serving(folder) as served:
        annotator = Annotator(chromium, served.links[1], DESKTOP)
        page = annotator.page
        annotator.shown("welcome")
        page.click("#begin")
        annotator.at("Training", 1, 4)
        source, followup = (f"#view-followup .face[data-name={name}]" for name in ("source", "followup"))

        def visible(selector: str) -> bool:
            return bool(
                page.evaluate("s => getComputedStyle(document.querySelector(s)).visibility === 'visible'", selector)
            )

        assert (visible(source), visible(followup)) == (False, True)
        page.keyboard.down("f")
        assert (visible(source), visible(followup)) == (True, False)
        assert page.inner_text("#name-followup") == "Source"
        page.keyboard.up("f")
        assert (visible(source), visible(followup)) == (False, True)
        assert not visible("#view-source .outline")
        page.keyboard.press("o")
        assert visible("#view-source .outline")
        assert visible("#view-followup .face[data-name=followup] .outline")
        page.keyboard.press("+")
        page.keyboard.press("Shift+ArrowRight")
        moved = page.evaluate("[...document.querySelectorAll('.layer')].map(e => e.style.transform)")
        assert moved[0] == moved[1]
        assert "scale(1.5)" in moved[0]
        page.keyboard.press("0")
        page.keyboard.press("l")
        assert not page.is_visible("#pane-source")
        page.keyboard.press("l")

        page.keyboard.press("Enter")  # nothing is answered yet
        assert "both questions" in page.inner_text("#status")
        page.keyboard.press("4")
        page.keyboard.press("Enter")
        assert "both questions" in page.inner_text("#status")
        page.keyboard.press("4")
        page.keyboard.press("c")
        page.keyboard.type("five 5 o f")  # keys are letters while one writes
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        page.wait_for_selector("#feedback:not([hidden])")
        page.keyboard.press("Enter")
        annotator.at("Training", 2, 4)
        page.keyboard.press("b")
        annotator.at("Training", 1, 4)
        assert page.input_value("#comment") == "five 5 o f"
        assert page.is_checked("[name=diagnosis][value='4']")
        page.keyboard.press("p")
        assert page.is_visible("#pause[open]")
        page.click("#leave")
        annotator.shown("left")
        page.reload()
        assert "Open the link" in page.inner_text("main")


def test_enter_begins_starts_and_saves_after_a_tool_was_clicked(chromium: Any, folder: Path) -> None:
    with serving(folder) as served:
        annotator = Annotator(chromium, served.links[1], DESKTOP)
        annotator.shown("welcome")
        annotator.page.keyboard.press("Enter")
        for position in range(1, 5):
            annotator.at("Training", position, 4)
            annotator.page.click("label:has([name=diagnosis][value='5'])")
            annotator.page.click("label:has([name=realism][value='4'])")
            annotator.page.click("#zoom-in")
            assert annotator.page.inner_text("#zoom-level") == "150 %"
            annotator.page.keyboard.press("Enter")
            annotator.page.wait_for_selector("#feedback:not([hidden])")
            annotator.page.keyboard.press("Enter")
        annotator.shown("turn")
        annotator.page.keyboard.press("Enter")
        annotator.shown("judge")
        assert annotator.page.inner_text("#phase") == "Item"
        annotator.page.focus("#zoom-in")  # reached by Tab a tool keeps its own keys
        annotator.page.keyboard.press("Enter")
        assert annotator.page.inner_text("#zoom-level") == "150 %"


def test_an_answer_waits_for_the_server(chromium: Any, folder: Path) -> None:
    """Without a connection the page shows it and keeps the answer, which arrives once the connection is back."""
    with serving(folder) as served:
        annotator = Annotator(chromium, served.links[1], DESKTOP)
        annotator.shown("welcome")
        annotator.page.click("#begin")
        annotator.at("Training", 1, 4)
        annotator.context.set_offline(True)
        annotator.page.keyboard.press("5")
        annotator.page.keyboard.press("5")
        annotator.page.keyboard.press("Enter")
        annotator.expect("#status").to_contain_text("Not saved yet")
        with StudyStore(folder) as store:
            assert store.answers() == []
        annotator.context.set_offline(False)
        annotator.page.wait_for_selector("#feedback:not([hidden])")
        with StudyStore(folder) as store:
            assert len(store.answers(history=True)) == 1


def test_changes_during_the_transfer_of_an_answer_are_not_lost(chromium: Any, folder: Path) -> None:
    with serving(folder) as served:
        annotator = Annotator(chromium, served.links[1], DESKTOP)
        annotator.shown("welcome")
        annotator.page.click("#begin")
        annotator.at("Training", 1, 4)
        annotator.context.set_offline(True)
        for key in ("5", "5", "Enter"):
            annotator.page.keyboard.press(key)
        annotator.expect("#status").to_contain_text("Not saved yet")
        annotator.page.click("label:has([name=realism][value='1'])")
        annotator.context.set_offline(False)
        annotator.expect("#status").to_contain_text("Saved as it was")
        assert annotator.page.is_checked("[name=realism][value='1']")
        annotator.page.keyboard.press("Enter")
        annotator.page.wait_for_selector("#feedback:not([hidden])")
        with StudyStore(folder) as store:
            assert [a.realism for a in store.answers(history=True)] == [5, 1]
            assert [a.realism for a in store.answers()] == [1]


def test_the_next_item_waits_for_the_server(chromium: Any, folder: Path) -> None:
    """Lost items and frames do not end the page."""
    with serving(folder) as served:
        annotator = Annotator(chromium, served.links[1], DESKTOP)
        annotator.shown("welcome")
        lost: list[str] = []

        def lose(route: Any) -> None:
            name = "item" if "/api/item/" in route.request.url else "image"
            if lost.count(name) < 2:
                lost.append(name)
                route.abort()
            else:
                route.continue_()

        annotator.context.route("**/api/item/**", lose)
        annotator.context.route("**/image/**", lose)
        annotator.page.click("#begin")
        annotator.at("Training", 1, 4)
        assert sorted(lost) == ["image", "image", "item", "item"]
        assert annotator.page.inner_text("#status") == ""
        assert annotator.page.evaluate("[...document.querySelectorAll('.view img')].every(i => i.naturalWidth > 0)")


def test_artefacts_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    study = make_small(
        tmp_path,
        tmp_path / "frames",
        kind="artefacts",
        frames="3",
        per_relation="0",
        training="1",
        catch="0",
        repeat="0",
    )
    with serving(study.folder) as served:
        annotator = Annotator(chromium, served.links[1], PHONE)
        annotator.shown("welcome")
        annotator.page.tap("#begin")
        annotator.at("Training", 1, 1)
        annotator.page.keyboard.press("9")
        annotator.page.keyboard.press("Enter")
        annotator.page.wait_for_selector("#feedback:not([hidden])")
        annotator.page.tap("#save")
        annotator.shown("turn")
        annotator.page.tap("#start-main")
        for position, keys in enumerate(("38", "0", "303"), start=1):
            annotator.at("Item", position, 3)
            for key in keys:
                annotator.page.keyboard.press(key)
            annotator.page.keyboard.press("Enter")
        annotator.shown("done")
        assert annotator.messages == []
    with StudyStore(study.folder) as store:
        marks = [a.marks for a in store.answers(1) if a.phase == "main"]
    assert marks == [("blood", "white_balance"), (), ("white_balance",)]


def test_real_or_made_by_keys_and_by_touch(chromium: Any, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    options = {"blind": "true", "annotators": "2", "per_relation": "4", "training": "0", "catch": "0"}
    make_small(tmp_path, folder, **options)
    with serving(folder) as served:
        first = Annotator(chromium, served.links[1], DESKTOP)
        second = Annotator(chromium, served.links[2], PHONE)
        for annotator in (first, second):
            annotator.shown("welcome")
            assert annotator.page.inner_text("h1") == "Real or made?"
            annotator.page.click("#begin")
        with StudyStore(folder) as store:
            total = store.progress(1, "main")[0]
        first.at("Item", 1, total)
        first.page.keyboard.press("Enter")
        first.expect("#status").to_have_text("Please choose real or made.")
        first.page.keyboard.press("1")
        first.page.keyboard.press("2")  # the last one counts
        first.page.keyboard.press("Enter")
        first.at("Item", 2, total)
        second.at("Item", 1, total)
        second.page.tap('label:has([value="real"])')
        second.page.tap("#save")
        second.at("Item", 2, total)
        width = second.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"]
        assert first.messages == second.messages == []
        with StudyStore(folder) as store:
            assert {answer.annotator: answer.marks for answer in store.answers()} == {1: ("made",), 2: ("real",)}

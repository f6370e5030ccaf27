"""A study gone through in a real Chromium, from the link to the last item, by two annotators at once."""

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
    """One browser window; everything that its console says is kept."""

    def __init__(self, browser: Any, link: str, device: dict[str, Any]) -> None:
        self.context = browser.new_context(**device)
        self.context.set_default_timeout(180_000)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
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
        """Return what asserts of an element, waiting as long as a loaded machine may need."""
        from playwright.sync_api import LocatorAssertions, expect

        expect.set_options(timeout=180_000)
        found: LocatorAssertions = expect(self.page.locator(selector))
        return found

    def picture(self, to: Path) -> None:
        self.page.screenshot(path=str(to))


def _by_keys(one: Annotator, phase: str, position: int, total: int) -> None:
    one.at(phase, position, total)
    one.page.keyboard.press("5")
    one.page.keyboard.press("4")
    one.page.keyboard.press("Enter")
    if phase == "Training":
        one.page.wait_for_selector("#feedback:not([hidden])")
        one.page.keyboard.press("Enter")


def _by_touch(two: Annotator, phase: str, position: int, total: int) -> None:
    two.at(phase, position, total)
    two.page.tap("label:has([name=diagnosis][value='2'])")
    two.page.tap("label:has([name=realism][value='3'])")
    two.page.tap("#save")
    if phase == "Training":
        two.page.wait_for_selector("#feedback:not([hidden])")
        two.page.tap("#save")


def test_two_annotators_from_link_to_last_item(chromium: Any, folder: Path, tmp_path: Path) -> None:
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        two = Annotator(chromium, served.links[2], PHONE)
        for person in (one, two):
            person.shown("welcome")
            assert person.page.url.endswith(f":{served.port}/")  # the token left the address bar
            person.picture(tmp_path / "welcome.png")
        one.page.keyboard.press("Tab")
        one.page.focus("#begin")
        one.page.keyboard.press("Enter")
        two.page.tap("#begin")
        for position in range(1, 5):
            _by_keys(one, "Training", position, 4)
            _by_touch(two, "Training", position, 4)
        for person in (one, two):
            person.shown("turn")
        one.page.focus("#start-main")
        one.page.keyboard.press("Enter")
        two.page.tap("#start-main")
        with StudyStore(folder) as store:
            total = store.progress(1, "main")[0]
        for position in range(1, total + 1):
            if position == 5:  # another device, with the same link: back at the same place
                one.at("Item", 5, total)
                one.context.close()
                one = Annotator(chromium, served.links[1], DESKTOP)
            _by_keys(one, "Item", position, total)
            _by_touch(two, "Item", position, total)
        for person in (one, two):
            person.shown("done")
            assert person.said == []  # no error, nothing that the policy had to stop
        assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert two.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with StudyStore(folder) as store:
        for annotator, levels in ((1, (5, 4)), (2, (2, 3))):
            answers = [a for a in store.answers(annotator) if a.phase == "main"]
            assert len(answers) == total
            assert {(a.diagnosis, a.realism) for a in answers} == {levels}
            assert all(a.elapsed_ms > 0 for a in answers)


def test_looking_closer_going_back_and_what_is_not_whole(chromium: Any, folder: Path) -> None:
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        page = one.page
        one.shown("welcome")
        page.click("#begin")
        one.at("Training", 1, 4)
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
        one.at("Training", 2, 4)
        page.keyboard.press("b")
        one.at("Training", 1, 4)
        assert page.input_value("#comment") == "five 5 o f"
        assert page.is_checked("[name=diagnosis][value='4']")
        page.keyboard.press("p")
        assert page.is_visible("#pause[open]")
        page.click("#leave")
        one.shown("left")
        page.reload()
        assert "Open the link" in page.inner_text("main")


def test_enter_begins_starts_and_saves_after_a_tool_was_clicked(chromium: Any, folder: Path) -> None:
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        one.shown("welcome")
        one.page.keyboard.press("Enter")
        for position in range(1, 5):
            one.at("Training", position, 4)
            one.page.click("label:has([name=diagnosis][value='5'])")
            one.page.click("label:has([name=realism][value='4'])")
            one.page.click("#zoom-in")
            assert one.page.inner_text("#zoom-level") == "150 %"
            one.page.keyboard.press("Enter")
            one.page.wait_for_selector("#feedback:not([hidden])")
            one.page.keyboard.press("Enter")
        one.shown("turn")
        one.page.keyboard.press("Enter")
        one.shown("judge")
        assert one.page.inner_text("#phase") == "Item"
        one.page.focus("#zoom-in")  # reached by Tab a tool keeps its own keys
        one.page.keyboard.press("Enter")
        assert one.page.inner_text("#zoom-level") == "150 %"


def test_an_answer_waits_for_the_server(chromium: Any, folder: Path) -> None:
    """While nothing answers, the page says so and keeps the answer; it arrives once, when the line is back."""
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        one.shown("welcome")
        one.page.click("#begin")
        one.at("Training", 1, 4)
        one.context.set_offline(True)
        one.page.keyboard.press("5")
        one.page.keyboard.press("5")
        one.page.keyboard.press("Enter")
        one.expect("#status").to_contain_text("Not saved yet")
        with StudyStore(folder) as store:
            assert store.answers() == []
        one.context.set_offline(False)
        one.page.wait_for_selector("#feedback:not([hidden])")
        with StudyStore(folder) as store:
            assert len(store.answers(history=True)) == 1


def test_what_is_changed_while_an_answer_is_on_its_way_is_not_lost(chromium: Any, folder: Path) -> None:
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        one.shown("welcome")
        one.page.click("#begin")
        one.at("Training", 1, 4)
        one.context.set_offline(True)
        for key in ("5", "5", "Enter"):
            one.page.keyboard.press(key)
        one.expect("#status").to_contain_text("Not saved yet")
        one.page.click("label:has([name=realism][value='1'])")
        one.context.set_offline(False)
        one.expect("#status").to_contain_text("Saved as it was")
        assert one.page.is_checked("[name=realism][value='1']")
        one.page.keyboard.press("Enter")
        one.page.wait_for_selector("#feedback:not([hidden])")
        with StudyStore(folder) as store:
            assert [a.realism for a in store.answers(history=True)] == [5, 1]
            assert [a.realism for a in store.answers()] == [1]


def test_the_next_item_waits_for_the_server(chromium: Any, folder: Path) -> None:
    """Neither an item nor a frame that is lost on its way ends the page."""
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        one.shown("welcome")
        lost: list[str] = []

        def lose(route: Any) -> None:
            name = "item" if "/api/item/" in route.request.url else "image"
            if lost.count(name) < 2:
                lost.append(name)
                route.abort()
            else:
                route.continue_()

        one.context.route("**/api/item/**", lose)
        one.context.route("**/image/**", lose)
        one.page.click("#begin")
        one.at("Training", 1, 4)
        assert sorted(lost) == ["image", "image", "item", "item"]
        assert one.page.inner_text("#status") == ""
        assert one.page.evaluate("[...document.querySelectorAll('.view img')].every(i => i.naturalWidth > 0)")


def test_artefacts_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    made = make_small(
        tmp_path,
        tmp_path / "frames",
        kind="artefacts",
        frames="3",
        per_relation="0",
        training="1",
        catch="0",
        repeat="0",
    )
    with serving(made.folder) as served:
        one = Annotator(chromium, served.links[1], PHONE)
        one.shown("welcome")
        one.page.tap("#begin")
        one.at("Training", 1, 1)
        one.page.keyboard.press("9")
        one.page.keyboard.press("Enter")
        one.page.wait_for_selector("#feedback:not([hidden])")
        one.page.tap("#save")
        one.shown("turn")
        one.page.tap("#start-main")
        for position, keys in enumerate(("38", "0", "303"), start=1):
            one.at("Item", position, 3)
            for key in keys:
                one.page.keyboard.press(key)
            one.page.keyboard.press("Enter")
        one.shown("done")
        assert one.said == []
    with StudyStore(made.folder) as store:
        marks = [a.marks for a in store.answers(1) if a.phase == "main"]
    assert marks == [("blood", "white_balance"), (), ("white_balance",)]


def test_real_or_made_by_keys_and_by_touch(chromium: Any, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    options = {"blind": "true", "annotators": "2", "per_relation": "4", "training": "0", "catch": "0"}
    make_small(tmp_path, folder, **options)
    with serving(folder) as served:
        one = Annotator(chromium, served.links[1], DESKTOP)
        two = Annotator(chromium, served.links[2], PHONE)
        for annotator in (one, two):
            annotator.shown("welcome")
            assert annotator.page.inner_text("h1") == "Real or made?"
            annotator.page.click("#begin")
        with StudyStore(folder) as store:
            total = store.progress(1, "main")[0]
        one.at("Item", 1, total)
        one.page.keyboard.press("Enter")
        one.expect("#status").to_have_text("Please choose real or made.")
        one.page.keyboard.press("1")
        one.page.keyboard.press("2")  # the last one counts
        one.page.keyboard.press("Enter")
        one.at("Item", 2, total)
        two.at("Item", 1, total)
        two.page.tap('label:has([value="real"])')
        two.page.tap("#save")
        two.at("Item", 2, total)
        width = two.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"]
        assert one.said == two.said == []
        with StudyStore(folder) as store:
            assert {answer.annotator: answer.marks for answer in store.answers()} == {1: ("made",), 2: ("real",)}

"""Reviews of prompts in a real Chromium: at 390 pixels, by keyboard, with a hostile caption."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.reading.reviewed import read_reviews
from medtest.study.server.guard import site_of
from medtest.study.server.review import build_review

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"),
]
HOSTILE = '<img src=x onerror="document.title=1"></blockquote><script>document.title=2</script> two dogs on a bed'
TEXTS = ["A man riding a horse and wearing a red hat.", HOSTILE, "Ein Hund sitzt auf einem Stuhl"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        site, target = site_of("127.0.0.1", listener.getsockname()[1]), tmp_path / "prompts.txt.reviewed.json"
        app = build_review(TEXTS, read_prompt, target, site, "token")
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"{site.url}/a/token", target
        server.should_exit = True
        thread.join(30)


def test_a_prompt_is_corrected_by_keyboard_on_a_phone(served: tuple[str, Path]) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    link, target = served
    console: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page: Any = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.set_default_timeout(90_000)
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(link)
        expect = sync_api.expect
        expect.set_options(timeout=90_000)
        expect(page.locator("#text")).to_have_text(TEXTS[0])
        expect(page.locator("#save")).to_have_text("Accept")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("Control+Enter")
        expect(page.locator("#text")).to_have_text(HOSTILE)
        expect(page.locator("#confidence")).to_have_text("not understood")
        assert page.title() == "Review of prompts"
        assert page.locator("#text *").count() == 0 and page.evaluate("document.documentElement.scrollWidth") <= 390
        # Tab reaches every control; Enter removes the entities that are none.
        while page.locator("#entities li").count() > 2:
            page.locator("#entities li button").first.focus()
            page.keyboard.press("Enter")
        page.locator("#add-triple").focus()
        if page.locator("#triples li").count() == 0:
            page.keyboard.press("Enter")
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Tab")
            page.keyboard.type("on")
            page.keyboard.press("Tab")
            page.keyboard.press("End")
        expect(page.locator("#save")).to_have_text("Save the correction")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#text")).to_have_text(TEXTS[2])
        page.locator("#back").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#verdict")).to_have_text("corrected")
        assert page.evaluate("document.activeElement.id") == "prompt-title"
        browser.close()
    assert not console
    reviews = read_reviews(target)
    assert (reviews[TEXTS[0]].verdict, reviews[HOSTILE].verdict) == ("accepted", "corrected")
    assert reviews[HOSTILE].reading.pool.named() == (("dog", "on", "bed"),)

"""The documentation as a site: it builds strictly, every link leads somewhere, and it needs no network."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
"""Attributes from which a browser loads by itself, by element."""
UNLOADED = ("canonical", "prev", "next", "edit")
"""Kinds of <link> that point somewhere and load nothing."""
OUTSIDE = re.compile(r"(?:[a-z]+:)?//|mailto:|data:")


class Page(HTMLParser):
    """Anchors and links of a page, the files that a browser loads for it, and the targets of both within the site."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        inside = [link for link in self.links + self.loaded if not OUTSIDE.match(link)]
        parts = {unquote(link).partition("#") for link in inside}
        self.targets = {(Path(normpath(path.parent / name)) if name else path, anchor) for name, _, anchor in parts}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in UNLOADED:
            self.loaded.append(values[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site as `make docs` builds it."""
    pytest.importorskip("mkdocs")
    out = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_file_and_an_anchor(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 60
    lost = []
    for path, page in pages.items():
        if path.name == "404.html":  # a server shows it at any address: its links begin at the root
            continue
        for target, anchor in page.targets:
            if not target.is_file():
                lost.append(f"{path.relative_to(site)} → {target.relative_to(site)}: no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                lost.append(f"{path.relative_to(site)} → {target.relative_to(site)}#{anchor}: no such anchor")
    assert lost == []


@pytest.mark.slow
def test_every_page_is_reached_from_the_first(site: Path, pages: dict[Path, Page]) -> None:
    reached, waiting = set(), [site / "index.html"]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        waiting += {target for target, _ in pages[path].targets if target in pages and target not in reached}
    assert {path.name for path in pages if path not in reached} == {"404.html"}


ANSWERS = {
    "install": ("install.html", "make demo"),
    "own pictures": ("bring-your-data.html", "suite=polyp_seg_folder"),
    "own network": ("bring-your-network.html", "model=callable"),
    "meaning of EFR": ("glossary.html#efr-error-finding-rate", "Violations divided by judged cases"),
    "exit codes": ("read-the-results.html#exit-codes", "interrupted"),
    "resume after a kill": ("read-the-results.html#resume-an-interrupted-run", "same command again"),
    "compare two systems": ("ci.html#compare-finished-runs", "medtest compare"),
    "write a relation": ("add-a-relation.html", "medtest new relation"),
    "share a suite offline": ("sharing.html", "medtest pack"),
    "run on a GPU": ("write-a-suite.html#from-the-command-line", "CPU or GPU"),
    "number of pictures": ("ci.html#how-many-seeds-images", "73 for 5"),
    "licence of the bundled networks": ("published-networks.html#the-compact-networks", "no medical devices"),
    "keep patients' pictures out": ("bring-your-data.html#patient-data", "privacy.images=none"),
}


@pytest.mark.slow
@pytest.mark.parametrize("question", ANSWERS)
def test_answers_are_one_click_from_the_first_page(site: Path, pages: dict[Path, Page], question: str) -> None:
    """The first page links to the section that has the answer."""
    link, answer = ANSWERS[question]
    assert link in pages[site / "index.html"].links
    name, _, anchor = link.partition("#")
    html = (site / name).read_text(encoding="utf-8")
    article = html[html.index("<article") : html.index("</article>")]
    section = article[article.index(f'id="{anchor}"') :].partition("<h2")[0] if anchor else article
    assert answer in re.sub(r"<[^>]+>", "", section)


@pytest.mark.slow
def test_nothing_is_loaded_from_outside(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert [source for source in page.loaded if OUTSIDE.match(source) and not source.startswith("data:")] == [], (
            path
        )
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.slow
def test_links_to_the_repository_name_existing_files(pages: dict[Path, Page]) -> None:
    repository = runpy.run_path(str(ROOT / "scripts" / "site_hook.py"))["REPOSITORY"]
    links = {
        link for page in pages.values() for link in page.links if re.match(rf"{repository}/(blob|tree)/main/", link)
    }
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link.split("/main/")[1].partition("#")[0]).exists()] == []


def test_the_gallery_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "relation_gallery.py"))
    assert script["draw"]() == script["OUT"].read_text(encoding="utf-8"), "run python scripts/relation_gallery.py"


def test_readme_is_short_and_begins_with_a_failure() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    picture = re.search(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert picture and text.index(picture[0]) < 40
    assert (ROOT / picture[1]).stat().st_size <= 200_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def _open(chromium: Any, path: Path, width: int) -> tuple[Any, list[str]]:
    """Open a page from disk and list the outside addresses that it requests."""
    addresses: list[str] = []
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "blob:", "data:")) else addresses.append(request.url),
    )
    page.goto(path.as_uri())
    return page, addresses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("exit codes", "read-the-results.html#exit-codes"),
        ("EFR", "glossary.html"),
        ("SKIP", "glossary.html#verdict"),
        ("how many images", "ci.html#how-many-seeds-images"),
    ],
)
def test_search_works_from_disk(site: Path, chromium: Any, words: str, target: str) -> None:
    page, addresses = _open(chromium, site / "index.html", 1280)
    page.locator("input.md-search__input").first.fill(words)
    page.locator(".md-search-result__link").first.wait_for()
    links = page.locator(".md-search-result__link").evaluate_all(
        "links => links.map(link => link.href.replace(/[?][^#]*/, ''))"
    )
    assert any(target in link for link in links), links
    assert addresses == []
    page.close()


@pytest.mark.slow
def test_light_and_dark(site: Path, chromium: Any) -> None:
    page, addresses = _open(chromium, site / "glossary.html", 1280)
    assert page.locator("body").get_attribute("data-md-color-scheme") == "default"
    page.locator("label[title='Dark mode']").click()
    assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    assert addresses == []
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["index.html", "tutorial.html", "gallery.html", "read-the-results.html", "api/runs.html"]
)
def test_pages_fit_a_phone(site: Path, chromium: Any, name: str) -> None:
    page, addresses = _open(chromium, site / name, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert addresses == []
    page.close()

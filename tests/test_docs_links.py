"""Links, pictures, files and functions that README and docs name exist, and every page is reached."""

from __future__ import annotations

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [ROOT / "README.md", *(ROOT / name for name in BESIDE), *sorted((ROOT / "docs").rglob("*.md"))]


def _links(page: Path) -> list[tuple[Path, str]]:
    """Return the files that a page points to, itself where a link names none, with the anchor or ""."""
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    parts = [target.partition("#") for target in targets if not re.match(r"[a-z]+:", target)]
    return [((page.parent / file).resolve() if file else page.resolve(), anchor) for file, _, anchor in parts]


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them; those of one text are numbered."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    counts: Counter[str] = Counter()
    anchors = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
        counts[anchor] += 1
    return anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_pictures_exist(page: Path) -> None:
    for file, anchor in _links(page):
        assert file.exists(), f"{page.name} points to {file.name}, which is not there"
        if anchor:
            assert anchor in _anchors(file), f"{page.name} points to {file.name}#{anchor}; its headings have none such"


def test_every_page_is_reached_and_every_picture_shown() -> None:
    reached, waiting = set(), [PAGES[0].resolve()]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        if page.suffix == ".md" and page.exists():
            waiting += [file for file, _ in _links(page) if file not in reached]
    pictures = [path for path in (ROOT / "docs" / "images").rglob("*") if path.is_file()]
    lost = [str(path.relative_to(ROOT)) for path in (*PAGES, *pictures) if path.resolve() not in reached]
    assert not lost, f"no page leads to {', '.join(lost)}"


def test_files_that_pages_name_exist() -> None:
    """A path in `code` below a folder of the repository exists; the page on adding a part names a file to write."""
    own = r"`((?:benchmarks|conf|docs|medtest|scripts|suites|tests)/[\w./-]+)`"
    for page in PAGES:
        if page.name != "add-a-relation.md":
            for name in re.findall(own, page.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{page.name} names {name}, which is not there"


def test_functions_on_the_map_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py):([\w.]+)`", text)
    assert len(named) > 20
    assert [f"{path}:{name}" for path, name in named if not _defines(ROOT / "medtest" / path, name)] == []
    files = set(re.findall(r"`([\w/]+/\w+\.py)", text))
    assert [path for path in sorted(files) if not any((at / path).is_file() for at in (ROOT, ROOT / "medtest"))] == []


def _defines(path: Path, name: str) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    for part in name.split("."):
        definitions = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part]
        if not definitions:
            return False
        body = definitions[0].body
    return True


@pytest.mark.slow
def test_the_picture_of_the_map_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "map_picture.py"))
    assert script["draw"]() == script["OUT"].read_text(encoding="utf-8"), "run python scripts/map_picture.py"

"""README and docs keep to the rules of ``styles/Medtest``, which Vale applies too.

Rules of the kinds ``existence`` and ``substitution`` mean the same here as in Vale: a list of regular expressions,
matched as whole words in prose, not in code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STYLE = ROOT / "styles" / "Medtest"
KEYS = {
    "existence": {"extends", "message", "level", "ignorecase", "tokens"},
    "substitution": {"extends", "message", "level", "ignorecase", "swap"},
}
"""Keys of a rule whose meaning this test knows."""


def _rules() -> Iterator[tuple[re.Pattern[str], dict[str, str], str]]:
    """Yield the pattern of each rule, its substitutes by pattern, and its message."""
    for path in sorted(STYLE.glob("*.yml")):
        rule: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert set(rule) == KEYS[rule["extends"]], path
        substitutes: dict[str, str] = rule.get("swap", {})
        words = "|".join(f"(?:{word})" for word in substitutes or rule["tokens"])
        yield re.compile(rf"\b(?:{words})\b", re.IGNORECASE if rule["ignorecase"] else 0), substitutes, rule["message"]


RULES = list(_rules())


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, cells and headings of a page: first line, and text without code and addresses."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token in tokens:
        if token.type == "inline" and token.map and token.children:
            signs = {"softbreak": "\n", "hardbreak": "\n", "code_inline": "*"}
            words = (child.content if child.type == "text" else signs.get(child.type, "") for child in token.children)
            yield token.map[0] + 1, "".join(words)


def findings(text: str) -> list[tuple[int, str]]:
    """Return the line and message of every match in a page."""
    results = []
    for first, block in _prose(text):
        for pattern, substitutes, message in RULES:
            for match in pattern.finditer(block):
                better = [new for old, new in substitutes.items() if re.fullmatch(old, match[0], re.IGNORECASE)]
                line = first + block[: match.start()].count("\n")
                results.append((line, message % ((better[0], match[0]) if substitutes else match[0])))
    return sorted(results)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_keep_to_the_style(page: Path) -> None:
    where = page.relative_to(ROOT)
    assert [f"{where}:{line}: {message}" for line, message in findings(page.read_text(encoding="utf-8"))] == []


def test_the_style_finds_words_in_prose_alone() -> None:
    page = "# A page\n\nFigures are made\nanew. `nobody` is code,\nand so is\n\n    whatever is in a block\n\n"
    page += "```\nanew\n```\n\n- Of course [anew](anew.md) is a link.\n\n"
    page += "| a | likewise |\n|---|---|\n| of its own | own |\n"
    assert findings(page) == [
        (4, "Write 'again' instead of 'anew'."),
        (13, "Leave out 'Of course'."),
        (13, "Write 'again' instead of 'anew'."),
        (15, "Write 'also' instead of 'likewise'."),
        (17, "Write 'its own, or separate' instead of 'of its own'."),
    ]
    assert findings("Renewed, unlikewise and therein-after.\n") == [(1, "Write 'in it' instead of 'therein'.")]


def test_vale_reads_the_same_rules() -> None:
    settings = (ROOT / ".vale.ini").read_text(encoding="utf-8")
    assert re.search(r"^StylesPath = styles$", settings, re.MULTILINE)
    assert re.search(r"^\[\*\.md\]\nBasedOnStyles = Medtest$", settings, re.MULTILINE)
    assert len(RULES) == len(list(STYLE.iterdir())) > 1

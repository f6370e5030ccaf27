"""Frozen records give the same tables and report texts, byte for byte, on any machine.

``tests/data/golden/records/<suite>/<system>/<digest>`` holds runs on bundled phantoms; ``…/expected/<suite>`` holds
the output of ``medtest tables``: unchanged tables, pages as text without pictures, times and versions. If results
change on purpose, ``pytest --remake tests/cli/test_golden.py`` writes the expected files again, and the commit
explains it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from frozen_folders import DATA, copied
from rich.console import Console

import medtest
from medtest.cli.app import run_app
from medtest.cli.results.tables import remake_tables

GOLDEN = DATA / "golden"
RECORDS = GOLDEN / "records"
SUITES = sorted(path.name for path in RECORDS.iterdir())
PUBLISHED = DATA / "alpha_sigma" / "rip_test_liver_segmentation.dat"

_PICTURES = ("svg", "style", "script", "head")
_BLOCKS = re.compile(r"h\d|p|div|section|tr|li|summary|details|figcaption|caption|header|footer|nav|pre|dt|dd|br|table")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_TABLES = (".csv", ".tex", ".dat")

Expected = Callable[[Path, Mapping[str, str]], None]


class Words(HTMLParser):
    """The text of a page: one block per line, separated cells, no drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[list[str]] = [[]]
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in _PICTURES
        if _BLOCKS.fullmatch(tag):
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("|")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in _PICTURES
        if _BLOCKS.fullmatch(tag):
            self.lines.append([])

    def handle_data(self, data: str) -> None:
        if not self._skipped and data.strip():
            self.lines[-1].append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return "".join(f"{' '.join(line)}\n" for line in self.lines if line)


def words_of(page: Path, versions: Iterable[str]) -> str:
    words = Words()
    words.feed(page.read_text(encoding="utf-8"))
    text = _TIME.sub("TIME", words.text)
    for version in versions:
        text = text.replace(version, "VERSION")
    return text


def made_in(folder: Path) -> dict[str, str]:
    """Return the texts of all tables and pages below a folder."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("run.json")]
    versions = {medtest.__version__, *(str(run["versions"]["medtest"]) for run in runs)}
    texts = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".html":
            texts[name.removesuffix(".html") + ".txt"] = words_of(path, versions)
        elif path.suffix in _TABLES:
            texts[name] = path.read_bytes().decode()
    return texts


@pytest.mark.parametrize("suite", SUITES)
def test_tables_and_reports_of_frozen_records(suite: str, tmp_path: Path, expected: Expected) -> None:
    folders = copied(RECORDS, suite, tmp_path)
    records = {folder: (folder / "records.parquet").read_bytes() for folder in folders}
    remake_tables(tmp_path / "outputs" / suite, console=Console(quiet=True))
    texts = made_in(tmp_path / "outputs" / suite)
    assert sum(name.endswith("report.txt") for name in texts) >= len(folders)
    assert str(tmp_path) not in "".join(texts.values())
    assert {folder: (folder / "records.parquet").read_bytes() for folder in folders} == records
    expected(GOLDEN / "expected" / suite, texts)


def test_tables_of_a_published_series(tmp_path: Path, expected: Expected, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["alpha-sigma", str(PUBLISHED), "--out", str(tmp_path / "made"), "--csv"]) == 0
    shown = capsys.readouterr().out.split("\nwrote ")[0]
    expected(GOLDEN / "expected" / "alpha_sigma", {**made_in(tmp_path / "made"), "shown.txt": f"{shown}\n"})


def test_frozen_records_and_their_expected_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 3_000_000

"""Evidence of runs: the document, its bill of materials, its list of files, its signature."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from evidence_parts import HOSTILE, SUITE, freeze_plan, run, write_suite

from medtest.cli.app import run_app
from medtest.core.errors import MissingSystemLibrary, OutputProblem, UserMistakes
from medtest.evidence.checking import FileState, check_list, listed_in
from medtest.evidence.document import CHAPTERS
from medtest.evidence.reading import RunEvidence
from medtest.evidence.writing import write_evidence

TITLES = [title for _, title in CHAPTERS]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with a run that follows its frozen plan except for one gate."""
    home = tmp_path_factory.mktemp("home")
    suite = write_suite(home)
    freeze_plan(suite, home)
    run(suite, home)
    write_suite(home, SUITE.replace("relation: blur, max_percent: 100", "relation: blur, max_percent: 50"))
    run(suite, home)
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the home for a test that changes it."""
    shutil.copytree(finished, tmp_path / "home")
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def folder_of(home: Path) -> Path:
    return next((home / "outputs" / "tied").glob("*/*/run.json")).parent


class Page(HTMLParser):
    """Texts of a page: chapters, and the cells of the tables of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.chapters: dict[str, list[list[str]]] = {}
        self.tags: list[str] = []
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "h2":
            self.chapters[str(dict(attributes)["id"])] = []
        if tag == "tr":
            self.chapters[next(reversed(self.chapters))].append([])
        if tag in ("td", "th"):
            self._cell = True
            self.chapters[next(reversed(self.chapters))][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.chapters[next(reversed(self.chapters))][-1][-1] += data


@pytest.mark.slow
def test_the_document_has_every_chapter_and_traces_hazards_to_cases(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written = write_evidence([folder_of(home)], out)
    text = (out / "evidence.html").read_text(encoding="utf-8")
    page = Page(text)
    assert list(page.chapters) == [name for name, _ in CHAPTERS]
    rows = [row for row in page.chapters["trace"] if len(row) == 6]
    blur = next(row for row in rows if row[2] == "blur")
    assert blur[0].startswith("HAZ-1: missed") and "HAZ-1" in blur[0].split("; ")  # of the relation, and of the gate
    assert blur[1] == "SRS-14: blur"
    efr = RunEvidence.read(folder_of(home)).material.tables.efr
    cell = efr[(efr["relation"] == "blur") & (efr["severity"] == "all") & (efr["dataset"] == "all")].iloc[0]
    assert f"{cell['violations']:.0f} of {cell['cases']:.0f} cases" in blur[4]
    overall = next(row for row in rows if row[2] == "all relations")
    assert overall[1] == "SRS-10" and overall[0] == "not stated"
    assert not written.held  # no violation at all is the bound of the second gate
    assert re.search(r"relation contrast", text)  # has no requirement


def test_a_gate_changed_after_the_plan_is_a_deviation(home: Path, tmp_path: Path) -> None:
    write_evidence([folder_of(home)], tmp_path / "out")
    page = Page((tmp_path / "out" / "evidence.html").read_text(encoding="utf-8"))
    rows = [(row[0], row[1]) for row in page.chapters["deviations"]]
    assert ("Differs from the plan", "gates.0.max_percent: 100.0 → 50.0") in rows
    assert any(kind == "Other gates" and "100" in words for kind, words in rows)  # they were judged before
    assert "differ from the frozen plan" in RunEvidence.read(folder_of(home)).caution


def test_other_data_than_planned_are_a_deviation(home: Path, tmp_path: Path) -> None:
    copy = folder_of(home) / "frozen_plan.json"
    plan = json.loads(copy.read_text(encoding="utf-8"))
    assert not [kind for kind, _ in RunEvidence.read(folder_of(home)).deviations() if kind.startswith("Data")]
    from medtest.runner.reporting.frozen import sealed

    del plan["hash"]
    plan["data"]["seeds"][0][2] = "0" * 64
    plan["data"]["seeds"].append(["phantoms", "phantom-9999", "1" * 64, ""])
    other = sealed(plan)
    copy.write_text(json.dumps(other), encoding="utf-8")
    assert RunEvidence.read(folder_of(home)).plan is None  # the run states another plan
    stated = json.loads((folder_of(home) / "run.json").read_text(encoding="utf-8"))
    stated["frozen"]["hash"] = other["hash"]
    (folder_of(home) / "run.json").write_text(json.dumps(stated), encoding="utf-8")
    deviations = list(RunEvidence.read(folder_of(home)).deviations())
    kinds = dict(deviations)
    assert kinds["Data differ from the plan"].startswith("1 source")
    assert kinds["Data not run"].startswith("1 planned")
    changed = [words for kind, words in deviations if kind == "Changed file"]
    assert any(words.startswith("frozen_plan.json") for words in changed)


def test_hostile_text_is_escaped(home: Path, tmp_path: Path) -> None:
    write_evidence([folder_of(home)], tmp_path / "out")
    text = (tmp_path / "out" / "evidence.html").read_text(encoding="utf-8")
    assert HOSTILE not in text and "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "script" not in Page(text).tags


def test_the_bill_of_materials_follows_the_schema_and_lists_the_lock(home: Path, tmp_path: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    write_evidence([folder_of(home)], tmp_path / "out")
    text = (tmp_path / "out" / "evidence.cdx.json").read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    listed = {component["name"]: component for component in json.loads(text)["components"]}
    plan = json.loads((folder_of(home) / "frozen_plan.json").read_text(encoding="utf-8"))
    packages = {name: version for name, version in plan["packages"].items() if name not in ("machine", "system")}
    assert {name: component["version"] for name, component in listed.items()} == packages
    assert listed["numpy"]["purl"] == f"pkg:pypi/numpy@{packages['numpy']}"


def test_without_the_extra_there_is_html_and_a_notice(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cyclonedx.model.bom", "weasyprint"):
        monkeypatch.setitem(sys.modules, name, None)
    written = write_evidence([folder_of(home)], tmp_path / "out")
    assert [path.name for path in written.files] == ["evidence.html", "evidence.sha256"]
    assert "medtest[evidence]" in written.notices[0]
    with pytest.raises(MissingSystemLibrary, match="PDF needs the extra evidence"):
        write_evidence([folder_of(home)], tmp_path / "file.pdf")
    assert not (tmp_path / "file.html").exists()


@pytest.mark.slow
def test_the_pdf_opens_and_has_the_chapters_as_bookmarks(home: Path, tmp_path: Path) -> None:
    write_evidence([folder_of(home)], tmp_path / "file.pdf")
    assert (tmp_path / "file.html").is_file()
    content = (tmp_path / "file.pdf").read_bytes()
    assert content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")
    objects = b"\n".join(_inflate(content))
    titles = [_decode(title) for title in re.findall(rb"/Title ?(\(.*?[^\\]\)|<[0-9a-fA-F]+>)", objects, re.DOTALL)]
    numbered = [f"{number} {title}" for number, title in enumerate(TITLES, start=1)]
    assert [title for title in titles if title in numbered] and set(numbered) <= set(titles)
    boxes = {tuple(round(float(side)) for side in box.split()) for box in re.findall(rb"/MediaBox ?\[(.*?)\]", objects)}
    assert boxes == {(0, 0, 595, 842)}  # A4 in points
    assert b"/URI (http" not in objects


def _inflate(content: bytes) -> Iterator[bytes]:
    """Yield a PDF and the content of its compressed streams."""
    yield content
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL):
        try:
            yield zlib.decompress(match[1])
        except zlib.error:
            continue


def _decode(title: bytes) -> str:
    raw = bytes.fromhex(title[1:-1].decode()) if title.startswith(b"<") else title[1:-1]
    return raw.decode("utf-16") if raw.startswith(b"\xfe\xff") else raw.decode("latin-1")


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def run_check(capsys: pytest.CaptureFixture[str], *tokens: str | Path) -> tuple[int, str]:
    capsys.readouterr()
    code = run_app(["check", *map(str, tokens)])
    return code, capsys.readouterr().out


def test_check_finds_a_tampered_file_of_a_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(home)
    assert run_check(capsys, folder)[0] == 0
    with (folder / "tables" / "efr.csv").open("a") as file:
        file.write("1\n")
    (folder / "report.html").unlink()
    code, output = run_check(capsys, folder)
    assert code == 1
    assert "changed: tables/efr.csv" in output and "missing: report.html" in output


def test_check_verifies_a_signature_and_its_key(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, other, out = make_key(tmp_path / "ours"), make_key(tmp_path / "other"), tmp_path / "out"
    assert run_app(["evidence", "tied/red-red", "--out", str(out), "--sign", str(own)]) == 0
    code, output = run_check(capsys, out)
    assert code == 0 and "SHA256:" in output
    assert run_check(capsys, out, "--signers", f"{own}.pub")[0] == 0
    assert run_check(capsys, out, "--signers", f"{other}.pub")[0] == 1
    allowed = tmp_path / "allowed_signers"
    allowed.write_text(f"qa@example.org {Path(f'{own}.pub').read_text()}", encoding="utf-8")
    code, output = run_check(capsys, out / "evidence.html", "--signers", allowed)
    assert code == 0 and "qa@example.org" in output
    with (out / "evidence.html").open("a") as file:
        file.write(" ")
    code, output = run_check(capsys, out, "--signers", f"{own}.pub")
    assert code == 1 and "changed: evidence.html" in output
    index = out / "evidence.sha256"
    index.write_text(index.read_text(encoding="utf-8").replace("evidence.html", "evidence.htm"), encoding="utf-8")
    code, output = run_check(capsys, index, "--signers", f"{own}.pub")
    assert code == 1 and "NOT GOOD" in output
    (out / "evidence.sha256.sig").unlink()
    assert run_check(capsys, index, "--signers", f"{own}.pub")[0] == 1  # nothing is signed


def test_check_refuses_a_document_that_the_list_does_not_name(tmp_path: Path) -> None:
    document, index = tmp_path / "evidence.pdf", tmp_path / "evidence.sha256"
    document.write_bytes(b"old")
    index.write_text(f"{'0' * 64}  evidence.html\n", encoding="utf-8")
    assert listed_in(document) is None
    index.write_text(f"{'0' * 64}  evidence.pdf\n", encoding="utf-8")
    assert listed_in(document) == index


def test_a_list_is_read_line_by_line_and_devices_are_not(tmp_path: Path) -> None:
    index = tmp_path / "list.sha256"
    name = "a\u2028b.png"
    (tmp_path / name).write_bytes(b"")
    empty = hashlib.sha256(b"").hexdigest()
    index.write_text(f"{empty}  {name}\n{empty}  /dev/zero\n{empty}  \0\n", encoding="utf-8")
    assert list(check_list(index).values()) == [FileState.SAME, FileState.MISSING, FileState.MISSING]
    index.write_text("", encoding="utf-8")
    with pytest.raises(OutputProblem):
        list(check_list(index))


def test_check_verifies_a_frozen_plan(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = make_key(tmp_path / "key")
    plan = tmp_path / "plan.json"
    tokens = [f"suite={home / 'tied.yaml'}", "model=pranet", "limit=1", f"to={plan}", "--sign", str(key)]
    assert run_app(["freeze", *tokens]) == 0
    assert run_check(capsys, plan, "--signers", f"{key}.pub")[0] == 0
    plan.write_text(plan.read_text(encoding="utf-8").replace('"seed": 7', '"seed": 8'), encoding="utf-8")
    assert run_check(capsys, plan)[0] == 1


@pytest.mark.slow
def test_foreign_files_are_never_overwritten(home: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "evidence.html").write_text("mine", encoding="utf-8")
    with pytest.raises(UserMistakes, match="--out"):
        write_evidence([folder_of(home)], tmp_path / "out")
    assert (tmp_path / "out" / "evidence.html").read_text(encoding="utf-8") == "mine"
    with pytest.raises(UserMistakes, match="--sign"):
        write_evidence([folder_of(home)], tmp_path / "new", key=tmp_path / "no-key")
    with pytest.raises(UserMistakes, match="--out"):
        write_evidence([folder_of(home)], tmp_path / "new.html")
    write_evidence([folder_of(home)], tmp_path / "again")
    write_evidence([folder_of(home)], tmp_path / "again")  # its own it may

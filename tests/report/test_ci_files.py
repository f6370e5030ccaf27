"""Files of a run for continuous integration, read by independent parsers."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from report_parts import invocation, leave_run, make_suite

from medtest.report.ci.summary import escaped
from medtest.report.finish import finish
from medtest.report.views import remake
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion, Gate, PairedGate

HELD = Gate(max_percent=100.0)
POOL = Gate(score="iou", threshold=0.5, relation="contrast", max_percent=1.0)
CELL = Gate(relation="blur", severity="3", max_percent=1.0)


def _write(
    home: Path, mode: str, *gates: Gate, reason: str = "it broke", systems: tuple[str, ...] = ("alpha",)
) -> Path:
    suite = make_suite(gates=gates)
    outcome = leave_run(home, suite, systems, seeds=14, error_percent=0.5, reason=reason)
    finish(suite, invocation(home, junit=mode), outcome)
    return outcome.systems[0].folder


def _suites(folder: Path) -> dict[str, ET.Element]:
    return {str(element.get("name")): element for element in ET.parse(folder / "junit.xml").getroot()}  # noqa: S314 - ours


def _count_elements(suite: ET.Element) -> dict[str, int]:
    return {
        "tests": len(suite.findall("testcase")),
        **{f"{kind}s": len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error")},
        "skipped": len(suite.findall("testcase/skipped")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["cells", "cases"])
def test_attributes_agree_with_what_is_inside(tmp_path: Path, mode: str) -> None:
    suites = _suites(_write(tmp_path, mode, HELD, POOL, CELL))
    assert set(suites) == {"synthetic/alpha: gates", "synthetic/alpha"}
    for suite in suites.values():
        assert {name: int(str(suite.get(name))) for name in _count_elements(suite)} == _count_elements(suite)
        names = [(case.get("classname"), case.get("name")) for case in suite.iter("testcase")]
        assert len(set(names)) == len(names)
        assert all(len(case) <= 1 for case in suite.iter("testcase"))  # one of failure, error, skipped
        order = [child.tag for child in suite]
        assert order[0] == "properties" and order[-2:] == ["system-out", "system-err"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", str(suite.get("timestamp")))
        assert sum(float(str(case.get("time"))) for case in suite.iter("testcase")) == pytest.approx(
            float(str(suite.get("time"))), abs=0.3
        )


@pytest.mark.slow
def test_cells_fail_only_by_a_gate(tmp_path: Path) -> None:
    without = _suites(_write(tmp_path / "without", "cells"))
    assert list(without) == ["synthetic/alpha"] and _count_elements(without["synthetic/alpha"])["failures"] == 0
    suites = _suites(_write(tmp_path / "gated", "cells", HELD, POOL, CELL))
    failed = [
        case.get("name") for case in suites["synthetic/alpha"].iter("testcase") if case.find("failure") is not None
    ]
    assert failed == ["blur severity 3, phantoms"]
    gates = [str(case.get("name")) for case in suites["synthetic/alpha: gates"].iter("testcase")]
    assert len(gates) == 2 and not any("blur" in name for name in gates)
    broken = suites["synthetic/alpha"].find("testcase[@name='unchanged, phantoms']/error")
    assert broken is not None and str(broken.get("message")).endswith("of 14 not judged, mostly: it broke")


def test_cells_with_a_tolerated_share_of_errors_are_not_errors(tmp_path: Path) -> None:
    suite = replace(make_suite(), max_error_percent=50.0)
    outcome = leave_run(tmp_path, suite, seeds=14)
    finish(suite, invocation(tmp_path, junit="cells"), outcome)
    assert _count_elements(_suites(outcome.systems[0].folder)["synthetic/alpha"])["errors"] == 0


def test_cases_are_the_records(tmp_path: Path) -> None:
    folder = _write(tmp_path, "cases", CELL)
    suite = _suites(folder)["synthetic/alpha"]
    records = Records.read(folder)
    judged = status(records, Criterion())
    address = records.texts("address")
    addresses = {
        tag: {str(case.get("name")) for case in suite.iter("testcase") if case.find(tag) is not None}
        for tag in ("failure", "error", "skipped")
    }
    sources = records.sources
    broken = set(sources.loc[sources.verdict == "ERROR", "address"])
    assert addresses["failure"] == set(address[judged.violated]) and addresses["failure"]
    assert addresses["error"] == set(address[judged.error]) | broken
    assert addresses["skipped"] == set(address[judged.skipped | judged.source_failed])
    assert _count_elements(suite)["tests"] == len(records.followups) + len(sources)
    failure = next(suite.iter("failure"))
    assert re.fullmatch(r"Dice 0\.\d{3} → 0\.\d{3}", str(failure.get("message")))
    assert "medtest replay suite=synthetic phantoms/" in str(failure.text)


def test_strange_texts_are_text_for_an_independent_parser(tmp_path: Path) -> None:
    strange = 'a <b>&amp; "x" ]]> \x1b[31mred\x00 \ufffe \ud83d end'.encode("utf-8", "surrogatepass").decode(
        "utf-8", "replace"
    )
    folder = _write(tmp_path, "cases", reason=strange)
    raw = (folder / "junit.xml").read_bytes()
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", raw) and b"<b>" not in raw
    messages = {str(error.get("message")) for error in ET.fromstring(raw).iter("error")}  # noqa: S314 - ours
    assert len(messages) == 1 and next(iter(messages)).startswith('a <b>&amp; "x" ]]> \\x1b[31mred\\x00')


def test_junitparser_reads_it(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    read = junitparser.JUnitXml.fromfile(str(_write(tmp_path, "cases", POOL) / "junit.xml"))
    kinds = {type(result).__name__ for suite in read for case in suite for result in case.result}
    assert kinds == {"Failure", "Error", "Skipped"}


def test_no_path_of_this_machine_is_written(tmp_path: Path) -> None:
    folder = _write(tmp_path, "cases", CELL)
    for name in ("junit.xml", "summary.md", "result.json"):
        assert str(tmp_path) not in (folder / name).read_text(encoding="utf-8")


def test_summary_is_what_a_renderer_of_markdown_shows(tmp_path: Path) -> None:
    folder = _write(tmp_path, "", HELD, POOL, CELL)
    assert not (folder / "junit.xml").exists()
    text = (folder / "summary.md").read_text(encoding="utf-8")
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert html.count("<table>") == 2 and "2 of 3 gates failed" in html
    rates = html.split("<table>")[2]
    assert rates.count("<tr>") == 8 and "<td>white_balance</td>" in rates
    frame = Records.read(folder)
    judged = status(frame, Criterion())
    of_blur = frame.texts("relation") == "blur"
    assert f"<td>{judged.violated[of_blur].sum()} of {judged.case[of_blur].sum()}</td>" in rates


@pytest.mark.parametrize(
    "text",
    [
        "a|b",
        "<img src=x onerror=1>",
        "[x](http://evil.example)",
        "**b** _i_ `c` ~~s~~",
        "# head",
        "1. one",
        "- x",
        "--- x",
        "-1.5 + 2 points",
        "&lt;",
    ],
)
def test_markdown_shows_foreign_texts_unchanged(text: str) -> None:
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(escaped(text))
    shown = re.sub(r"</?p>|\n|\u200b", "", html)
    assert shown == text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    cell = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(f"| h |\n|---|\n| {escaped(text)} |")
    assert cell.count("<td>") == 1


def test_foreign_texts_mention_no_user_and_link_nothing() -> None:
    assert not re.search(r"@\w|(?<!&)#\d|://|www\.", escaped("@team see #12 at https://x.example or www.x.example"))


def test_result_is_json_without_nan_and_agrees_with_the_exit_code(tmp_path: Path) -> None:
    folder = _write(tmp_path, "cells", HELD, CELL)
    result = json.loads(
        (folder / "result.json").read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(name)
    )
    assert result["standing"] == "gate failed" and [gate["held"] for gate in result["gates"]] == [True, False]
    assert result["overall"]["violations"] == sum(
        cell["violations"] for cell in result["cells"] if cell["relation"] != "unchanged"
    )
    assert len(result["cells"]) == 31 and {cell["relation"] for cell in result["relations"]} >= {"blur", "unchanged"}


@pytest.mark.slow
def test_files_do_not_depend_on_the_place_of_the_folder(tmp_path: Path) -> None:
    folder = _write(tmp_path / "here", "cells", CELL)
    remake(folder, junit="cells")
    moved = tmp_path / "there"
    shutil.copytree(folder, moved)
    remake(moved, junit="cells")
    for name in ("junit.xml", "summary.md", "result.json"):
        assert (folder / name).read_bytes() == (moved / name).read_bytes(), name


@pytest.mark.slow
def test_a_finished_run_can_be_given_its_junit_later(tmp_path: Path) -> None:
    folder = _write(tmp_path, "")
    remake(folder, junit="cells")
    assert _count_elements(_suites(folder)["synthetic/alpha"])["tests"] == 31


@pytest.mark.slow
def test_typed_gates_are_kept(tmp_path: Path) -> None:
    folder = _write(tmp_path, "", CELL)
    finish(make_suite(), invocation(tmp_path), leave_run(tmp_path, make_suite(), seeds=14))
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["gates"] == [] and result["gates_before"]["held"] is False
    assert "Last evaluation of the gates" in (folder / "summary.md").read_text(encoding="utf-8")


def test_a_gate_on_an_unknown_run_is_an_error_there(tmp_path: Path) -> None:
    suite = make_suite(gates=(PairedGate(no_worse_than="synthetic/alpha"),))
    outcome = leave_run(tmp_path, suite, seeds=4)
    finish(suite, invocation(tmp_path, junit="cells"), outcome)
    gates = _suites(outcome.systems[0].folder)["synthetic/alpha: gates"]
    assert _count_elements(gates) == {"tests": 1, "failures": 0, "errors": 1, "skipped": 0}
    result = json.loads((outcome.systems[0].folder / "result.json").read_text(encoding="utf-8"))
    assert result["standing"] == "mistake"

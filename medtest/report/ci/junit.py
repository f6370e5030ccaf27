"""JUnit XML of one system, with a test case per gate and per cell or case.

JUnit has no single schema. The output fits the two most used ones: Ant's (one ``failure``, ``error`` or ``skipped`` per
test case; times without a zone; a host, here always ``localhost``) and Jenkins's, which GitLab follows. With ``cells``,
a cell fails only by a gate on that cell alone; a gate over several cells is a separate test case. A cell is an error
if none of its cases was judged, or if more of them failed than the suite allows for the whole run. It is skipped
if nothing failed and nothing was judged. With ``cases``, violations fail.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import IO, Literal, TypeAlias
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

import pyarrow as pa

from medtest.api.redact import visible
from medtest.core.cases import Verdict
from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.core.records import KEY_COLUMNS, addresses
from medtest.report.charts.heat import percent
from medtest.report.ci.cells import Row, cell_rows, gates_of_cells, rate_rows
from medtest.report.pages.browser.strips import replay_command
from medtest.report.pages.material import Material
from medtest.report.pages.words import counted, criterion_words, score_words, violations_of
from medtest.results.gating.gates import GateResult, describe
from medtest.results.records.records_io import Records, read_table
from medtest.results.records.status import status
from medtest.suite.model import PairedGate

Kind: TypeAlias = Literal["", "failure", "error", "skipped"]
_NO_XML = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (section 2.2), and C1 controls, which it discourages."""
_MOST_WORDS = 1000
_NO_TIME = "1970-01-01T00:00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class JUnitCase:
    """A JUnit test case.

    Attributes:
        group: Class name below the suite and the system.
        name: Name, the same in every run.
        kind: Outcome; "" if it passed.
        words: Reason for other outcomes.
        more: Details or a command to reproduce it, or "".
        seconds: Time its cases took.
    """

    group: str
    name: str
    kind: Kind = ""
    words: str = ""
    more: str = ""
    seconds: float = 0.0


def write_junit(material: Material, file: IO[bytes], *, cases: bool) -> None:
    """Write a system's JUnit XML.

    Args:
        material: The system's tables.
        file: Open binary file.
        cases: Whether a test case is a case of the records instead of a cell.

    Raises:
        OutputProblem: The records cannot be read.
    """
    cells = cell_rows(rate_rows(material))
    results = material.tables.gates
    of_one, others = ({}, list(results)) if cases else gates_of_cells(results, cells)
    name = f"{material.wanted.suite}/{material.system}"
    suites = [(f"{name}: gates", [_of_gate(result) for result in others])] if others else []
    test_cases = list(_cases(material) if cases else _cells(material, cells, of_one))
    suites.append((name, test_cases))
    root = Element("testsuites")
    for number, (title, listed) in enumerate(suites):
        printed = _account(material, [] if cases else cells) if listed is test_cases else ""
        root.append(_suite(material, title, number, listed, printed))
    indent(root, space="")
    ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def _suite(material: Material, title: str, number: int, listed: list[JUnitCase], printed: str) -> Element:
    kinds = Counter(case.kind for case in listed)
    attributes = {
        "name": title,
        "package": material.wanted.suite,
        "id": str(number),
        "hostname": "localhost",
        "timestamp": _time(str(material.run.get("finished_at") or "")),
        "tests": str(len(listed)),
        "failures": str(kinds["failure"]),
        "errors": str(kinds["error"]),
        "skipped": str(kinds["skipped"]),
        "time": f"{sum(case.seconds for case in listed):.3f}",
    }
    facts = {
        "suite_version": material.wanted.version,
        "system": material.system,
        "digest": str(material.run.get("digest") or material.folder.name),
        "violation": criterion_words(material),
        "partial": material.partial,
    }
    suite = Element("testsuite", {key: _clean(value) for key, value in attributes.items()})
    properties = SubElement(suite, "properties")
    for key, value in facts.items():
        if value:
            SubElement(properties, "property", {"name": key, "value": _clean(value)})
    for case in listed:
        _case(suite, material, case)
    SubElement(suite, "system-out").text = _clean(printed, most=1_000_000)
    SubElement(suite, "system-err")
    return suite


def _case(suite: Element, material: Material, case: JUnitCase) -> None:
    place = ".".join(part.replace(".", "_") for part in (material.wanted.suite, material.system, case.group) if part)
    attributes = {"classname": _clean(place), "name": _clean(case.name), "time": f"{case.seconds:.3f}"}
    element = SubElement(suite, "testcase", attributes)
    if not case.kind:
        return
    outcome = SubElement(element, case.kind, {"message": _clean(case.words)})
    if case.kind != "skipped":
        outcome.set("type", "error" if case.kind == "error" else "violation")
        outcome.text = _clean(case.more or case.words)


def _clean(text: str, *, most: int = _MOST_WORDS) -> str:
    cleaned = _NO_XML.sub("", visible(text))
    return cleaned if len(cleaned) <= most else f"{cleaned[: most - 1]}…"


def _time(finished: str) -> str:
    try:
        return datetime.fromisoformat(finished).strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return _NO_TIME


# --- gates and cells -------------------------------------------------------------------------------------------------


def _of_gate(result: GateResult) -> JUnitCase:
    kind: Kind = "" if result.held else "error" if result.unlike else "failure"
    gate = result.gate
    if isinstance(gate, PairedGate):  # The name is the same in every run; the sentence says which run is meant.
        gate = replace(gate, no_worse_than=gate.no_worse_than.partition(" (")[0])
    more = (
        "".join(f"{condition.verdict}: {condition.sentence}\n" for condition in result.conditions)
        if kind == "failure"
        else ""
    )
    return JUnitCase(group="gates", name=describe(gate), kind=kind, words=result.sentence, more=more)


def _cells(
    material: Material, cells: Iterable[Row], of_one: dict[tuple[str, str, str], list[GateResult]]
) -> Iterator[JUnitCase]:
    seconds, reasons = _of_records(material)
    for row in cells:
        place = (str(row["dataset"]), str(row["relation"]), str(row["severity"]))
        kind, words = _of_cell(row, of_one.get(place, []), material.wanted.max_error_percent)
        words += f", mostly: {reasons[place]}" if kind == "error" and reasons.get(place) else ""
        yield JUnitCase(
            group=place[1],
            name=_cell_name(row),
            kind=kind,
            words=words,
            more=f"{words}. {_rate(row)}" if kind in ("failure", "error") else "",
            seconds=seconds.get(place, 0.0),
        )


def _of_cell(row: Row, results: Iterable[GateResult], most_errors: float) -> tuple[Kind, str]:
    lost = [result for result in results if not result.held]
    if lost:
        return "failure", "; ".join(result.sentence for result in lost)
    errors, generated = int(row["errors"]), max(1, int(row["generated"]))
    if errors and (not int(row["cases"]) or 100 * errors / generated > most_errors):
        return "error", f"{counted(errors, 'case')} of {generated:,} not judged"
    if not int(row["cases"]):
        words = f"{int(row['skipped']):,} skipped, {int(row['source_failed']):,} with a failed source"
        return "skipped", f"no case was judged: {words}"
    return "", ""


def _cell_name(row: Row) -> str:
    severity = f" severity {row['severity']}" if str(row["severity"]) != "0" else ""
    return f"{row['relation']}{severity}, {row['dataset']}"


def _rate(row: Row) -> str:
    if not int(row["cases"]):
        return "no case judged"
    return f"{percent(row['efr_percent'])} ({row['ci_low']:.1f} to {row['ci_high']:.1f}), {violations_of(row)}"


def _account(material: Material, cells: Iterable[Row]) -> str:
    """Return the rates as lines, since a passed cell has no text."""
    above = material.row()
    lines = [f"all relations: {_rate(above)}"] if above is not None else []
    lines += [f"{_cell_name(row)}: {_rate(row)}" for row in cells]
    return "".join(f"{line}\n" for line in lines)


def _of_records(material: Material) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str, str], str]]:
    """Return the total seconds of each cell's cases, and the most frequent reason of its errors."""
    place = ["dataset", "relation", "severity"]
    frame = _shown(material, [*place, "elapsed_ms", "verdict", "reason"]).to_pandas()
    spent = frame.groupby(place, observed=True)["elapsed_ms"].sum()
    broke = frame.loc[(frame["verdict"] == Verdict.ERROR.value).to_numpy(), [*place, "reason"]]
    why = broke.groupby(place, observed=True)["reason"].agg(lambda reasons: reasons.value_counts().index[0])
    return (
        {(str(a), str(b), str(c)): float(ms) / 1000.0 for (a, b, c), ms in spent.items()},
        {(str(a), str(b), str(c)): str(reason) for (a, b, c), reason in why.items()},
    )


def _shown(material: Material, names: Sequence[str]) -> pa.Table:
    """Return columns of the cases in view."""
    table = read_table(material.folder, [*names, *KEY_COLUMNS])
    return table if material.asked is None else table.take(material.asked.rows(table))


# --- cases -----------------------------------------------------------------------------------------------------------


def _cases(material: Material) -> Iterator[JUnitCase]:
    """Yield a test case for each source and, under the primary criterion, for each follow-up."""
    records = material.records()
    seconds = _seconds_by_address(material)
    sources = records.sources
    columns = (addresses(_columns(sources)), sources["verdict"].astype(str), _reasons(sources))
    for address, verdict, reason in zip(*columns, strict=True):
        kind: Kind = "error" if verdict == Verdict.ERROR.value else "skipped" if verdict == Verdict.SKIP.value else ""
        yield JUnitCase(
            group="source", name=address, kind=kind, words=reason if kind else "", seconds=seconds.get(address, 0.0)
        )
    yield from _follow_ups(material, records, seconds)


def _follow_ups(material: Material, records: Records, seconds: dict[str, float]) -> Iterator[JUnitCase]:
    primary, frame = material.wanted.primary, records.followups
    if frame.empty:
        return
    judged = status(records, primary)
    score = criteria.components(primary.score)[0]
    before, after = records.floats(f"source_{score}"), records.floats(score)
    if primary.against == "source":
        before, after = before * float("nan"), records.floats(f"self_{score}")
    words, rule = score_words(score), criterion_words(material)
    listed = zip(addresses(_columns(frame)), frame["relation"].astype(str), _reasons(frame), strict=True)
    for at, (address, relation, reason) in enumerate(listed):
        kind: Kind = ""
        message, more = "", ""
        if judged.violated[at]:
            kind, more = "failure", f"{rule}\n{replay_command(material, address)}"
            moved = [f"{score_value:.3f}" for score_value in (before[at], after[at]) if score_value == score_value]
            message = rule if primary.score in criteria.NO_THRESHOLD or not moved else f"{words} {' → '.join(moved)}"
        elif judged.error[at]:
            kind, message = "error", reason
        elif not judged.case[at]:
            kind = "skipped"
            message = reason or ("the source failed" if judged.source_failed[at] else "no verdict")
        yield JUnitCase(
            group=relation, name=address, kind=kind, words=message, more=more, seconds=seconds.get(address, 0.0)
        )


def _columns(frame: pd.DataFrame) -> dict[str, list[object]]:
    return {name: frame[name].astype(object).where(frame[name].notna(), "").tolist() for name in KEY_COLUMNS}


def _reasons(frame: pd.DataFrame) -> list[str]:
    return [str(reason) for reason in frame["reason"].astype(object).where(frame["reason"].notna(), "")]


def _seconds_by_address(material: Material) -> dict[str, float]:
    table = _shown(material, ["elapsed_ms"])
    keys = {name: table.column(name).to_pylist() for name in KEY_COLUMNS}
    times = table.column("elapsed_ms").to_pylist()
    return {address: ms / 1000.0 for address, ms in zip(addresses(keys), times, strict=True) if ms}

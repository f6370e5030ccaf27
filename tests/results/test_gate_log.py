"""Evidence of gates: every evaluation is a line that is never rewritten, and a torn line loses no other."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from medtest.results.gating import gate_log
from medtest.results.gating.gates import GateResult
from medtest.runner.folder import write_run
from medtest.suite.model import Gate

STRICT, LOOSE = Gate(max_percent=5), Gate(max_percent=50, relation="blur")


def result(gate: Gate, *, held: bool, percent: float | None = 12.5) -> GateResult:
    return GateResult(gate=gate, held=held, percent=percent, cases=8, reason="the rate, 12.5 %, and so on")


def keep(folder: Path, *results: GateResult, view: str = "", command: str = "python run.py suite=tiny") -> None:
    gate_log.append(
        folder, results, suite="tiny", version="3", view=view, shown="2 of 4 images", cases=8, command=command
    )


def test_every_evaluation_is_a_line_and_the_last_of_each_set_is_found(tmp_path: Path) -> None:
    keep(tmp_path, result(STRICT, held=False), result(LOOSE, held=True))
    keep(tmp_path)  # no gate: no evaluation
    keep(tmp_path, result(LOOSE, held=True), result(STRICT, held=True), command="later")  # the same set, turned round
    keep(tmp_path, result(STRICT, held=False, percent=float("nan")))
    keep(tmp_path, result(STRICT, held=False), view="ab" * 12)
    lines = [json.loads(line) for line in (tmp_path / gate_log.FILE).read_text().splitlines()]
    assert len(lines) == 4
    assert {"time", "suite_version", "view", "gates", "cases", "result", "command"} <= set(lines[0])
    assert [line["result"] for line in lines] == ["failed", "passed", "failed", "failed"]
    assert lines[2]["gates"][0]["percent"] is None
    last = gate_log.last_of_each(gate_log.read(tmp_path))
    assert [(line_["view"] != "", len(line_["gates"])) for line_ in last] == [(True, 1), (False, 1), (False, 2)]
    assert last[-1]["command"] == "later"
    assert gate_log.is_set(last[-1], [result(STRICT, held=True), result(LOOSE, held=False)])
    assert not gate_log.is_set(last[-1], [result(STRICT, held=True)])


def test_a_torn_last_line_is_survived(tmp_path: Path) -> None:
    keep(tmp_path, result(STRICT, held=False), command="first")
    file = tmp_path / gate_log.FILE
    file.write_bytes(file.read_bytes() + file.read_bytes()[:40])  # power went in the middle of a line
    assert [line_["command"] for line_ in gate_log.read(tmp_path)] == ["first"]
    keep(tmp_path, result(STRICT, held=True), command="second")
    assert [line_["command"] for line_ in gate_log.read(tmp_path)] == ["first", "second"]
    file.write_bytes(file.read_bytes() + b'\xff\n[1]\n{"result": "passed", "gates": "none"}\n')
    assert [line_["command"] for line_ in gate_log.read(tmp_path)] == ["first", "second"]


def test_lines_of_several_writers_do_not_mix(tmp_path: Path) -> None:
    long = "x" * 5000
    keep(tmp_path, result(STRICT, held=True), command=long)
    writers = [
        threading.Thread(target=lambda: [keep(tmp_path, result(LOOSE, held=True), command=long) for _ in range(20)])
        for _ in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(gate_log.read(tmp_path)) == 81
    assert len((tmp_path / gate_log.FILE).read_bytes().splitlines()) == 81


def test_a_command_with_bytes_outside_utf_8_is_kept(tmp_path: Path) -> None:
    command = "python run.py data=caf\udce9"  # how Python gives the argument b"data=caf\xe9"
    keep(tmp_path, result(STRICT, held=False), command=command)
    assert [line_["command"] for line_ in gate_log.read(tmp_path)] == [command]
    write_run(tmp_path, {"command": command})
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8")) == {"command": command}

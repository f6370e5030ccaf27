"""Runs from Python: their results equal those of the command line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import medtest
from medtest.cli.run.launch import main
from medtest.core import address
from medtest.core.cases import Address, Image, Json
from medtest.core.errors import ExitCode, MedtestError, UserMistakes
from medtest.core.records import FIXED_COLUMNS, UNEQUAL_COLUMNS, VISIBILITY_COLUMNS
from medtest.results.records.records_io import Records
from medtest.session.arguments import typed_systems
from medtest.suite.compose import load
from medtest.systems.base import RawAnswer, System, SystemSettings

SMALL = {"relations": {"blur": {"severities": [1, 3]}}, "limit": 2, "track": False}
REDDISH = """
import numpy as np

def reddish(image):
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.clip((red - green) / 128, 0, 1)
"""


def reddish(image: Image) -> RawAnswer:
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.asarray(np.clip((red - green) / 128, 0, 1))


class Reddish(System):
    """A system like that of a package."""

    Settings = SystemSettings

    def fingerprint(self) -> dict[str, Json]:
        return {}

    def open(self, *, device: str, threads: int) -> None:
        self.opened = device

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        assert self.opened == "cpu"
        return [reddish(image) for image in images]


def _comparable(frame: pd.DataFrame) -> pd.DataFrame:
    plain = frame.drop(columns=[*UNEQUAL_COLUMNS, "system"], errors="ignore")
    return plain.sort_values(["seed_id", "relation", "severity"]).reset_index(drop=True)


def test_a_function_gives_the_same_as_its_file_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = medtest.run("polyp_seg", reddish, home=tmp_path / "python", **SMALL)
    assert result.ok and result.code == ExitCode.OK
    (tmp_path / "net.py").write_text(REDDISH)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "shell"))
    typed = ["suite=polyp_seg", "model=callable", f"target={tmp_path / 'net.py'}:reddish", "limit=2", "track=false"]
    assert main([*typed, "relations=[blur]", "relations.blur.severities=[1,3]", "workers=1", "quiet=true"]) == 0
    (file,) = (tmp_path / "shell" / "outputs" / "polyp_seg").glob("*/*/records.parquet")
    folder = file.parent
    records = pd.read_parquet(file)
    pd.testing.assert_frame_equal(_comparable(result.records), _comparable(records), check_exact=True)
    table = pd.read_csv(folder / "tables" / "efr.csv")
    assert list(result.efr.columns) == ["system", *table.columns]
    assert result.efr["violations"].tolist() == table["violations"].tolist()
    assert result.folders["reddish"].parts[-4:-1] == ("outputs", "polyp_seg", "reddish")
    assert result.report == result.folders["reddish"] / "report.html" and result.report.is_file()
    _assert_documented(pq.read_schema(file), Records.read(folder))


def _assert_documented(schema: pa.Schema, records: Records) -> None:
    """Assert that the page on results names every column that a run writes, in order, with its type."""
    page = (Path(__file__).parents[2] / "docs" / "read-the-results.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (`.+`) \| (\w+) \| .+ \|$", page.partition("\n## Records\n")[2].partition("\n## ")[0], flags=re.MULTILINE
    )
    documented = [(name, kind) for names, kind in rows for name in re.findall(r"`(.+?)`", names)]
    written = [(field.name, str(field.type)) for field in schema]
    fixed = len(FIXED_COLUMNS)
    assert documented[:fixed] == written[:fixed] == [(name, str(kind)) for name, kind in FIXED_COLUMNS]
    families = {name.partition("<")[0]: kind for name, kind in documented[fixed:]}
    assert set(families) == {"", "source_", "self_", "factor_", "stratum_", *VISIBILITY_COLUMNS}
    for name, kind in written[fixed:]:
        family = max((prefix for prefix in families if name.startswith(prefix)), key=len)
        assert families[family] == kind and (family or f"source_{name}" in schema.names), name
    assert "unchanged" in set(records.followups["relation"]) and set(records.sources["relation"]) == {"source"}


@pytest.mark.slow
def test_results_are_reused_under_the_same_fingerprint_and_never_without_one(tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(image: Image) -> RawAnswer:
        calls.append(1)
        return reddish(image)

    first = medtest.run("polyp_seg", counted, fingerprint="v1", home=tmp_path, **SMALL)
    first_calls = len(calls)
    again = medtest.run("polyp_seg", counted, fingerprint="v1", home=tmp_path, **SMALL)
    assert len(calls) == first_calls > 0 and again.folders == first.folders
    assert again.outcome.systems[0].cases_reused == len(again.records)
    assert not any("used again" in line and "Nobody" in line for line in again.notices)
    other = medtest.run("polyp_seg", counted, home=tmp_path, **SMALL)
    assert len(calls) == 2 * first_calls and other.folders != first.folders
    assert any("runs in this process" in line and "its results are not reused" in line for line in other.notices)


@pytest.mark.slow
def test_objects_systems_and_names_side_by_side_with_a_gate(tmp_path: Path) -> None:
    systems = {"mine": Reddish("mine", SystemSettings()), "same": medtest.Model(reddish)}
    gate = "gates=[{max_percent: 0, bound: efr_percent, threshold: 0.01}]"
    result = medtest.run("polyp_seg", systems, home=tmp_path, overrides=[gate], **SMALL)
    frames = [_comparable(frame) for _, frame in result.records.groupby("system")]
    pd.testing.assert_frame_equal(frames[0], frames[1], check_exact=True)
    assert sorted(result.reports) == ["mine", "same"] and result.report.name == "comparison.html"
    assert set(result.gates["system"]) == {"mine", "same"} and "held" in result.gates
    assert result.code in (ExitCode.OK, ExitCode.GATE_FAILED) and result.ok == bool((result.gates["held"]).all())


def test_an_exception_of_a_function_is_a_verdict(tmp_path: Path) -> None:
    def broken(image: Image) -> RawAnswer:
        if image.mean() > 0:
            raise SystemExit("<b>gone</b>")
        return reddish(image)

    result = medtest.run("polyp_seg", broken, home=tmp_path, **SMALL)
    assert set(result.records["verdict"]) == {"ERROR"} and result.code == ExitCode.TOO_MANY_ERRORS
    assert result.records["reason"].str.contains("gone").all()
    shown = result._repr_html_()
    assert "<b>gone" not in shown and "report.html" in shown
    assert "too many" not in repr(result) and "exit code 3" in repr(result)


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    calls: list[int] = []

    def stopped(image: Image) -> RawAnswer:
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return reddish(image)

    with pytest.raises(KeyboardInterrupt):
        medtest.run("polyp_seg", stopped, fingerprint="v1", home=tmp_path, batch_size=1, **SMALL)
    result = medtest.run("polyp_seg", stopped, fingerprint="v1", home=tmp_path, batch_size=1, **SMALL)
    whole = medtest.run("polyp_seg", reddish, home=tmp_path / "whole", batch_size=1, **SMALL)
    pd.testing.assert_frame_equal(_comparable(result.records), _comparable(whole.records), check_exact=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("polyp_sag", reddish), "polyp_seg"),
        (("polyp_seg", 5), "a function"),
        (("polyp_seg", Reddish), "an instance: Reddish"),
        (("polyp_seg", SimpleNamespace(predict=reddish)), "its method: ….predict"),
        (("polyp_seg", {"Mein Netz": reddish}), "small letters"),
        (("polyp_seg", [reddish, reddish]), "a different name"),
        (("polyp_seg", {"onnx": {"pathh": "net.onnx"}}), "path"),
        (("medvqa", reddish), "answer"),
        (("polyp_seg", {"callable": {"target": f"{address.__file__}:address_tex"}}), "did you mean: address_text"),
    ],
)
def test_mistakes_are_one_message_before_anything_runs(tmp_path: Path, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(MedtestError) as caught:
        medtest.run(*arguments, home=tmp_path, track=False)
    assert words in str(caught.value)
    assert not (tmp_path / "outputs").exists()


def test_options_are_checked_like_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match="limit"):
        medtest.run("polyp_seg", reddish, home=tmp_path, limit=0)
    with pytest.raises(UserMistakes, match=r"suite_dir\n  found:   /nowhere\n  allowed: an existing folder"):
        medtest.run("team_suite", reddish, home=tmp_path, overrides=["suite_dir=/nowhere"])
    with pytest.raises(UserMistakes, match="worker"):
        medtest.run("polyp_seg", reddish, home=tmp_path, workerz=1)
    with pytest.raises(UserMistakes, match="fingerprint"):
        medtest.run("polyp_seg", "pranet", home=tmp_path, fingerprint="v1")
    with pytest.raises(UserMistakes, match="load_suite"):
        medtest.run("polyp_seg", reddish, home=tmp_path, overrides=["plan=true"])
    assert not (tmp_path / "outputs").exists()


@pytest.mark.slow
def test_memory_of_the_program_is_not_a_leak_of_the_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resident = iter(range(2**40, 2**60, 2**50))  # the program's own grows without end
    monkeypatch.setattr(psutil.Process, "memory_info", lambda process: SimpleNamespace(rss=next(resident)))
    result = medtest.run("polyp_seg", reddish, home=tmp_path, batch_size=1, **SMALL)
    assert not any("leaks" in line for line in result.notices) and "ERROR" not in set(result.records["verdict"])


def test_the_methods_of_a_system_decide(tmp_path: Path) -> None:
    class Describing(Reddish):
        tasks = ("answer",)

    _, objects = typed_systems({"mine": Describing("mine", SystemSettings())}, "")
    suite = load("medvqa", ["model=callable"], objects=objects).suite
    assert [plan.id for plan in suite.systems] == ["mine"]
    with pytest.raises(UserMistakes) as caught:
        medtest.run("polyp_seg", {"mine": Describing("mine", SystemSettings())}, home=tmp_path)
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.key, mistake.found) == (
        "medtest.run",
        "systems.mine",
        "a system that gives an answer",
    )


def test_masks_of_zero_and_one_cause_a_notice(tmp_path: Path) -> None:
    result = medtest.run("polyp_seg", lambda image: (image[..., 0] > 128).astype(np.uint8), home=tmp_path, **SMALL)
    (line,) = (line for line in result.notices if "0 and 1" in line)
    assert line.startswith("lambda: ") and result.text().count("0 and 1") == 1


def test_one_override_is_taken_as_several_are(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes) as caught:
        medtest.run("polyp_seg", reddish, home=tmp_path, overrides="prepare.size=1")
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.key, mistake.found) == ("medtest.run", "prepare.size", "1")


@pytest.mark.slow
def test_the_page_of_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "from-python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "from-python.md", "exec"), names)  # noqa: S102 - our own page
    names["test_my_network"]()
    assert names["result"].ok and names["again"].outcome.systems[0].cases_executed == 0
    assert (tmp_path / "mlruns" / "mlflow.db").is_file()


def test_a_fresh_interpreter_runs_ten_lines_and_imports_nothing_heavy_for_them(tmp_path: Path) -> None:
    code = (
        "import sys, medtest\n"
        "medtest.run, medtest.load_suite\n"
        "heavy = {'torch', 'mlflow', 'pandas', 'openai', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "suite = medtest.load_suite('polyp_seg', ['model=pranet'])\n"
        "result = medtest.run('polyp_seg', lambda image: image[..., 0] > 128, relations=['blur'], limit=1, "
        f"track=False, home={str(tmp_path)!r})\n"
        "print(suite.name, len(result.records), 'mlflow' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["polyp_seg", "7", "False"]

"""Folders that the version before left stay found and usable: ``tests/data/folder_before`` was run by it.

Three real runs (made masks, labels of sequences, questions) without samples, tables and report. No digest may change
unless images or answers do: then the class's ``revision`` is raised, and these folders are made again on purpose.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from frozen_folders import DATA, copied
from rich.console import Console

from medtest.cli.results.tables import remake_tables
from medtest.cli.run.launch import main
from medtest.core.records import ADDRESS, FIXED_COLUMNS, UNEQUAL_COLUMNS
from medtest.runner.records.seals import fitted

BEFORE = DATA / "folder_before"
COMMANDS = {
    "polyp_seg": ("model=pranet", "limit=1", "only=relation:blur,relation:unchanged"),
    "robust_benchmark_chest": ("limit=1", "only=relation:rotate"),
    "medvqa": (
        "limit=1",
        "only=relation:blur,relation:unchanged,question:procedure,question:box,question:text,question:polyps",
    ),
}
REREAD = ("evidence",)
"""What a later revision of the parser reads otherwise in the same words: judged anew, nobody is asked again."""
FIRST = {
    "polyp_seg": "phantoms/phantom-0000/source_s0_f0_r0",
    "robust_benchmark_chest": "phantoms/chest-00000/source_s0_f0_r0",
    "medvqa": "phantoms/scene-00000/source_s0_f0_r0/polyps",
}


@pytest.mark.parametrize(
    "suite", ["polyp_seg", "robust_benchmark_chest", pytest.param("medvqa", marks=pytest.mark.slow)]
)
def test_tables_are_made_of_a_folder_of_the_version_before(suite: str, tmp_path: Path) -> None:
    (folder,) = copied(BEFORE, suite, tmp_path)
    kept = {name: (folder / name).read_bytes() for name in ("records.parquet", "records.csv", "suite.yaml")}
    assert ADDRESS not in pq.read_schema(folder / "records.parquet").names
    assert remake_tables(folder, console=Console(quiet=True)) == 0
    images = pd.read_csv(folder / "tables" / "images.csv")
    assert len(images) == 1 and images.worst_address[0].startswith(FIRST[suite].rsplit("/source")[0] + "/")
    assert (folder / "report.html").is_file()
    assert {name: (folder / name).read_bytes() for name in kept} == kept


@pytest.mark.parametrize("suite", COMMANDS)
def test_records_of_the_version_before_are_given_their_addresses(suite: str, tmp_path: Path) -> None:
    (folder,) = copied(BEFORE, suite, tmp_path)
    table = pq.read_table(folder / "records.parquet")
    place = [name for name, _ in FIXED_COLUMNS].index(ADDRESS)
    filled = fitted(table, table.schema.insert(place, table.schema.field("seed_id").with_name(ADDRESS)))
    texts = filled[ADDRESS].to_pylist()
    assert FIRST[suite] in texts and len(set(texts)) == table.num_rows
    assert filled.drop_columns([ADDRESS]).equals(table.replace_schema_metadata(None))


@pytest.mark.slow
@pytest.mark.parametrize("suite", COMMANDS)
def test_the_same_command_runs_nothing_again(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    (folder,) = copied(BEFORE, suite, tmp_path)
    before = pq.read_table(folder / "records.parquet")
    quick = ("workers=1", "tracking=none", "privacy.images=none")  # strips would be drawn anew: no part of records
    assert main([f"suite={suite}", *COMMANDS[suite], *quick], command="medtest run") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"No case had to be run; {before.num_rows} were finished before." in shown
    assert [path.parent for path in (tmp_path / "outputs").glob("*/*/*/run.json")] == [folder]
    assert json.loads((folder / "run.json").read_text())["cases_executed"] == 0
    assert not list(folder.rglob("*.aside-*"))
    now = pq.read_table(folder / "records.parquet")
    assert FIRST[suite] in now[ADDRESS].to_pylist()
    assert pa_csv.read_csv(folder / "records.csv")[ADDRESS].to_pylist() == now[ADDRESS].to_pylist()
    rest = [name for name in before.column_names if name not in (*UNEQUAL_COLUMNS, *REREAD)]
    assert now.select(rest).equals(before.select(rest))

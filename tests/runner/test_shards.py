"""Shards and their merging, compared with a dictionary."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_parts import make_suite

from medtest.core.cases import SeedRef
from medtest.runner.folder import make_folder
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.ledger import CasePlaces, RecordLedger
from medtest.runner.records.rows import COLUMN, records_schema
from medtest.runner.records.shard_scan import scan
from medtest.runner.records.shards import Code, ShardWriter, Stamp, code_of, codes_of, merge
from medtest.runner.reporting.outcome import Limits
from medtest.suite.model import Criterion
from medtest.suite.plan import Plan

SUITE = make_suite(seeds=1)
SCHEMA = records_schema(SUITE.build_oracle(), ())
STAMP = Stamp(digest="d", primary="p")


def _plan(seeds: int) -> Plan:
    refs = [SeedRef(dataset="blobs", seed_id=f"s{i}") for i in range(seeds)]
    return Plan(refs, SUITE.build_relations(), 8)


def _row(plan: Plan, place: int, verdict: str, dice: float) -> tuple[Any, ...]:
    unit, case = divmod(place, plan.cases_per_seed)
    address = plan.unit(unit, unit).cases[case]
    values: dict[str, Any] = {
        "suite": "s", "suite_version": "1", "system": "x", "dataset": "blobs", "seed_id": address.seed_id,
        "cluster": address.seed_id, "item": "", "relation": address.relation, "group": "g",
        "severity": address.severity, "scale": 1.0, "frame": 0, "repeat": 0, "params": '{"a":1}' * 20,
        "source_sha256": "0" * 64, "followup_sha256": f"{place:064d}", "verdict": verdict,
        "reason_code": "", "reason": "", "elapsed_ms": 1.0, "dice": dice,
    }  # fmt: skip
    return tuple(values.get(name) for name in SCHEMA.names)


@given(
    shards=st.lists(
        st.lists(st.tuples(st.integers(0, 32), st.sampled_from(["PASS", "FAIL", "ERROR"])), min_size=1, max_size=20),
        min_size=1,
        max_size=6,
    )
)
def test_merging_keeps_the_newest_row_of_each_case_in_the_order_of_the_plan(
    tmp_path_factory: pytest.TempPathFactory, shards: list[list[tuple[int, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    make_folder(folder)
    plan = _plan(3)
    newest: dict[int, tuple[str, float]] = {}
    writer = ShardWriter(folder, SCHEMA, STAMP, seconds=1e9, rows=10**9)
    for number, shard in enumerate(shards):
        for place, verdict in shard:
            writer.add(place, code_of(verdict, ""), _row(plan, place, verdict, float(number)))
            newest[place] = (verdict, float(number))
        writer.flush()
        if number == 1:  # a run ends and another begins in the middle
            merge(folder, SCHEMA, STAMP, writer.parts, written="w", judge=lambda table: table)
            scanned = scan(folder, SCHEMA, "d", CasePlaces(plan, ShownNames()).find)
            writer = ShardWriter(folder, SCHEMA, STAMP, seconds=1e9, rows=10**9)
            writer.parts = scanned.parts
    counts = merge(folder, SCHEMA, STAMP, writer.parts, written="w", judge=lambda table: table)
    table = pq.read_table(folder / "records.parquet")
    places = CasePlaces(plan, ShownNames()).find(table.to_pydict()).tolist()
    assert places == sorted(newest)
    assert list(zip(table["verdict"].to_pylist(), table["dice"].to_pylist(), strict=True)) == [
        newest[place] for place in places
    ]
    assert counts[Code.ERROR] == sum(verdict == "ERROR" for verdict, _ in newest.values())
    assert not list((folder / "records").iterdir())


def test_codes() -> None:
    table = pa.table(
        {
            "verdict": ["PASS", "FAIL", "ERROR", "SKIP", "SKIP"],
            "reason_code": ["", "", "system_error", "not_applicable", "source_failed"],
        }
    )
    assert codes_of(table).tolist() == [0, 1, 2, 3, 4]


def test_shards_close_in_time(tmp_path: Path) -> None:
    make_folder(tmp_path)
    plan = _plan(3)
    writer = ShardWriter(tmp_path, SCHEMA, STAMP, seconds=0.2, rows=5)
    writer.add(0, Code.PASS, _row(plan, 0, "PASS", 1.0))
    writer.tick()
    assert not list((tmp_path / "records").iterdir())
    time.sleep(0.25)
    writer.tick()
    assert len(list((tmp_path / "records").iterdir())) == 1
    for place in range(1, 6):
        writer.add(place, Code.PASS, _row(plan, place, "PASS", 1.0))
    writer.tick()
    assert [p.name for p in sorted((tmp_path / "records").iterdir())] == [
        "shard-00000001.parquet",
        "shard-00000002.parquet",
    ]


@pytest.mark.slow
def test_a_hundred_thousand_records_are_resumed_in_seconds_and_little_memory(tmp_path: Path) -> None:
    import psutil

    plan = _plan(9091)
    places = CasePlaces(plan, ShownNames())
    options: dict[str, Any] = {
        "folder": tmp_path, "schema": SCHEMA, "digest": "d", "primary": Criterion(), "places": places,
        "chosen": np.ones(plan.total, dtype=np.bool_), "limits": Limits(shard_rows=500),
    }  # fmt: skip
    ledger = RecordLedger(**options)
    template = list(_row(plan, 0, "PASS", 1.0))
    for unit in range(len(plan.refs)):
        for case, address in enumerate(plan.unit(unit, unit).cases):
            template[COLUMN["seed_id"]], template[COLUMN["relation"]] = address.seed_id, address.relation
            template[COLUMN["severity"]] = address.severity
            ledger.take(unit, case, tuple(template))
        ledger.tick()
    ledger.merge(lambda table, _: table)
    before = psutil.Process().memory_info().rss
    began = time.process_time()
    again = RecordLedger(**options)
    seconds = time.process_time() - began
    assert again.left == 0 and again.reused == plan.total >= 100_000
    assert seconds < 10
    assert psutil.Process().memory_info().rss - before < 60 * 2**20

"""Headlines of systems that draw: none from a handful of judged cases, none where the floor explains the rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from depict_records import NAMES, drawn, failing, records, right, without_last

from medtest.core.scenes import Pool, Scene, Tells
from medtest.report.mlflow.headline import headline_of, summary
from medtest.report.pages.material import Material
from medtest.report.pages.page import report_page
from medtest.report.pages.words import cluster_word, phantom_banner
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.results.tables import tables_of
from medtest.suite.model import Criterion
from medtest.tasks.depict.results import DepictResults
from medtest.tasks.depict.tables.results import depict_tables

BLIND = Tells(classes=frozenset(NAMES), predicates=frozenset({"on"}))
"""A reader that knows one of three predicates."""
WANTED = Wanted(
    suite="t2i",
    version="1",
    seeds={"captions": "caption_phantoms"},
    relations={name: name for name in ("ec", "er_r", "er_a", "ss", "ec_er_r", "ec_er_a", "unchanged")},
    primary=Criterion(score="whole", threshold=0.0, against="source"),
    scores=("whole",),
    thresholds=(0.0,),
    against=("source",),
    kind="depiction",
)


def results_of(run_records: Records) -> DepictResults:
    tables = depict_tables(run_records)
    assert tables is not None
    return DepictResults(tables)


def card_of(results: DepictResults, name: str) -> dict[str, Any]:
    return next(card for card in results.cards() if card["name"] == name)


def no_predicates(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
    scene = drawn(pool, BLIND)
    return Scene(entities=scene.entities, triples=(), tells=BLIND)


def material_of(run_records: Records, folder: Path) -> Material:
    return Material(folder=folder, wanted=WANTED, tables=tables_of(run_records, WANTED))


def test_a_miss_rate_of_a_few_judged_relations_is_not_in_the_headline() -> None:
    run_records = records(2, no_predicates)
    results = results_of(run_records)
    row = results._missed("relations")
    assert 0 < row["said"] < 20 < row["said"] + row["cannot_tell"]
    card = card_of(results, "Relations missed")
    assert card["value"] == "too few judged"
    judged = f"{row['said']} of {row['said'] + row['cannot_tell']} judged"
    assert any(judged in line and "cannot tell" in line for line in card["lines"])
    assert "% of relations" not in " ".join(results.lines())
    assert judged in " ".join(results.lines())
    assert not any(name.startswith("miss_relations/") for name in results.metrics())


def test_a_miss_rate_is_shown_with_the_share_that_was_judged() -> None:
    results = results_of(records(20, no_predicates))
    row = results._missed("relations")
    assert row["said"] >= 20
    card = card_of(results, "Relations missed")
    assert card["value"] == "100 %"
    share = 100 * row["said"] / (row["said"] + row["cannot_tell"])
    assert any(f"judged {share:.0f} %" in line for line in card["lines"])
    assert f"judged {share:.0f} %" in " ".join(results.lines())


def test_a_net_rate_whose_interval_spans_zero_is_not_the_largest(tmp_path: Path) -> None:
    run_records = records(30, failing(0.3, steady=False), seed=2)
    results = results_of(run_records)
    net = results.tables.net
    strict = net[(net["rule"] == "strict") & (net["kind"] == "whole")]
    assert (strict["ci_low"] <= 0).all()
    assert strict["net"].max() > 0
    card = card_of(results, "Largest net error rate")
    assert card["value"] == "none shown"
    assert "has the largest net error rate" not in " ".join(results.lines())
    assert "no operator" in " ".join(results.lines())
    material = material_of(run_records, tmp_path)
    assert material.tables.efr["violations"].max() > 0
    assert not any(name.get("weakest") for name in report_page(material)["cards"])
    assert headline_of(material, "run").tags["weakest_relation"] == "none"


def test_an_operator_that_fails_more_than_the_floor_is_named(tmp_path: Path) -> None:
    def draw(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        return drawn(without_last(pool) if prompt.endswith(" ec") else pool)

    run_records = records(30, draw)
    assert card_of(results_of(run_records), "Largest net error rate")["value"] == "+100.0 points"
    assert any("EC has the largest net error rate" in line for line in results_of(run_records).lines())
    material = material_of(run_records, tmp_path)
    assert next(card["weakest"] for card in report_page(material)["cards"] if card.get("weakest")) == "ec"
    assert headline_of(material, "run").tags["weakest_relation"] == "ec, 100 %"


def test_a_floor_without_a_second_picture_is_not_measured(tmp_path: Path) -> None:
    def draw(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        return drawn(without_last(pool) if prompt.endswith(" ec") else pool)

    run_records = records(30, draw)
    repeats = run_records.followups["relation"] == "unchanged"
    run_records.followups.loc[repeats, ["picture", "scene", "tells", "source_scene", "answer_state"]] = None
    run_records.followups.loc[repeats, "verdict"] = "SKIP"
    scores = [name for name in run_records.followups.columns if name.startswith(("self_", "whole"))]
    run_records.followups.loc[repeats, scores] = np.nan
    results = results_of(run_records)
    net = results.tables.net
    ec = net[(net["relation"] == "ec") & (net["rule"] == "strict") & (net["kind"] == "whole")].iloc[0]
    assert (ec["rate"], ec["unchanged_cases"], ec["ci_method"]) == (1.0, 0, "not_measured")
    assert np.isnan([ec["net"], ec["unchanged_rate"], ec["ci_low"], ec["p"]]).all()
    assert card_of(results, "Largest net error rate")["value"] == "not measured"
    assert any("net error rates are not measured" in line for line in results.lines())
    assert not any(name.startswith("net_") for name in results.metrics())
    material = material_of(run_records, tmp_path)
    row = headline_of(material, "run")
    assert "floor" not in row.metrics and row.tags["floor"] == "not measured"
    assert "| not measured |" in summary([row, row]).tags["mlflow.note.content"]
    floor = next(card for card in report_page(material)["cards"] if card["name"].startswith("Floor"))
    assert floor["value"] == "not measured" and "0 %" not in " ".join(floor["lines"])
    table = material.tables.efr[material.tables.efr["relation"] == "unchanged"]
    assert len(table) and table[["efr_percent", "efr_generated_percent"]].isna().all(axis=None)


@pytest.mark.parametrize(("seeds", "shown"), [(2, False), (4, True)])
def test_an_error_rate_of_a_few_judged_prompts_is_not_in_the_headline(seeds: int, shown: bool, tmp_path: Path) -> None:
    material = material_of(records(seeds, failing(0.5, steady=True)), tmp_path)
    page = report_page(material)
    value = page["cards"][0]["value"]
    assert ("efr" in headline_of(material, "run").metrics) == shown
    assert (value == "too few judged") != shown
    assert page["cards"][0]["name"].startswith("Error-finding rate (EFR) overall")


def test_banners_of_prompts_are_about_prompts(tmp_path: Path) -> None:
    material = material_of(records(2, right), tmp_path)
    title, words = phantom_banner(material)
    assert title == "Made prompts"
    assert "captions" in words
    assert "image" not in words and "clinic" not in words and "patient" not in words
    assert cluster_word(material) == "prompts"

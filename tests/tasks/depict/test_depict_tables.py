"""Tables of pictures drawn from prompts: counts by hand, an independent script, net rates, refusals, corrections."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from depict_records import NAMES, PREDICATES, drawn, failing, operators, records, right, rows, source_pool, without_last
from sealed_records import write_sealed
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from medtest.core import records as contract
from medtest.core.scenes import Pool, Scene, SeenEntity, Tells
from medtest.readers.pictures.card import Card, CardRow
from medtest.results.records.records_io import Records
from medtest.tasks.depict.oracle import Scenes
from medtest.tasks.depict.results import DepictResults
from medtest.tasks.depict.tables.cases import cases_of
from medtest.tasks.depict.tables.results import DepictTables, depict_tables

SCRIPT = Path(__file__).parents[3] / "scripts" / "recompute_actesting.py"
OPERATORS = ("ec", "er_r", "er_a", "ss", "ec_er_r", "ec_er_a")
SOME = Tells(classes=frozenset(NAMES) - {"lamp", "bench"}, predicates=frozenset({"on", "near"}))


def noisy(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene | str:
    """Draw with every kind of mistake for a reader with limits; refuse some."""
    if rng.random() < 0.05:
        return str(rng.choice(["content_filter", "refusal"]))
    scene = drawn(without_last(pool) if rng.random() < 0.3 else pool, SOME)
    if rng.random() < 0.2:
        return Scene(entities=(*scene.entities, SeenEntity(name=str(rng.choice(NAMES)))), tells=SOME)
    return scene


def tables(run_records: Records) -> DepictTables:
    result = depict_tables(run_records)
    assert result is not None
    return result


def row_of(frame: pd.DataFrame, **keys: Any) -> dict[str, Any]:
    for name, value in keys.items():
        frame = frame[frame[name] == value]
    (row,) = frame.to_dict("records")
    return row  # type: ignore[return-value]


@pytest.fixture(scope="module")
def mixed() -> Records:
    return records(40, noisy, seed=3)


def test_a_perfect_service_has_no_errors() -> None:
    result = tables(records(12, right))
    assert not result.errors["errors"].any() and not result.misses["miss"].any()
    assert (result.net["net"] == 0).all() and (result.net["p"] == 1).all()
    assert ((result.net["ci_low"] <= 0) & (result.net["ci_high"] >= 0)).all()
    assert not result.refusals[["withheld", "errors", "cannot_tell"]].to_numpy().any()


def test_an_independent_script_gets_the_same(mixed: Records, tmp_path: Path) -> None:
    frame = pd.concat([mixed.sources, mixed.followups])
    schema = contract.schema(
        Scenes.scores, Scenes.self_scores, texts=Scenes.texts, measures=Scenes.measures, factors=()
    )
    path = tmp_path / "records.parquet"
    write_sealed(pa.Table.from_pandas(frame.reindex(columns=schema.names), schema=schema, preserve_index=False), path)
    script = _load_module(SCRIPT)
    published, own = script.recomputed(str(path)), tables(mixed)
    for operator in (*OPERATORS, "unchanged"):
        pair = {"relation": operator, "rule": "paper", "against": "source"}
        for kind, name in (("entities", "Error_e"), ("relations", "Error_r")):
            assert row_of(own.errors, kind=kind, **pair)["rate"] == pytest.approx(published[operator][name], abs=1e-6)
        assert row_of(own.errors, kind="entities", **pair)["cases"] == published[operator]["N"]
    assert set(published) == {"source", *OPERATORS, "unchanged"}
    for operator, figures in published.items():
        for kind, name in (("entities", "Miss_e"), ("relations", "Miss_r")):
            row = row_of(own.misses, relation=operator, rule="paper", kind=kind)
            assert row["miss"] == pytest.approx(figures[name], abs=1e-6)
    printed = subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines()[0] == "operator,N,Error_e,Error_r,Miss_e,Miss_r"
    assert len(printed.stdout.splitlines()) == 1 + len(published)


def _load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("recompute_actesting", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_imports_nothing_of_medtest() -> None:
    lines = [line for line in SCRIPT.read_text().splitlines() if line.startswith(("import ", "from "))]
    assert lines and not any("medtest" in line for line in lines)


def test_rates_are_counts_with_wilsons_intervals(mixed: Records) -> None:
    result = tables(mixed)
    frame = mixed.followups
    for operator in OPERATORS:
        own = frame[(frame["relation"] == operator) & (frame["answer_state"] == "answered")]
        judged = own["self_entities"].dropna()
        row = row_of(result.errors, relation=operator, rule="strict", against="source", kind="entities")
        assert (row["cases"], row["errors"]) == (len(judged), int((judged == 0).sum()))
        low, high = proportion_confint(row["errors"], row["cases"], method="wilson")
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), abs=1e-6)
        assert row["ci_method"] == "wilson"
        truth = own["relations"].dropna()
        row = row_of(result.errors, relation=operator, rule="", against="truth", kind="relations")
        assert (row["cases"], row["errors"]) == (len(truth), int((truth == 0).sum()))
    everything = row_of(result.errors, relation="overall", rule="strict", against="source", kind="entities")
    assert everything["ci_method"] == "cluster_bootstrap"


def test_refusals_are_separate_and_unreadable_cases_are_counted(mixed: Records) -> None:
    result = tables(mixed)
    frame = mixed.followups
    for operator in OPERATORS:
        own = frame[frame["relation"] == operator]
        withheld = own["answer_state"].isin(["content_filter", "refusal"])
        row = row_of(result.refusals, relation=operator)
        assert row["withheld"] == int(withheld.sum()) == row["content_filter"] + row["refusal"]
        after = withheld & (own["source_state"] == "answered")
        assert row["withheld_after_drawn"] == int(after.sum())
        assert set(own[after]["verdict"]) <= {"FAIL"}
        assert set(own[withheld & ~after]["verdict"]) <= {"SKIP"}
        drawn_pairs = own[(own["answer_state"] == "answered") & (own["source_state"] == "answered")]
        errors = row_of(result.errors, relation=operator, rule="strict", against="source", kind="whole")
        assert errors["cannot_tell"] == int((drawn_pairs["why"] == "change_unreadable").sum())
    assert result.refusals["withheld_after_drawn"].sum() > 3


def test_the_unreadable_share_is_shown_beside_every_rate(mixed: Records) -> None:
    result = tables(mixed)
    pools = pd.concat([mixed.sources, mixed.followups])
    for operator in OPERATORS:
        errors = row_of(result.errors, relation=operator, rule="strict", against="source", kind="whole")
        for kind in ("whole", "entities", "relations"):
            net = row_of(result.net, relation=operator, rule="strict", kind=kind)
            assert (net["cannot_tell"], net["cannot_tell_rate"]) == (errors["cannot_tell"], errors["cannot_tell_rate"])
        drawn_ = pools[(pools["relation"] == operator) & (pools["answer_state"] == "answered")]
        prompt_pools = [json.loads(text) for text in drawn_["pool"]]
        for kind, hidden, whole in (
            ("entities", *_hidden_names(prompt_pools)),
            ("relations", *_hidden_predicates(prompt_pools)),
        ):
            row = row_of(result.misses, relation=operator, rule="paper", kind=kind)
            assert (row["cannot_tell"], row["said"]) == (hidden, whole - hidden)
            assert row["cannot_tell_rate"] == pytest.approx(hidden / whole, abs=1e-6)
    assert result.net["cannot_tell"].sum() > 0 and result.misses["cannot_tell"].sum() > 0
    everything = tables(records(6, right))
    assert not everything.net["cannot_tell"].any() and not everything.misses["cannot_tell"].any()


def _hidden_names(pools: list[Any]) -> tuple[int, int]:
    sets = [{names[0] for names in pool["entities"]} for pool in pools]
    return sum(len(names & {"lamp", "bench"}) for names in sets), sum(map(len, sets))


def _hidden_predicates(pools: list[Any]) -> tuple[int, int]:
    hidden = whole = 0
    for pool in pools:
        names = [drawn_entity[0] for drawn_entity in pool["entities"]]
        readable = {
            p for a, p, b in pool["triples"] if p in ("on", "near") and not {names[a], names[b]} & {"lamp", "bench"}
        }
        all_predicates = {p for _, p, _ in pool["triples"]}
        hidden, whole = hidden + len(all_predicates - readable), whole + len(all_predicates)
    return hidden, whole


def test_net_is_the_same_rule_on_a_second_drawing_of_the_same_prompts() -> None:
    run_records = records(120, failing(0.25, steady=False), seed=1)
    result, cases = tables(run_records), cases_of(run_records)
    ss = row_of(result.net, relation="ss", rule="strict", kind="entities")
    follow, again = (cases.pair["strict", "entities"][cases.of(name)] for name in ("ss", "unchanged"))
    b, c = int(((follow == 1) & (again == 0)).sum()), int(((follow == 0) & (again == 1)).sum())
    assert ss["net"] == pytest.approx((b - c) / 120, abs=1e-6)
    assert ss["p"] == pytest.approx(mcnemar([[0, b], [c, 0]], exact=True).pvalue)
    assert ss["ci_low"] <= 0 <= ss["ci_high"] and ss["ci_method"] == "paired_score"
    assert ss["truth_rate"] == pytest.approx(0.25, abs=0.12)  # drawn anew, it cancels in the net; the truth shows it
    assert result.net["p_holm"].ge(result.net["p"] - 1e-12).all()
    grown = row_of(result.net, relation="er_a", rule="paper", kind="entities")
    subset = [set(_names(a)) <= set(_names(b)) for a, b in _scenes(run_records, "unchanged")]
    assert grown["unchanged_rate"] == pytest.approx(1 - np.mean(subset), abs=1e-6)  # MR3 on pairs of one prompt
    shrunk = row_of(result.net, relation="er_r", rule="paper", kind="entities")
    assert shrunk["unchanged_rate"] == pytest.approx(
        1 - np.mean([set(_names(b)) <= set(_names(a)) for a, b in _scenes(run_records, "unchanged")]), abs=1e-6
    )


def _scenes(run_records: Records, relation: str) -> list[tuple[Any, Any]]:
    own = run_records.followups[run_records.followups["relation"] == relation]
    return [(json.loads(a), json.loads(b)) for a, b in zip(own["source_scene"], own["scene"], strict=True)]


def _names(scene: Any) -> list[str]:
    return [drawn_entity[0] for drawn_entity in scene["entities"]]


def test_a_steady_defect_shows_in_the_net_with_the_arithmetic_of_its_rate() -> None:
    result = tables(records(400, failing(0.2, steady=True), seed=5))
    row = row_of(result.net, relation="ss", rule="strict", kind="whole")
    assert row["unchanged_rate"] == 0 and row["ci_low"] < 2 * 0.2 * 0.8 < row["ci_high"]
    assert row["p_holm"] < 1e-6


def test_several_repeats_and_clusters_are_resampled_together() -> None:
    row_list = list(rows(60, failing(0.3, steady=False), seed=2, repeats=3))
    frame = pd.DataFrame(row_list).assign(cluster=lambda frame_: (frame_["seed_id"].astype(int) // 3).astype(str))
    row = row_of(tables(Records.of(frame)).net, relation="ec", rule="strict", kind="whole")
    assert row["unchanged_cases"] == 3 * row["cases"] == 180
    assert row["ci_method"] == "cluster_bootstrap" and row["ci_low"] < row["net"] < row["ci_high"]


def test_weights_make_rates_of_the_population() -> None:
    frame = pd.DataFrame(list(rows(60, failing(0.0, steady=False))))
    number = frame["seed_id"].astype(int)
    bad = number < 20
    frame.loc[bad & (frame["relation"] == "ss"), "scene"] = '{"entities":[],"triples":[]}'
    frame["stratum_weight"] = np.where(bad, "0.25", "1.375")
    row = row_of(tables(Records.of(frame)).errors, relation="ss", rule="strict", against="source", kind="whole")
    assert (row["cases"], row["errors"]) == (60, 20)
    assert row["rate"] == pytest.approx(20 * 0.25 / (20 * 0.25 + 40 * 1.375), abs=1e-6)
    assert row["ci_low"] < row["rate"] < row["ci_high"] and row["ci_method"] != "wilson"


def card(sensitivity: float, specificity: float, pictures: int = 4000) -> Card:
    def row(kind: Any, name: str) -> CardRow:
        true_positives, spurious = round(sensitivity * pictures), round((1 - specificity) * pictures)
        return CardRow(kind=kind, name=name, present=pictures, seen=true_positives, absent=pictures, spurious=spurious)

    listed = [row("class", name) for name in NAMES] + [row("predicate", name) for name in PREDICATES]
    return Card(rows=tuple(listed), pictures=pictures)


def test_rates_are_corrected_for_errors_of_the_reader() -> None:
    sensitivity, specificity = 0.93, 0.985
    faulty = failing(0.15, steady=False)

    def read(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        scene = faulty(pool, rng, prompt)
        assert isinstance(scene, Scene)
        classes = {drawn_entity.name for drawn_entity in scene.entities}
        recognised = [name for name in sorted(classes) if rng.random() < sensitivity]
        more = [name for name in NAMES if name not in classes and rng.random() > specificity]
        return Scene(
            entities=tuple(SeenEntity(name=name) for name in (*recognised, *more)),
            tells=Tells(classes=frozenset(NAMES), predicates=frozenset(), attributes=frozenset(), counts=False),
        )

    reader = {"name": "noisy", "card": card(sensitivity, specificity).as_json()}
    result = tables(records(400, read, reader=reader, seed=4))
    assert result.reader == "noisy" and result.card is not None
    for relation, number in (("source", 3), ("ss", 3), ("er_r", 2)):
        row = row_of(result.misses, relation=relation, rule="strict", kind="entities")
        true = 0.15 / number  # one of the things that are said is left out in 15 of 100 pictures
        assert row["miss"] > true + 0.04
        assert row["corrected_low"] < true < row["corrected_high"], relation
        row = row_of(result.errors, relation=relation, rule="", against="truth", kind="entities")
        assert row["rate"] > 0.2
        assert row["corrected_low"] < 0.15 < row["corrected_high"], relation
    pair = row_of(result.errors, relation="ss", rule="strict", against="source", kind="entities")
    assert pair["rate"] > 0.5 and pair["corrected_low"] < 2 * 0.15 * 0.85 < pair["corrected_high"]
    assert math.isnan(
        row_of(result.errors, relation="ss", rule="paper", against="source", kind="entities")["corrected"]
    )


def test_classes_that_are_lost_most_often_come_first() -> None:
    def without_dogs(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        scene = drawn(pool)
        return Scene(
            entities=tuple(
                SeenEntity(name="cat" if drawn_entity.name == "dog" else drawn_entity.name)
                for drawn_entity in scene.entities
            )
        )

    result = tables(records(20, without_dogs, reader={"name": "bundled", "card": card(0.97, 0.99).as_json()}))
    classes = result.classes[result.classes["kind"] == "class"]
    first = classes.iloc[0]
    assert (first["name"], first["missed_rate"]) == ("dog", 1.0)
    assert first["sensitivity"] == 0.97 and first["specificity_low"] < 0.99 < first["specificity_high"]
    assert row_of(result.classes, kind="class", name="cat")["uncalled"] > 0


def test_prompts_that_were_rewritten_are_counted() -> None:
    frame = pd.DataFrame(list(rows(10)))
    frame.loc[frame["relation"] == "ec", "revised_prompt"] = "a lovely picture"
    row = row_of(tables(Records.of(frame)).refusals, relation="ec")
    assert (row["rewritten"], row["rewritten_rate"]) == (10, 1.0)
    assert row_of(tables(Records.of(frame)).refusals, relation="er_a")["rewritten"] == 0


def test_every_operator_is_covered_by_the_maker_of_records() -> None:
    for number in range(9):
        assert set(operators(source_pool(number))) == {*OPERATORS, "unchanged"}
    assert depict_tables(Records.of(pd.DataFrame(list(rows(2))).drop(columns="answer_state"))) is None


def test_answers_without_a_picture_and_rewritten_prompts_are_a_line() -> None:
    def draw(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene | str:
        return "malformed" if prompt.endswith(" er_a") else drawn(pool)

    frame = pd.DataFrame(list(rows(5, draw)))
    frame["revised_prompt"] = ["A better dog." if relation == "ec" else "" for relation in frame["relation"]]
    results = DepictResults(tables(Records.of(frame)))
    assert "5 of 30 prompts have an answer that is not a picture" in " ".join(results.lines())
    assert "5 of 25 pictures (20.0 %)" in " ".join(results.lines())
    plain = " ".join(DepictResults(tables(records(5, right))).lines())
    assert "not a picture" not in plain and "rewritten" not in plain

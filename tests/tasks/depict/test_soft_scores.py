"""Soft scores: means over the questions that are asked, thresholds at the oracle, and a table beside the rates."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from depict_records import drawn, entity, oracle, records, rows, without_last

from medtest.core.cases import Verdict
from medtest.core.oracles import criteria
from medtest.core.scenes import Belief, Pool, Scene, SeenEntity, Tells, pool_of
from medtest.results.records.records_io import Records
from medtest.tasks.depict.oracle import Scenes
from medtest.tasks.depict.questions import questions_about, soft_score
from medtest.tasks.depict.report.page import soft_words
from medtest.tasks.depict.tables.cases import cases_of
from medtest.tasks.depict.tables.questions import question_table
from medtest.tasks.depict.tables.results import depict_tables
from medtest.tasks.depict.views import Said, SceneLook

DOGS = pool_of([entity("dog", 2, "red"), entity("sofa")], [(0, "on", 1)])
WITHOUT_CUP = replace(DOGS, absent=("cup",))


def make_beliefs(*values: tuple[str, tuple[str, ...], float], neither: float = 0.0) -> tuple[Belief, ...]:
    return tuple(Belief(kind=kind, names=names, yes=yes, neither=neither) for kind, names, yes in values)


ALL = make_beliefs(
    ("entities", ("dog",), 0.9),
    ("entities", ("sofa",), 0.8),
    ("entities", ("cup",), 0.3),
    ("attributes", ("red", "dog"), 0.6),
    ("counts", ("dog", "2"), 0.5),
    ("relations", ("dog", "on", "sofa"), 0.4),
    ("counts", ("dog", "3"), 0.1),
)


def softs(scene: Scene, pool: Pool = WITHOUT_CUP) -> dict[tuple[str, ...], float | None]:
    return {
        (question.kind, *question.names): question.soft
        for question in questions_about(SceneLook.of(scene), Said.of(pool))
    }


def test_a_question_has_the_probability_of_its_right_answer() -> None:
    assert softs(replace(drawn(DOGS), beliefs=ALL)) == {
        ("entities", "dog"): 0.9,
        ("entities", "sofa"): 0.8,
        ("attributes", "red", "dog"): 0.6,
        ("counts", "dog"): 0.5,
        ("counts", "sofa"): None,  # its model told none
        ("relations", "dog", "on", "sofa"): 0.4,
        ("absent", "cup"): 0.7,
    }


def test_of_a_missing_entity_only_its_presence_has_a_score() -> None:
    scene = Scene(entities=(SeenEntity(name="sofa"),), beliefs=ALL)
    assert softs(scene) == {
        ("entities", "dog"): 0.9,
        ("entities", "sofa"): 0.8,
        ("attributes", "red", "dog"): None,
        ("counts", "dog"): None,
        ("counts", "sofa"): None,
        ("relations", "dog", "on", "sofa"): None,
        ("absent", "cup"): 0.7,
    }


def test_questions_beyond_the_reader_have_no_score() -> None:
    scene = replace(drawn(DOGS, Tells(classes=frozenset({"sofa"}))), beliefs=ALL)
    assert {key for key, soft in softs(scene).items() if soft is not None} == {("entities", "sofa")}


def test_means_by_hand() -> None:
    questions = list(questions_about(SceneLook.of(replace(drawn(DOGS), beliefs=ALL[:2])), Said.of(DOGS)))
    assert soft_score(questions, "mean") == pytest.approx(0.85)
    assert soft_score(questions, "geometric") == pytest.approx(sqrt(0.9 * 0.8))
    assert soft_score(questions[2:], "mean") is None
    zero = [replace(questions[0], soft=0.0), replace(questions[0], soft=1.0)]
    assert soft_score(zero, "geometric") == pytest.approx(1e-3)


def test_a_threshold_is_the_loss_that_a_picture_may_have() -> None:
    for score in ("soft", "vqascore"):
        for threshold, verdict in ((0.2, Verdict.FAIL), (0.25, Verdict.PASS), (0.4, Verdict.PASS)):
            row = {score: 0.75, f"source_{score}": None}
            assert criteria.verdict(row, score=score, threshold=threshold, against="truth")[0] == verdict


# ------------------------------------------------------------------------------------------------------------- records


def sure(chance: float, *, prompt: float | None = None, neither: float = 0.0) -> Any:
    """Return a service that leaves out the last entity in half of the pictures; the reader has this certainty."""

    def draw(pool: Pool, rng: np.random.Generator, words: str) -> Scene:
        scene = drawn(without_last(pool) if rng.random() < 0.5 else pool)
        names = scene.names()
        beliefs = [("entities", (name,), chance if names[name] else round(1 - chance, 6)) for name in pool.names()]
        beliefs += [("prompt", (), prompt)] if prompt is not None else []
        return replace(scene, beliefs=make_beliefs(*beliefs, neither=neither))

    return draw


def test_records_have_the_scores_and_the_same_when_judged_again() -> None:
    row_list = list(rows(6, sure(0.9, prompt=0.65)))
    judge = oracle(against="truth", score="soft")
    for row in row_list:
        missing = row["entities"] == 0
        count = len({name for name, _, _ in json.loads(row["pool"])["entities"]})
        expected = (0.9 * (count - missing) + 0.1 * missing) / count
        assert row["soft"] == pytest.approx(expected)
        assert row["vqascore"] == 0.65
        again = judge.rejudged(row)
        assert (again["soft"], again["vqascore"]) == (row["soft"], row["vqascore"])
        assert again["source_soft"] == row["source_soft"]
    geometric = Scenes(Scenes.Settings(soft="geometric"), primary=judge.primary)
    assert geometric.judging() != judge.judging()
    assert all(geometric.rejudged(row)["soft"] <= row["soft"] + 1e-12 for row in row_list)


def test_a_refusal_has_the_score_0_where_the_drawn_source_has_one() -> None:
    def refusing(pool: Pool, rng: np.random.Generator, words: str) -> Scene | str:
        return "refusal" if " ec" in words else sure(0.9)(pool, rng, words)

    by_relation = {row["relation"]: row for row in rows(1, refusing)}
    assert (by_relation["ec"]["soft"], by_relation["ec"]["vqascore"]) == (0.0, None)
    assert {row["soft"] for row in rows(1, lambda *_: "refusal")} == {None}


def test_the_table_has_soft_scores_with_intervals_beside_the_rates() -> None:
    cases = cases_of(records(40, sure(0.9, prompt=0.65, neither=0.2)))
    rows_by_kind = question_table(cases).to_dict("records")
    table: dict[Any, Any] = {(row["relation"], row["kind"]): row for row in rows_by_kind}
    row = table["source", "entities"]
    assert row["soft_asked"] == row["asked"] == 120
    assert row["soft"] == pytest.approx((0.9 * row["right"] + 0.1 * (120 - row["right"])) / 120, abs=1e-6)
    assert row["soft_low"] < row["soft"] < row["soft_high"]
    assert row["neither"] == pytest.approx(0.2)
    whole_prompt = table["source", "prompt"]
    assert (whole_prompt["asked"], whole_prompt["soft_asked"], whole_prompt["soft"]) == (40, 40, 0.65)
    assert whole_prompt["right"] == table["source", "entities"]["right"] - 80  # pictures without an error
    assert pd.isna(table["source", "counts"]["soft"])
    plain = question_table(cases_of(records(4)))
    assert set(plain["soft_asked"]) == {0}
    assert "prompt" not in set(plain["kind"])


def test_the_summary_reports_missing_soft_scores_once() -> None:
    silent = records(4, reader={"name": "orders", "readers": {"endoscopy": {"name": "ask", "soft": True}}})
    tables = depict_tables(silent)
    assert tables is not None
    assert soft_words(tables).startswith("No reply of the reader's model had log-probabilities")
    answered = depict_tables(Records.of(pd.DataFrame(list(rows(4, sure(0.9)))), reader={"name": "ask", "soft": True}))
    assert answered is not None
    assert soft_words(answered).startswith("Soft scores, all operators: mean probability of right answers ")
    plain = depict_tables(records(4, reader={"name": "ask"}))
    assert plain is not None
    assert soft_words(plain) == ""

"""The oracle of scenes: scores of a run are reproduced from its records, under any rules and with any reader."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from depict_records import drawn, oracle, records, right, rows, source_pool, without_last

from medtest.core.cases import NO_IMAGE, AnswerOutput, Effect, PreparedSeed, Reason, ReasonCode, SeedRef, Verdict
from medtest.core.errors import BadOutput
from medtest.core.oracles import criteria
from medtest.core.scenes import Pool, Scene, Tells, dumped
from medtest.core.tasks.base import Case, CaseAnswer, SystemInput, task_of
from medtest.readers.readings import Readings, content_key
from medtest.results.records.records_io import Records
from medtest.results.records.rejudging import rejudged_records
from medtest.results.records.status import status
from medtest.runner.privacy.hidden_words import HiddenWords
from medtest.suite.model import Criterion
from medtest.tasks.depict.oracle import Scenes
from medtest.tasks.depict.views import SceneLook, look_of


def faulty(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene | str:
    """Draw without what was named last in a third of pictures, and refuse some."""
    if rng.random() < 0.1:
        return "content_filter"
    return drawn(without_last(pool) if rng.random() < 0.33 else pool)


@pytest.mark.parametrize("rules", ["strict", "paper", "released"])
def test_records_are_judged_again_from_their_texts_alone(rules: str) -> None:
    recorded = list(rows(12, faulty, rules="strict", seed=1))
    direct = list(rows(12, faulty, rules=rules, seed=1))
    judge = oracle(rules)
    for row, expected in zip(recorded, direct, strict=True):
        again = {**row, **judge.judged_again({name: _none(value) for name, value in row.items()})}
        for name in (*judge.scores, *(f"self_{score}" for score in judge.self_scores), "verdict", "reason_code"):
            assert _none(again[name]) == _none(expected[name]), (name, row["relation"])
        for name in judge.scores:
            assert _none(again[f"source_{name}"]) == _none(expected[f"source_{name}"]), (name, row["relation"])


def _none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def test_rules_are_in_digests_and_views() -> None:
    assert oracle().judging() != oracle("paper").judging()
    assert oracle().judging()["rules"] == "strict"
    with pytest.raises(ValueError, match="rules"):
        Scenes.Settings(rules="lenient")  # type: ignore[call-arg]


def test_refused_where_the_source_was_drawn_fails_and_counts_apart() -> None:
    def draw(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene | str:
        if prompt.endswith(" ec") or prompt == "prompt 1":
            return "content_filter"
        return drawn(pool)

    for against in ("source", "truth"):
        judge = oracle(against=against)
        for row in rows(2, draw):
            verdict, reason = judge.verdict(row)
            if row["relation"] == "source":
                continue
            if row["seed_id"] == "00000":
                assert verdict == (Verdict.FAIL if row["relation"] == "ec" else Verdict.PASS)
            elif against == "source" or row["answer_state"] != "answered":
                assert verdict == Verdict.SKIP
                again = judge.rejudged({name: _none(value) for name, value in row.items()})
                assert again["why"] == ReasonCode.SOURCE_REFUSED == reason.code or against == "truth"
    changed = next(row for row in rows(1, draw) if row["relation"] == "ec")
    assert (changed["drawn"], changed["self_whole"], changed["whole"], changed["answer_why"]) == (
        0.0,
        0.0,
        0.0,
        "the service said no",
    )


def test_a_case_that_cannot_be_judged_has_a_reason() -> None:
    def blind(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        return drawn(pool, Tells(classes=frozenset()))

    for row in rows(1, blind):
        if row["relation"] in ("ec", "er_r", "er_a"):
            assert (row["verdict"], row["reason_code"]) == ("SKIP", "change_unreadable")

    def colours(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        return drawn(pool, Tells(predicates=frozenset()))

    by_relation = {row["relation"]: row for row in rows(1, colours)}
    assert by_relation["ec"]["verdict"] == "PASS" and by_relation["ec"]["self_relations"] is None
    assert by_relation["er_a"]["verdict"] == "SKIP" and by_relation["er_a"]["self_entities"] == 1.0
    # A number that the reader cannot tell: there is a score against the prompt, and none against the source.
    by_relation["er_a"]["whole"] = 1.0
    judged = status(
        Records.of(pd.DataFrame(by_relation.values())), Criterion(score="whole", threshold=0.0, against="source")
    )
    assert judged.skipped.any() and not judged.source_failed.any()


def test_rates_and_verdicts_agree_on_every_case() -> None:
    run_records = Records.of(pd.DataFrame(list(rows(30, faulty, seed=2))))
    for against in ("source", "truth"):
        judge = oracle(against=against)
        again = rejudged_records(run_records, judge)
        judged = status(again, Criterion(score="whole", threshold=0.0, against=against))
        verdicts = again.followups["verdict"].astype(str)
        assert (verdicts == "FAIL").to_numpy().tolist() == judged.violated.tolist()
        assert (verdicts == "PASS").to_numpy().tolist() == (judged.case & ~judged.violated).tolist()
        assert (verdicts == "SKIP").to_numpy().tolist() == (~judged.case).tolist()


def test_against_the_truth_a_wrong_source_makes_no_difference() -> None:
    row = {"whole": 0.0, "source_whole": 0.0}
    assert criteria.verdict(row, score="whole", threshold=0.0, against="truth") == (Verdict.FAIL, Reason())
    assert criteria.columns_needed("entities", "truth") == ("entities",)
    empty = list(rows(3, lambda pool, rng, prompt: Scene()))
    judge = oracle(against="truth")
    assert {judge.verdict(row_)[0] for row_ in empty if row_["relation"] != "source"} == {Verdict.FAIL}
    again = {row_["relation"]: row_["verdict"] for row_ in empty}
    assert again == {
        **dict.fromkeys(("ec", "er_r", "er_a", "ec_er_r", "ec_er_a"), "FAIL"),
        "source": "PASS",
        "ss": "PASS",
        "unchanged": "PASS",
    }


def test_another_readers_scenes_are_judged_for_follow_ups_and_their_sources() -> None:
    run_records = Records.of(
        pd.DataFrame(list(rows(4, right))).assign(picture=lambda frame: frame["seed_id"] + frame["relation"])
    )
    empty = {"scene": dumped(Scene().as_json()), "tells": dumped(Tells().as_json())}
    pictures = [*run_records.sources["picture"], *run_records.followups["picture"]]
    readings = Readings(
        reader="blind",
        recorded=lambda row: row.get("picture"),
        columns={content_key(picture): empty for picture in pictures},
        about={"name": "blind"},
    )
    again = rejudged_records(run_records, oracle(), readings)
    assert set(again.followups["source_scene"]) == {empty["scene"]} and again.reader == {"name": "blind"}
    by = dict(zip(again.followups["relation"], again.followups["verdict"], strict=True))
    assert (by["ss"], by["unchanged"], by["ec"], by["er_r"]) == ("PASS", "PASS", "FAIL", "FAIL")
    assert (again.followups["source_whole"] == 0).all()


def test_a_record_is_shown_with_boxes_and_the_broken_triple() -> None:
    task = task_of("depiction")
    by_relation = {row["relation"]: row for row in rows(1, lambda pool, rng, prompt: drawn(source_pool(0)))}
    source, follow = task.drawing.recorded(by_relation["source"]), task.drawing.recorded(by_relation["er_a"])
    assert follow is not None and source is not None and isinstance(follow.facts, Scene)
    words = dict(task.drawing.words(by_relation["er_a"], by_relation["source"]))
    assert words["source"] == "prompt 0" and words["follow-up"] == "prompt 0 er_a"
    assert (
        words["change"].startswith("+ ")
        and "was added and is not in the picture" in words["against the source (strict)"]
    )
    assert "(" in words["against its own prompt"]
    picture = np.full((8, 8, 3), 200, np.uint8)
    case = Case(
        seed=PreparedSeed(
            ref=SeedRef(dataset="captions", seed_id="0"),
            image=NO_IMAGE,
            mask=None,
            original_mask=None,
            frame=np.zeros((0, 0), bool),
            grey=np.zeros((0, 0), np.float32),
        ),
        image=NO_IMAGE,
        before=CaseAnswer(output=source),
        after=CaseAnswer(output=follow),
        words=tuple(words.items()),
        pixels=lambda sha256: picture if sha256 == "ab" * 32 else None,
    )
    panels = task.drawing.panels(case).panels
    assert [panel.name.split("\n") for panel in panels[:2]] == [["source", "prompt 0"], ["follow-up", "prompt 0 er_a"]]
    assert panels[0].image is picture and len(panels[1].boxes) == len(follow.facts.entities)
    assert panels[1].boxes[0][1].endswith(follow.facts.entities[0].name) and panels[2].lines == case.words
    gone = task.drawing.panels(
        Case(seed=case.seed, image=NO_IMAGE, before=case.before, after=CaseAnswer(reason="not asked"))
    )
    assert [panel.words for panel in gone.panels] == ["the picture is no longer kept", "not asked"]


def test_a_refusal_is_shown_with_its_reason() -> None:
    by_relation = {row["relation"]: row for row in rows(1, lambda pool, rng, prompt: "content_filter")}
    words = dict(task_of("depiction").drawing.words(by_relation["ec"], None))
    assert words["no picture"] == "content filter: the service said no"


def test_only_pictures_are_answers() -> None:
    task = task_of("depiction")
    with pytest.raises(BadOutput, match="where a picture is expected"):
        task.border.check("a dog", SystemInput(image=NO_IMAGE), None)  # type: ignore[arg-type]
    words = AnswerOutput(address=task.drawing.recorded(next(iter(rows(1)))).address, text="a dog")  # type: ignore[union-attr]
    with pytest.raises(TypeError, match="kind answer"):
        oracle().score(answer=words, source=None, seed=None, effect=Effect())  # type: ignore[arg-type]


def test_records_hold_plain_json() -> None:
    run_records = records(1)
    row = run_records.followups[run_records.followups["relation"] == "ec"].iloc[0]
    effect = json.loads(row["effect"])
    assert set(effect) == {"removed", "added"} and len(effect["removed"]["entities"]) == len(
        effect["added"]["entities"]
    )
    assert json.loads(row["pool"])["entities"] and json.loads(row["source_pool"])["triples"]
    assert json.loads(row["tells"]) == {"attributes": None, "classes": None, "counts": True, "predicates": None}


def test_records_without_words_are_judged_the_same() -> None:
    hidden = HiddenWords(
        key=b"0" * 32, said=task_of("depiction").storage.said_columns, named=task_of("depiction").storage.named_columns
    )
    judge = oracle()
    for row in rows(6, faulty, seed=4):
        texts = {name: row[name] for name in judge.texts}
        hidden_row = {**row, **hidden.texts(texts)}
        assert (
            hidden_row["prompt"] is None
            and "dog" not in str(hidden_row["pool"])
            and "near" not in str(hidden_row["pool"])
        )
        again = judge.rejudged({name: _none(value) for name, value in hidden_row.items()})
        for name in (*judge.scores, *(f"self_{score}" for score in judge.self_scores)):
            assert _none(again[name]) == _none(row[name])


def test_a_look_at_the_text_equals_a_look_at_the_scene() -> None:
    for row in rows(4, faulty, seed=6):
        if not row["scene"]:
            continue
        tells = Tells.of_json(json.loads(row["tells"]))
        direct, slow = look_of(row["scene"], row["tells"]), SceneLook.of(Scene.of_json(json.loads(row["scene"]), tells))
        for name in ("names", "triples", "attributes", "ranked", "predicates", "tells"):
            assert getattr(direct, name) == getattr(slow, name)
    unsorted = {"entities": [["dog", None, 0.2, []], ["cat", None, 0.9, []], ["sofa", None, 0.5, []]], "triples": []}
    assert look_of(json.dumps(unsorted), "").ranked == ("cat", "sofa", "dog")
    for wrong in (
        {"entities": [["dog", None, 1.0, []]], "triples": [[0, "on", 1]]},
        {"entities": 3},
        [],
        {"entities": []},
    ):
        with pytest.raises(ValueError, match="no scene"):
            look_of(json.dumps(wrong), "")

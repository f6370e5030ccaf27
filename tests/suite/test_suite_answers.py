"""Suites of questions: settings of their oracle, and one message about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtest.cli.run.plan_view import _criterion
from medtest.core.errors import UserMistakes
from medtest.language.questions.questions import by_name
from medtest.suite.compose import load, load_suite
from medtest.suite.model import Invocation
from medtest.suite.reading.outline import outline
from medtest.tasks.ask.oracle import Answers


def wrong(*typed: str) -> str:
    with pytest.raises(UserMistakes) as caught:
        load_suite("medvqa", list(typed))
    return str(caught.value)


def test_the_suite_judges_flips_of_answers() -> None:
    loaded = load("medvqa")
    assert loaded.view == ""
    assert loaded.suite.oracle.part.info.name == "answers"
    assert (loaded.suite.oracle.primary.score, loaded.suite.oracle.primary.against) == ("answer", "source")
    assert loaded.suite.build_oracle().relations["instrument"] == "instrument"


def test_a_wrong_relation_question_or_value_is_one_message() -> None:
    text = wrong("oracles.expectations.blod.findings=invariant")
    assert "oracles.expectations.blod" in text
    assert "did you mean: blood" in text
    text = wrong("oracles.expectations.blood.findigns=invariant")
    assert "blood.findigns" in text
    assert "did you mean findings" in text
    assert "at" in wrong("oracles.expectations.blood.polyps='must become red'")
    assert "tolerance" in wrong("oracles.tolerance=7")


def test_answer_has_no_threshold() -> None:
    text = wrong("oracles.primary.threshold=0.25")
    assert "no threshold with answer (an answer flipped or did not)" in text
    assert "choose score: jaccard" in text
    assert load_suite("medvqa", ["oracles.primary.score=jaccard", "oracles.primary.threshold=0.25"]).oracle.thresholds


def test_another_expectation_is_another_view_of_the_same_run() -> None:
    loaded = load("medvqa", ["oracles.expectations.blood.findings=invariant"])
    assert loaded.view
    assert loaded.own.build_oracle().judging() != loaded.suite.build_oracle().judging()
    assert load("medvqa", ["oracles.tolerance=0"]).view == ""


def test_a_plan_says_what_a_violation_is(tmp_path: Path) -> None:
    def words(*typed: str) -> str:
        return _criterion(outline(load_suite("medvqa", list(typed)), Invocation(home=tmp_path)))

    assert "the answer flips" in words()
    assert "right on the source" in words("oracles.primary.against=truth")
    assert "jaccard falls by more than 0.25" in words("oracles.primary={score: jaccard, threshold: 0.25}")


def test_a_gate_on_answers_needs_no_threshold() -> None:
    suite = load_suite("medvqa", ["gates=[{relation: overall, score: answer, max_percent: 10}]"])
    assert (suite.gates[0].score, suite.gates[0].threshold, suite.gates[0].against) == ("answer", 0.0, "source")


def test_a_plan_refuses_expectations_of_questions_that_are_not_asked(tmp_path: Path) -> None:
    def planned(name: str) -> None:
        outline(load_suite("medvqa", [f"oracles.expectations.blur.{name}=skip"]), Invocation(home=tmp_path))

    planned("all_count")
    planned("polyps")
    with pytest.raises(UserMistakes) as caught:
        planned("q_0123abcd")
    assert "oracles.expectations.blur.q_0123abcd" in str(caught.value)
    assert "q_0123abcd" in str(caught.value)


def test_a_relation_named_like_another_part_is_judged_by_its_own_part(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "extends: medvqa\nname: mine\nrelations:\n  blood: false\n  text: {relation: contrast, severities: [3]}\n"
    )
    judge = load_suite(str(file)).build_oracle()
    assert judge.relations["text"] == "contrast"
    question = by_name("text")
    assert question is not None
    assert isinstance(judge, Answers)
    assert str(judge._expectation("text", question)) == "invariant"

"""Readings of a judge over records: judged like answers in words that medtest reads."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.cases import SOURCE, Address, AnswerOutput, Effect
from medtest.language.questions.answers.values.answer import State
from medtest.readers.base import Readings
from medtest.readers.meaning import NEEDS, Reading, Unread, columns_of, unread_of
from medtest.results.records.records_io import Records
from medtest.results.records.rejudging import contents_in, rejudged_records
from medtest.suite.model import Criterion
from medtest.tasks.ask.oracle import Answers
from medtest.tasks.ask.tables.readings import judged_table
from medtest.tasks.ask.tables.results import answer_tables
from medtest.tasks.ask.tables.states import state_table

sys.path.insert(0, str(Path(__file__).parents[2] / "core" / "oracles"))

from question_seeds import ask_of, seed_of

FINNISH = {"yksi": "One.", "kaksi": "Two.", "en voi auttaa": "I cannot help with that.", "vaikea": "vaikea"}
READ = {
    "yksi": Reading(State.VALUE, "1", "yksi"),
    "kaksi": Reading(State.VALUE, "2", "kaksi"),
    "en voi auttaa": Reading(State.REFUSAL, "", "en voi"),
    "vaikea": Reading(State.UNPARSED),
}
SAME = ["agreement", "exact", "jaccard", "source_agreement", "self_agreement", "self_exact", "self_jaccard"]
WORDS = [*FINNISH, "Three polyps."]


def oracle() -> Answers:
    return Answers(Answers.Settings(), primary=Criterion(score="answer", threshold=0.0, against="source"))


def unread_in(records: Records) -> tuple[Unread, ...]:
    return tuple(sorted(contents_in(records, NEEDS, unread_of)))


def with_readings(records: Records, readings_: dict[Unread, Reading], judge: Answers) -> Records:
    readings = Readings(reader="m", recorded=unread_of, columns=columns_of(readings_), facts=readings_, marks=True)
    return rejudged_records(records, judge, readings)


def row(image: int, relation: str, words: str, source: str) -> dict[str, Any]:
    """Return a record as the runner writes it."""
    judge, ask = oracle(), ask_of("polyps", "1")
    seed = seed_of(ask)

    def output_of(text: str, under: str) -> AnswerOutput:
        level = 0 if under == SOURCE else 3
        where = Address(dataset="d", seed_id=f"i{image}", relation=under, severity=level, item="polyps")
        return AnswerOutput(address=where, text=text, state="answered")

    before, after = output_of(source, SOURCE), output_of(words, relation)
    at_source = judge.score(answer=before, source=before, seed=seed, effect=Effect())
    result: dict[str, Any] = {
        "suite": "s",
        "suite_version": "1",
        "system": "model",
        "dataset": "d",
        "seed_id": f"i{image}",
        "cluster": f"i{image}",
        "item": "polyps",
        "relation": relation,
        "group": "g",
        "frame": 0,
        "repeat": 0,
        "severity": after.address.severity,
        **judge.score(answer=after, source=before, seed=seed, effect=Effect()),
        **{f"source_{name}": at_source[name] for name in judge.scores},
        **judge.describe(answer=after, source=before, seed=seed, effect=Effect()),
        **dict.fromkeys(judge.measures, 1.0),
        "verdict": "PASS",
        "reason_code": "",
        "reason": "",
    }
    if relation != SOURCE:
        verdict, reason = judge.verdict(result)
        result |= {"verdict": str(verdict), "reason_code": str(reason.code), "reason": reason.text}
    return result


def records_of(answers: list[tuple[str, str]], *, english: bool) -> Records:
    """Return records of images with the words of source and follow-up."""
    shown = [tuple(FINNISH.get(words, words) if english else words for words in pair) for pair in answers]
    rows = [
        row(number, relation, words, pair[0])
        for number, pair in enumerate(shown)
        for relation, words in ((SOURCE, pair[0]), ("blur", pair[1]), ("unchanged", pair[0]))
    ]
    return Records.of(pd.DataFrame(rows))


def laid_and_direct(answers: list[tuple[str, str]]) -> tuple[Records, Records]:
    """Return records with a judge's readings, and records of the same answers in words that medtest reads."""
    foreign = records_of(answers, english=False)
    readings = {unread: READ[unread.words] for unread in unread_in(foreign)}
    assert {unread.words for unread in readings} == {words for pair in answers for words in pair} & set(READ)
    return with_readings(foreign, readings, oracle()), records_of(answers, english=True)


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=1, max_size=8))
def test_readings_of_a_judge_are_judged_like_direct_answers(answers: list[tuple[str, str]]) -> None:
    laid, direct = laid_and_direct(answers)
    for own, expected in ((laid.followups, direct.followups), (laid.sources, direct.sources)):
        columns = [name for name in SAME if name in expected.columns]
        pd.testing.assert_frame_equal(own[columns].astype(float), expected[columns].astype(float))
        texts = ["state", "said", "source_state", "source_said", "verdict", "why", "change"]
        assert own[texts].fillna("").astype(str).to_dict("list") == expected[texts].fillna("").astype(str).to_dict(
            "list"
        )


def test_tables_of_readings_equal_those_of_direct_answers() -> None:
    laid, direct = laid_and_direct(list(product(WORDS, WORDS)))
    tables, expected = answer_tables(laid), answer_tables(direct)
    assert tables is not None
    assert expected is not None
    pd.testing.assert_frame_equal(tables.flips, expected.flips)
    pd.testing.assert_frame_equal(tables.accuracy, expected.accuracy)


def test_readings_are_counted_apart_and_the_records_stay() -> None:
    foreign = records_of([("yksi", "kaksi"), ("vaikea", "en voi auttaa"), ("Three polyps.", "kaksi")], english=False)
    before = foreign.followups.copy()
    readings = {unread: READ[unread.words] for unread in unread_in(foreign)}
    laid = with_readings(foreign, readings, oracle())
    pd.testing.assert_frame_equal(foreign.followups, before)

    states = state_table(laid).set_index(["item", "relation"])
    blur = states.loc[("polyps", "blur")]
    assert (blur["asked"], blur["value"], blur["refusal"], blur["unparsed"], blur["by_judge"]) == (3, 2, 1, 0, 3)
    source = states.loc[("polyps", "source")]
    assert (source["value"], source["unparsed"], source["by_judge"]) == (2, 1, 1)
    assert (state_table(foreign)["by_judge"] == 0).all()

    table = judged_table(foreign, readings).set_index("words")
    # each image: source and unchanged say the same, blur another thing
    assert table["cases"].to_dict() == {"yksi": 2, "kaksi": 2, "vaikea": 2, "en voi auttaa": 1}
    assert table["said"].to_dict() == {"yksi": "1", "kaksi": "2", "vaikea": "", "en voi auttaa": ""}


def test_nothing_to_read() -> None:
    foreign = records_of([("Three polyps.", "Two.")], english=False)
    assert unread_in(foreign) == ()
    laid = with_readings(foreign, {}, oracle())
    assert laid.followups["verdict"].tolist() == foreign.followups["verdict"].tolist()


def test_a_refusal_in_words_goes_to_the_judge_and_one_of_the_server_does_not() -> None:
    disclaimed = "I'm unable to help, kolme polyyppia though."
    foreign = records_of([(disclaimed, "Three polyps.")], english=False)
    assert set(foreign.sources.state) == {"refusal"}
    (unread,) = unread_in(foreign)
    laid = with_readings(foreign, {unread: Reading(State.VALUE, "3", "kolme polyyppia")}, oracle())
    assert set(laid.sources.said) == {"3"}
    assert set(laid.followups.verdict) == {"PASS"}
    unchanged = with_readings(foreign, {unread: Reading(State.UNPARSED)}, oracle())
    assert set(unchanged.sources.state) == {"refusal"}
    foreign.sources["reply"] = foreign.followups["reply"] = "content_filter"
    assert not unread_in(foreign)

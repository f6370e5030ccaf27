"""Tables of answers from records, against hand counts, statsmodels and SciPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from medtest.language.questions.questions import in_slide_order
from medtest.results.records.records_io import Records
from medtest.tasks.ask.oracle import Answers
from medtest.tasks.ask.tables.accuracy import AVERAGE_18, accuracy_table
from medtest.tasks.ask.tables.flips import ALL, CONTRACT, OVERALL, flip_table
from medtest.tasks.ask.tables.hidden import hidden_flips
from medtest.tasks.ask.tables.records import answer_rows, has_answers
from medtest.tasks.ask.tables.results import FLIPS, answer_tables
from medtest.tasks.ask.tables.states import COST_COLUMNS, STATE_COLUMNS, cost_table, state_table
from medtest.tasks.ask.tables.worst import worst_images

NAN = float("nan")


def record(image: int, item: str, relation: str, **changes: Any) -> dict[str, Any]:
    """Return a record: a yes that stays a yes unless changes say otherwise."""
    source = relation == "source"
    row: dict[str, Any] = {
        **dict.fromkeys(Answers.texts, ""),
        "suite": "s",
        "suite_version": "1",
        "system": "model",
        "dataset": "d",
        "seed_id": f"i{image:03d}",
        "cluster": f"i{image:03d}",
        "item": item,
        "relation": relation,
        "group": "source" if source else "lighting",
        "severity": 0 if relation in ("source", "unchanged") else 3,
        "frame": 0,
        "repeat": 0,
        "verdict": "PASS",
        "reason_code": "",
        "reason": "",
        "question": f"What of {item}?",
        "answer": "Yes.",
        "said": "yes",
        "truth": "yes",
        "state": "value",
        "reply": "answered",
        "rule": "invariant",
        "agreement": 1.0,
        "source_agreement": 1.0,
        "exact": 1.0,
        "jaccard": 1.0,
        **{f"self_{name}": NAN if source else 1.0 for name in Answers.self_scores},
        "prompt_tokens": 100.0,
        "completion_tokens": 3.0,
        "cost_usd": 0.01,
        "seconds": 0.5,
        "attempts": 1.0,
    }
    return {**row, **changes}


def flipped_record(image: int, item: str, relation: str, **changes: Any) -> dict[str, Any]:
    """Return a yes that became a no."""
    fall = {"agreement": 0.0, "exact": 0.0, "jaccard": 0.0, **{f"self_{name}": 0.0 for name in Answers.self_scores}}
    texts = {"answer": "No.", "said": "no", "verdict": "FAIL", "change": "flip", "why": "flip"}
    return record(image, item, relation, **{**fall, **texts, **changes})


def records_of(rows: Iterable[dict[str, Any]]) -> Records:
    return Records.of(pd.DataFrame(list(rows)))


def campaign(seed: int = 1, images: int = 40) -> Records:
    """Return three questions under two relations, each with its own rate, and the unchanged image asked twice more."""
    rng = np.random.default_rng(seed)
    rates = {("text", "blur"): 0.5, ("text", "contrast"): 0.1, ("box", "blur"): 0.3, ("box", "contrast"): 0.02}
    rows = []
    for image in range(images):
        for item in ("text", "box", "easy"):
            rows.append(record(image, item, "source"))
            for relation in ("blur", "contrast", "unchanged"):
                for repeat in range(2 if relation == "unchanged" else 1):
                    hit = rng.random() < rates.get((item, relation), 0.08)
                    rows.append((flipped_record if hit else record)(image, item, relation, repeat=repeat))
    return records_of(rows)


def test_cells_agree_with_statsmodels_and_scipy() -> None:
    records = campaign()
    cases = records.followups
    table = flip_table(answer_rows(records))
    cells = table[(table["item"] != ALL) & (table["relation"] != OVERALL)]
    assert len(cells) == 6
    expected_p = []
    for row in cells.itertuples():
        own = cases[(cases["item"] == row.item) & (cases["relation"] == row.relation)].set_index("seed_id")
        again = cases[(cases["item"] == row.item) & (cases["relation"] == "unchanged")]
        flips = int((own["self_agreement"] == 0).sum())
        assert (row.flips, row.cases, row.rate) == (flips, 40, flips / 40)
        ends = proportion_confint(flips, 40, method="wilson")
        assert (row.rate_low, row.rate_high) == pytest.approx(ends, abs=1e-6)
        floor = int((again["self_agreement"] == 0).sum())
        assert (row.unchanged_flips, row.unchanged_cases) == (floor, 80)
        # Of the two askings of an image half a flip each: 40 independent images, and not 80 cases.
        net = confint_proportions_2indep(flips, 40, floor / 2, 40, compare="diff", method="newcomb")
        assert (row.ci_low, row.ci_high) == pytest.approx(net, abs=1e-6)
        assert row.net == pytest.approx(flips / 40 - floor / 80, abs=1e-6)
        first = again[again["repeat"] == 0].set_index("seed_id")["self_agreement"] == 0
        own_flips = own["self_agreement"] == 0
        b, c = int((own_flips & ~first).sum()), int((first & ~own_flips).sum())
        expected_p.append(1.0 if b + c == 0 else binomtest(b, b + c).pvalue)
    assert list(cells["p"]) == pytest.approx(expected_p)
    assert list(cells["p_holm"]) == pytest.approx(multipletests(expected_p, method="holm")[1])


def test_images_of_a_patient_are_not_independent_cases() -> None:
    rows = []
    for image in range(12):
        patient = {"cluster": f"p{image // 4}"}
        maker = flipped_record if image < 4 else record
        rows += [record(image, "text", "source", **patient), maker(image, "text", "blur", **patient)]
        rows.append(record(image, "text", "unchanged", **patient))
    records = records_of(rows)
    row = flip_table(answer_rows(records)).set_index(["item", "relation"]).loc[("text", "blur")]
    assert (row.flips, row.cases) == (4, 12)
    # One patient of three flipped in every image: Wilson's interval of 1 of 3, and no test can tell one patient.
    assert (row.rate_low, row.rate_high) == pytest.approx(proportion_confint(1, 3, method="wilson"), abs=1e-6)
    assert row.p == 1.0
    states = state_table(records).set_index(["item", "relation"]).loc[("text", "blur")]
    assert states.ci_high == pytest.approx(proportion_confint(0, 3, method="wilson")[1], abs=1e-6)


def test_the_contract_has_exactly_its_columns_and_all_pools() -> None:
    tables = answer_tables(campaign())
    assert tables is not None
    frame = tables.frames()[FLIPS]
    assert tuple(frame.columns) == CONTRACT
    assert ",".join(CONTRACT) == "item,question,relation,flips,cases,unchanged_flips,net,ci_low,ci_high,p_holm"
    keys = set(zip(frame["item"], frame["relation"], strict=True))
    assert keys == {(item, name) for item in ("text", "box", "easy", ALL) for name in ("blur", "contrast", OVERALL)}
    assert dict(zip(frame["item"], frame["question"], strict=True))["text"] == "What of text?"
    pool = frame.set_index(["item", "relation"]).loc[(ALL, OVERALL)]
    cases = tables.flips.set_index(["item", "relation"])
    assert pool.flips == sum(cases.loc[(item, OVERALL)].flips for item in ("text", "box", "easy"))
    assert pool.ci_low < pool.net < pool.ci_high
    for name, table in tables.frames().items():
        if name != FLIPS and not table.empty:
            assert set(table["system"]) == {"model"}
            assert set(table["subject"]) == {"real"}


def test_a_simulation_is_marked_in_its_tables() -> None:
    records = campaign()
    simulated = records_of(
        [
            {**row, "system": "model-simulated"}
            for row in pd.concat([records.sources, records.followups]).to_dict("records")
        ]
    )
    tables = answer_tables(simulated, phantom=True)
    assert tables is not None
    assert tables.simulated
    assert set(tables.frames()["answer_accuracy.csv"]["subject"]) == {"simulated"}
    assert set(tables.frames()["answer_accuracy.csv"]["seeds"]) == {"phantoms"}


def test_states_are_counted_apart() -> None:
    refused = {"state": "refusal", "said": "", "why": "refusal"}
    open_ = {f"self_{name}": NAN for name in Answers.self_scores} | {"agreement": NAN, "exact": NAN, "jaccard": NAN}
    rows = [record(n, "text", "source") for n in range(4)]
    rows += [
        flipped_record(0, "text", "blur", **refused),
        flipped_record(1, "text", "blur", reply="content_filter", **refused),
        record(2, "text", "blur", state="unparsed", reply="length", why="length", verdict="SKIP", **open_),
        record(3, "text", "blur", state="unparsed", why="unparsed", verdict="SKIP", **open_),
        record(0, "text", "contrast", state="refusal", why="source refused", verdict="SKIP", **open_),
        record(
            1,
            "text",
            "contrast",
            verdict="ERROR",
            reason_code="system_error",
            reason="retries are exhausted",
            state=None,
            **open_,
        ),
        record(
            2, "text", "contrast", verdict="SKIP", reason_code="not_applicable", reason="no room", state=None, **open_
        ),
        record(3, "text", "contrast", state="unparsed", reply="malformed", why="malformed", verdict="SKIP", **open_),
        record(0, "text", "unchanged", state="not_relevant"),
    ]
    records = records_of(rows)
    assert has_answers(records)
    table = state_table(records)
    assert tuple(table.columns) == STATE_COLUMNS
    cells = table.set_index(["item", "relation"])
    blur = cells.loc[("text", "blur")]
    assert (blur.asked, blur.refusal, blur.by_filter, blur.refused_after_answer) == (4, 2, 1, 2)
    assert (blur.unparsed, blur.cut_off, blur.malformed, blur.errors) == (2, 1, 0, 0)
    assert (blur.ci_low, blur.ci_high) == pytest.approx(proportion_confint(2, 4, method="wilson"), abs=1e-6)
    contrast = cells.loc[("text", "contrast")]
    assert (contrast.asked, contrast.errors, contrast.refusal, contrast.refused_after_answer) == (3, 1, 1, 0)
    assert (contrast.unparsed, contrast.malformed, contrast.refusal_rate) == (1, 1, 0.5)
    pool = cells.loc[(ALL, OVERALL)]
    assert (pool.asked, pool.refusal, pool.unparsed, pool.errors) == (7, 3, 3, 1)
    assert cells.loc[("text", "unchanged")].not_relevant == 1
    assert (blur.by_schema, blur.by_rules, blur.by_judge) == (0, blur.value + blur.refusal - blur.by_filter, 0)
    flips = flip_table(answer_rows(records)).set_index(["item", "relation"]).loc[("text", "blur")]
    assert (flips.flips, flips.cases, flips.refusals, flips.not_judged) == (2, 2, 2, 2)


def test_the_reader_of_an_answer_is_counted_and_older_records_were_read_by_rules() -> None:
    rows = [record(0, "text", "source", stage="schema"), record(1, "text", "source", stage="rules")]
    rows += [record(2, "text", "source", stage=None), record(3, "text", "source", stage="schema", state="unparsed")]
    source = state_table(records_of(rows)).set_index(["item", "relation"]).loc[("text", "source")]
    assert (source.asked, source.by_schema, source.by_rules, source.by_judge) == (4, 1, 2, 0)


def test_costs_are_sums_over_answers_and_seconds_of_calls() -> None:
    rows = [record(n, "text", "source", seconds=float(n), attempts=float(n > 0)) for n in range(5)]
    rows += [record(n, "text", "blur", cost_usd=NAN if n else 0.5, attempts=2.0) for n in range(5)]
    table = cost_table(records_of(rows))
    assert tuple(table.columns) == COST_COLUMNS
    cells = table.set_index(["by", "name"])
    assert cells.loc[("all", "all")].to_dict() == pytest.approx(
        {
            "answers": 10,
            "prompt_tokens": 1000,
            "completion_tokens": 30,
            "cost_usd": 0.55,
            "without_cost": 4,
            "seconds_median": 0.5,
            "seconds_p95": float(np.quantile([1, 2, 3, 4, *[0.5] * 5], 0.95)),
            "attempts": 14,
        }
    )
    assert cells.loc[("relation", "source")].seconds_median == 2.5  # the one that no call was sent for is left out


def test_opposite_flips_hide_in_the_difference_and_are_reported() -> None:
    rows = []
    wrong = {"agreement": 0.0, "exact": 0.0}
    for n in range(20):
        right = n < 10
        rows.append(record(n, "text", "source", **({} if right else wrong), source_agreement=float(right)))
        after = flipped_record(n, "text", "blur", source_agreement=float(right))
        rows.append(after if right else {**after, "agreement": 1.0, "exact": 1.0})
    hidden = hidden_flips(answer_rows(records_of(rows)))
    assert hidden is not None
    assert (hidden.difference, hidden.flips, hidden.lost, hidden.won, hidden.sideways) == (0.0, 1.0, 10, 10, 0)
    assert hidden.example is not None
    assert hidden.example.item == "text"
    assert hidden_flips(answer_rows(records_of([record(0, "text", "source"), record(0, "text", "unchanged")]))) is None
    lost = hidden_flips(answer_rows(records_of(rows[:22])))  # of eleven pairs ten went from right to wrong, one back
    assert lost is not None
    assert (lost.lost, lost.won, lost.difference) == (10, 1, pytest.approx(9 / 11))


def test_accuracy_has_the_intervals_of_both() -> None:
    rng = np.random.default_rng(3)
    rows = []
    for image in range(60):
        for question in in_slide_order():
            item = question.name
            at_source = rng.random() < 0.7
            rows.append((record if at_source else flipped_record)(image, item, "source", self_agreement=NAN))
            for relation in ("blur", "contrast"):
                rows.append((record if rng.random() < 0.5 else flipped_record)(image, item, relation))
    records = records_of(rows)
    table = accuracy_table(answer_rows(records)).set_index("item")
    row = table.loc["text"]
    right = int((records.sources.loc[records.sources["item"] == "text", "agreement"] == 1).sum())
    assert row.source == pytest.approx(right / 60, abs=1e-6)
    assert (row.source_low, row.source_high) == pytest.approx(proportion_confint(right, 60, method="wilson"), abs=1e-6)
    published = proportion_confint(row.published_source * 182, 182, method="wilson")
    assert (row.published_source_low, row.published_source_high) == pytest.approx(published, abs=1e-6)
    own = records.followups[records.followups["item"] == "text"].groupby("relation")["agreement"].mean()
    assert row.perturbed == pytest.approx(own.mean(), abs=1e-5)
    # A plain bootstrap over images, drawn independently of ours.
    wide = records.followups.pivot_table(index="seed_id", columns=["item", "relation"], values="agreement")
    drawn = np.random.default_rng(9).integers(60, size=(4000, 60))
    means = wide["text"].to_numpy()[drawn].mean(1).mean(1)
    assert (row.perturbed_low, row.perturbed_high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.012)
    average = table.loc[AVERAGE_18]
    every = wide.to_numpy()[drawn].mean(1).mean(1)
    assert (average.perturbed_low, average.perturbed_high) == pytest.approx(
        np.quantile(every, [0.025, 0.975]), abs=0.004
    )
    assert average.difference_low < average.difference < average.difference_high
    assert round(average.published_source, 3) == 0.632


def test_hashed_ids_and_own_questions() -> None:
    records = campaign(images=6)
    frame = pd.concat([records.sources, records.followups])
    frame["seed_id"] = frame["seed_id"].map(lambda seed_id: f"h-{int(seed_id[1:]):04x}")
    frame["item"] = frame["item"].replace({"text": "q_0123abcd"})
    frame["question"] = frame["question"].replace({"What of text?": "Is it <b>bold</b>?"})
    tables = answer_tables(Records.of(frame))
    assert tables is not None
    words = dict(zip(tables.flips["item"], tables.flips["question"], strict=True))
    assert words["q_0123abcd"] == "Is it <b>bold</b>?"
    assert all(image.pictures[0].seed_id.startswith("h-") for image in tables.worst)
    assert AVERAGE_18 not in set(tables.accuracy["item"])


def test_the_images_that_flip_most_are_shown_with_their_answers() -> None:
    rows = []
    for image in range(4):
        for item in ("text", "box"):
            rows.append(record(image, item, "source"))
            for relation in ("blur", "contrast", "unchanged"):
                hit = (
                    image == 2
                    and (item, relation) != ("box", "contrast")
                    or (image, item, relation) == (1, "box", "blur")
                )
                rows.append((flipped_record if hit else record)(image, item, relation))
    worst = worst_images(records_of(rows))
    assert [(image.pictures[0].seed_id, image.flips, image.judged) for image in worst] == [
        ("i002", 3, 4),
        ("i001", 1, 4),
    ]
    first = worst[0]
    assert [shown.relation for shown in first.pictures] == ["source", "blur", "contrast"]
    assert str(first.pictures[1]) == "d/i002/blur_s3_f0_r0"
    assert [item for item, _ in first.questions] == ["text", "box"]
    assert first.truths == ("yes", "yes")
    answers_ = first.said[1]
    assert [None if answer is None else answer.flipped for answer in answers_] == [None, True, False]
    assert answers_[1] is not None
    assert (answers_[1].value, answers_[1].words, answers_[1].right) == ("no", "No.", False)


def test_records_of_other_systems_have_no_such_tables() -> None:
    plain = pd.DataFrame([{"relation": "source", "label": "a"}, {"relation": "blur", "label": "a"}])
    assert answer_tables(Records.of(plain)) is None

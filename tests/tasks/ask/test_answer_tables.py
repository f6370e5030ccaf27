"""Flips and accuracy: against published figures, other libraries and hand computation."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from shipped_relations import effects_of

from benchmarks._answer_rows import frame_of, judged_row
from medtest.language.questions.matrix import default_matrix
from medtest.language.questions.questions import by_name, in_slide_order
from medtest.results.cube.intervals import joined, wilson_ends
from medtest.results.published.published_answers import published
from medtest.tasks.ask.tables.accuracy import (
    AVERAGE_14,
    AVERAGE_18,
    accuracy_table,
    label_scores,
    relation_table,
)
from medtest.tasks.ask.tables.flips import ALL, COLUMNS, OVERALL, direction_table, flip_table
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED


def test_the_slides_averages_are_rebuilt() -> None:
    rows = list(published().values())
    for chosen, means in ((rows, [0.632, 0.617]), ([row for row in rows if row.kept], [0.694, 0.672])):
        assert [round(fmean(getattr(row, name) for row in chosen), 3) for name in ("source", "perturbed")] == means
    assert list(published()) == [question.name for question in in_slide_order()]
    assert [row.kept for row in published().values()] == [question.kept for question in in_slide_order()]
    # 15 of the 18 are no fraction of 182 that rounds to what is printed.
    fractions = {round(k / 182, 3) for k in range(183)}
    assert sum(row.source not in fractions for row in published().values()) == 15


def newcombe(k: float, n: float, k0: float, n0: float) -> tuple[float, float]:
    return joined(k / n, wilson_ends(k, n), k0 / n0, wilson_ends(k0, n0))


def test_newcombes_interval_matches_his_paper() -> None:
    # R. G. Newcombe, Statistics in Medicine 17 (1998), table II, method 10: 56/70 - 48/80.
    assert newcombe(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert newcombe(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)


@pytest.mark.parametrize(("k", "n", "k0", "n0"), [(3, 20, 0, 20), (0, 182, 5, 182), (10, 10, 2, 9), (40, 182, 8, 60)])
def test_newcombes_interval_agrees_with_statsmodels(k: int, n: int, k0: int, n0: int) -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    expected = confint_proportions_2indep(k, n, k0, n0, compare="diff", method="newcomb")
    assert newcombe(k, n, k0, n0) == pytest.approx(expected, abs=1e-9)


def rows_of(image: str, name: str, truth: str, source: str, **answers: str) -> list[dict[str, object]]:
    question = by_name(name)
    assert question is not None
    rows = []
    for relation, text in {SOURCE: source, **answers}.items():
        for repeat, part in enumerate(text.split("|")):
            rows.append(
                judged_row(
                    image=image,
                    question=question,
                    relation=relation,
                    answer=question.parse(part),
                    source=question.parse(source),
                    truth=question.parse(truth),
                    matrix=default_matrix(),
                    effects=effects_of(relation),
                    severity=0 if relation in (SOURCE, UNCHANGED) else 3,
                    repeat=repeat,
                )
            )
    return rows


def small() -> pd.DataFrame:
    rows = []
    for number in range(10):
        contrast = "Pink" if number < 6 else "Red"
        again = "Red|Red|Pink" if number == 0 else "Red|Red|Red"
        rows += rows_of(f"i{number}", "abnormality_colour", "Red", "Red", contrast=contrast, unchanged=again)
        refused = "I'm sorry, I can't help" if number < 2 else "1"
        rows += rows_of(f"i{number}", "polyps", "2", "1", contrast=refused, unchanged="1|1|1", blood="2")
    return frame_of(rows)


def test_flips_by_hand() -> None:
    table = flip_table(small())
    assert tuple(table.columns) == COLUMNS
    cells = table.set_index(["item", "relation"])
    colour = cells.loc[("abnormality_colour", "contrast")]
    assert (colour.flips, colour.cases, colour.unchanged_flips, colour.unchanged_cases) == (6, 10, 1, 30)
    assert colour.rate == 0.6
    assert colour.net == pytest.approx(0.6 - 1 / 30, abs=1e-6)
    # The three repeats of an image are one independent case, not three.
    assert (colour.ci_low, colour.ci_high) == pytest.approx(newcombe(6, 10, 10 / 30, 10), abs=1e-6)
    assert (colour.rate_low, colour.rate_high) == pytest.approx((0.312674, 0.831820), abs=1e-5)  # Wilson, statsmodels
    # Exact McNemar: six images flipped under contrast and not when asked again, none the other way round.
    assert colour.p == pytest.approx(2 * 0.5**6)
    polyps = cells.loc[("polyps", "contrast")]
    assert (polyps.flips, polyps.refusals, polyps.not_judged) == (2, 2, 0)
    assert polyps.p == pytest.approx(0.5)
    blood = cells.loc[("polyps", "blood")]
    assert (blood.flips, blood.cases) == (10, 10)
    assert blood.p == pytest.approx(2 * 0.5**10)
    # Holm over the three cells: 3 x the smallest, 2 x the next, 1 x the largest.
    assert [blood.p_holm, colour.p_holm, polyps.p_holm] == pytest.approx([6 * 0.5**10, 4 * 0.5**6, 0.5])
    pool = cells.loc[(ALL, "contrast")]
    assert (pool.flips, pool.cases, pool.unchanged_flips, pool.unchanged_cases) == (8, 20, 1, 60)
    assert np.isnan(pool.p)
    assert (ALL, OVERALL) in cells.index
    assert not (table["relation"] == UNCHANGED).any()


def test_the_floor_of_a_pool_is_weighted_by_its_judged_cases() -> None:
    """By hand. Colour is judged under one relation of three, polyps under all three; only colour is unsteady."""
    rows = []
    for number in range(4):
        again = "Pink|Red" if number < 2 else "Red|Red"  # 2 of 8: colour's floor is 0.25
        rows += rows_of(
            f"i{number}",
            "abnormality_colour",
            "Red",
            "Red",
            contrast="Red",
            blood="Pink",
            feces="Pink",
            unchanged=again,
        )
        answers = {"contrast": "2" if number == 0 else "1", "blood": "1", "feces": "1"}
        rows += rows_of(f"i{number}", "polyps", "1", "1", **answers, unchanged="1|1")
    table = flip_table(frame_of(rows)).set_index(["item", "relation"])
    pool = table.loc[(ALL, OVERALL)]
    # 4 judged answers of colour and 12 of polyps, 1 flip: (4 x 0.25 + 12 x 0) / 16, and not (2 + 0) / 16.
    assert (pool.flips, pool.cases, pool.unchanged_flips, pool.unchanged_cases) == (1, 16, 2, 16)
    assert pool.rate == pytest.approx(1 / 16)
    assert pool.unchanged_rate == pytest.approx(1 / 16)
    assert pool.net == pytest.approx(0.0)
    # Under contrast both are judged four times; under blood polyps alone is.
    contrast, blood = table.loc[(ALL, "contrast")], table.loc[(ALL, "blood")]
    assert (contrast.unchanged_rate, contrast.net) == pytest.approx((0.125, 0.0))
    assert (blood.unchanged_rate, blood.unchanged_cases, blood.net) == (0.0, 8, 0.0)
    colour = table.loc[("abnormality_colour", OVERALL)]
    assert (colour.unchanged_rate, colour.net) == pytest.approx((0.25, -0.25))


def test_what_may_change_is_not_judged() -> None:
    frame = frame_of(rows_of("a", "abnormalities", "Polyp", "Polyp", blood="Bleeding", unchanged="Polyp"))
    row = flip_table(frame).set_index(["item", "relation"]).loc[("abnormalities", "blood")]
    assert (row.flips, row.cases, row.not_judged) == (0, 0, 1)
    assert np.isnan(row.rate)
    assert np.isnan(row.p_holm)


def test_the_floor_of_a_pool_comes_from_the_questions_that_are_judged_under_it() -> None:
    rows = []
    for number in range(12):  # the unsteady question is skipped under white balance
        again = "Pink|Pink|Pink"
        rows += rows_of(
            f"i{number}", "abnormality_colour", "Red", "Red", white_balance="Pink", contrast="Red", unchanged=again
        )
        rows += rows_of(f"i{number}", "polyps", "1", "1", white_balance="1", contrast="1", unchanged="1|1|1")
    cells = flip_table(frame_of(rows)).set_index(["item", "relation"])
    alone = cells.loc[(ALL, "white_balance")]
    assert (alone.flips, alone.cases, alone.unchanged_flips, alone.unchanged_cases) == (0, 12, 0, 36)
    assert alone.net == 0.0
    both = cells.loc[(ALL, "contrast")]
    assert (both.flips, both.cases, both.unchanged_flips, both.unchanged_cases) == (0, 24, 36, 72)
    assert cells.loc[(ALL, OVERALL)].unchanged_cases == 72


def test_pools_of_many_images_are_resampled() -> None:
    rows = []
    for number in range(60):
        flip = "Pink" if number % 3 == 0 else "Red"
        again = "Pink" if number % 4 == 0 else "Red"
        rows += rows_of(f"i{number}", "abnormality_colour", "Red", "Red", contrast=flip, unchanged=again)
    cells = flip_table(frame_of(rows)).set_index(["item", "relation"])
    pool = cells.loc[(ALL, "contrast")]
    assert pool.ci_method == "bootstrap"
    # Variance of the mean of paired differences, by the normal approximation.
    differences = np.array([(n % 3 == 0) - int(n % 4 == 0) for n in range(60)], float)
    half = 1.96 * differences.std() / np.sqrt(60)
    assert pool.ci_low == pytest.approx(pool.net - half, abs=0.03)
    assert pool.ci_high == pytest.approx(pool.net + half, abs=0.03)
    assert flip_table(frame_of(rows)).equals(flip_table(frame_of(rows)))


def test_directions_show_what_the_difference_of_accuracies_hides() -> None:
    rows = []
    for number in range(8):
        source, after = ("Red", "Pink") if number < 4 else ("Pink", "Red")
        rows += rows_of(f"i{number}", "abnormality_colour", "Red", source, contrast=after)
    rows += rows_of("w", "abnormality_colour", "Red", "Pink", contrast="Blue")
    (row,) = direction_table(frame_of(rows)).to_dict("records")
    assert (row["right_to_wrong"], row["wrong_to_right"], row["wrong_to_wrong"]) == (4, 4, 1)
    assert row["accuracy_source"] == row["accuracy"]
    assert row["p"] == 1.0
    assert flip_table(frame_of(rows)).iloc[0]["flips"] == 9


def test_accuracy_per_question_and_averages() -> None:
    answers = {"procedure": ("Colonoscopy", "Colonoscopy"), "size": (">20mm", ">10mm")}
    rows = []
    for question in in_slide_order():
        truth, answer = answers.get(question.name, ("not relevant", "not relevant"))
        for image, wrong in (("a", False), ("b", True)):
            after = "!?" if wrong and question.name == "size" else answer
            rows += rows_of(image, question.name, truth, answer, contrast=after, jpeg=answer, unchanged=answer)
    frame = frame_of(rows)
    table = accuracy_table(frame).set_index("item")
    assert list(table.index) == [*(question.name for question in in_slide_order()), AVERAGE_18, AVERAGE_14]
    assert table.loc["size", "source"] == 1.0  # any-hit: ">10mm" holds ">20mm"
    assert table.loc["size", "source_exact"] == 0.0
    assert table.loc["procedure", "published_source"] == 0.976
    assert table.loc[AVERAGE_14, "published_source"] == pytest.approx(0.694, abs=5e-4)
    cells = relation_table(frame).set_index(["item", "relation"])
    assert cells.loc[("size", "contrast"), "not_judged"] == 1
    assert cells.loc[("size", "contrast"), "cases"] == 1
    partial = accuracy_table(frame[frame["item"] != "size"])
    assert AVERAGE_18 not in set(partial["item"])


def test_perturbed_is_the_mean_of_the_relations() -> None:
    rows = []
    for number in range(4):
        rows += rows_of(
            f"i{number}", "polyps", "1", "1", contrast="1" if number else "2", jpeg="2", unchanged="1|1", saturation="1"
        )
    (row,) = accuracy_table(frame_of(rows)).to_dict("records")
    assert row["source"] == 1.0
    assert row["perturbed"] == pytest.approx((0.75 + 0.0 + 1.0) / 3, abs=1e-6)
    assert row["difference"] == pytest.approx(1 - 1.75 / 3, abs=1e-6)


def test_label_scores_agree_with_scikit_learn_or_hand() -> None:
    answered = [frozenset({"red"}), frozenset({"red", "pink"}), frozenset(), frozenset({"blue"})]
    true = [frozenset({"red"}), frozenset({"pink"}), frozenset({"red"}), frozenset({"blue", "red"})]
    f1, recall, mcc = label_scores(answered, true)
    # By hand: 12 indicators (3 labels x 4 cases): 3 hits, 1 false, 2 missed, 6 rightly absent.
    assert (f1, recall) == pytest.approx((6 / 9, 3 / 5))
    assert mcc == pytest.approx((3 * 6 - 1 * 2) / np.sqrt(4 * 5 * 7 * 8))
    bits = [
        np.array([[label in names for label in ("red", "pink", "blue")] for names in both]).ravel()
        for both in (answered, true)
    ]
    assert mcc == pytest.approx(np.corrcoef(bits[0], bits[1])[0, 1])
    assert all(np.isnan(value) for value in label_scores([frozenset()], [frozenset()]))

"""Checks of attacks, on records made by hand."""

from __future__ import annotations

import pytest
from attack_records import attack_records, noise, pgd, square, tables_of
from statsmodels.stats.contingency_tables import mcnemar

from medtest.results.attacks.checking.checks import COLUMNS


def check(settings, name, relation="pgd", severity=None, **more):
    """Return the row of a check."""
    table = tables_of(attack_records(settings, **more)).named["attack_checks.csv"]
    assert list(table.columns) == list(COLUMNS)
    rows = table[(table["check"] == name) & (table.relation == relation)]
    if severity is not None:
        rows = rows[rows.severity == str(severity)]
    assert len(rows) == 1, rows
    return rows.iloc[0]


def test_a_larger_epsilon_that_leaves_more_right_is_flagged():
    """A loop of weak steps: 1 of 48 right at 4/255 with 4 steps, 6 of 48 at 8/255 with 10 steps of 2 levels."""
    row = check([pgd(2, 4, 1, steps=4), pgd(3, 8, 6, steps=10, step=2.0)], "epsilon", severity=3)
    assert row.verdict == "fails"
    assert row.value == pytest.approx(5 / 48, abs=1e-6) and 0 < row.ci_low < row.value < row.ci_high
    assert "0.125" in row.why and "0.021" in row.why and "smaller step" in row.why
    # five pairs, all one way: Tango's interval leaves 0 out where McNemar's exact p is 1/16
    assert mcnemar([[0, 5], [0, 43]], exact=True).pvalue == pytest.approx(0.0625)


def test_one_case_more_is_not_flagged():
    row = check([pgd(2, 4, 1), pgd(3, 8, 2)], "epsilon", severity=3)
    assert row.verdict == "ok" and row.value > 0 > row.ci_low


def test_the_smallest_epsilon_has_nothing_to_compare_with():
    assert check([pgd(2, 4, 1), pgd(3, 8, 1)], "epsilon", severity=2).verdict == "not checked"


def test_every_smaller_epsilon_is_compared_and_not_only_the_next():
    row = check([pgd(1, 2, 0), pgd(2, 4, 8), pgd(3, 8, 8)], "epsilon", severity=3)
    assert row.verdict == "fails" and "ε = 2/255" in row.why


def test_more_steps_that_leave_more_right_are_flagged():
    fine = pgd(1, 8, 0, steps=10, step=1.0, relation="pgd_fine")
    row = check([fine, pgd(1, 8, 6, steps=20, step=2.0)], "steps")
    assert row.verdict == "fails"
    assert check([pgd(1, 8, 6, steps=10, relation="pgd_fine"), pgd(1, 8, 0, steps=20)], "steps").verdict == "ok"


def test_another_loss_is_another_attack():
    settings = [
        pgd(1, 8, 0, steps=10, relation="pgd_fine", loss="margin"),
        pgd(1, 8, 6, steps=20, loss="cross_entropy"),
    ]
    assert check(settings, "steps").verdict == "not checked"


@pytest.mark.parametrize(("right", "steps", "verdict"), [(0, 80, "ok"), (1, 80, "fails"), (1, 10, "not checked")])
def test_nothing_withstands_a_quarter_of_the_range(right, steps, verdict):
    assert check([pgd(5, 64, right, steps=steps)], "unbounded").verdict == verdict


def test_a_black_box_that_finds_more_is_flagged():
    row = check([pgd(1, 4, 20), square(1, 4, 8)], "black_box")
    assert row.verdict == "fails" and row.value == pytest.approx(12 / 48) and "only scores" in row.why
    assert check([pgd(1, 4, 2), square(1, 4, 8)], "black_box").verdict == "ok"
    assert check([pgd(1, 4, 20), square(1, 8, 0)], "black_box").verdict == "not checked"  # another ε


def test_a_transfer_that_finds_more_is_flagged():
    moved = square(1, 4, 8) | {"relation": "moved", "crafted_on": "resnet50", "zero": 0.0}
    table = tables_of(attack_records([pgd(1, 4, 20), moved])).named
    rows = table["attack_checks.csv"]
    assert rows[(rows["check"] == "transfer") & (rows.relation == "pgd")].verdict.tolist() == ["fails"]
    assert dict(zip(table["attacks.csv"].relation, table["attacks.csv"].role, strict=True))["moved"] == "transfer"


def test_strongest_is_no_weaker_than_what_it_is_the_worst_of():
    worst = pgd(1, 4, 12, relation="strongest")
    assert check([pgd(1, 4, 2), worst], "strongest", relation="strongest").verdict == "fails"
    assert check([pgd(1, 4, 12), worst], "strongest", relation="strongest").verdict == "ok"


@pytest.mark.parametrize(
    ("right", "by_noise", "verdict"),
    [(2, 40, "ok"), (40, 40, "fails"), (40, 2, "fails"), (0, 0, "ok"), (38, 40, "not checked")],
)
def test_noise_of_the_same_epsilon_is_the_floor(right, by_noise, verdict):
    row = check([pgd(1, 4, right), noise(1, 4, by_noise)], "uniform_noise")
    assert row.verdict == verdict
    assert check([pgd(1, 4, right), noise(1, 8, by_noise)], "uniform_noise").verdict == "not checked"


def test_two_images_are_too_few_for_the_floor():
    assert check([pgd(1, 4, 2), noise(1, 4, 2)], "uniform_noise", seeds=2, wrong=0).verdict == "not checked"


def test_shattered_and_saturated_gradients_are_flagged():
    """No gradient anywhere, and none in one case of 48: there the attack did not move."""
    assert check([pgd(1, 4, 40, zero=1.0)], "zero_gradients").verdict == "fails"
    frame = attack_records([pgd(1, 4, 2)])
    stuck = frame.index[frame.relation == "pgd"][-1]
    frame.loc[stuck, "zero_gradient"] = 1.0
    rows = tables_of(frame).named["attack_checks.csv"]
    row = rows[rows["check"] == "zero_gradients"].iloc[0]
    assert row.verdict == "fails" and row.value == pytest.approx(1 / 48, abs=1e-6)
    # a network that crops its input has pixels without influence: 36 % of them is no finding
    assert check([pgd(1, 4, 2, zero=0.36)], "zero_gradients").verdict == "ok"


def test_success_lost_by_rounding():
    row = check([pgd(1, 1, 12, float_right=2)], "rounding")
    assert row.verdict == "fails" and row.value == pytest.approx(10 / 48, abs=1e-6)
    assert check([pgd(1, 1, 3, float_right=2)], "rounding").verdict == "ok"


def test_pixels_beyond_epsilon_are_flagged():
    assert check([pgd(1, 4.5, 2, linf=4.0)], "within_epsilon").verdict == "ok"  # fractions of a level: the floor
    row = check([pgd(1, 4.5, 2, linf=5.0)], "within_epsilon")
    assert row.verdict == "fails" and (row.value, row.bound) == (5.0, 4.0)


@pytest.mark.parametrize(
    ("column", "gap", "name", "verdict"),
    [
        ("probe_gap", 0.009, "probe", "ok"),
        ("probe_gap", 0.011, "probe", "fails"),
        ("probe_gap", None, "probe", "not checked"),
        ("repeat_gap", 1e-6, "answers_repeat", "ok"),
        ("repeat_gap", 0.03, "answers_repeat", "fails"),
    ],
)
def test_gaps_of_the_sources(column, gap, name, verdict):
    assert check([pgd(1, 4, 2)], name, relation="source", **{column: gap}).verdict == verdict


def test_every_failing_rate_has_a_warning():
    attack_tables = tables_of(attack_records([pgd(1, 4, 1), pgd(2, 8, 9, steps=10), noise(1, 4, 40)], probe_gap=0.2))
    table = attack_tables.named["attacks.csv"].set_index(["dataset", "relation", "severity"])
    assert table.loc[("all", "pgd", "2")].checks_failed == "probe epsilon"
    assert table.loc[("all", "pgd", "1")].checks_failed == "probe"
    assert table.loc[("all", "uniform_noise", "1")].checks_failed == ""  # nothing was crafted there
    assert attack_tables.warn("pgd", "all") == ("probe", "epsilon") and attack_tables.warn("blur", "1") == ()
    assert len(attack_tables.notices) == 2 and "pgd fails a check" in attack_tables.notices[1]


def test_records_without_attacks_have_no_such_tables():
    frame = attack_records([pgd(1, 4, 2)]).drop(columns="crafted_on")
    assert tables_of(frame).named == {} and tables_of(frame).notices == ()


def test_fgsm_is_one_step_of_the_same_attack():
    """Missing restarts and iterates have their usual values."""
    fgsm = pgd(1, 4, 0, relation="fgsm", steps=1, step=4.0)
    params = {"best": False, "restarts": 1}
    parts = {"pgd": "pgd", "fgsm": "fgsm"}

    def verdict(params):
        table = tables_of(attack_records([fgsm, pgd(1, 4, 8, steps=10, params=params)]), parts).named[
            "attack_checks.csv"
        ]
        return table[(table["check"] == "steps") & (table.relation == "pgd")].verdict.tolist()

    assert verdict(params) == ["fails"] and verdict(params | {"best": True}) == ["not checked"]


def test_what_another_attack_finds_within_less_counts():
    """PGD at 8/255 leaves 5 right where strongest leaves none at 4/255: the larger budget holds what that found."""
    worst = pgd(1, 4, 0, relation="strongest", steps=30)
    row = check([worst, pgd(2, 8, 5, steps=10, step=2.0)], "epsilon", severity=2)
    assert row.verdict == "fails" and "under strongest at ε = 4/255" in row.why
    elsewhere = pgd(1, 4, 0, relation="moved", crafted_on="resnet50")
    assert check([elsewhere, pgd(2, 8, 5, steps=10)], "epsilon", severity=2).verdict == "not checked"

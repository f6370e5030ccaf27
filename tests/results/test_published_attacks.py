"""Published figures under attack and defence: the printed values, and their contradictions."""

from __future__ import annotations

import pytest

from medtest.results.published import published_attacks as published
from medtest.results.published.published_labels import BENCHMARKED


def test_every_network_has_clean_images_two_settings_of_pgd_and_four_of_gap():
    for model in BENCHMARKED.values():
        rows = published.attacked_of(model)
        assert [row.attack for row in rows] == ["clean", "PGD", "PGD", "GAP", "GAP", "GAP", "GAP"]
        assert rows[0].fooling_percent is None and all(row.fooling_percent is not None for row in rows[1:])
        assert all(row.accuracy_percent < rows[0].accuracy_percent for row in rows[1:])
    assert published.attacked_of("VGG19") == ()


@pytest.mark.parametrize(
    ("model", "attack", "epsilon", "steps", "figures"),
    [
        ("IPMI2019-AttnMel", "PGD", 2, 1, (10.8, 0.067, 74.7)),
        ("Inception v3", "PGD", 4, 4, (0.0, 0.263, 90.5)),
        ("CheXNet", "PGD", 4, 4, (45.5, 0.308, 43.2)),
        ("CheXNet", "GAP", 11, None, (39.5, 0.748, 51.4)),
    ],
)
def test_figures_as_printed(model, attack, epsilon, steps, figures):
    row = published.under(model, attack, epsilon, steps)
    assert (row.accuracy_percent, row.auc, row.fooling_percent) == figures
    assert published.under(model, "PGD", 4, 10) is None and published.under("VGG19", "PGD", 4, 4) is None


def test_a_setting_reads_as_words():
    assert published.attack_words(published.under("CheXNet", "PGD", 4, 4)) == "PGD, ε = 4/255, t = 4"
    assert published.attack_words(published.under("CheXNet", "GAP", 7)) == "GAP, L∞ = 7, validation images"


def test_defences():
    rows = published.defended()
    assert list(rows) == ["None", "Attack", "Standard", "MPAdvT", "MAAdvT"]
    assert rows["MPAdvT"] == {"IPMI2019-AttnMel": 82.4, "Inception v3": 31.1, "CheXNet": 83.9}
    assert rows["MAAdvT"] == {"IPMI2019-AttnMel": 82.8, "Inception v3": 34.0}  # not for several labels


def test_the_contradictions_that_are_reported():
    """An answer that became wrong is another answer: a fooling rate is at least the fall of accuracy."""
    short = {
        (row.model, row.setting)
        for row in published.attacked()
        if row.attack == "PGD"
        and row.fooling_percent + 1e-9 < published.attacked_of(row.model)[0].accuracy_percent - row.accuracy_percent
    }
    assert {model for model, _ in short} == {"IPMI2019-AttnMel"} and len(short) == 2
    in_table_5 = published.defended()["Attack"]["CheXNet"]
    assert (published.under("CheXNet", "PGD", 4, 4).accuracy_percent, in_table_5) == (45.5, 45.0)
    assert set(published.CONTRADICTION) == {"IPMI2019-AttnMel", "CheXNet"}


def test_the_gap_of_budgets_is_reported_for_one_network_and_for_all():
    assert "0.09 to 0.15" in published.gap_words("IPMI2019-AttnMel")
    assert all(factor in published.gap_words("") for factor in published.NORMALISED.values())

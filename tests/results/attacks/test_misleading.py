"""Networks that mislead attacks along gradients are named once; only attacks that failed are called too kind."""

from __future__ import annotations

import numpy as np
import pytest
from attack_records import attack_records, noise, pgd, square, tables_of

VERDICT = "Gradients are misleading: read the strongest row."


def worst(severity, epsilon, right, by=None, **more):
    """Return ``strongest``; ``by`` names the attack that it took its images from."""
    return pgd(severity, epsilon, right, relation="strongest", steps=30, step=None, **more) | {"by": by}


def frame_of(settings, **more):
    """Return records in which rows of ``strongest`` name the attack that found them, where it is known."""
    frame = attack_records(settings, **more)
    frame["found_by"], frame["attack_note"] = None, None
    for setting in settings:
        if setting.get("by"):
            own = (frame["relation"] == setting["relation"]) & (frame["severity"] == setting["severity"])
            wrong = own & (frame["label"] != frame["expected"])
            frame.loc[wrong, "found_by"] = setting["by"]
    return frame


def checks_of(frame):
    return tables_of(frame).named["attack_checks.csv"]


def verdict_of(frame):
    rows = checks_of(frame)
    (row,) = rows[rows["check"] == "misleading"].to_dict("records")
    assert row["relation"] == "source" and row["severity"] == "all"
    return row


@pytest.mark.parametrize("by", [None, "straight_through", "square"])
def test_the_network_of_the_issue_is_named(by):
    """PGD 0 % at ε 4, noise 12.5 %, strongest 87.5 %: of 48 images 48, 42 and 6 are left right."""
    frame = frame_of([pgd(2, 4, 48), noise(2, 4, 42), worst(2, 4, 6, by)], wrong=0)
    row = verdict_of(frame)
    assert row["verdict"] == "fails" and "strongest" in row["why"] and row["value"] == pytest.approx(42 / 48)
    attack_tables = tables_of(frame)
    assert attack_tables.verdict.startswith(VERDICT) and attack_tables.notices[0] == attack_tables.verdict
    assert sum(VERDICT in line for line in attack_tables.notices) == 1
    table = attack_tables.named["attacks.csv"].set_index(["dataset", "relation", "severity"])
    assert "stronger" in table.loc[("all", "pgd", "2")].checks_failed.split()
    assert table.loc[("all", "strongest", "2")].checks_failed == ""
    assert table.loc[("all", "uniform_noise", "2")].checks_failed == ""


def test_noise_alone_shows_it():
    frame = frame_of([pgd(2, 4, 48), noise(2, 4, 42)], wrong=0)
    row = verdict_of(frame)
    assert row["verdict"] == "fails" and "add strongest to the suite" in row["why"]
    rows = checks_of(frame)
    assert rows[(rows["check"] == "stronger") & (rows.relation == "pgd")].verdict.tolist() == ["fails"]


@pytest.mark.parametrize("rival", ["square", "moved"])
def test_a_search_or_an_image_made_elsewhere_shows_it(rival):
    other = square(2, 4, 8) if rival == "square" else square(2, 4, 8) | {"relation": "moved", "crafted_on": "resnet50"}
    assert verdict_of(frame_of([pgd(2, 4, 30), other]))["verdict"] == "fails"
    assert verdict_of(frame_of([pgd(2, 4, 6), other]))["verdict"] == "ok"


def test_a_stronger_attack_along_gradients_is_not_misleading():
    """FGSM is weaker than PGD, and PGD of four steps than Auto-PGD: both rates are too kind, gradients are sound."""
    fgsm = pgd(2, 4, 20, relation="fgsm", steps=1, step=4.0)
    frame = frame_of([fgsm, pgd(2, 4, 12), worst(2, 4, 2, "auto_pgd"), noise(2, 4, 40)])
    assert verdict_of(frame)["verdict"] == "ok"
    rows = checks_of(frame)
    stronger = rows[rows["check"] == "stronger"].set_index("relation").verdict.to_dict()
    assert stronger == {"fgsm": "fails", "pgd": "fails"}
    assert rows[(rows["check"] == "strongest")].verdict.tolist() == ["ok"]
    assert tables_of(frame).verdict == ""
    also = frame_of([pgd(1, 2, 2, steps=40), fgsm, square(2, 4, 10)])
    assert verdict_of(also)["verdict"] == "ok"  # images that PGD found within a smaller ε count for this one too


def test_a_few_more_images_found_by_a_search_are_not_flagged():
    frame = frame_of([pgd(2, 4, 12), worst(2, 4, 10, "auto_pgd"), noise(2, 4, 40)])
    own = frame.index[(frame["relation"] == "strongest") & (frame["found_by"] == "auto_pgd")][-2:]
    frame.loc[own, "found_by"] = "square"
    assert verdict_of(frame)["verdict"] == "ok"


def test_nothing_beside_is_not_checked():
    assert verdict_of(frame_of([pgd(2, 4, 12)]))["verdict"] == "not checked"
    assert verdict_of(frame_of([square(2, 4, 12), noise(2, 4, 30)]))["verdict"] == "not checked"


def test_noise_shown_to_be_stronger_also_fails_strongest():
    rows = checks_of(frame_of([worst(2, 4, 40), noise(2, 4, 8)]))
    assert rows[(rows["check"] == "strongest") & (rows.relation == "strongest")].verdict.tolist() == ["fails"]


def test_an_attack_that_left_nothing_right_is_not_too_kind():
    """Logits × 1000: gradients are zero and answers swing, but every answer was turned."""
    settings = [worst(2, 4, 0, zero=1.0), noise(2, 4, 1), pgd(1, 2, 9, zero=1.0)]
    frame = frame_of(settings, probe_gap=0.3, repeat_gap=0.2)
    attack_tables = tables_of(frame)
    table = attack_tables.named["attacks.csv"].set_index(["dataset", "relation", "severity"])
    assert table.loc[("all", "strongest", "2")].checks_failed == ""
    assert attack_tables.warn("strongest", "2") == attack_tables.warn("strongest", "all") == ()
    assert {"answers_repeat", "probe", "zero_gradients"} <= set(table.loc[("all", "pgd", "1")].checks_failed.split())
    rows = checks_of(frame)
    own = rows[rows.relation == "strongest"].set_index("check").verdict
    assert own["zero_gradients"] == own["uniform_noise"] == "ok"
    assert not [line for line in attack_tables.notices if line.startswith("strongest")]
    beyond = frame_of([worst(2, 4, 0, linf=6.0)])
    attack_tables = tables_of(beyond)  # that its images leave ε is another matter
    assert attack_tables.warn("strongest", "2") == ("within_epsilon",)
    assert not [line for line in attack_tables.notices if "too kind" in line]


def test_only_images_that_are_still_right_say_that_gradients_were_zero():
    frame = frame_of([pgd(2, 4, 2)])
    own = frame.index[frame["relation"] == "pgd"]
    frame.loc[own[:10], "zero_gradient"] = 1.0  # the first are turned
    rows = checks_of(frame)
    assert rows[rows["check"] == "zero_gradients"].verdict.tolist() == ["ok"]
    frame.loc[own[-1], "zero_gradient"] = 1.0
    rows = checks_of(frame)
    assert rows[rows["check"] == "zero_gradients"].verdict.tolist() == ["fails"]


def test_gradients_that_cannot_be_followed_are_reported():
    frame = frame_of([pgd(2, 4, 20), worst(2, 4, 5, "square")])
    own = frame["relation"] == "pgd"
    frame.loc[own, ["label", "zero_gradient"]] = None
    frame.loc[own, "verdict"] = "ERROR"
    frame["reason"] = np.where(own, "relation: BadOutput: gave a gradient that is not finite while it was attacked", "")
    note = "gradients are not finite: a surrogate of its scores and Square instead"
    frame.loc[frame["relation"] == "strongest", "attack_note"] = note
    frame.loc[frame["relation"] == "strongest", "zero_gradient"] = None
    rows = checks_of(frame)
    rows_of_gradients = rows[rows["check"] == "gradients"].set_index("relation")
    assert set(rows_of_gradients.verdict) == {"fails"} and set(rows_of_gradients.index) == {"pgd", "strongest"}
    assert (
        "read the strongest row" in rows_of_gradients.loc["pgd"].why
        and "Square" in rows_of_gradients.loc["strongest"].why
    )
    table = tables_of(frame).named["attacks.csv"].set_index(["dataset", "relation"])
    assert table.loc[("all", "strongest")].role == "white box"
    assert table.loc[("all", "pgd")].cases == 0 and "gradients" in table.loc[("all", "pgd")].checks_failed

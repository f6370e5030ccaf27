"""The table of defences from records made by hand: table 5's rows, gains, what is masked, what always answers one."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from attack_records import attack_records
from label_records import CHEST, label_row, make_label_records

from medtest.cases import Classes
from medtest.cli.training.defences import roles_of
from medtest.results.attacks.defence_words import markdown
from medtest.results.attacks.defences import COLUMNS, DefendedWeights, WeightsRun, defence_table
from medtest.results.cube.intervals import wilson_ends
from medtest.results.records.records_io import Records
from medtest.tasks.base import task_of

LABELS = task_of("label")
ROLES = {"pgd": {"pgd": 4}, "strongest": {"strongest": None}, "transfer": {"pgd_transfer": 4}}
BINARY = {"phantoms": Classes(names=("benign", "melanoma"))}


def run(weights, *, pgd, strongest, transfer=None, wrong=5, suite="attacks 1", family="attnmel", **more):
    at = {"severity": 3, "epsilon": 4.0, "steps": 4}
    under = [{"relation": "pgd", "right": pgd, **at}, {"relation": "strongest", "right": strongest, **at}]
    # what does not count: another ε, and another number of steps
    under.append({"relation": "pgd", "right": 48 - wrong, "severity": 1, "epsilon": 1.0, "steps": 1})
    under.append({"relation": "pgd", "right": 0, "severity": 4, "epsilon": 4.0, "steps": 10})
    if transfer is not None:
        under.append({"relation": "pgd_transfer", "right": transfer, "crafted_on": "attnmel", **at})
    records = Records.of(attack_records(under, wrong=wrong, **more))
    records = Records(followups=records.followups, sources=records.sources, classes=BINARY)
    return WeightsRun(suite=suite, family=family, weights=weights, task=LABELS, records=records, relations=ROLES)


def known(**names):
    return {weights: DefendedWeights(name=name, variant="paper", undefended="plain") for weights, name in names.items()}


def rows_of(table):
    return {row["defence"]: row for row in table.to_dict("records")}


def test_rows_and_figures_are_those_of_table_5():
    runs = [
        run("b", pgd=30, strongest=28, transfer=38, wrong=7),
        run("plain", pgd=1, strongest=0, wrong=5),
        run("a", pgd=24, strongest=20, transfer=36, wrong=9),
    ]
    table = defence_table(runs, known(a="standard", b="mpadvt"))
    assert list(table.columns) == list(COLUMNS)
    assert list(table["defence"]) == ["None", "Attack", "Standard", "MPAdvT"]
    found = rows_of(table)
    assert found["None"]["accuracy"] == pytest.approx(43 / 48, abs=1e-6)
    assert found["Attack"]["accuracy"] == pytest.approx(1 / 48, abs=1e-6)
    assert found["Attack"]["strongest"] == 0
    standard = found["Standard"]
    assert standard["accuracy"] == pytest.approx(24 / 48) and standard["cases"] == 48
    assert (standard["ci_low"], standard["ci_high"]) == pytest.approx(wilson_ends(24, 48), abs=1e-5)
    assert standard["clean"] == pytest.approx(39 / 48) and standard["transfer"] == pytest.approx(36 / 48)
    assert standard["gain"] == pytest.approx(23 / 48, abs=1e-6)
    assert standard["strongest_gain"] == pytest.approx(20 / 48, abs=1e-6)
    assert standard["clean_change"] == pytest.approx(-4 / 48, abs=1e-6)
    assert standard["gain_low"] < standard["gain"] < standard["gain_high"]
    assert standard["clean_change_low"] < -4 / 48 < standard["clean_change_high"] <= 0
    assert not standard["masked"] and standard["one_class"] == ""
    assert markdown(table).count("| None |") == 1 and "nan" not in markdown(table)
    published = [found[name]["published_percent"] for name in ("None", "Attack", "Standard", "MPAdvT")]
    assert published == [87.5, 0.0, 80.2, 82.4]
    assert math.isnan(found["Attack"]["gain"]) and found["None"]["clean"] == found["None"]["accuracy"]


def test_a_gain_of_which_less_than_half_is_left_is_masked():
    runs = [run("plain", pgd=0, strongest=0), run("a", pgd=30, strongest=14), run("b", pgd=30, strongest=15)]
    found = rows_of(defence_table(runs, known(a="standard", b="maadvt")))
    assert found["Standard"]["masked"] and not found["MAAdvT"]["masked"]
    words = markdown(defence_table(runs, known(a="standard", b="maadvt")))
    assert words.count("| masked |") == 1 and "hides the gradient" in words


def test_what_always_answers_one_class_is_named():
    constant = run("a", pgd=24, strongest=24)
    for frame in (constant.records.sources, constant.records.followups):
        frame["label"] = "benign"
    runs = [run("plain", pgd=0, strongest=0), constant]
    table = defence_table(runs, known(a="standard"))
    found = rows_of(table)
    assert found["Standard"]["one_class"] == "benign" and found["None"]["one_class"] == ""
    assert found["Standard"]["accuracy"] == 0.5
    assert "Standard always answers benign" in markdown(table)


def test_images_of_one_truth_name_nobody():
    run_of_one = run("a", pgd=24, strongest=24)
    for frame in (run_of_one.records.sources, run_of_one.records.followups):
        frame["label"], frame["expected"] = "benign", "benign"
    found = rows_of(defence_table([run("plain", pgd=0, strongest=0), run_of_one], known(a="standard")))
    assert found["Standard"]["one_class"] == ""


def test_flips_stand_beside_from_runs_of_sequences():
    frames = make_label_records(
        classes=("benign", "melanoma"),
        relations={"brightness": ("weather", 0.5), "scale": ("geometric", 0.5)},
        frames=6,
        seeds=20,
    )
    steady = frames.assign(label=frames["source_label"])
    made = [
        WeightsRun(
            suite="flips 1", family="attnmel", weights=weights, task=LABELS, records=Records.of(one), relations={}
        )
        for weights, one in (("plain", frames), ("b", steady))
    ]
    runs = [run("plain", pgd=0, strongest=0), run("b", pgd=30, strongest=28), *made]
    found = rows_of(defence_table(runs, known(b="mpadvt")))
    assert found["None"]["flip_probability"] > 0 and found["MPAdvT"]["flip_probability"] == 0
    assert found["None"]["published_flip_percent"] == 9.52 and found["MPAdvT"]["published_flip_percent"] == 0.0


def test_several_labels_count_by_single_decisions():
    rows = []
    for index in range(12):
        truth = (CHEST[index % 5],)
        common = {"classes": CHEST, "expected": truth, "source_label": truth}
        rows.append(label_row("films", f"s{index}", "source", label=truth, **common))
        wrong = (*truth, CHEST[(index + 1) % 5])
        params = '{"epsilon": 4.0, "steps": 4}'
        rows.append(label_row("films", f"s{index}", "pgd", label=wrong, params=params, **common))
    told = {"films": Classes(names=CHEST, multi=True)}
    records = Records.of(pd.DataFrame(rows))
    records = Records(followups=records.followups, sources=records.sources, classes=told)
    roles = {"pgd": {"pgd": 4}}
    one = WeightsRun(suite="s 1", family="chexnet", weights="plain", task=LABELS, records=records, relations=roles)
    found = rows_of(defence_table([one], known(a="mpadvt")))
    assert found["None"]["accuracy"] == 1 and found["Attack"]["accuracy"] == pytest.approx(0.8)
    assert found["Attack"]["published_percent"] == 45.0


def test_defences_of_other_weights_and_other_suites_stand_beside_nobody():
    runs = [run("plain", pgd=0, strongest=0), run("a", pgd=9, strongest=9, suite="attacks 2")]
    assert list(defence_table(runs, known(a="standard"))["defence"]) == ["None", "Attack"]
    elsewhere = {"a": DefendedWeights(name="standard", variant="paper", undefended="others")}
    runs = [run("plain", pgd=0, strongest=0), run("a", pgd=9, strongest=9)]
    assert list(defence_table(runs, elsewhere)["defence"]) == ["None", "Attack"]
    assert defence_table([], elsewhere).empty


def test_roles_follow_from_what_a_digest_covers():
    own = {"fingerprint": {"weights_sha256": "plain"}}
    relations = {
        "weak": {"relation": "pgd", "crafted_on": "each", "settings": {}},
        "hard": {"relation": "strongest", "crafted_on": "each", "settings": {}},
        "shown": {"relation": "pgd", "crafted_on": own, "settings": {}},
        "others": {"relation": "pgd", "crafted_on": {"fingerprint": {"weights_sha256": "else"}}, "settings": {}},
        "blur": {"relation": "blur", "settings": {}},
    }
    found = roles_of(relations, "plain")
    assert found == {"pgd": {"weak": 4}, "strongest": {"hard": None}, "transfer": {"shown": 4}}

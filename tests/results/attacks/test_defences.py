"""The table of defences from records made by hand: table 5's rows, gains, masked gradients, constant answers."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from attack_records import attack_records
from label_records import CHEST, label_row, make_label_records

from medtest.cli.training.defences import roles_of
from medtest.core.cases import Classes
from medtest.core.tasks.base import task_of
from medtest.results.attacks.defence_words import markdown
from medtest.results.attacks.defences import COLUMNS, DefendedWeights, WeightsRun, defence_table
from medtest.results.cube.intervals import wilson_ends
from medtest.results.records.records_io import Records

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


def defences_of(**names):
    return {weights: DefendedWeights(name=name, variant="paper", undefended="plain") for weights, name in names.items()}


def rows_of(table):
    return {row["defence"]: row for row in table.to_dict("records")}


def test_rows_and_figures_match_table_5():
    runs = [
        run("b", pgd=30, strongest=28, transfer=38, wrong=7),
        run("plain", pgd=1, strongest=0, wrong=5),
        run("a", pgd=24, strongest=20, transfer=36, wrong=9),
    ]
    table = defence_table(runs, defences_of(a="standard", b="mpadvt"))
    assert list(table.columns) == list(COLUMNS)
    assert list(table["defence"]) == ["None", "Attack", "Standard", "MPAdvT"]
    rows = rows_of(table)
    assert rows["None"]["accuracy"] == pytest.approx(43 / 48, abs=1e-6)
    assert rows["Attack"]["accuracy"] == pytest.approx(1 / 48, abs=1e-6)
    assert rows["Attack"]["strongest"] == 0
    standard = rows["Standard"]
    assert standard["accuracy"] == pytest.approx(24 / 48) and standard["cases"] == 48
    assert (standard["ci_low"], standard["ci_high"]) == pytest.approx(wilson_ends(24, 48), abs=1e-5)
    assert standard["clean"] == pytest.approx(39 / 48) and standard["transfer"] == pytest.approx(36 / 48)
    assert standard["gain"] == pytest.approx(23 / 48, abs=1e-6)
    assert standard["strongest_gain"] == pytest.approx(20 / 48, abs=1e-6)
    assert standard["clean_change"] == pytest.approx(-4 / 48, abs=1e-6)
    assert standard["gain_low"] < standard["gain"] < standard["gain_high"]
    assert standard["clean_change_low"] < -4 / 48 < standard["clean_change_high"] <= 0
    assert not standard["masked"] and not rows["None"]["warnings"]
    assert markdown(table).count("| None |") == 1 and "nan" not in markdown(table)
    published = [rows[name]["published_percent"] for name in ("None", "Attack", "Standard", "MPAdvT")]
    assert published == [87.5, 0.0, 80.2, 82.4]
    assert math.isnan(rows["Attack"]["gain"]) and rows["None"]["clean"] == rows["None"]["accuracy"]


def test_a_gain_of_which_less_than_half_is_left_is_masked():
    runs = [run("plain", pgd=0, strongest=0), run("a", pgd=30, strongest=14), run("b", pgd=30, strongest=15)]
    rows = rows_of(defence_table(runs, defences_of(a="standard", b="maadvt")))
    assert rows["Standard"]["masked"] and not rows["MAAdvT"]["masked"]
    words = markdown(defence_table(runs, defences_of(a="standard", b="maadvt")))
    assert words.count("| masked |") == 1 and "hides the gradient" in words


def run_with_answers(weights, answers, *, truths=("benign", "melanoma"), **more):
    """Return a run whose answers to clean and attacked images are given, a function from the seed's number."""
    weights_run = run(weights, pgd=24, strongest=24, **more)
    for frame in (weights_run.records.sources, weights_run.records.followups):
        number = frame["seed_id"].str.removeprefix("seed").astype(int)
        frame["expected"] = [truths[n % len(truths)] for n in number]
        frame["label"] = [answers(n) for n in number]
    return weights_run


def test_sensitivity_specificity_and_balanced_accuracy_are_counted_under_attack():
    """Of 24 lesions of each kind 21 melanomas are found, and 15 benign ones cleared."""
    from sklearn.metrics import balanced_accuracy_score, recall_score

    def answer(number):
        kind = number // 2
        return ("melanoma" if kind < 21 else "benign") if number % 2 else ("benign" if kind < 15 else "melanoma")

    rows = rows_of(
        defence_table([run("plain", pgd=0, strongest=0), run_with_answers("a", answer)], defences_of(a="standard"))
    )
    row, numbers = rows["Standard"], range(48)
    truth = [BINARY["phantoms"].names[n % 2] for n in numbers]
    answers = [answer(n) for n in numbers]
    assert row["sensitivity"] == pytest.approx(recall_score(truth, answers, pos_label="melanoma"), abs=1e-6)
    assert row["specificity"] == pytest.approx(recall_score(truth, answers, pos_label="benign"), abs=1e-6)
    assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, answers), abs=1e-6)
    assert (row["sensitivity_low"], row["sensitivity_high"]) == pytest.approx(wilson_ends(21, 24), abs=1e-5)
    assert row["balanced_accuracy_low"] < row["balanced_accuracy"] < row["balanced_accuracy_high"]
    assert row["strongest_balanced"] == row["balanced_accuracy"] and not row["warnings"]
    assert rows["Attack"]["sensitivity"] == rows["Attack"]["specificity"] == 0


def test_of_several_classes_balanced_accuracy_is_their_mean_recall():
    from sklearn.metrics import balanced_accuracy_score

    truths = ("grade0", "grade0", "grade1", "grade2")
    weights_run = run_with_answers("plain", lambda n: truths[(n * 7 + n // 5) % 4], truths=truths)
    records = Records(
        followups=weights_run.records.followups,
        sources=weights_run.records.sources,
        classes={"phantoms": Classes(names=("grade0", "grade1", "grade2"))},
    )
    weights_run = WeightsRun(
        **{**{name: getattr(weights_run, name) for name in weights_run.__dataclass_fields__}, "records": records}
    )
    row = rows_of(defence_table([weights_run], defences_of(a="standard")))["None"]
    truth = [truths[n % 4] for n in range(48)]
    answers = [truths[(n * 7 + n // 5) % 4] for n in range(48)]
    assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, answers), abs=1e-6)
    positive = [g != "grade0" for t, g in zip(truth, answers, strict=True) if t != "grade0"]
    assert row["sensitivity"] == pytest.approx(sum(positive) / len(positive), abs=1e-6)


def test_several_labels_count_each_positive():
    from sklearn.metrics import recall_score

    rows, truth, answers = [], [], []
    for index in range(20):
        true = {CHEST[index % 5], CHEST[(index * 3) % 5]}
        answered_names = {CHEST[index % 5], CHEST[(index + 2) % 5]} if index % 3 else set()
        both = [tuple(name for name in CHEST if name in names) for names in (true, answered_names)]
        common = {"classes": CHEST, "expected": both[0], "source_label": both[1]}
        rows.append(label_row("films", f"s{index}", "source", label=both[1], **common))
        rows.append(
            label_row("films", f"s{index}", "pgd", label=both[1], params='{"epsilon": 4, "steps": 4}', **common)
        )
        truth += [name in true for name in CHEST]
        answers += [name in answered_names for name in CHEST]
    records = Records.of(pd.DataFrame(rows))
    classes = {"films": Classes(names=CHEST, multi=True)}
    records = Records(followups=records.followups, sources=records.sources, classes=classes)
    roles = {"pgd": {"pgd": 4}}
    weights_run = WeightsRun(
        suite="s 1", family="chexnet", weights="plain", task=LABELS, records=records, relations=roles
    )
    row = rows_of(defence_table([weights_run], defences_of(a="mpadvt")))["Attack"]
    assert row["sensitivity"] == pytest.approx(recall_score(truth, answers), abs=1e-6)
    assert row["specificity"] == pytest.approx(recall_score(truth, answers, pos_label=False), abs=1e-6)
    assert row["balanced_accuracy"] == pytest.approx((row["sensitivity"] + row["specificity"]) / 2, abs=1e-6)


@pytest.mark.parametrize(("melanoma", "warned"), [(48, True), (39, True), (38, False)])
def test_answers_of_which_four_fifths_are_one_class_are_warned_of(melanoma, warned):
    weights_run = run_with_answers("a", lambda n: "melanoma" if n < melanoma else "benign")
    table = defence_table([run("plain", pgd=0, strongest=0), weights_run], defences_of(a="standard"))
    row = rows_of(table)["Standard"]
    words = f"answers melanoma on {melanoma} of 48 clean images"
    assert (words in row["warnings"]) == warned
    assert (f"Warning: Standard {words}" in markdown(table)) == warned
    if warned:
        assert f", {melanoma} of 48 attacked images, {melanoma} of 48 images under strongest" in row["warnings"]
    assert not rows_of(table)["None"]["warnings"]


def test_chance_level_is_warned_of():
    weights_run = run_with_answers("a", lambda n: "melanoma" if (n // 2) % 2 else "benign")
    table = defence_table([run("plain", pgd=0, strongest=0), weights_run], defences_of(a="mpadvt"))
    row = rows_of(table)["MPAdvT"]
    assert row["balanced_accuracy"] == 0.5
    assert (
        "at chance level on clean images (50.0 %," in row["warnings"] and "attacked images (50.0 %," in row["warnings"]
    )
    assert "Warning: MPAdvT is at chance level on clean images" in markdown(table)


def test_images_of_one_truth_cause_no_warning():
    weights_run = run_with_answers("a", lambda n: "benign", truths=("benign",))
    table = defence_table([run("plain", pgd=0, strongest=0), weights_run], defences_of(a="standard"))
    assert not rows_of(table)["Standard"]["warnings"]


def test_flips_are_added_from_runs_of_sequences():
    frames = make_label_records(
        classes=("benign", "melanoma"),
        relations={"brightness": ("weather", 0.5), "scale": ("geometric", 0.5)},
        frames=6,
        seeds=20,
    )
    steady = frames.assign(label=frames["source_label"])
    flip_runs = [
        WeightsRun(
            suite="flips 1", family="attnmel", weights=weights, task=LABELS, records=Records.of(records), relations={}
        )
        for weights, records in (("plain", frames), ("b", steady))
    ]
    runs = [run("plain", pgd=0, strongest=0), run("b", pgd=30, strongest=28), *flip_runs]
    rows = rows_of(defence_table(runs, defences_of(b="mpadvt")))
    assert rows["None"]["flip_probability"] > 0 and rows["MPAdvT"]["flip_probability"] == 0
    assert rows["None"]["published_flip_percent"] == 9.52 and rows["MPAdvT"]["published_flip_percent"] == 0.0


def test_several_labels_count_by_single_decisions():
    rows = []
    for index in range(12):
        truth = (CHEST[index % 5],)
        common = {"classes": CHEST, "expected": truth, "source_label": truth}
        rows.append(label_row("films", f"s{index}", "source", label=truth, **common))
        wrong = (*truth, CHEST[(index + 1) % 5])
        params = '{"epsilon": 4.0, "steps": 4}'
        rows.append(label_row("films", f"s{index}", "pgd", label=wrong, params=params, **common))
    classes = {"films": Classes(names=CHEST, multi=True)}
    records = Records.of(pd.DataFrame(rows))
    records = Records(followups=records.followups, sources=records.sources, classes=classes)
    roles = {"pgd": {"pgd": 4}}
    weights_run = WeightsRun(
        suite="s 1", family="chexnet", weights="plain", task=LABELS, records=records, relations=roles
    )
    by_defence = rows_of(defence_table([weights_run], defences_of(a="mpadvt")))
    assert by_defence["None"]["accuracy"] == 1 and by_defence["Attack"]["accuracy"] == pytest.approx(0.8)
    assert by_defence["Attack"]["published_percent"] == 45.0


def test_defences_of_other_weights_and_other_suites_are_left_out():
    runs = [run("plain", pgd=0, strongest=0), run("a", pgd=9, strongest=9, suite="attacks 2")]
    assert list(defence_table(runs, defences_of(a="standard"))["defence"]) == ["None", "Attack"]
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
    roles = roles_of(relations, "plain")
    assert roles == {"pgd": {"weak": 4}, "strongest": {"hard": None}, "transfer": {"shown": 4}}

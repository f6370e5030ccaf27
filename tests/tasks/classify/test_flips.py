"""Flip probability: examples by hand, the definition by plain loops, and properties for any answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_records import CHEST, TYPES, label_row, make_label_records

from medtest.core.cases import Classes
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.class_tables import class_table
from medtest.tasks.classify.tables.decisions import classes_of
from medtest.tasks.classify.tables.flips import (
    COLUMNS,
    FRAME_COLUMNS,
    RULES,
    flip_table,
    frame_table,
    sequences_of,
    with_reference,
)

SHORT = {"a": "normal", "b": "vascular", "c": "inflammatory"}


def sequence(letters, relation="brightness", seed="s", dataset="d", severity=1, **more):
    """Return a source and the frames of a sequence; ``E`` is an ERROR, ``S`` a SKIP."""
    rows = [label_row(dataset, seed, "source", label=("normal",), expected=("normal",), source_label=("normal",))]
    for frame, letter in enumerate(letters):
        verdict = {"E": "ERROR", "S": "SKIP"}.get(letter, "PASS")
        label = None if letter in "ES" else (SHORT[letter],)
        rows.append(
            label_row(
                dataset,
                seed,
                relation,
                label=label,
                expected=("normal",),
                source_label=("normal",),
                frame=frame,
                severity=severity,
                verdict=verdict,
                **more,
            )
        )
    return pd.DataFrame(rows)


def records(*frames):
    return Records.of(pd.concat(frames, ignore_index=True))


def row(table, relation, rule="auto", severity="all", dataset="all"):
    rows = table[
        (table.relation == relation) & (table.rule == rule) & (table.severity == severity) & (table.dataset == dataset)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def test_the_columns_are_the_contract():
    table = flip_table(records(sequence("aab")))
    expected = "dataset, relation, severity, rule, frames, sequences, fp, ci_low, ci_high, rfp, errors, skipped"
    assert list(table.columns) == expected.split(", ") == list(COLUMNS)
    assert table["rfp"].isna().all()
    assert set(table["rule"]) == {"auto", "previous", "first"}


@pytest.mark.parametrize(
    ("letters", "previous", "first"),
    [
        ("aaaa", 0, 0),
        ("abab", 3 / 3, 2 / 3),
        ("abbb", 1 / 3, 3 / 3),
        ("aabc", 2 / 3, 2 / 3),
        ("aba", 2 / 2, 1 / 2),
    ],
)
def test_by_hand(letters, previous, first):
    table = flip_table(records(sequence(letters), sequence(letters, relation="gaussian_noise")))
    for relation in ("brightness", "gaussian_noise"):
        assert row(table, relation, "previous").fp == pytest.approx(previous, abs=1e-6)
        assert row(table, relation, "first").fp == pytest.approx(first, abs=1e-6)
    assert row(table, "brightness").fp == pytest.approx(previous, abs=1e-6)
    assert row(table, "gaussian_noise").fp == pytest.approx(first, abs=1e-6)
    assert row(table, "overall").fp == pytest.approx((previous + first) / 2, abs=1e-6)
    assert row(table, "overall").frames == len(letters)


def test_comparisons_that_touch_an_error_or_a_skip_drop_out():
    # a E b b S a: of the five steps only b-b is between two answers; from frame 0: b, b and a
    table = flip_table(records(sequence("aEbbSa"), sequence("ab", relation="scale")))
    rates = row(table, "brightness", "previous")
    assert (rates.fp, rates.errors, rates.skipped, rates.frames, rates.sequences) == (0.0, 1, 1, 6, 1)
    assert row(table, "brightness", "first").fp == pytest.approx(2 / 3, abs=1e-6)
    assert row(table, "overall", "previous").errors == 1


def test_a_sequence_without_any_comparison_is_counted_and_gives_no_rate():
    table = flip_table(records(sequence("EEE"), sequence("aab", seed="t", relation="scale")))
    rates = row(table, "brightness")
    assert np.isnan(rates.fp) and np.isnan(rates.ci_low)
    assert (rates.sequences, rates.errors) == (0, 3)
    assert row(table, "overall").fp == pytest.approx(0.5)
    lost = flip_table(records(sequence("Eab")))
    assert np.isnan(row(lost, "brightness", "first").fp)
    assert row(lost, "brightness", "previous").fp == 1.0


def test_sequences_of_unequal_length_weigh_by_their_comparisons():
    table = flip_table(records(sequence("ab"), sequence("aaaa", seed="t")))
    assert row(table, "brightness").fp == pytest.approx(1 / 4)
    assert row(table, "brightness").sequences == 2


def multi_sequence(sets, relation="brightness"):
    more = {"classes": CHEST, "expected": (), "source_label": ("mass",)}
    p = [[0.9 if name in labels else 0.1 for name in CHEST] for labels in sets]
    rows = [label_row("d", "s", "source", label=("mass",), probabilities=p[0], **more)]
    rows += [
        label_row("d", "s", relation, label=labels, probabilities=p[frame], frame=frame, **more)
        for frame, labels in enumerate(sets)
    ]
    return pd.DataFrame(rows)


def test_several_labels_by_hand():
    # five labels; steps of 1, 2 and 1 changed decisions; from frame 0: 1, 1 and 2
    sets = [("mass",), (), ("mass", "nodule"), ("mass", "nodule", "hernia")]
    table = flip_table(records(multi_sequence(sets), multi_sequence(sets, "gaussian_noise")))
    assert row(table, "brightness").fp == pytest.approx((1 + 2 + 1) / 5 / 3, abs=1e-6)
    assert row(table, "gaussian_noise").fp == pytest.approx((1 + 1 + 2) / 5 / 3, abs=1e-6)
    for relation in ("brightness", "gaussian_noise"):  # the released code: frame 0 for every type, not divided by n - 1
        assert row(table, relation, "released").fp == pytest.approx((1 + 1 + 2) / 5, abs=1e-6)


def test_labels_alone_are_divided_by_all_declared_classes():
    sides = (("mass",), ("mass", "edema"), ("mass", "edema"))
    common = {"expected": ("mass",), "source_label": ("mass",), "probabilities": None}
    rows = [label_row("d", "s", "source", label=("mass",), **common)]
    rows += [label_row("d", "s", "brightness", label=label, frame=n, **common) for n, label in enumerate(sides)]
    frame = pd.DataFrame(rows)
    chest = Classes(names=CHEST, multi=True)
    named_records = Records.of(frame, {"d": chest})
    assert classes_of(named_records) == chest
    assert row(flip_table(named_records), "brightness").fp == pytest.approx(1 / 5 / 2)
    assert row(flip_table(Records.of(frame)), "brightness").fp == pytest.approx(1 / 2 / 2), "else those that are seen"
    table = class_table(named_records)
    assert set(table["class"]) == set(CHEST)


def test_the_released_variant_can_pass_one_and_never_n_minus_one():
    everything, nothing = CHEST, ()
    table = flip_table(records(multi_sequence([nothing, *[everything] * 9])))
    assert row(table, "brightness", "released").fp == 9.0
    assert row(table, "brightness", "first").fp == 1.0
    assert row(table, "brightness").fp == pytest.approx(1 / 9, abs=1e-6)
    assert row(table, "brightness", "released").ci_high <= 9.0


def by_loops(frame: pd.DataFrame, relation: str, rule: str, *, multi: bool, classes) -> float:
    """Compute the definition again, without the package."""
    flips, comparisons = 0.0, 0
    chosen = frame[frame.relation == relation]
    for _, frames in chosen.groupby(["dataset", "seed_id", "severity"]):
        labels = dict(zip(frames.frame, frames.label, strict=True))
        use_first = rule == "first" or (rule == "auto" and frames.group.iloc[0] == "noise")
        for j in range(1, max(labels) + 1):
            reference = 0 if use_first else j - 1
            now, then = labels.get(j), labels.get(reference)
            if now is None or then is None or now != now or then != then:
                continue
            a, b = set(filter(None, now.split("|"))), set(filter(None, then.split("|")))
            flips += len(a ^ b) / len(classes) if multi else float(a != b)
            comparisons += 1
    return flips / comparisons


@pytest.mark.parametrize("multi", [False, True])
def test_the_definition_by_plain_loops(multi):
    classes = CHEST if multi else ("benign", "melanoma")
    frame = make_label_records(
        classes=classes, multi=multi, seeds=40, frames=6, severities=(1, 3), errors=0.03, skips=0.02, skill=1.0
    )
    table = flip_table(Records.of(frame))
    for rule in ("auto", "previous", "first"):
        each = []
        for relation in TYPES:
            expected = by_loops(frame, relation, rule, multi=multi, classes=classes)
            rates = row(table, relation, rule)
            assert rates.fp == pytest.approx(expected, abs=1e-6)
            assert rates.ci_low <= rates.fp <= rates.ci_high
            level = by_loops(frame[frame.severity == 3], relation, rule, multi=multi, classes=classes)
            assert row(table, relation, rule, severity="3").fp == pytest.approx(level, abs=1e-6)
            each.append(expected)
        assert row(table, "overall", rule).fp == pytest.approx(np.mean(each), abs=1e-6)
    wrong = frame[frame.verdict == "ERROR"]
    assert row(table, "overall").errors == len(wrong) > 0


def test_the_interval_of_the_mean_resamples_seeds_with_all_their_types():
    """Against a bootstrap written out: draw seeds, take all types of each, average the types' rates."""
    frame = make_label_records(seeds=60, frames=5, skill=0.6, random=3)
    rates = row(flip_table(Records.of(frame)), "overall")
    sequences = sequences_of(Records.of(frame))
    value, compared = sequences.changes("auto")
    relation = sequences.place.relation
    seed = sequences.place.seed
    flips, whole = np.zeros((60, 3)), np.zeros((60, 3))
    np.add.at(flips, (seed, relation), value.sum(1))
    np.add.at(whole, (seed, relation), compared.sum(1))
    rng = np.random.default_rng(0)
    drawn = rng.integers(60, size=(4000, 60))
    means = (flips[drawn].sum(1) / whole[drawn].sum(1)).mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    assert rates.ci_low == pytest.approx(low, abs=0.012)
    assert rates.ci_high == pytest.approx(high, abs=0.012)


def test_clusters_are_resampled_whole():
    alone = make_label_records(seeds=60, frames=4, skill=0.5, random=5)
    alike = alone.copy()
    alike["cluster"] = "patient" + (alone["seed_id"].str[4:].astype(int) // 5).astype(str)
    narrow, wide = (row(flip_table(Records.of(frame)), "overall") for frame in (alone, alike))
    assert narrow.fp == wide.fp
    assert (narrow.ci_low, narrow.ci_high) != (wide.ci_low, wide.ci_high)


def test_the_interval_of_a_network_that_never_flips_is_not_a_point():
    table = flip_table(records(*(sequence("aaaa", seed=f"s{n}") for n in range(20))))
    rates = row(table, "brightness")
    assert (rates.fp, rates.ci_low) == (0.0, 0.0)
    assert rates.ci_high == pytest.approx(0.1611, abs=1e-4)  # Wilson, 0 of 20


def test_relative_to_a_reference():
    reference = flip_table(records(sequence("abab"), sequence("aaaa", relation="scale")))
    table = flip_table(records(sequence("aabb"), sequence("abab", relation="scale")), reference=reference)
    assert row(table, "brightness").rfp == pytest.approx(1 / 3, abs=1e-6)
    assert np.isnan(row(table, "scale").rfp)  # the reference never flips there: no ratio
    assert row(table, "overall").rfp == pytest.approx((1 / 3 + 1) / 2 / (1 / 2), abs=1e-5)
    own = with_reference(reference, reference)
    assert (own["rfp"].dropna() == 1.0).all() and own["rfp"].notna().any()
    assert with_reference(own, None)["rfp"].isna().all()


def test_two_data_sets_are_pooled_by_comparison_and_types_averaged():
    table = flip_table(
        records(sequence("ab"), sequence("aaaaa", dataset="e"), sequence("aa", relation="scale", dataset="e"))
    )
    assert row(table, "brightness", dataset="d").fp == 1.0
    assert row(table, "brightness", dataset="e").fp == 0.0
    assert row(table, "brightness").fp == pytest.approx(1 / 5)
    assert row(table, "overall").fp == pytest.approx((1 / 5 + 0) / 2)
    assert row(table, "overall", dataset="e").fp == 0.0


def test_seeds_without_labels_flip_as_well():
    frame = make_label_records(seeds=12, frames=4, labelled=False, skill=0.5)
    with_labels = make_label_records(seeds=12, frames=4, skill=0.5)
    pd.testing.assert_frame_equal(flip_table(Records.of(frame)), flip_table(Records.of(with_labels)))


def test_images_without_frames_are_in_no_sequence():
    single = make_label_records(seeds=5, relations={"blur": ("motion", 0.1)})
    assert flip_table(Records.of(single)).empty
    assert frame_table(Records.of(single)).empty
    both = pd.concat([single, make_label_records(seeds=5, frames=3).query("relation != 'source'")])
    assert set(flip_table(Records.of(both))["relation"]) == {*TYPES, "overall"}


def test_by_frame():
    table = frame_table(records(sequence("abba"), sequence("aaEa", seed="t")))
    by_frame = table[(table.dataset == "all") & (table.severity == "all")].set_index("frame")
    assert list(table.columns) == list(FRAME_COLUMNS)
    assert by_frame.comparisons.tolist() == [0, 2, 1, 1]
    assert np.isnan(by_frame.fp[0])
    assert by_frame.fp[1:].tolist() == [0.5, 0.0, 1.0]
    assert by_frame.accuracy.tolist() == [1.0, 0.5, 0.0, 1.0]  # the ERROR leaves the denominator


@settings(max_examples=12)
@given(st.lists(st.text("abcES", min_size=2, max_size=6), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_properties_for_any_answers(texts, random):
    sequences = [sequence(text, relation="brightness", seed=f"s{n}") for n, text in enumerate(texts)]
    frame = pd.concat(sequences, ignore_index=True)
    table = flip_table(Records.of(frame), rules=RULES)
    rates = table["fp"].dropna()
    assert ((rates >= 0) & (rates <= 1)).all()
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = flip_table(Records.of(frame.iloc[order].reset_index(drop=True)), rules=RULES)
    key = ["dataset", "relation", "severity", "rule"]
    same = ["fp", "frames", "sequences", "errors", "skipped"]
    ordered, other = (t.sort_values(key).reset_index(drop=True)[[*key, *same]] for t in (table, shuffled))
    pd.testing.assert_frame_equal(ordered, other)
    swapped = frame.replace({"label": {"vascular": "normal", "normal": "vascular"}})
    pd.testing.assert_series_equal(flip_table(Records.of(swapped), rules=RULES)["fp"], table["fp"])

"""Confusion matrices and classes against scikit-learn, corruption error and the choice of films by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from label_records import CAPSULE, CHEST, TYPES, label_row, make_label_records

from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.class_tables import class_table, confusion_table
from medtest.tasks.classify.tables.corruption_error import corruption_error_table
from medtest.tasks.classify.tables.films import worst_sequences

metrics = pytest.importorskip("sklearn.metrics")


def test_confusion_matrices_are_scikit_learn():
    frame = make_label_records(seeds=60, severities=(1, 2), errors=0.05, skill=1.0)
    table = confusion_table(Records.of(frame))
    for relation in ("source", "scale"):
        chosen = frame[(frame.relation == relation) & frame.label.notna()]
        name = "original" if relation == "source" else relation
        own = table[(table.relation == name) & (table.dataset == "all")]
        square = own.pivot(index="expected", columns="answered", values="cases").loc[list(CAPSULE), list(CAPSULE)]
        expected = metrics.confusion_matrix(chosen.expected, chosen.label, labels=list(CAPSULE))
        assert square.to_numpy().tolist() == expected.tolist()
    assert len(table) == 2 * 9 * (1 + len(TYPES))


def test_classes_are_scikit_learn():
    frame = make_label_records(classes=CHEST, multi=True, seeds=70, random=3)
    table = class_table(Records.of(frame))
    chosen = frame[frame.relation == "scale"]
    for name in CHEST:
        truth = chosen.expected.str.split("|").map(lambda labels, n=name: n in labels)
        answer = chosen.label.str.split("|").map(lambda labels, n=name: n in labels)
        p = chosen.probabilities.map(lambda text, n=name: json.loads(text)[n])
        own = table[(table.relation == "scale") & (table.dataset == "all") & (table["class"] == name)].iloc[0]
        assert own.recall == pytest.approx(metrics.recall_score(truth, answer), abs=1e-6)
        assert own.precision == pytest.approx(metrics.precision_score(truth, answer), abs=1e-6)
        assert own.auroc == pytest.approx(metrics.roc_auc_score(truth, p), abs=1e-6)
        assert own.auroc_low <= own.auroc <= own.auroc_high
        assert own.recall_low <= own.recall <= own.recall_high
        assert (own.positives, own.answered_positive) == (truth.sum(), answer.sum())
    assert confusion_table(Records.of(frame)).empty


def levels(rates, relation="scale", source_wrong=0):
    """Return records of ten seeds with a chosen number of wrong labels at each severity."""
    rows = []
    for seed in range(10):
        right, wrong = ("normal",), ("vascular",)
        before = wrong if seed < source_wrong else right
        more = {"expected": right, "source_label": before}
        rows.append(label_row("d", f"s{seed}", "source", label=before, **more))
        for severity, count in rates.items():
            label = wrong if seed < count else right
            rows.append(label_row("d", f"s{seed}", relation, label=label, severity=severity, **more))
    return pd.DataFrame(rows)


def test_corruption_error_by_hand():
    own = pd.concat([levels({1: 2, 2: 6}, source_wrong=1), levels({1: 4, 2: 4}, "brightness").query("severity > 0")])
    other = pd.concat([levels({1: 4, 2: 6}, source_wrong=2), levels({1: 1, 2: 1}, "brightness").query("severity > 0")])
    reference = corruption_error_table(Records.of(other))
    table = corruption_error_table(Records.of(own), reference=reference).query("dataset == 'all'").set_index("relation")
    scale, brightness, overall = (table.loc[name] for name in ("scale", "brightness", "overall"))
    assert (scale.error, scale.source_error, scale.reference_error) == (0.4, 0.1, 0.5)
    assert scale.ce == pytest.approx(0.8 / 1.0)
    assert scale.relative_ce == pytest.approx((0.8 - 0.2) / (1.0 - 0.4))
    assert brightness.ce == pytest.approx(0.8 / 0.2)
    assert overall.ce == pytest.approx((0.8 + 4.0) / 2)
    assert overall.error == pytest.approx(0.4)
    assert scale.severities == "1 2" and scale.cases == 20
    assert reference["ce"].isna().all()
    same = corruption_error_table(Records.of(own), reference=corruption_error_table(Records.of(own)))
    assert (same["ce"] == 1.0).all()


def test_a_reference_without_errors_gives_no_ratio():
    reference = corruption_error_table(Records.of(levels({1: 0, 2: 0})))
    table = corruption_error_table(Records.of(levels({1: 1, 2: 2})), reference=reference)
    assert table["ce"].isna().all() and table["error"].notna().all()


def test_a_relation_with_severity_zero_has_no_corruption_error():
    own = pd.concat([levels({0: 1, 1: 2}), levels({1: 4}, "brightness").query("severity > 0")])
    table = corruption_error_table(Records.of(own))
    assert set(table.relation) == {"brightness", "overall"}


def test_sequences_have_no_corruption_error():
    assert corruption_error_table(Records.of(make_label_records(seeds=4, frames=3))).empty


def sequence(letters, relation, seed):
    names = {"a": "normal", "b": "vascular"}
    more = {"expected": ("normal",), "source_label": ("normal",)}
    rows = [label_row("d", seed, "source", label=("normal",), **more)]
    for frame, letter in enumerate(letters):
        label = None if letter == "E" else (names[letter],)
        verdict = "ERROR" if letter == "E" else "PASS"
        p = [0.7, 0.2, 0.1] if letter == "a" else [0.1, 0.8, 0.1]
        rows.append(label_row("d", seed, relation, label=label, frame=frame, verdict=verdict, probabilities=p, **more))
    return rows


def test_films_show_the_most_flips_of_every_type():
    rows = sequence("aaaa", "scale", "s0") + sequence("abab", "scale", "s1") + sequence("aabb", "scale", "s2")
    rows += sequence("abEb", "brightness", "s1") + sequence("abaa", "brightness", "s3")
    rows += sequence("aaaa", "gaussian_noise", "s4")
    records = Records.of(pd.DataFrame(rows).drop_duplicates(["seed_id", "relation", "frame"]))
    films = worst_sequences(records)
    shown = [(film.relation, film.seed_id, film.flips) for film in films]
    # the steadiest sequences are not shown; the types take turns
    assert shown == [("scale", "s1", 3.0), ("brightness", "s3", 2.0), ("scale", "s2", 1.0), ("brightness", "s1", 1.0)]
    first, broken = films[0], films[-1]
    assert [frame.label for frame in first.frames] == ["normal", "vascular", "normal", "vascular"]
    assert [frame.flipped for frame in first.frames] == [False, True, True, True]
    assert [frame.probability for frame in first.frames] == [0.7, 0.8, 0.7, 0.8]
    assert [frame.right for frame in first.frames] == [True, False, True, False]
    assert broken.frames[2].label is None and broken.frames[2].verdict == "ERROR"
    assert [frame.flipped for frame in broken.frames] == [False, True, False, False]
    assert first.address(2) == "d/s1/scale_s1_f2_r0"
    assert first.expected == "normal" and broken.comparisons == 1
    assert worst_sequences(records, most=1) == films[:1]


def test_no_film_where_nothing_flips():
    rows = sequence("aaaa", "scale", "s0")
    assert worst_sequences(Records.of(pd.DataFrame(rows))) == ()
    assert worst_sequences(Records.of(make_label_records(seeds=3))) == ()
    films = worst_sequences(Records.of(make_label_records(classes=CHEST, multi=True, seeds=9, frames=5)), most=4)
    assert len(films) == 4 and all(frame.probability is None or frame.label in CHEST for frame in films[0].frames)
    assert np.all([film.flips > 0 for film in films])

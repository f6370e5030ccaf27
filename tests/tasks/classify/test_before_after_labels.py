"""Before and after of classifiers: measures by scikit-learn, averages as in the slides, paired intervals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from label_records import CHEST, make_label_records
from records_maker import make_records

from medtest.core.errors import OutputProblem
from medtest.core.tasks.base import task_of
from medtest.report.pages.before_after import before_after_html
from medtest.results.before_after import change as before_after
from medtest.results.before_after import words as before_after_words
from medtest.results.before_after.change import compare
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.before_after import pair, table_of

metrics = pytest.importorskip("sklearn.metrics")
LABELS = task_of("label")
RELATIONS = {"blur": ("motion", 0.3), "white_balance": ("lighting", 0.6), "text": ("non_objects", 0.1)}


def two(seeds=60, share=0.5, random=1, **options):
    """Return records of a network, and of another that is right on a share of the first one's mistakes."""
    before = make_label_records(relations=RELATIONS, seeds=seeds, skill=0.8, random=random, **options)
    after = before.copy()
    rng = np.random.default_rng(3)
    healed = (before.label != before.expected) & before.label.notna() & (rng.random(len(before)) < share)
    after.loc[healed, "label"] = before.loc[healed, "expected"]
    return before, after


def row(table, relation, score):
    return before_after.row_of(table, relation, score=score)


def test_measures_are_scikit_learn_on_the_same_cases():
    before, after = two(errors=0.05)
    lost = after.index[(after.relation == "blur") & after.label.notna()][:4]
    after.loc[lost, "label"], after.loc[lost, "verdict"] = None, "ERROR"
    table, unpaired = compare(Records.of(before), Records.of(after), task=LABELS, order=list(RELATIONS))
    assert list(table.columns) == list(before_after.COLUMNS)
    assert list(dict.fromkeys(table.score)) == ["accuracy", "kappa", "f1"]
    assert list(dict.fromkeys(table.relation)) == ["original", *RELATIONS, "relations", "average"]
    assert unpaired == 4 + (before.verdict == "ERROR").sum()
    cells = []
    for relation in ("source", *RELATIONS):
        answered = (before.relation == relation) & before.label.notna() & after.label.notna()
        name = "original" if relation == "source" else relation
        for when, frame in (("before", before), ("after", after)):
            truth, answer = frame[answered].expected, frame[answered].label
            expected = {
                "accuracy": metrics.accuracy_score(truth, answer),
                "kappa": metrics.cohen_kappa_score(truth, answer),
                "f1": metrics.f1_score(truth, answer, average="weighted"),
            }
            for score, value in expected.items():
                assert row(table, name, score)[when] == pytest.approx(value, abs=1e-6)
            if when == "after":
                cells.append(expected["kappa"])
        assert row(table, name, "accuracy").cases == answered.sum()
    assert row(table, "average", "kappa").after == pytest.approx(np.mean(cells), abs=1e-6)
    assert row(table, "relations", "kappa").after == pytest.approx(np.mean(cells[1:]), abs=1e-6)


def test_the_interval_of_accuracy_matches_paired_means():
    """Accuracy is a mean of zeros and ones, so the table of means must agree on the same records."""
    before, after = two()
    for frame in (before, after):
        frame["dice"] = (frame.label == frame.expected).astype(float)
    labels = table_of(pair(Records.of(before), Records.of(after)))
    means = before_after.table_of(before_after.pair(Records.of(before), Records.of(after), scores=("dice",)))
    for relation in ("original", "blur", "relations", "average"):
        from_labels, from_means = row(labels, relation, "accuracy"), row(means, relation, "dice")
        assert from_labels.difference == pytest.approx(from_means.difference, abs=1e-6)
        assert (from_labels.ci_low, from_labels.ci_high) == (
            pytest.approx(from_means.ci_low, abs=1e-5),
            pytest.approx(from_means.ci_high, abs=1e-5),
        )
    assert row(labels, "white_balance", "accuracy").ci_low > 0


def test_several_labels_have_their_own_measures():
    before, after = two(classes=CHEST, multi=True)
    rng = np.random.default_rng(0)

    def better(text, expected):
        true = expected.split("|")
        return json.dumps({n: p + (0.4 if n in true else 0) + rng.random() * 0.1 for n, p in json.loads(text).items()})

    after["probabilities"] = [better(t, e) for t, e in zip(before.probabilities, before.expected, strict=True)]
    table = table_of(pair(Records.of(before), Records.of(after)))
    assert list(dict.fromkeys(table.score)) == ["accuracy", "label_share", "f1", "auroc"]
    chosen = before.relation == "blur"
    truth = np.array([[n in e.split("|") for n in CHEST] for e in before[chosen].expected])
    for when, frame in (("before", before), ("after", after)):
        p = np.array([[json.loads(t)[n] for n in CHEST] for t in frame[chosen].probabilities])
        assert row(table, "blur", "auroc")[when] == pytest.approx(metrics.roc_auc_score(truth, p), abs=1e-6)
    assert row(table, "blur", "auroc").ci_low > 0


def test_published_figures_and_the_page():
    before, after = two()
    for frame in (before, after):
        frame["dataset"] = "CAD-CAP and KID"
    table, unpaired = compare(Records.of(before), Records.of(after), task=LABELS, order=list(RELATIONS), family="agdn")
    assert row(table, "average", "accuracy").published_before == 0.761
    assert row(table, "average", "accuracy").published_mean_difference == pytest.approx(0.060)
    assert row(table, "white_balance", "kappa").published_before is None or np.isnan(
        row(table, "white_balance", "kappa").published_before
    )
    training = {"history": [{"step": 1, "accuracy_clean": 0.9, "accuracy_perturbed": 0.7}], "kept_step": 1}
    html = before_after_html(network="agdn", family="agdn", suite="wce 1", table=table, training=training, phantom=True)
    for words in ("Accuracy, points gained", "Differences of accuracy in points", "accuracy, clean", "0.761", "Cohen"):
        assert words in html, words
    assert "Dice" not in html and "Phantoms" in html and unpaired == 0
    assert "published, points of accuracy" in before_after_words.markdown(table)


def test_masks_are_compared_as_before():
    frame = Records.of(make_records(seeds=8, errors=0.0))
    table, _ = compare(frame, frame, task=task_of("mask"))
    assert list(dict.fromkeys(table.score)) == ["dice", "iou"]


def test_seeds_without_labels_are_refused():
    frame = Records.of(make_label_records(seeds=4, labelled=False))
    with pytest.raises(OutputProblem, match="no answered case has an expected label"):
        compare(frame, frame, task=LABELS)


def test_other_images_are_refused():
    before, after = two(seeds=5)
    after.loc[after.relation == "text", "followup_sha256"] = "2" * 64
    with pytest.raises(OutputProblem, match="different images"):
        compare(Records.of(before), Records.of(after), task=LABELS)

"""Pairs of labels, against a count by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.report.inside.chords import draw_chords, kept_pairs
from medtest.results.rates.cooccurrence import cooccurrence_table, cooccurrences, counts_of

NAMES = ("hernia", "mass", "effusion", "edema")
ANSWERS = st.lists(st.one_of(st.none(), st.sets(st.sampled_from(NAMES)).map(lambda labels: "|".join(sorted(labels)))))


@settings(max_examples=60, deadline=None)
@given(ANSWERS)
def test_counts_include_every_pair_of_every_answer(answers):
    counts, number = cooccurrences(answers, NAMES)
    assert number == sum(answer is not None for answer in answers)
    for i, label in enumerate(NAMES):
        for j, other in enumerate(NAMES):
            own = [set(answer.split("|")) for answer in answers if answer is not None]
            assert counts[i, j] == sum({label, other} <= labels for labels in own)


def test_the_table_separates_sources_and_each_severity():
    records = SimpleNamespace(
        sources=pd.DataFrame({"label": ["effusion|edema", "effusion", None, ""]}),
        followups=pd.DataFrame(
            {"label": ["hernia|mass", "hernia|mass"], "relation": ["pgd", "pgd"], "severity": [1, 2]}
        ),
    )
    table = cooccurrence_table(records, NAMES)
    assert table.to_dict("records")[0] == {
        "relation": "source",
        "severity": 0,
        "one": "effusion",
        "other": "edema",
        "count": 1,
        "answers": 3,
        "share": 1 / 3,
    }
    counts = counts_of(table, NAMES, "pgd", 2)
    assert counts.sum() == 2
    assert counts[0, 1] == counts[1, 0] == 1


def test_pairs_below_the_threshold_are_left_out(tmp_path):
    counts = np.array([[9, 3, 1], [3, 5, 2], [1, 2, 4]])
    np.testing.assert_array_equal(kept_pairs(counts, 20, 0.1), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])
    np.testing.assert_array_equal(kept_pairs(counts, 20, 0.0) > 0, ~np.eye(3, dtype=bool))
    groups = [("clean", counts, 20), ("none", np.zeros((3, 3), int), 20)]
    draw_chords(groups, NAMES[:3], tmp_path / "chords.png", threshold=0.1)
    assert (tmp_path / "chords.png").stat().st_size > 5000

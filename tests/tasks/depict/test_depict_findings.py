"""Table of findings: counts by hand, and rates of a service with known defects, read by a reader with errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from depicted_records import records, row

from medtest.core.cases import Image
from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, dumped
from medtest.readers.pictures.card import Card, CardRow
from medtest.results.cube.intervals import corrected_share, wilson_ends
from medtest.tasks.depict.tables.cases import cases_of
from medtest.tasks.depict.tables.findings import findings_table
from medtest.tasks.depict.tables.ordered import ordered_pictures

PICTURE: Image = np.zeros((4, 4, 3), np.uint8)
FILMS = Tells(attributes=frozenset(("left", "right", "bilateral")), counts=False)


def pool_of_finding(name: str = "effusion", side: str = "", **more: tuple[str, ...]) -> Pool:
    """Return the pool of an order of one finding."""
    return Pool(entities=(Entity(name=name, count=None, attributes=(side,) if side else ()),), **more)


def entry(
    seed: int, pool: Pool, *findings: tuple[str, str], relation: str = "source", tells: Tells = FILMS, **others: Any
) -> dict[str, Any]:
    """Return the record of a picture in which findings with sides are seen."""
    scene = Scene(entities=tuple(SeenEntity(name=n, attributes=(side,) if side else ()) for n, side in findings))
    texts = {"scene": dumped(scene.as_json()), "tells": dumped(tells.as_json()), "answer_state": "answered"}
    return row(seed, relation, pool, PICTURE, **{**texts, "stratum_modality": "chest film", **others})


def table(rows: list[dict[str, Any]], card: Card | None = None) -> pd.DataFrame:
    """Return the table by finding."""
    return findings_table(cases_of(records(rows)), card).set_index("finding")


def test_counts_are_those_by_hand() -> None:
    uncertain = Pool(uncertain=("effusion",))
    rows = [
        entry(0, pool_of_finding(side="left"), ("effusion", "left")),
        entry(1, pool_of_finding(side="left"), ("effusion", "right")),
        entry(2, pool_of_finding(side="left"), ("effusion", "bilateral")),
        entry(3, pool_of_finding(side="right")),
        entry(4, pool_of_finding(), ("effusion", "left")),
        entry(5, pool_of_finding("edema", absent=("effusion",)), ("effusion", "left")),
        entry(6, pool_of_finding("edema", absent=("effusion",)), ("edema", "")),
        entry(7, uncertain, ("effusion", "left")),
        entry(8, pool_of_finding(side="left"), tells=Tells(classes=frozenset({"edema"}))),
        entry(9, pool_of_finding(side="left"), ("effusion", "right"), stratum_modality=""),
    ]
    table_ = table(rows)
    assert list(table_.index) == ["effusion", "edema", "all"]
    effusion = table_.loc["effusion"]
    counts = {"ordered": 5, "seen": 4, "missed": 1, "negated": 2, "drawn": 1, "sided": 2, "wrong_side": 1}
    assert {name: effusion[name] for name in counts} == counts
    assert effusion["both_sides"] == 1 and effusion["cannot_tell"] == 1
    assert (effusion["missed_low"], effusion["missed_high"]) == tuple(round(end, 6) for end in wilson_ends(1, 5))
    assert (table_.loc["all", "ordered"], table_.loc["all", "missed"]) == (7, 2)
    assert np.isnan(table_.loc["edema", "drawn_rate"]) and np.isnan(effusion["missed_corrected"])


def test_a_side_that_the_reader_confuses_is_not_judged() -> None:
    confused = Tells(attributes=FILMS.attributes, counts=False, unsided=frozenset({"effusion"}))
    table_ = table([entry(0, pool_of_finding(side="left"), ("effusion", "right"), tells=confused)])
    assert (table_.loc["effusion", "seen"], table_.loc["effusion", "sided"]) == (1, 0)


def test_prompts_without_orders_have_no_findings() -> None:
    assert table([entry(0, pool_of_finding(), ("effusion", ""), stratum_modality="")]).empty


def test_defects_are_recovered_through_a_reader_with_errors() -> None:
    """A third is missed, a fifth of negated ones drawn, a quarter swapped; the reader errs as its card says."""
    rng = np.random.default_rng(7)
    dropped, added, swapped, sensitivity, specificity, left_right = 1 / 3, 1 / 5, 1 / 4, 0.9, 0.85, 0.92
    other = {"left": "right", "right": "left"}
    rows = []
    for seed in range(1200):
        side = "left" if rng.random() < 0.5 else "right"
        negated = seed % 3 == 0
        is_there = rng.random() < (added if negated else 1 - dropped)
        true_side = side if rng.random() > swapped else other[side]
        is_seen = rng.random() < (sensitivity if is_there else 1 - specificity)
        read_side = (
            (true_side if rng.random() < left_right else other[true_side]) if is_there else str(rng.choice([*other]))
        )
        pool = pool_of_finding("edema", absent=("effusion",)) if negated else pool_of_finding(side=side)
        rows.append(entry(seed, pool, *([("effusion", read_side)] if is_seen else [])))
    card = Card(
        rows=(
            CardRow(kind="class", name="effusion", present=400, seen=360, absent=400, spurious=60),
            CardRow(kind="side", name="effusion", present=200, seen=184, absent=200, spurious=16),
        )
    )
    effusion = table(rows, card).loc["effusion"]
    for name, truth in (("missed", dropped), ("drawn", added)):
        assert effusion[f"{name}_corrected_low"] < truth < effusion[f"{name}_corrected_high"]
    # of the pictures in which an effusion is read, those without one have a side by chance
    present = (1 - dropped) * sensitivity
    mixed = (present * swapped + dropped * (1 - specificity) / 2) / (present + dropped * (1 - specificity))
    assert effusion["wrong_side_corrected_low"] < mixed < effusion["wrong_side_corrected_high"]
    assert not effusion["missed_low"] < dropped - 0.08 and effusion["wrong_side_rate"] > swapped
    seen_share = effusion["seen"] / effusion["ordered"]
    test = {"sensitivity": 0.9, "positives": 400, "specificity": 0.85, "negatives": 400}
    estimate, low, high = corrected_share(seen_share, effusion["ordered"], **test)
    expected = [1 - estimate, 1 - high, 1 - low]
    columns = ["missed_corrected", "missed_corrected_low", "missed_corrected_high"]
    assert np.allclose(effusion[columns].astype(float), expected, atol=1e-6)
    assert (effusion["sensitivity"], effusion["specificity"], effusion["side_right"]) == (0.9, 0.85, 0.92)


def test_pictures_of_one_prompt_widen_the_interval() -> None:
    """Ten pictures of each of 40 prompts that are all drawn alike are 40 independent ones, not 400."""
    rows = [
        entry(seed, pool_of_finding(), *([("effusion", "")] if seed % 2 else []), relation=relation)
        for seed in range(40)
        for relation in ("source", *(f"paraphrase{k}" for k in range(9)))
    ]
    card = Card(rows=(CardRow(kind="class", name="effusion", present=400, seen=380, absent=400, spurious=20),))
    effusion = table(rows, card).loc["effusion"]
    assert effusion["ordered"] == 400 and effusion["missed_rate"] == 0.5
    _, low, high = corrected_share(0.5, 40, sensitivity=0.95, positives=400, specificity=0.95, negatives=400)
    assert effusion["missed_corrected_high"] - effusion["missed_corrected_low"] > 0.85 * (high - low)


def test_pictures_are_listed_with_what_was_ordered_and_seen() -> None:
    two = Pool(entities=(Entity(name="nodule", count=2, attributes=("left",)),), absent=("edema",), uncertain=("mass",))
    rows = [
        entry(0, pool_of_finding(side="left"), ("effusion", "left")),
        entry(1, two, ("nodule", "right"), ("edema", ""), ("hernia", "")),
        entry(2, pool_of_finding(side="left"), ("effusion", "bilateral")),
    ]
    pictures = ordered_pictures(records(rows), 10)
    assert [picture.wrong for picture in pictures] == [2, 1, 0]
    assert list(pictures[0].findings) == [
        ("2 left nodule", "right nodule", "wrong side"),
        ("no edema", "edema", "drawn though negated"),
        ("possibly mass", "not seen", "open"),
    ]
    assert pictures[0].unasked == ("hernia",)
    assert pictures[1].findings[0][2] == "not as ordered" and len(ordered_pictures(records(rows), 1)) == 1

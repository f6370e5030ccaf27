"""Tables of a study of artefacts: consensus labels and frequency of each artefact (MedTest report, 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.results.cube.intervals import wilson_ends
from medtest.study.questions import ARTEFACTS, PUBLISHED_FRAMES, PUBLISHED_WITH_ARTEFACT
from medtest.study.results.agreement import randolph
from medtest.study.results.ratings import Rating, Ratings
from medtest.study.results.tables import returned, shared_tables, table_of

ANY = "any artefact"


def _votes(group: Sequence[Rating]) -> dict[str, int]:
    """Return the number of annotators who marked each artefact on one frame."""
    return {name: sum(name in (r.answer.marks or ()) for r in group) for name in ARTEFACTS}


def _consensus(votes: int, raters: int) -> bool | None:
    """Return the majority vote; None for a tie."""
    return None if 2 * votes == raters else 2 * votes > raters


def consensus_table(ratings: Ratings) -> pd.DataFrame:
    """Return one row per frame: votes for each artefact, and the consensus."""
    rows = []
    for group in ratings.by_item().values():
        item, votes = group[0].item, _votes(group)
        labels = {name: _consensus(count, len(group)) for name, count in votes.items()}
        rows.append(
            {
                "address": item.address,
                "shown": item.part,
                "severity": item.severity,
                "raters": len(group),
                "consensus": " ".join(name for name, label in labels.items() if label) or "none",
                "open": " ".join(name for name, label in labels.items() if label is None),
                **votes,
                "followup_sha256": item.followup_sha256,
            }
        )
    columns = ("address", "shown", "severity", "raters", "consensus", "open", *ARTEFACTS, "followup_sha256")
    return table_of(rows, columns)


def frequency_table(ratings: Ratings) -> pd.DataFrame:
    """Return the number of frames with each artefact by consensus, with Wilson's interval and κ of marked or not.

    Follow-ups are left out, since their artefacts were added. Frames with a tie count as not showing the artefact and
    are counted under ``open``.
    """
    groups = [g for g in ratings.by_item().values() if g[0].item.relation == SOURCE]
    rows = []
    for name in (*ARTEFACTS, ANY):
        votes = [_marked(group, name) for group in groups]
        labels = [_consensus(count, len(group)) for count, group in zip(votes, groups, strict=True)]
        if name == ANY:  # a frame shows an artefact if the annotators agree on one of the nine
            labels = [_any(group) for group in groups]
        positive = sum(label is True for label in labels)
        low, high = _interval(positive, len(groups))
        counts = np.array([[len(g) - v, v] for v, g in zip(votes, groups, strict=True)], dtype=np.int64).reshape(-1, 2)
        kappa = randolph(counts, f"marked {name}")
        published = name == ANY
        rows.append(
            {
                "artefact": name,
                "frames": len(groups),
                "found": positive,
                "percent": round(100 * positive / len(groups), 2) if groups else None,
                "ci_low": low,
                "ci_high": high,
                "open": sum(label is None for label in labels),
                "marked_by_any": sum(count > 0 for count in votes),
                "kappa": None if kappa.items == 0 else round(kappa.value, 4),
                "strength": kappa.words,
                "published_percent": round(100 * PUBLISHED_WITH_ARTEFACT / PUBLISHED_FRAMES, 2) if published else None,
            }
        )
    return table_of(rows)


def _interval(positive: int, frames: int) -> tuple[float | None, float | None]:
    """Return Wilson's interval in percent; None for fewer than two frames."""
    if frames < 2:
        return None, None
    low, high = wilson_ends(positive, frames)
    return round(100 * low, 2), round(100 * high, 2)


def _marked(group: Sequence[Rating], name: str) -> int:
    if name == ANY:
        return sum(bool(r.answer.marks) for r in group)
    return _votes(group)[name]


def _any(group: Sequence[Rating]) -> bool | None:
    labels = [_consensus(count, len(group)) for count in _votes(group).values()]
    return True if True in labels else None if None in labels else False


def recognised_table(ratings: Ratings) -> pd.DataFrame:
    """Return the share of follow-ups whose artefact is recognised by consensus, by relation and severity."""
    cells: dict[tuple[str, int], list[bool]] = {}
    for group in ratings.by_item().values():
        item = group[0].item
        if item.relation != SOURCE and item.part in ARTEFACTS:
            recognised = _consensus(_votes(group)[item.part], len(group)) is True
            for severity in (item.severity, -1):
                cells.setdefault((item.relation, severity), []).append(recognised)
    rows = []
    for (relation, severity), results in sorted(cells.items()):
        low, high = _interval(sum(results), len(results))
        rows.append(
            {
                "relation": relation,
                "severity": "all" if severity < 0 else str(severity),
                "followups": len(results),
                "recognised": sum(results),
                "percent": round(100 * sum(results) / len(results), 2),
                "ci_low": low,
                "ci_high": high,
            }
        )
    columns = ("relation", "severity", "followups", "recognised", "percent", "ci_low", "ci_high")
    return table_of(rows, columns)


def self_table(ratings: Ratings) -> pd.DataFrame:
    """Return the share of repeated frames that each annotator marks in the same way."""
    rows: list[dict[str, Any]] = []
    for annotator in [*ratings.annotators, None]:
        pairs = returned(ratings, annotator)
        alike = [set(a.answer.marks or ()) == set(b.answer.marks or ()) for a, b in pairs]
        boxes = [(n in (a.answer.marks or ())) == (n in (b.answer.marks or ())) for a, b in pairs for n in ARTEFACTS]
        rows.append(
            {
                "annotator": "all" if annotator is None else annotator,
                "items": len(pairs),
                "same_percent": round(100 * sum(alike) / len(alike), 2) if alike else None,
                "same_boxes_percent": round(100 * sum(boxes) / len(boxes), 2) if boxes else None,
            }
        )
    return table_of(rows)


def frame_tables(ratings: Ratings) -> dict[str, pd.DataFrame]:
    """Return every table of a study of artefacts by file name."""
    return {
        "frequencies.csv": frequency_table(ratings),
        "consensus.csv": consensus_table(ratings),
        "recognised.csv": recognised_table(ratings),
        "self_agreement.csv": self_table(ratings),
        **shared_tables(ratings),
    }

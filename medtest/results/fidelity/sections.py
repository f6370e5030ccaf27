"""Report sections on pictures: figures by relation and finding, GenEval's tags, near-duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.core.tasks.results import Section
from medtest.results.cube.axes import ALL

_SHOWN_PAIRS: Final = 30
_BY_DIMENSION: Final = ("FI", "FD", "IS")
"""Prefixes of figures that need more pictures than features, or than classes."""
_DISTANCE_WORDS: Final = (
    "Figures depend on the number of pictures: with more pictures, distances fall and scores rise. Compare only figures"
    " with similar numbers. N < D marks fewer pictures than features or classes; compare such figures"
    " only with sets of that size."
)
_OWN_WORDS: Final = (
    " Figures with -embed or -struct in their names are not FID, KID, IS or RP: they use medtest's bundled network and"
    " encoder, and are comparable only with each other."
)
_SOURCE_WORDS: Final = (
    " Distances are to the pictures of the source prompts. The distance of unchanged is that between two sets of"
    " pictures of the same prompts; smaller distances of relations are not meaningful."
)
_STRUCTURE_WORDS: Final = (
    " RP-struct compares captions with the scene that the reader detected and is limited by the reader."
)


def sections(frames: Mapping[str, pd.DataFrame], notices: Sequence[str] = ()) -> list[Section]:
    """Return the report sections on pictures, without empty ones.

    Args:
        frames: Tables by file name.
        notices: Notices on missing figures.
    """
    candidates = [_figures(frames["fidelity.csv"], notices), _geneval(frames["geneval.csv"])]
    candidates += [_duplicates(frames["duplicates.csv"], frames["duplicate_shares.csv"])]
    return [section for section in candidates if section is not None]


def _figures(frame: pd.DataFrame, notices: Sequence[str]) -> Section | None:
    if frame.empty and not notices:
        return None
    names = list(dict.fromkeys(str(name) for name in frame["figure"]))
    several = frame["dataset"].nunique() > 1
    rows = []
    for (dataset, relation, finding), cells in frame.groupby(["dataset", "relation", "finding"], sort=False):
        by_figure = {str(row["figure"]): row for row in cells.to_dict("records")}
        usual = max(int(row["pictures"]) for row in by_figure.values())
        head = (*((str(dataset),) if several else ()), str(relation), str(finding), f"{usual:,}")
        rows.append((*head, *(_cell(by_figure.get(name), usual) for name in names)))
    head = (*(("data set",) if several else ()), "relation", "cases", "pictures")
    return Section(
        name="picture-figures",
        title="Figures of pictures",
        words=_figure_words(frame, notices),
        columns=(*head, *names),
        rows=rows,
    )


def _figure_words(frame: pd.DataFrame, notices: Sequence[str]) -> str:
    words = _DISTANCE_WORDS
    names = set(frame["figure"])
    words += _OWN_WORDS if any("-" in str(name) for name in names) else ""
    real = frame.loc[frame["reference"] == "real", "reference_pictures"]
    words += f" Distances are to {int(real.iloc[0]):,} real pictures." if len(real) else ""
    words += _SOURCE_WORDS if (frame["reference"] == "sources").any() and (frame["relation"] == UNCHANGED).any() else ""
    words += _STRUCTURE_WORDS if "RP-struct" in names else ""
    fewest = frame.loc[frame["distractors"].notna(), "distractors"]
    words += (
        f" Each caption was compared with at least {int(fewest.min())} others."
        if len(fewest) and fewest.min() < 99
        else ""
    )
    temperatures = frame["temperature"].dropna().unique()
    words += f" Scores are divided by T = {float(temperatures[0]):g} before the softmax." if len(temperatures) else ""
    return " ".join([words, *(_sentence(notice) for notice in notices)])


def _cell(row: Mapping[Any, Any] | None, usual: int) -> str:
    """Return a figure with its interval and notes on few pictures or an unusual number of pictures."""
    if row is None or row["value"] != row["value"]:
        return ""
    interval = _interval(row)
    text = _number(row["value"], str(row["figure"])) + (f" [{interval}]" if interval else "")
    count = int(row["pictures"])
    text += "" if count == usual else f", {count:,} pictures"
    smallest = count if not row["reference"] else min(count, int(row["reference_pictures"]))
    below_dimension = (
        row["dimension"] == row["dimension"] and row["dimension"] is not None and smallest < row["dimension"]
    )
    return (
        f"{text}, N < {int(row['dimension'])}" if below_dimension and str(row["figure"])[:2] in _BY_DIMENSION else text
    )


def _geneval(frame: pd.DataFrame) -> Section | None:
    if frame.empty:
        return None
    rows = [
        (
            str(row["dataset"]),
            str(row["relation"]),
            str(row["tag"]).replace("_", " "),
            f"{row['percent']:.1f} %" if row["percent"] == row["percent"] else "",
            _interval(row),
            f"{int(row['cases']):,}",
            f"{int(row['untold']):,}",
        )
        for row in frame.to_dict("records")
        if row["dataset"] != ALL
    ]
    return Section(
        name="geneval",
        title="GenEval's rule by tag",
        words=(
            "Share of pictures that show what their prompt says, by GenEval's rule; overall is the mean over tags. The"
            " reader is this run's, so figures published with GenEval's own reader are not comparable."
        ),
        columns=("data set", "relation", "tag", "correct", "95 % interval", "pictures", "cannot tell"),
        rows=rows,
    )


def _duplicates(pairs: pd.DataFrame, shares: pd.DataFrame) -> Section | None:
    if shares.empty:
        return None
    words = []
    for kind, of in (("answers", "answers to other prompts"), ("training", "pictures of the training folder")):
        totals = shares[(shares["kind"] == kind) & (shares["relation"] == ALL)].tail(1)
        for row in totals.to_dict("records"):
            words.append(
                f"{int(row['near_duplicates']):,} of {int(row['pictures']):,} pictures ({row['percent']:.1f} %,"
                f" {row['ci_low']:.1f} to {row['ci_high']:.1f}) are near-duplicates of {of}"
                + (f", {int(row['largest_group']):,} of them of each other." if row["largest_group"] > 1 else ".")
            )
    rows = [
        (
            str(row["first"]),
            str(row["second"]),
            "yes" if row["same_pixels"] is True else "",
            str(int(row["bits"])),
            "" if row["similarity"] is None or row["similarity"] != row["similarity"] else f"{row['similarity']:.3f}",
        )
        for row in pairs.head(_SHOWN_PAIRS).to_dict("records")
    ]
    return Section(
        name="near-duplicates",
        title="Near-duplicates",
        words=" ".join(words),
        columns=("picture", "near-duplicate of", "same pixels", "differing bits of 256", "cosine") if rows else (),
        rows=rows,
    )


def _number(value: float, figure: str) -> str:
    if value != value:
        return ""
    if figure.startswith("RP"):
        return f"{value:.1f} %"
    return f"{value:.4g}"


def _interval(row: Mapping[Any, Any]) -> str:
    low, high = row["ci_low"], row["ci_high"]
    return f"{low:.4g} to {high:.4g}" if low == low and high == high else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")

"""Markdown form of the table of defences, laid out as table 5 of the paper with the columns that it omits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medtest.core.deferred import pd
from medtest.results.attacks.defences import ATTACK, EPSILON, NONE, STEPS
from medtest.results.published.published_attacks import PAPER, gap_words
from medtest.results.published.published_labels import BENCHMARKED

HEAD = (
    "",
    "accuracy",
    "published",
    "gain",
    "clean",
    "clean, change",
    "strongest",
    "transfer",
    "sensitivity",
    "specificity",
    "balanced",
    "strongest, balanced",
    "flips",
    "published flips",
    "",
)


def markdown(table: pd.DataFrame) -> str:
    """Return the table as Markdown, with one table for each suite and network."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: pd.DataFrame) -> Iterator[str]:
    for (suite, network), part in table.groupby(["suite", "network"], sort=False):
        yield f"**{network} under {suite}**"
        yield ""
        yield "| " + " | ".join(HEAD) + " |"
        yield "|" + "---|" * len(HEAD)
        for row in part.to_dict("records"):
            yield "| " + " | ".join(cells(row)) + " |"
        yield ""
        yield from (f"- {remark}" for remark in remarks(part))
        yield ""


def cells(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the cells of a row in the order of :data:`HEAD`: percent, points, 95 % intervals in brackets."""
    return (
        name_of(row),
        _percent(row, "accuracy", "ci_low", "ci_high"),
        _plain(row["published_percent"]),
        _points(row, "gain"),
        _percent(row, "clean", "clean_low", "clean_high") if row["defence"] not in (NONE, ATTACK) else "",
        _points(row, "clean_change"),
        _percent(row, "strongest", "strongest_low", "strongest_high"),
        _percent(row, "transfer", "transfer_low", "transfer_high"),
        _percent(row, "sensitivity", "sensitivity_low", "sensitivity_high"),
        _percent(row, "specificity", "specificity_low", "specificity_high"),
        _percent(row, "balanced_accuracy", "balanced_accuracy_low", "balanced_accuracy_high"),
        _percent(row, "strongest_balanced", "strongest_balanced_low", "strongest_balanced_high"),
        "" if _none(row["flip_probability"]) else f"{100 * row['flip_probability']:.1f}",
        _plain(row["published_flip_percent"]),
        "; ".join(flags(row)),
    )


def name_of(row: Mapping[Any, Any]) -> str:
    """Return the name of a row, with the defence's variant if it differs from the paper's."""
    usual = _none(row["variant"]) or row["variant"] in ("paper", "")
    return str(row["defence"]) if usual else f"{row['defence']} ({row['variant']})"


def flags(row: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the warnings of a row: ``masked``, the class it mostly answers, chance level."""
    if row["masked"] is True or (not _none(row["masked"]) and bool(row["masked"])):
        yield "masked"
    if not _none(row["warnings"]) and row["warnings"]:
        yield from str(row["warnings"]).split("; ")


def remarks(part: pd.DataFrame) -> Iterator[str]:
    """Yield the notes below one network's table."""
    network = str(part["network"].iloc[0])
    yield (
        f"Percent. All rows except {NONE} are under PGD, ε = {EPSILON:g}/255, {STEPS} steps, crafted on the network "
        f"of the row; {NONE} is on clean images. Strongest: the worst of several attacks at the same ε; transfer: PGD "
        "crafted on the undefended network. Gain and change: points against the undefended network, paired by seed. "
        "Sensitivity, specificity and balanced accuracy are of the images of the row; positive is every class except "
        "the first or, with several labels, each true label. Flips: probability over sequences of small perturbations."
    )
    rows = part.to_dict("records")
    warnings = [list(flags(row)) for row in rows]
    if any("masked" in texts for texts in warnings):
        yield "masked: less than half of the gain under PGD remains under strongest; the defence hides the gradient."
    for row, texts in zip(rows, warnings, strict=True):
        for words in texts:
            if words != "masked":
                verb = "is " if words.startswith("at ") else ""
                yield f"Warning: {name_of(row)} {verb}{words}. A robust network may still be useless for diagnosis."
    if part["accuracy"].isna().any():
        yield f"An empty accuracy: the suite has no PGD at ε = {EPSILON:g}/255 with {STEPS} steps."
    yield f"Published: table 5 of {PAPER}. {gap_words(BENCHMARKED.get(network, ''))}"


def _none(value: object) -> bool:
    return value is None or value != value


def _plain(value: Any) -> str:
    return "" if _none(value) else f"{value:.1f}"


def _percent(row: Mapping[Any, Any], name: str, low: str, high: str) -> str:
    if _none(row[name]):
        return ""
    ends = "" if _none(row[low]) else f" ({100 * row[low]:.1f} to {100 * row[high]:.1f})"
    return f"{100 * row[name]:.1f}{ends}"


def _points(row: Mapping[Any, Any], name: str) -> str:
    if _none(row[name]):
        return ""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    ends = "" if _none(low) else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"{100 * row[name] + 0.0:+.1f}{ends}"

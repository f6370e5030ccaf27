"""Published figures of classifiers on the terminal: the slides' table, flip probabilities, relative ones."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from medtest.results.published import published_labels, retraining
from medtest.results.published.retraining import AVERAGE

_FIGURE = len("100.00")


def label_models() -> tuple[str, ...]:
    """Return the classifiers of which something was published, as their authors write them."""
    names = [one.model for one in published_labels.scores()]
    names += [one.model for one in published_labels.flips()]
    names += [one.model for one in published_labels.relative()]
    return tuple(dict.fromkeys(names))


def label_names() -> dict[str, str]:
    """Return the published names of ``model=`` names."""
    return {**published_labels.FAMILIES, **published_labels.BENCHMARKED}


def print_labels(models: Sequence[str], *, console: Console) -> None:
    """Print what was published of some classifiers.

    Args:
        models: Of :func:`label_models`.
        console: Where to.
    """
    for model in models:
        if any(one.model == model for one in published_labels.scores()):
            console.print(_artefacts(model))
            console.print()
    flips = [one for one in published_labels.flips() if one.model in models]
    if flips:
        rows = [(one.model, f"{one.percent:.2f}", f"{one.defended_percent:.2f}") for one in flips]
        console.print(_table("flip probability, percent", ("network", "FP", "after MPAdvT"), rows))
        console.print()
    relative = [one for one in published_labels.relative() if one.model in models]
    if relative:
        of_four = [
            (one.model, f"{one.accuracy_percent:.2f}", f"{one.adversarial_percent:.2f}", f"{one.rfp:.2f}")
            for one in relative
        ]
        heads = ("network", "accuracy", "under attack", "RFP")
        console.print(_table("melanoma sequences, flip probability relative to AttnMel's", heads, of_four))
        console.print()
    if any(one.model in models for one in published_labels.scores()):
        console.print(f"Accuracy, κ, F1. Source: {published_labels.SLIDES}.", style="dim")
    if flips or relative:
        console.print(f"FP, RFP. Source: {published_labels.PAPER}, tables 3 and 4.", style="dim")


def _artefacts(model: str) -> Table:
    after = {one.relation: one.after for one in retraining.label_figures() if one.model == model}
    rows = [
        (
            one.relation,
            f"{one.accuracy:.3f}",
            f"{one.kappa:.3f}",
            f"{one.f1:.3f}",
            f"{after[one.relation]:.3f}" if one.relation in after else "",
        )
        for one in published_labels.scores()
        if one.model == model
    ]
    means = [one for one in retraining.label_figures() if one.model == model and one.relation == AVERAGE]
    rows += [("average_with_original", f"{one.before:.3f}", "", "", f"{one.after:.3f}") for one in means]
    return _table(model, ("relation", "accuracy", "κ", "F1", "accuracy, trained further"), rows)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(
        title=title, title_justify="left", box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        # rich cuts columns that may shrink; a figure that is cut is a wrong one
        table.add_column(head, justify="right", no_wrap=True, min_width=_FIGURE)
    for row in rows:
        table.add_row(*row)
    return table

"""``medtest reference``: the published figures, as tables in the report's form."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from medtest.cli.reference_labels import label_models, label_names, print_labels
from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.results.published import reference
from medtest.seeds.datasets.facts import plain


def print_reference(*, model: str, dataset: str, threshold: float | None, console: Console) -> None:
    """Print the published figures of the networks, data sets and thresholds asked for; empty means all.

    A data set or a threshold leaves classifiers out: those are of polyp segmentation.

    Raises:
        UserMistakes: A network, data set or threshold of which nothing was published.
    """
    cells = reference.cells()
    segmenting, classifying = reference.models(), label_models()
    asked = label_names().get(model, model)
    models = _chosen("--model", asked, (*segmenting, *classifying))
    datasets = _chosen("--dataset", dataset, tuple(dict.fromkeys(c.dataset for c in cells)))
    thresholds = _thresholds(threshold, tuple(sorted({c.threshold for c in cells})))
    narrowed = bool(dataset) or threshold is not None
    chosen = [name for name in models if name in segmenting]
    for name in chosen:
        for t in thresholds:
            console.print(_table(name, t, datasets))
            if datasets == tuple(dict.fromkeys(c.dataset for c in cells)):
                pooled = reference.overall(name, score="dice", threshold=t)
                console.print(f"over all cases of the four data sets, Dice: {pooled:.2f} %")
            console.print()
    if chosen:
        console.print(f"EFR in percent. Source: {reference.SOURCE}.", style="dim")
    if narrowed and chosen:
        return
    if narrowed:
        raise _of_segmenters(asked, "--dataset" if dataset else "--threshold", dataset or str(threshold))
    if chosen and not model:
        console.print()
    print_labels([name for name in models if name in classifying], console=console)


def _of_segmenters(model: str, option: str, found: str) -> UserMistakes:
    allowed = f"nothing with {model}: data sets and thresholds are of polyp segmentation"
    return Mistake(where="command line", key=option, found=found, allowed=allowed, fix="take it out").as_error()


def _table(model: str, threshold: float, datasets: tuple[str, ...]) -> Table:
    title = f"{model}, t = {threshold}"
    table = Table(
        title=title, title_justify="left", box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("relation", no_wrap=True)
    for dataset in datasets:
        # rich cuts columns that may shrink; a figure that is cut is a wrong one
        table.add_column(f"{dataset}\nDice", justify="right", no_wrap=True, min_width=len("100.0"))
        table.add_column("\nIoU", justify="right", no_wrap=True, min_width=len("100.0"))
    published = {
        (c.relation, c.dataset, c.score): c.efr_percent
        for c in reference.cells()
        if c.model == model and c.threshold == threshold
    }
    for relation in dict.fromkeys(key[0] for key in published):
        row = [f"{published[relation, d, s]:.1f}" for d in datasets for s in ("dice", "iou")]
        table.add_row(relation, *row)
    return table


def _chosen(option: str, asked: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if not asked:
        return known
    found = [name for name in known if plain(name) == plain(asked)]
    if found:
        return (found[0],)
    raise _unknown(option, asked, known)


def _thresholds(asked: float | None, known: tuple[float, ...]) -> tuple[float, ...]:
    if asked is None:
        return known
    if asked in known:
        return (asked,)
    raise _unknown("--threshold", str(asked), [str(t) for t in known])


def _unknown(option: str, found: str, known: Iterable[str]) -> UserMistakes:
    names = list(known)
    by_plain = {plain(name): name for name in names}
    near = nearest_name(plain(found), by_plain)
    return Mistake(
        where="command line",
        key=option,
        found=found,
        allowed=", ".join(names),
        nearest=by_plain[near] if near else None,
    ).as_error()

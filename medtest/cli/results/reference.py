"""``medtest reference``: the published figures, as tables in the report's form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.results.published import (
    published_actesting,
    published_attacks,
    published_labels,
    reference,
    retraining,
)
from medtest.results.published.retraining import AVERAGE
from medtest.seeds.datasets.facts import plain


def print_reference(*, model: str, dataset: str, threshold: float | None, console: Console) -> None:
    """Print the published figures of the networks, data sets and thresholds asked for; empty means all.

    A data set or a threshold leaves classifiers out: those are of polyp segmentation.

    Raises:
        UserMistakes: A network, data set or threshold of which nothing was published.
    """
    cells = reference.cells()
    segmenting, classifying, drawing = reference.models(), label_models(), published_actesting.software()
    asked = label_names().get(model, model)
    models = _chosen("--model", asked, (*segmenting, *classifying, *drawing))
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
    print_drawing([name for name in models if name in drawing], console=console)


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


_FIGURE = len("100.00")


def print_drawing(software: Sequence[str], *, console: Console) -> None:
    """Print what ACTesting published of text-to-image software.

    Args:
        software: Of :func:`medtest.results.published.published_actesting.software`.
        console: Where to.
    """
    value = published_actesting.value
    for title, table, columns in (
        ("error rates (figure 6)", "errors", {"error_e": "Error_e", "error_r": "Error_r"}),
        ("miss rates (table 2)", "miss", {"miss_e": "Miss_e", "miss_r": "Miss_r"}),
        ("pictures (table 1)", "fidelity", {"i_fid": "I-FID", "i_is": "I-IS", "rp_percent": "RP, %"}),
    ):
        operators = dict.fromkeys(one.operator for one in published_actesting.cells(table))
        rows = [
            (name, operator, *(f"{value(table, name, operator, column):.{_digits(column)}f}" for column in columns))
            for name in software
            for operator in operators
            if value(table, name, operator, next(iter(columns))) is not None
        ]
        if rows:
            console.print(_figures(title, ("software", "operator", *columns.values()), rows))
            console.print()
    if software:
        console.print(f"Source: {published_actesting.PAPER}.", style="dim")


def _digits(column: str) -> int:
    return 2 if column in ("error_e", "error_r", "i_fid", "i_is", "rp_percent") else 4


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
        console.print(_figures("flip probability, percent", ("network", "FP", "after MPAdvT"), rows))
        console.print()
    relative = [one for one in published_labels.relative() if one.model in models]
    if relative:
        of_four = [
            (one.model, f"{one.accuracy_percent:.2f}", f"{one.adversarial_percent:.2f}", f"{one.rfp:.2f}")
            for one in relative
        ]
        heads = ("network", "accuracy", "under attack", "RFP")
        console.print(_figures("melanoma sequences, flip probability relative to AttnMel's", heads, of_four))
        console.print()
    _print_attacked(models, console=console)
    if any(one.model in models for one in published_labels.scores()):
        console.print(f"Accuracy, κ, F1. Source: {published_labels.SLIDES}.", style="dim")
    if flips or relative:
        console.print(f"FP, RFP. Source: {published_labels.PAPER}, tables 3 and 4.", style="dim")


def _print_attacked(models: Sequence[str], *, console: Console) -> None:
    """Print what was published of some classifiers under attack and defence, and how its ε differs from ours."""
    known = [name for name in published_attacks.TABLES if name in models]
    for model in known:
        rows = [
            (
                one.name,
                f"{one.accuracy_percent:.1f}",
                f"{one.auc:.3f}",
                "" if one.fooling_percent is None else f"{one.fooling_percent:.1f}",
            )
            for one in published_attacks.attacked_of(model)
        ]
        title = f"{model} under attack (table {published_attacks.TABLES[model]})"
        console.print(_figures(title, ("images", "accuracy, %", "AUROC", "fooling rate, %"), rows))
        console.print()
    if known:
        by_defence = [
            (one.defence, *(f"{one.accuracy_percent[m]:.1f}" if m in one.accuracy_percent else "" for m in known))
            for one in published_attacks.defended()
        ]
        console.print(_figures("accuracy by defence, percent (table 5)", ("defence", *known), by_defence))
        console.print(
            "None: clean images. All others: PGD, ε = 4/255, 4 steps; Attack: without a defence.", style="dim"
        )
        console.print()
        for words in (published_attacks.gap_words(known[0] if len(known) == 1 else ""), *_contradictions(known)):
            console.print(words, style="dim")
        console.print(f"Source: {published_attacks.PAPER}, tables 1, 2 and 5.", style="dim")


def _contradictions(models: Sequence[str]) -> list[str]:
    found = published_attacks.CONTRADICTION
    return [f"{name}: {found[name]}" for name in models if name in found]


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
    return _figures(model, ("relation", "accuracy", "κ", "F1", "accuracy, trained further"), rows)


def _figures(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
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

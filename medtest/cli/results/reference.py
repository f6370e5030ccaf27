"""``medtest reference``: published figures, as tables in the report's form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from medtest.core.errors import UserMistakes, nearest_name, typed_error
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
    """Print the published figures of the selected networks, data sets and thresholds; empty means all.

    With a data set or a threshold, classifiers are left out, since those apply to polyp segmentation only.

    Raises:
        UserMistakes: Nothing was published on a network, data set or threshold.
    """
    cells = reference.cells()
    segmenting, classifying, drawing = reference.models(), label_models(), published_actesting.software()
    published_name = label_names().get(model, model)
    models = _chosen("--model", published_name, (*segmenting, *classifying, *drawing))
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
        console.print(
            f"Error-finding rate (EFR, share of violated cases) in percent. Source: {reference.SOURCE}.", style="dim"
        )
    if narrowed and chosen:
        return
    if narrowed:
        raise _of_segmenters(published_name, "--dataset" if dataset else "--threshold", dataset or str(threshold))
    if chosen and not model:
        console.print()
    print_labels([name for name in models if name in classifying], console=console)
    print_drawing([name for name in models if name in drawing], console=console)


def _of_segmenters(model: str, option: str, value: str) -> UserMistakes:
    allowed = f"no such option with {model}: only polyp segmentation has data sets and thresholds"
    return typed_error(option, value, allowed, "remove it")


def _table(model: str, threshold: float, datasets: tuple[str, ...]) -> Table:
    heads = [head for dataset in datasets for head in (f"{dataset}\nDice", "\nIoU")]
    published = {
        (c.relation, c.dataset, c.score): c.efr_percent
        for c in reference.cells()
        if c.model == model and c.threshold == threshold
    }
    rows = [
        (relation, *(f"{published[relation, d, s]:.1f}" for d in datasets for s in ("dice", "iou")))
        for relation in dict.fromkeys(key[0] for key in published)
    ]
    return _figures(f"{model}, t = {threshold}", ("relation", *heads), rows)


def _chosen(option: str, typed: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    if not typed:
        return choices
    matches = [name for name in choices if plain(name) == plain(typed)]
    if matches:
        return (matches[0],)
    raise _unknown(option, typed, choices)


def _thresholds(typed: float | None, choices: tuple[float, ...]) -> tuple[float, ...]:
    if typed is None:
        return choices
    if typed in choices:
        return (typed,)
    raise _unknown("--threshold", str(typed), [str(t) for t in choices])


def _unknown(option: str, typed: str, choices: Iterable[str]) -> UserMistakes:
    by_plain = {plain(name): name for name in choices}
    near = nearest_name(plain(typed), by_plain)
    return typed_error(option, typed, ", ".join(by_plain.values()), nearest=by_plain[near] if near else None)


_FIGURE = len("100.0")


def print_drawing(software: Sequence[str], *, console: Console) -> None:
    """Print the figures published in ACTesting on text-to-image software.

    Args:
        software: Names from :func:`medtest.results.published.published_actesting.software`.
        console: Console for the tables.
    """
    value = published_actesting.value
    for title, table, columns in (
        ("error rates (figure 6)", "errors", {"error_e": "Error_e", "error_r": "Error_r"}),
        ("miss rates (table 2)", "miss", {"miss_e": "Miss_e", "miss_r": "Miss_r"}),
        ("pictures (table 1)", "fidelity", {"i_fid": "I-FID", "i_is": "I-IS", "rp_percent": "RP, %"}),
    ):
        operators = dict.fromkeys(cell.operator for cell in published_actesting.cells(table))
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
    """Return the classifiers with published figures, as spelled by their authors."""
    names = [figure.model for figure in published_labels.scores()]
    names += [figure.model for figure in published_labels.flips()]
    names += [figure.model for figure in published_labels.relative()]
    return tuple(dict.fromkeys(names))


def label_names() -> dict[str, str]:
    """Return the published names by ``model=`` name."""
    return {**published_labels.FAMILIES, **published_labels.BENCHMARKED}


def print_labels(models: Sequence[str], *, console: Console) -> None:
    """Print the published figures of some classifiers.

    Args:
        models: Names from :func:`label_models`.
        console: Console for the tables.
    """
    for model in models:
        if any(figure.model == model for figure in published_labels.scores()):
            console.print(_artefacts(model))
            console.print()
    flips = [figure for figure in published_labels.flips() if figure.model in models]
    if flips:
        rows = [(figure.model, f"{figure.percent:.2f}", f"{figure.defended_percent:.2f}") for figure in flips]
        console.print(_figures("flip probability, percent", ("network", "FP", "after MPAdvT"), rows))
        console.print()
    relative = [figure for figure in published_labels.relative() if figure.model in models]
    if relative:
        of_four = [
            (figure.model, f"{figure.accuracy_percent:.2f}", f"{figure.adversarial_percent:.2f}", f"{figure.rfp:.2f}")
            for figure in relative
        ]
        heads = ("network", "accuracy", "under attack", "RFP")
        console.print(_figures("melanoma sequences, flip probability relative to AttnMel's", heads, of_four))
        console.print()
    _print_attacked(models, console=console)
    if any(figure.model in models for figure in published_labels.scores()):
        console.print(f"Accuracy, κ, F1. Source: {published_labels.SLIDES}.", style="dim")
    if flips or relative:
        console.print(f"FP, RFP. Source: {published_labels.PAPER}, tables 3 and 4.", style="dim")


def _print_attacked(models: Sequence[str], *, console: Console) -> None:
    """Print published figures of classifiers under attack and defence, noting how their ε differs from medtest's."""
    attacked = [name for name in published_attacks.TABLES if name in models]
    for model in attacked:
        rows = [
            (
                published_attacks.attack_words(figure),
                f"{figure.accuracy_percent:.1f}",
                f"{figure.auc:.3f}",
                "" if figure.fooling_percent is None else f"{figure.fooling_percent:.1f}",
            )
            for figure in published_attacks.attacked_of(model)
        ]
        title = f"{model} under attack (table {published_attacks.TABLES[model]})"
        console.print(_figures(title, ("images", "accuracy, %", "AUROC", "fooling rate, %"), rows))
        console.print()
    if attacked:
        by_defence = [
            (defence, *(f"{accuracy[m]:.1f}" if m in accuracy else "" for m in attacked))
            for defence, accuracy in published_attacks.defended().items()
        ]
        console.print(_figures("accuracy by defence, percent (table 5)", ("defence", *attacked), by_defence))
        console.print(
            "None: clean images. All others: PGD, ε = 4/255, 4 steps; Attack: without a defence.", style="dim"
        )
        console.print()
        for words in (
            published_attacks.gap_words(attacked[0] if len(attacked) == 1 else ""),
            *_contradictions(attacked),
        ):
            console.print(words, style="dim")
        console.print(f"Source: {published_attacks.PAPER}, tables 1, 2 and 5.", style="dim")


def _contradictions(models: Sequence[str]) -> list[str]:
    contradictions = published_attacks.CONTRADICTION
    return [f"{name}: {contradictions[name]}" for name in models if name in contradictions]


def _artefacts(model: str) -> Table:
    after = {figure.relation: figure.after for figure in retraining.label_figures() if figure.model == model}
    rows = [
        (
            figure.relation,
            f"{figure.accuracy:.3f}",
            f"{figure.kappa:.3f}",
            f"{figure.f1:.3f}",
            f"{after[figure.relation]:.3f}" if figure.relation in after else "",
        )
        for figure in published_labels.scores()
        if figure.model == model
    ]
    means = [figure for figure in retraining.label_figures() if figure.model == model and figure.relation == AVERAGE]
    rows += [("average_with_original", f"{figure.before:.3f}", "", "", f"{figure.after:.3f}") for figure in means]
    return _figures(model, ("relation", "accuracy", "κ", "F1", "accuracy, trained further"), rows)


def _figures(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(
        title=title, title_justify="left", box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        # rich truncates columns that may shrink, which would give wrong figures
        table.add_column(head, justify="right", no_wrap=True, min_width=_FIGURE)
    for row in rows:
        table.add_row(*row)
    return table

"""Report sections on classifiers: accuracy, confusion, flips over frames, film strips, published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.report.charts import figures
from medtest.report.charts.heat import WARN, percent, rows_of
from medtest.report.pages.material import SampleStrip, sample_index, strips
from medtest.report.pages.words import p_words, with_interval
from medtest.results.attacks.checking.checks import Warn
from medtest.results.published import published_labels
from medtest.results.published.retraining import ORIGINAL, WITHOUT
from medtest.results.rates.efr import ALL, OVERALL
from medtest.tasks.classify.report.attack_labels import attack_labels
from medtest.tasks.classify.report.film_strips import FILMS
from medtest.tasks.classify.report.heat import severity_heat
from medtest.tasks.classify.tables.classification import WITH
from medtest.tasks.classify.tables.flips import AUTO, FIRST, PREVIOUS, RELEASED
from medtest.tasks.classify.tables.results import LabelTables

_MOST_FILMS = 8
_AVERAGES = {WITHOUT: "average without the original", WITH: "average with the original"}


def shown_films(folder: Path) -> list[SampleStrip]:
    """Return the film strips in a folder, in the form of the page."""
    return strips(folder, sample_index(folder, FILMS.index)[:_MOST_FILMS])


def label_page(
    tables: LabelTables,
    *,
    relations: Mapping[str, str] | None = None,
    films: Sequence[Any] = (),
    warn: Warn | None = None,
) -> dict[str, Any]:
    """Return the sections of a classifier.

    Args:
        tables: Tables of the classifier.
        relations: Relation ids, each with the name of its part, for published figures.
        films: Film strips from :func:`medtest.report.pages.material.strips`.
        warn: Function that gives the checks that an attack fails at a severity.
    """
    return {
        "phantom": tables.phantom,
        "multi": tables.classes.multi,
        "accuracy": _accuracy(tables, relations or {}, warn),
        "confusion": _confusions(tables),
        "classes": _classes(tables),
        "flips": _flips(tables),
        "flip_heat": severity_heat(tables),
        "flip_curves": _flip_curves(tables),
        "errors": _corruption_errors(tables),
        "attack_labels": attack_labels(tables.attack_labels),
        "films": [_film(*strip) for strip in films],
        "reference": tables.reference,
    }


def _accuracy(tables: LabelTables, relations: Mapping[str, str], warn: Warn | None) -> dict[str, Any]:
    """Return accuracy and related measures by relation, over all data sets and severities, with published figures."""
    models = published_labels.FAMILIES.values() if set(tables.classes.names) == set(CAPSULE.names) else ()
    names = ("accuracy", "label_share", "auroc", "f1") if tables.classes.multi else ("accuracy", "kappa", "f1")
    heads = {"accuracy": "accuracy", "kappa": "Cohen's κ", "f1": "weighted F1", "auroc": "mean AUROC"}
    heads |= {"label_share": "right decisions"} | ({"accuracy": "all labels right"} if tables.classes.multi else {})
    rows = []
    for row in rows_of(tables.classification, dataset=ALL, severity=ALL):
        relation = str(row["relation"])
        part = relations.get(relation, relation)
        rows.append(
            {
                "name": _AVERAGES.get(relation, relation.replace("_", " ")),
                "warn": WARN if warn is not None and warn(relation, ALL) else "",
                "sum": relation == WITHOUT,
                "cases": f"{row['cases']:,}",
                "cells": [with_interval(row, name) for name in names],
                "fall": with_interval(row, "fall", signed=True),
                "p": p_words(row["p_holm"]),
                "changed": percent(row["efr_source_percent"]),
                "wrong": percent(row["efr_truth_percent"]),
                "out": f"{row['errors']:,} / {row['skipped']:,}",
                "published": [_published(model, part) for model in models],
            }
        )
    return {
        "heads": [heads[name] for name in names],
        "rows": rows,
        "models": list(models),
        "published_words": _slides_words() if models else "",
    }


def _published(model: str, relation: str) -> str:
    scores = published_labels.scores_of(model, relation)
    return "" if scores is None else f"{scores.accuracy:.3f} / {scores.kappa:.3f} / {scores.f1:.3f}"


def _slides_words() -> str:
    falls = published_labels.STATED_FALLS
    return (
        f"Published: accuracy, Cohen's κ and F1 ({published_labels.SLIDES}); real frames, other parameters. The slides "
        f"state maximum falls of accuracy of {falls['AGDN']} (AGDN) and {falls['DSI-Net']} (DSI-Net); their own table "
        "gives 0.361 and 0.212. Their average here excludes the original."
    )


def _confusions(tables: LabelTables) -> list[Any]:
    """Return a confusion matrix for the sources and each relation."""
    rows = rows_of(tables.confusion, dataset=ALL)
    names = list(tables.classes.names)
    panels = []
    for relation in dict.fromkeys(str(row["relation"]) for row in rows):
        cells = {(row["expected"], row["answered"]): int(row["cases"]) for row in rows if row["relation"] == relation}
        counts = [[cells.get((i, j), 0) for j in names] for i in names]
        if any(any(row) for row in counts):
            panels.append(figures.confusion_panel(relation.replace("_", " "), names, counts))
    return panels


def _classes(tables: LabelTables) -> list[dict[str, Any]]:
    """Return each class on the sources and under the relation with its lowest recall."""
    rows = rows_of(tables.per_class, dataset=ALL)
    shown = []
    for name in tables.classes.names:
        by_relation = {str(row["relation"]): row for row in rows if row["class"] == name}
        original = by_relation.pop(ORIGINAL, None)
        recalls = [(row["recall"], relation) for relation, row in by_relation.items() if row["recall"] == row["recall"]]
        worst = min(recalls, default=None)
        shown.append(
            {
                "name": name.replace("_", " "),
                "positives": "" if original is None else f"{original['positives']:,}",
                "recall": "" if original is None else with_interval(original, "recall"),
                "auroc": "" if original is None else with_interval(original, "auroc"),
                "worst": "" if worst is None else f"{worst[0]:.3f} ({worst[1].replace('_', ' ')})",
            }
        )
    return shown


def _flips(tables: LabelTables) -> dict[str, Any] | None:
    """Return flip probabilities by type, with accuracy and published figures."""
    if tables.flips.empty:
        return None
    right = {row["relation"]: row for row in rows_of(tables.classification, dataset=ALL, severity=ALL)}
    right[OVERALL] = right.get(WITHOUT, {})
    rules = [rule for rule in (PREVIOUS, FIRST, RELEASED) if rule in set(tables.flips["rule"])]
    others = {(row["relation"], row["rule"]): row for row in rows_of(tables.flips, dataset=ALL, severity=ALL)}
    rows = []
    for row in rows_of(tables.flips, dataset=ALL, severity=ALL, rule=AUTO):
        relation = str(row["relation"])
        rows.append(
            {
                "name": "mean of the types" if relation == OVERALL else relation.replace("_", " "),
                "sum": relation == OVERALL,
                "fp": _share(row),
                "others": [_other(others.get((relation, rule))) for rule in rules],
                "rfp": "" if row["rfp"] != row["rfp"] else f"{row['rfp']:.2f}",
                "accuracy": with_interval(right.get(relation, {}), "accuracy"),
                "sequences": f"{row['sequences']:,} \N{MULTIPLICATION SIGN} {row['frames']} frames",
                "out": f"{row['errors']:,} / {row['skipped']:,}",
            }
        )
    names = {PREVIOUS: "previous frame", FIRST: "first frame", RELEASED: "as released, undivided"}
    return {"rows": rows, "rules": [names[rule] for rule in rules], "published": _benchmark(tables)}


def _share(row: Mapping[Any, Any]) -> str:
    if row["fp"] != row["fp"]:
        return "none"
    return f"{100 * row['fp']:.2f} % ({100 * row['ci_low']:.2f} to {100 * row['ci_high']:.2f})"


def _other(row: Mapping[Any, Any] | None) -> str:
    if row is None or row["fp"] != row["fp"]:
        return ""
    return f"{row['fp']:.3f}" if row["rule"] == RELEASED else f"{100 * row['fp']:.2f} %"


def _benchmark(tables: LabelTables) -> dict[str, Any]:
    """Return the published flip probabilities on the same kind of images."""
    kinds = {DERMOSCOPY.names: "IPMI2019-AttnMel", FUNDUS.names: "Inception v3", CHEST.names: "CheXNet"}
    model = next((model for names, model in kinds.items() if set(names) == set(tables.classes.names)), "")
    flips = next((flips for flips in published_labels.flips() if flips.model == model), None)
    if flips is None:
        return {"words": "", "rows": []}
    words = (
        f"{published_labels.PAPER}, table 3: {flips.model} {flips.percent:.2f} %, after adversarial training "
        f"{flips.defended_percent:.2f} %; real images, and sequences stored as lossy video."
    )
    if model == "CheXNet":
        words += (
            " The paper's text gives this figure as that of the type Scale alone, and its code does not divide the "
            "flips of several labels by the comparisons, so the value can exceed 100 %: only the column as released "
            "is comparable."
        )
    rows = []
    if model == "IPMI2019-AttnMel":
        rows = [
            {"name": r.model, "rfp": f"{r.rfp:.2f}", "accuracy": f"{r.accuracy_percent:.2f} %"}
            for r in published_labels.relative()
        ]
    return {"words": words, "rows": rows}


def _flip_curves(tables: LabelTables) -> list[Any]:
    """Return one panel for each type: the share of sequences that flip at each frame, and accuracy."""
    rows = rows_of(tables.flip_frames, dataset=ALL, severity=ALL)
    panels = []
    for relation in dict.fromkeys(str(row["relation"]) for row in rows):
        selected = [row for row in rows if row["relation"] == relation]
        flips = [
            figures.Point(x=float(row["frame"]), y=row["fp"], low=row["ci_low"], high=row["ci_high"])
            for row in selected
            if row["fp"] == row["fp"]
        ]
        right = [figures.Point(x=float(row["frame"]), y=row["accuracy"]) for row in selected if row["accuracy"] >= 0]
        curves = [figures.Curve(name="flipped", points=tuple(flips), colour=figures.VERMILION)] if flips else []
        if right:
            curves.append(figures.Curve(name="accuracy", points=tuple(right), colour=figures.BLUE))
        if flips:
            panels.append(
                figures.curve_panel(relation.replace("_", " "), curves, x_name="frame", y_name="share of sequences")
            )
    return panels


def _corruption_errors(tables: LabelTables) -> list[dict[str, Any]]:
    rows = []
    for row in rows_of(tables.corruption_error, dataset=ALL):
        relation = str(row["relation"])
        rows.append(
            {
                "name": "mean of the types" if relation == OVERALL else relation.replace("_", " "),
                "sum": relation == OVERALL,
                "error": with_interval(row, "error"),
                "source": f"{row['source_error']:.3f}" if row["source_error"] == row["source_error"] else "",
                "ce": f"{row['ce']:.3f}" if row["ce"] == row["ce"] else "",
                "relative": f"{row['relative_ce']:.3f}" if row["relative_ce"] == row["relative_ce"] else "",
            }
        )
    return rows


def _film(facts: Mapping[str, Any], picture: Mapping[str, Any]) -> dict[str, Any]:
    frames: Sequence[Mapping[str, Any]] = facts.get("frames") or ()
    answers = [str(frame.get("label") or "none") if frame.get("label") is not None else "no answer" for frame in frames]
    return {
        "relation": str(facts.get("relation", "")).replace("_", " "),
        "address": str(facts.get("address", "")),
        "alt": "frame by frame: " + ", ".join(answer.replace("|", " and ") for answer in answers),
        **picture,
    }

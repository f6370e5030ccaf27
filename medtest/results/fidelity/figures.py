"""Table ``fidelity.csv``: distances, inception score and R-precision of every relation and finding.

Distances are to a folder of real pictures if one is configured, otherwise to the pictures of the sources' prompts;
``unchanged`` then shows the distance between two sets of answers to the same prompts, and smaller distances of
relations are not meaningful. A figure that is not computed with its standard network has a different name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import SOURCE, UNCHANGED
from medtest.core.deferred import pd
from medtest.core.errors import MedtestError
from medtest.readers.embeddings.choice import embedder_of
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL
from medtest.results.cube.rates import decimals
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.embedded import EmbeddedRun, text_name
from medtest.results.fidelity.features import Floats, Integers
from medtest.results.fidelity.measures.estimates import Estimate
from medtest.results.fidelity.measures.frechet import FrechetReference, frechet
from medtest.results.fidelity.measures.inception_score import SPLITS, fit_temperature, inception_score
from medtest.results.fidelity.measures.kernel_distance import kernel_distance
from medtest.results.fidelity.measures.retrieval import DISTRACTORS, cosine, r_precision
from medtest.results.fidelity.measures.shares import shares_of
from medtest.results.fidelity.settings import FigureSettings
from medtest.results.fidelity.structure import structural

COLUMNS = columns_in(__file__, "fidelity")
STRUCTURAL = "RP-struct"
SOURCES, REAL = "sources", "real"
_NO_NET = "structure"
LEAST_ORDERED = 20
"""Smallest number of pictures for the figures of a finding."""
_SPLIT_FROM = 100
"""Smallest number of pictures for which scores are means over splits; splits of fewer would be nearly empty."""


def fidelity_table(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None) -> pd.DataFrame:
    """Return every figure of every data set, relation and finding.

    Args:
        cases: Cases of one system.
        settings: Settings of the figures.
        embedded: Features of the pictures; None to compute only figures that need no features.

    Returns:
        A table with exactly :data:`COLUMNS`; R-precision in percent, the others in their own units.
    """
    rows = [] if embedded is None or not embedded.pictures else list(_distances(cases, settings, embedded))
    rows += _precision(cases, settings, embedded)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    order = {name: n for n, name in enumerate((*cases.relations, ALL))}
    sets = {name: n for n, name in enumerate(cases.groups)}
    key = {"dataset": sets, "relation": order}
    return table.sort_values(
        ["dataset", "relation"], key=lambda column: column.map(key[str(column.name)]), kind="stable", ignore_index=True
    )


# --- distances and scores --------------------------------------------------------------------------------------------


def _distances(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun) -> Iterator[dict[str, Any]]:
    temperature = _temperature(settings, embedded)
    real = embedded.others(embedded.real) if embedded.real else None
    available = embedded.rows >= 0
    for group in cases.groups:
        base = np.flatnonzero(cases.chosen(group, SOURCE) & available)
        features = embedded.of(base) if real is None else real
        clusters = None if real is not None else list(cases.clusters[base])
        reference = FrechetReference(features, clusters) if features.count >= 2 else None
        for relation in cases.relations:
            compared = reference if real is not None or relation != SOURCE else None
            for finding in cases.findings(relation):
                selected = np.flatnonzero(cases.chosen(group, relation, finding) & available)
                for row in _set_rows(cases, settings, embedded, selected, compared, temperature):
                    to_real = REAL if row["reference"] and real is not None else row["reference"]
                    yield {**row, "dataset": group, "relation": relation, "finding": finding, "reference": to_real}
        yield from _ordered_distances(cases, settings, embedded, group, temperature)


def _ordered_distances(
    cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun, group: str, temperature: float
) -> Iterator[dict[str, Any]]:
    """Yield the figures of the pictures that order each finding, over all changed prompts together.

    The reference are real pictures in a folder of the finding's name, else the pictures of source prompts that order
    it. Findings with fewer than :data:`LEAST_ORDERED` pictures on either side have none.
    """
    available = embedded.rows >= 0
    followup = ~np.isin(cases.texts("relation"), (SOURCE, UNCHANGED))
    inside = available if group == ALL else available & (cases.texts("dataset") == group)
    for finding, ordering in cases.ordering.items():
        selected = np.flatnonzero(inside & ordering & followup)
        base = np.flatnonzero(inside & ordering & (cases.texts("relation") == SOURCE))
        real = embedded.real_of(finding)
        features = embedded.others(real) if real else embedded.of(base)
        if min(len(selected), features.count) < LEAST_ORDERED:
            continue
        reference = FrechetReference(features, None if real else list(cases.clusters[base]))
        for row in _set_rows(cases, settings, embedded, selected, reference, temperature):
            to_real = REAL if row["reference"] and real else row["reference"]
            yield {**row, "dataset": group, "relation": ALL, "finding": finding, "reference": to_real}


def _set_rows(
    cases: DrawnCases,
    settings: FigureSettings,
    embedded: EmbeddedRun,
    selected: Integers,
    compared: FrechetReference | None,
    temperature: float,
) -> Iterator[dict[str, Any]]:
    """Yield the figures of one set of pictures: distances to a reference if there is one, and the score."""
    if not selected.size:
        return
    names = settings.embedder.figures
    clusters_of_drawn, drawn = list(cases.clusters[selected]), embedded.of(selected)
    estimates: list[tuple[str, Estimate]] = []
    if compared is not None:
        estimates.append((names.frechet, frechet(drawn, compared, clusters_of_drawn)))
        kernel = kernel_distance(
            drawn, compared.features, clusters=clusters_of_drawn, reference_clusters=list(compared.clusters)
        )
        estimates.append((names.kernel, kernel))
    scores = embedded.of(selected, scores=True)
    splits = SPLITS if scores.count >= _SPLIT_FROM else 1
    score = inception_score(scores, temperature=temperature, splits=splits, clusters=clusters_of_drawn)
    for name, estimate in (*estimates, (names.score, score)):
        to = compared if name != names.score else None
        yield {
            **_row(name, estimate),
            "reference": "" if to is None else SOURCES,
            "reference_pictures": None if to is None else to.features.count,
            "net": settings.embedder.name,
            "dimension": scores.dimension if to is None else drawn.dimension,
            "temperature": temperature if to is None else None,
        }


def _temperature(settings: FigureSettings, embedded: EmbeddedRun) -> float:
    """Return the temperature of scores: from the settings, else fitted on labelled pictures, else the network's.

    Raises:
        MedtestError: No temperature can be fitted.
    """
    if settings.temperature is not None:
        return settings.temperature
    if embedded.labelled:
        scores = np.concatenate(list(embedded.others(list(embedded.labelled), scores=True).chunks()))
        try:
            return fit_temperature(scores, np.array(list(embedded.labelled.values()), dtype=np.int64))
        except ValueError as error:
            raise MedtestError(f"no temperature can be fitted on the labelled pictures: {error}") from error
    return settings.embedder.temperature or 1.0


def _row(figure: str, estimate: Estimate) -> dict[str, Any]:
    return {
        "figure": figure,
        "value": _rounded(estimate.value),
        "ci_low": _rounded(estimate.low),
        "ci_high": _rounded(estimate.high),
        "ci_method": estimate.method,
        "spread": _rounded(estimate.spread),
        "pictures": estimate.count,
        "clusters": estimate.clusters,
        "captions": "",
        "note": estimate.warning,
    }


def _rounded(value: float) -> float:
    return float(decimals([value])[0])


# --- R-precision -----------------------------------------------------------------------------------------------------


def _precision(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None) -> list[dict[str, Any]]:
    rows = []
    for group in cases.groups:
        won, against = np.full(len(cases), np.nan), np.zeros(len(cases), np.int64)
        encoder: dict[str, Any] = {}
        for relation in cases.relations:
            retrieved = _retrieved(cases, settings, embedded, cases.chosen(group, relation))
            if retrieved is not None:
                chosen, (won[chosen], against[chosen]), encoder = retrieved
        if encoder:
            rows += _precision_rows(cases, group, won, against, encoder, settings)
    return rows


def _retrieved(
    cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None, chosen: NDArray[np.bool_]
) -> tuple[Integers, tuple[Floats, Integers], dict[str, Any]] | None:
    """Retrieve the captions of the pictures of a relation.

    Returns:
        The cases, the result of :func:`r_precision` for them, and the columns of a table that name the encoder; None
        if there are no pictures.
    """
    captioned = np.arange(len(cases)) if settings.captions == "mutated" else cases.origin
    usable = chosen & cases.drawn & (captioned >= 0)
    encoded = embedded if settings.words is not None else None
    if encoded is not None:
        usable &= (encoded.rows >= 0) & (cases.texts("prompt")[captioned] != "")
    else:
        usable &= (cases.texts("scene") != "") & (cases.texts("pool")[captioned] != "")
    rows = np.flatnonzero(usable)
    if not rows.size:
        return None
    prompts = [str(prompt) for prompt in cases.prompts[captioned[rows]]]
    pools = [str(pool) for pool in cases.texts("pool")[captioned[rows]]]
    distinct = dict.fromkeys(zip(prompts, pools, strict=True))
    number = {pair: n for n, pair in enumerate(distinct)}
    own = np.array([number[pair] for pair in zip(prompts, pools, strict=True)], dtype=np.int64)
    if encoded is not None:
        captions = encoded.others([text_name(prompt) for prompt, _ in distinct], net=encoded.words)
        pictures = encoded.of(rows, net=encoded.words)
        net, fits = embedder_of(settings.words or {}), cosine(pictures, captions)
        encoder = {"figure": net.figures.precision, "net": net.name, "dimension": pictures.dimension}
    else:
        scenes, tells = ([str(text) for text in cases.texts(name)[rows]] for name in ("scene", "tells"))
        fits = structural(scenes, tells, [pool for _, pool in distinct])
        encoder = {"figure": STRUCTURAL, "net": _NO_NET, "dimension": None}
    meanings = [_meaning(pool) or prompt for prompt, pool in distinct]
    return rows, r_precision(fits, own, meanings, [cases.addresses[row] for row in rows]), encoder


def _meaning(pool: str) -> str:
    """Return the canonical form of a pool's content; "" if it is empty."""
    if not pool:
        return ""
    value = json.loads(pool)
    entities, triples = value.get("entities", ()), value.get("triples", ())
    if not entities:
        return ""
    triple_names = [[entities[triple[0]][0], triple[1], entities[triple[2]][0]] for triple in triples]
    return json.dumps([sorted(entities, key=str), sorted(triple_names)], sort_keys=True)


def _precision_rows(
    cases: DrawnCases, group: str, won: Floats, against: Integers, encoder: Mapping[str, Any], settings: FigureSettings
) -> list[dict[str, Any]]:
    scored = ~np.isnan(won)
    every = [(relation, finding) for relation in cases.relations for finding in cases.findings(relation)]
    selections = [(key, np.flatnonzero(cases.chosen(group, *key) & scored)) for key in every]
    cells = [(key, rows) for key, rows in selections if rows.size]
    records = []
    shares = shares_of(cases, [(rows, won[rows]) for _, rows in cells])
    for ((relation, finding), rows), share in zip(cells, shares, strict=True):
        fewest = int(against[rows].min())
        note = "" if fewest == DISTRACTORS else f"{fewest} other captions instead of {DISTRACTORS}, which is easier"
        records.append(
            {
                "dataset": group,
                "relation": relation,
                "finding": finding,
                **encoder,
                "value": share["percent"],
                **share,
                "reference": "",
                "captions": settings.captions,
                "distractors": fewest,
                "note": note,
            }
        )
    return records

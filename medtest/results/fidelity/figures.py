"""The table ``fidelity.csv``: distances, inception score and R-precision of every relation, and per finding.

A distance is to a folder of real pictures where one is given, else to the pictures of the sources' prompts: what
``unchanged`` shows then is how far two askings of the same prompts lie apart, and no relation's distance means anything
below that. A figure that is not made with the network it is named after has another name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import SOURCE
from medtest.core.errors import MedtestError
from medtest.readers.embeddings.choice import embedder_of
from medtest.results.columns import columns_in
from medtest.results.cube.rates import decimals
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.embedded import EmbeddedRun, text_name
from medtest.results.fidelity.features import Floats, Integers
from medtest.results.fidelity.measures.estimates import Estimate
from medtest.results.fidelity.measures.frechet import FrechetReference, frechet
from medtest.results.fidelity.measures.inception_score import SPLITS, fit_temperature, inception_score
from medtest.results.fidelity.measures.kernel_distance import kernel_distance
from medtest.results.fidelity.measures.retrieval import DISTRACTORS, Fits, cosine, r_precision
from medtest.results.fidelity.measures.shares import shares_of
from medtest.results.fidelity.settings import FigureSettings
from medtest.results.fidelity.structure import StructuralFit

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "fidelity")
STRUCTURAL = "RP-struct"
SOURCES, REAL = "sources", "real"
_NO_NET = "structure"
_SPLIT_FROM = 100
"""Pictures from which on scores are means over splits: of fewer a split holds next to none, and its score is 1."""


def fidelity_table(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None) -> pd.DataFrame:
    """Return every figure of every data set, relation and finding.

    Args:
        cases: The cases of one system.
        settings: What figures are made with.
        embedded: Features of their pictures; None makes what needs none.

    Returns:
        A table with exactly :data:`COLUMNS`; R-precision in per cent, the others as they are.
    """
    import pandas as pd

    rows = [] if embedded is None or not embedded.pictures else list(_distances(cases, settings, embedded))
    rows += _precision(cases, settings, embedded)
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    order = {name: n for n, name in enumerate(cases.relations)}
    sets = {name: n for n, name in enumerate(cases.groups)}
    key = {"dataset": sets, "relation": order}
    return made.sort_values(
        ["dataset", "relation"], key=lambda column: column.map(key[str(column.name)]), kind="stable", ignore_index=True
    )


# --- distances and scores --------------------------------------------------------------------------------------------


def _distances(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun) -> Iterator[dict[str, Any]]:
    names = settings.embedder.figures
    temperature = _temperature(settings, embedded)
    real = embedded.others(embedded.real) if embedded.real else None
    there = embedded.rows >= 0
    for group in cases.groups:
        base = np.flatnonzero(cases.chosen(group, SOURCE) & there)
        features = embedded.of(base) if real is None else real
        clusters = None if real is not None else list(cases.clusters[base])
        reference = FrechetReference(features, clusters) if features.count >= 2 else None
        for relation in cases.relations:
            compared = reference if real is not None or relation != SOURCE else None
            for finding in cases.findings(relation):
                chosen = np.flatnonzero(cases.chosen(group, relation, finding) & there)
                if not chosen.size:
                    continue
                own, drawn = list(cases.clusters[chosen]), embedded.of(chosen)
                found: list[tuple[str, Estimate]] = []
                if compared is not None:
                    found.append((names.frechet, frechet(drawn, compared, own)))
                    kernel = kernel_distance(
                        drawn, compared.features, clusters=own, reference_clusters=list(compared.clusters)
                    )
                    found.append((names.kernel, kernel))
                scores = embedded.of(chosen, scores=True)
                splits = SPLITS if scores.count >= _SPLIT_FROM else 1
                score = inception_score(scores, temperature=temperature, splits=splits, clusters=own)
                found.append((names.score, score))
                for name, estimate in found:
                    to = compared if name != names.score else None
                    yield {
                        **_row(group, relation, finding, name, estimate),
                        "reference": "" if to is None else SOURCES if real is None else REAL,
                        "reference_pictures": None if to is None else to.features.count,
                        "net": settings.embedder.name,
                        "dimension": scores.dimension if to is None else drawn.dimension,
                        "temperature": temperature if to is None else None,
                    }


def _temperature(settings: FigureSettings, embedded: EmbeddedRun) -> float:
    """Return what scores are divided by: what is given, else fitted on labelled pictures, else the network's own.

    Raises:
        MedtestError: None can be fitted.
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


def _row(group: str, relation: str, finding: str, figure: str, estimate: Estimate) -> dict[str, Any]:
    return {
        "dataset": group,
        "relation": relation,
        "finding": finding,
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asked:
    """Pictures and the captions that they are to find.

    Attributes:
        figure: What it is called.
        net: What encodes.
        rows: int64 N; the cases.
        own: int64 N; the number of each one's caption.
        meanings: What each of M captions means.
        fits: How well pictures fit captions.
        dimension: Numbers of a feature; None where there are none.
    """

    figure: str
    net: str
    rows: Integers
    own: Integers
    meanings: Sequence[str]
    fits: Fits
    dimension: int | None = None


def _precision(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None) -> list[dict[str, Any]]:
    made = []
    for group in cases.groups:
        won, against, asked = np.full(len(cases), np.nan), np.zeros(len(cases), np.int64), None
        for relation in cases.relations:
            here = _asked(cases, settings, embedded, cases.chosen(group, relation))
            if here is not None:
                asked = here
                names = [cases.addresses[row] for row in here.rows]
                won[here.rows], against[here.rows] = r_precision(here.fits, here.own, here.meanings, names)
        if asked is not None:
            made += _precision_rows(cases, group, won, against, asked, settings)
    return made


def _asked(
    cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None, chosen: NDArray[np.bool_]
) -> _Asked | None:
    """Return the pictures of a relation with the captions they are to find; None where nothing can be asked."""
    captioned = np.arange(len(cases)) if settings.captions == "mutated" else cases.origin
    known = chosen & cases.drawn & (captioned >= 0)
    words = settings.words is not None and embedded is not None
    if words and embedded is not None:
        known &= (embedded.rows >= 0) & (cases.texts("prompt")[captioned] != "")
    else:
        known &= (cases.texts("scene") != "") & (cases.texts("pool")[captioned] != "")
    rows = np.flatnonzero(known)
    if not rows.size:
        return None
    prompts = [str(one) for one in cases.prompts[captioned[rows]]]
    pools = [str(one) for one in cases.texts("pool")[captioned[rows]]]
    listed = dict.fromkeys(zip(prompts, pools, strict=True))
    number = {one: n for n, one in enumerate(listed)}
    own = np.array([number[one] for one in zip(prompts, pools, strict=True)], dtype=np.int64)
    meanings = [_meaning(pool) or prompt for prompt, pool in listed]
    if words and embedded is not None:
        captions = embedded.others([text_name(prompt) for prompt, _ in listed], net=embedded.words)
        pictures = embedded.of(rows, net=embedded.words)
        net = embedder_of(settings.words or {})
        return _Asked(
            figure=net.figures.precision,
            net=net.name,
            rows=rows,
            own=own,
            meanings=meanings,
            fits=cosine(pictures, captions),
            dimension=pictures.dimension,
        )
    scenes, tells = ([str(one) for one in cases.texts(name)[rows]] for name in ("scene", "tells"))
    fits = StructuralFit(scenes, tells, [pool for _, pool in listed]).fits()
    return _Asked(figure=STRUCTURAL, net=_NO_NET, rows=rows, own=own, meanings=meanings, fits=fits)


def _meaning(pool: str) -> str:
    """Return what a pool says in one order, "" where it says nothing."""
    if not pool:
        return ""
    value = json.loads(pool)
    entities, triples = value.get("entities", ()), value.get("triples", ())
    if not entities:
        return ""
    named = [[entities[one[0]][0], one[1], entities[one[2]][0]] for one in triples]
    return json.dumps([sorted(entities, key=str), sorted(named)], sort_keys=True)


def _precision_rows(
    cases: DrawnCases, group: str, won: Floats, against: Integers, asked: _Asked, settings: FigureSettings
) -> list[dict[str, Any]]:
    judged = ~np.isnan(won)
    every = [(relation, finding) for relation in cases.relations for finding in cases.findings(relation)]
    found = [(one, np.flatnonzero(cases.chosen(group, *one) & judged)) for one in every]
    cells = [(one, rows) for one, rows in found if rows.size]
    made = []
    shares = shares_of(cases, [(rows, won[rows]) for _, rows in cells])
    for ((relation, finding), rows), share in zip(cells, shares, strict=True):
        fewest = int(against[rows].min())
        note = "" if fewest == DISTRACTORS else f"{fewest} other captions, not {DISTRACTORS}: it is easier"
        made.append(
            {
                "dataset": group,
                "relation": relation,
                "finding": finding,
                "figure": asked.figure,
                "value": _rounded(100 * share.rate),
                "ci_low": _rounded(100 * share.low),
                "ci_high": _rounded(100 * share.high),
                "ci_method": share.method,
                "pictures": len(rows),
                "clusters": share.clusters,
                "reference": "",
                "net": asked.net,
                "dimension": asked.dimension,
                "captions": settings.captions,
                "distractors": fewest,
                "note": note,
            }
        )
    return made

"""Table ``geneval.csv``: GenEval's rule by tag, for seeds that have one (stratum ``tag``)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from medtest.core.deferred import pd
from medtest.core.scenes import Pool, Scene, Tells
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.cube.rates import MEAN, decimals, rates, table
from medtest.results.fidelity.cases import PICTURE, TAG, DrawnCases
from medtest.results.fidelity.embedded import EmbeddedRun
from medtest.results.fidelity.geneval.rule import TAGS, GenEvalRule, ShownPicture, shown
from medtest.results.fidelity.measures.shares import places_of
from medtest.results.fidelity.settings import FigureSettings

COLUMNS = columns_in(__file__, "geneval")


def geneval_table(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None = None) -> pd.DataFrame:
    """Return the share of pictures that show their prompt, by relation and tag.

    ``overall`` is the mean over the tags, as in GenEval. A case without a picture is not correct; a case that the
    reader cannot judge, or that the rule does not cover, is excluded from rates and counted separately.

    Args:
        cases: Cases of one system.
        settings: Settings with the smallest scores of objects that count.
        embedded: Gives the shapes of pictures; without it they are assumed to be square.

    Returns:
        A table with exactly :data:`COLUMNS`; empty if no seed has a tag.
    """
    tags = [tag for tag in TAGS if (cases.texts(TAG) == tag).any()]
    rows = np.flatnonzero(np.isin(cases.texts(TAG).astype(str), tags) & (cases.texts("verdict") != "ERROR"))
    if not rows.size:
        return pd.DataFrame(columns=list(COLUMNS))
    rule = rule_of(settings)
    drawn = cases.drawn[rows]
    names = dict.fromkeys(str(name) for name in cases.texts(PICTURE)[rows[drawn]])
    aspects = {} if embedded is None else embedded.aspects(list(names))
    results = [judged(cases, int(row), str(cases.texts(TAG)[row]), rule, aspects) for row in rows]
    judgeable = np.array([result.correct is not None for result in results])
    correct = np.array([bool(result.correct) for result in results])
    relations = cases.relations
    tag = np.array([tags.index(name) for name in cases.texts(TAG)[rows]], dtype=np.int64)
    relation = np.array([relations.index(name) for name in cases.texts("relation")[rows]], dtype=np.int64)
    place = places_of(cases, rows, tag * len(relations) + relation, (len(tags), len(relations)))
    shares = rates(place, correct, judgeable, pools=(MEAN,), independent=True)
    untold = rates(place, ~judgeable, np.ones(len(rows)), pools=(MEAN,)).part
    without = rates(place, ~drawn, np.ones(len(rows)), pools=(MEAN,)).part
    datasets = [*dict.fromkeys(sorted(map(str, cases.texts("dataset")[rows]))), ALL]
    keep = (shares.whole + untold) > 0
    keep[..., -1] = False
    if len(datasets) == 2:
        keep[-1] = False  # a single data set needs no row for all
    labels = (
        {"dataset": datasets},
        {"tag": [*tags, OVERALL]},
        {"relation": [*relations, ALL]},
    )
    columns = {
        "cases": shares.whole.astype(np.int64),
        "correct": shares.part.astype(np.int64),
        "percent": decimals(100 * shares.rate),
        "ci_low": decimals(100 * shares.low),
        "ci_high": decimals(100 * shares.high),
        "ci_method": shares.method,
        "untold": untold.astype(np.int64),
        "without_picture": without.astype(np.int64),
    }
    frame = table(labels, columns, keep)
    order = {name: n for n, name in enumerate(relations)}
    frame = frame.sort_values(["dataset", "relation"], key=lambda c: c.map(order) if c.name == "relation" else c)
    return frame.reset_index(drop=True)[list(COLUMNS)]


def rule_of(settings: FigureSettings) -> GenEvalRule:
    """Return the rule with the thresholds of the settings."""
    return GenEvalRule(score=settings.geneval_score, counting_score=settings.geneval_counting_score)


def judged(cases: DrawnCases, row: int, tag: str, rule: GenEvalRule, aspects: Mapping[str, float]) -> ShownPicture:
    """Judge the picture of a case by its own pool.

    Args:
        cases: Cases of one system.
        row: Index of the case.
        tag: Kind of the prompt, one of :data:`TAGS`.
        rule: Parameters of the rule.
        aspects: Width / height by the names of pictures; pictures without one are assumed to be square.
    """
    if not cases.drawn[row]:
        return ShownPicture(False, ("no picture",))
    scene, pool = scene_of(cases, row), pool_of_case(cases, row)
    if pool is None:
        return ShownPicture(None, ("its prompt is unknown",))
    if scene is None:
        return ShownPicture(None, ("no reader has seen it",))
    return shown(scene, pool, tag, rule=rule, aspect=aspects.get(str(cases.texts(PICTURE)[row]), 1.0))


def scene_of(cases: DrawnCases, row: int) -> Scene | None:
    """Return the scene that the reader detected in the picture of a case; None without one."""
    scene, tells = (str(cases.texts(name)[row]) for name in ("scene", "tells"))
    return Scene.of_json(json.loads(scene), Tells.of_json(json.loads(tells)) if tells else Tells()) if scene else None


def pool_of_case(cases: DrawnCases, row: int) -> Pool | None:
    """Return the pool of a case's own prompt; None if the record has none."""
    text = str(cases.texts("pool")[row])
    return Pool.of_json(json.loads(text)) if text else None

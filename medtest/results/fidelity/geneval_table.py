"""The table ``geneval.csv``: GenEval's rule by tag, for seeds that have one (stratum ``tag``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from medtest.core.scenes import Pool, Scene, Tells
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.cube.rates import MEAN, decimals, rates, table
from medtest.results.fidelity.cases import PICTURE, TAG, DrawnCases
from medtest.results.fidelity.embedded import EmbeddedRun
from medtest.results.fidelity.geneval import TAGS, GenEvalRule, ShownPicture, shown
from medtest.results.fidelity.measures.shares import places_of
from medtest.results.fidelity.settings import FigureSettings

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "geneval")


def geneval_table(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None = None) -> pd.DataFrame:
    """Return how many pictures show what their prompts say, by relation and tag.

    ``overall`` is the mean over the tags, as GenEval's own score. A case that no picture was drawn for is not correct;
    one that the reader cannot judge, or of which the rule does not speak, is in no denominator and is counted.

    Args:
        cases: The cases of one system.
        settings: Below which score things do not count.
        embedded: Knows the pictures' shapes; without it they are taken for squares.

    Returns:
        A table with exactly :data:`COLUMNS`; without a row where no seed has a tag.
    """
    import pandas as pd

    tags = [tag for tag in TAGS if (cases.texts(TAG) == tag).any()]
    rows = np.flatnonzero(np.isin(cases.texts(TAG).astype(str), tags) & (cases.texts("verdict") != "ERROR"))
    if not rows.size:
        return pd.DataFrame(columns=list(COLUMNS))
    rule = GenEvalRule(score=settings.geneval_score, counting_score=settings.geneval_counting_score)
    drawn = cases.drawn[rows]
    names = dict.fromkeys(str(one) for one in cases.texts(PICTURE)[rows[drawn]])
    aspects = {} if embedded is None else embedded.aspects(list(names))
    judged = [_shown(cases, int(row), rule, aspects) for row in rows]
    told = np.array([one.correct is not None for one in judged])
    correct = np.array([bool(one.correct) for one in judged])
    relations = cases.relations
    tag = np.array([tags.index(one) for one in cases.texts(TAG)[rows]], dtype=np.int64)
    relation = np.array([relations.index(one) for one in cases.texts("relation")[rows]], dtype=np.int64)
    place = places_of(cases, rows, tag * len(relations) + relation, (len(tags), len(relations)))
    found = rates(place, correct, told, pools=(MEAN,), independent=True)
    untold = rates(place, ~told, np.ones(len(rows)), pools=(MEAN,)).part
    without = rates(place, ~drawn, np.ones(len(rows)), pools=(MEAN,)).part
    datasets = [*dict.fromkeys(sorted(map(str, cases.texts("dataset")[rows]))), ALL]
    keep = (found.whole + untold) > 0
    keep[..., -1] = False
    if len(datasets) == 2:
        keep[-1] = False  # all of one data set is that data set
    named = (
        {"dataset": datasets},
        {"tag": [*tags, OVERALL]},
        {"relation": [*relations, ALL]},
    )
    columns = {
        "cases": found.whole.astype(np.int64),
        "correct": found.part.astype(np.int64),
        "percent": decimals(100 * found.rate),
        "ci_low": decimals(100 * found.low),
        "ci_high": decimals(100 * found.high),
        "ci_method": found.method,
        "untold": untold.astype(np.int64),
        "without_picture": without.astype(np.int64),
    }
    made = table(named, columns, keep)
    order = {name: n for n, name in enumerate(relations)}
    made = made.sort_values(["dataset", "relation"], key=lambda c: c.map(order) if c.name == "relation" else c)
    return made.reset_index(drop=True)[list(COLUMNS)]


def _shown(cases: DrawnCases, row: int, rule: GenEvalRule, aspects: dict[str, float]) -> ShownPicture:
    if not cases.drawn[row]:
        return ShownPicture(False, "no picture")
    texts = {name: str(cases.texts(name)[row]) for name in ("pool", "scene", "tells", TAG, PICTURE)}
    if not texts["pool"] or not texts["scene"]:
        return ShownPicture(None, "nobody looked at it" if texts["pool"] else "its pool is not known")
    tells = Tells.of_json(json.loads(texts["tells"])) if texts["tells"] else Tells()
    scene = Scene.of_json(json.loads(texts["scene"]), tells)
    pool = Pool.of_json(json.loads(texts["pool"]))
    return shown(scene, pool, texts[TAG], rule=rule, aspect=aspects.get(texts[PICTURE], 1.0))

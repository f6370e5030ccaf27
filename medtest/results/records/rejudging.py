"""Records judged anew by an oracle under other settings than they were made with: for views, from records alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from medtest.errors import MedtestError, OutputProblem
from medtest.oracles.base import Oracle
from medtest.plugins import parts
from medtest.results.records.records_io import Records
from medtest.suite.library import deep_merge
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd


_SUITE_FILE = "suite.yaml"
_SHOWN = ("oracle", "primary", "scores", "thresholds", "against")
"""Keys of a suite's ``oracles`` that are no settings of the oracle."""


def oracle_in(folder: Path) -> Oracle:
    """Return the oracle that the ``suite.yaml`` of a run's folder, or of a view in it, describes.

    Args:
        folder: Where ``suite.yaml`` lies.

    Raises:
        OutputProblem: It cannot be read, or names an oracle that is not installed.
    """
    try:
        content = yaml.safe_load((folder / _SUITE_FILE).read_text(encoding="utf-8"))
        block = content["oracles"]
        info = parts("oracles")[str(block["oracle"])]
        given = {name: value for name, value in block.items() if name not in _SHOWN}
        defaults = {name: value for name, value in dict(info.defaults).items() if name not in _SHOWN}
        loaded = info.load()
        oracle: Oracle = loaded(loaded.Settings(**deep_merge(defaults, given)), primary=Criterion(**block["primary"]))
        oracle.relations = {name: str(one["relation"]) for name, one in content["relations"].items()}
        oracle.effects = _effects(oracle.relations)
    except OSError as error:
        raise OutputProblem(f"{folder.name}/{_SUITE_FILE} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise OutputProblem(f"{folder.name}/{_SUITE_FILE} describes no oracle that is installed: {error!r}") from error
    return oracle


def _effects(relations: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return what relations say that they do to a picture, by id; those that cannot be loaded here are left out."""
    there = parts("relations")
    found: dict[str, frozenset[str]] = {}
    for name, part in relations.items():
        with suppress(KeyError, MedtestError):
            found[name] = there[part].load().effects
    return found


def rejudged_records(records: Records, oracle: Oracle) -> Records:
    """Return records as an oracle judges them; those of an oracle whose scores depend on no setting as they are.

    Args:
        records: Records with the oracle's scores and texts.
        oracle: The oracle, under the settings that are wanted.
    """
    texts_there = set(oracle.texts) <= set(records.followups.columns)
    if not oracle.judging() or not texts_there:
        return records
    return Records(
        followups=_frame(records.followups, oracle),
        sources=_frame(records.sources, oracle),
        classes=records.classes,
    )


def _frame(frame: pd.DataFrame, oracle: Oracle) -> pd.DataFrame:
    if frame.empty:
        return frame
    scores = [*oracle.scores, *(f"self_{s}" for s in oracle.self_scores), *(f"source_{s}" for s in oracle.scores)]
    names = [
        name for name in (*scores, *oracle.texts, "relation", "item", "verdict", "reason") if name in frame.columns
    ]
    plain = frame[names].astype(object)
    rows = plain.where(plain.notna(), None).to_dict("records")
    made = [{**row, **oracle.judged_again({str(key): value for key, value in row.items()})} for row in rows]
    new = frame.copy()
    for name in names:
        if name in scores:
            new[name] = [float("nan") if row[name] is None else float(row[name]) for row in made]
        elif name not in ("relation", "item"):
            new[name] = [row[name] for row in made]
    return new

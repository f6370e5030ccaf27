"""How often a system refused, what could not be read, and what its answers cost.

A server's own refusal and its content filter are refusals beside those in words; answers that were cut off and
malformed replies are unparsed. All are counted apart here, whatever became of them in other tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Verdict
from medtest.results.answer_records import JUDGE, READ_BY, RULES, SCHEMA, STATE, answered, independent, read_by
from medtest.results.answer_rows import SOURCE, UNCHANGED
from medtest.results.cube.intervals import FEW_CLUSTERS, percentile_ends, wilson_of_rate
from medtest.results.cube.resampling import Resampler
from medtest.results.records_io import Records

if TYPE_CHECKING:
    import pandas as pd

ALL, OVERALL = "all", "overall"

COUNTS = (
    "asked",
    "value",
    "not_relevant",
    "refusal",
    "by_filter",
    "refused_after_answer",
    "unparsed",
    "cut_off",
    "malformed",
    "by_schema",
    "by_rules",
    "by_judge",
    "errors",
)
"""Columns that count answers."""

STATE_COLUMNS = (
    "item",
    "relation",
    *COUNTS,
    "refusal_rate",
    "ci_low",
    "ci_high",
)
COST_COLUMNS = (
    "by",
    "name",
    "answers",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "without_cost",
    "seconds_median",
    "seconds_p95",
    "attempts",
)


def state_table(records: Records) -> pd.DataFrame:
    """Return states of answers by question and relation, with exactly :data:`STATE_COLUMNS`.

    ``asked`` are cases with an image, ``errors`` those of them without an answer. ``refusal`` counts all refusals,
    ``by_filter`` those of the server's content filter, ``refused_after_answer`` those whose source was answered.
    ``unparsed`` counts all that could not be read, ``cut_off`` and ``malformed`` among them; ``by_schema``,
    ``by_rules`` and ``by_judge`` say who read the others: they came in the shape that was asked for, words were parsed,
    or a judge read them. Rates are of answers;
    intervals are Wilson's with images counted as cases, of pools (``all``, ``overall``) bootstraps over images unless
    fewer than ten images were refused, or fewer than ten answered. ``overall`` is over relations but ``unchanged`` and
    the source.

    Args:
        records: Records of one system.
    """
    import pandas as pd

    cases = _cases(records)
    image, images = pd.factorize(cases["image"].to_numpy(dtype=object))
    names = ("item", "relation", STATE, "reply", "why", "verdict", READ_BY)
    texts = {name: cases[name].to_numpy(dtype=object) for name in names}
    relations = list(dict.fromkeys(texts["relation"]))
    pooled = ~np.isin(texts["relation"], [SOURCE, UNCHANGED])
    under = {name: texts["relation"] == name for name in relations} | {OVERALL: pooled}
    every = np.ones(len(cases), bool)
    facts = _Facts(
        image=image.astype(np.int64),
        images=len(images),
        resampler=Resampler(len(images), "vqa states"),
        **_marks(texts),
    )
    rows: list[dict[str, object]] = []
    for item in [*dict.fromkeys(texts["item"]), ALL]:
        own = every if item == ALL else texts["item"] == item
        for relation, there in under.items():
            chosen = np.flatnonzero(own & there)
            if chosen.size:
                pool = item == ALL or relation == OVERALL
                rows.append({"item": item, "relation": relation, **facts.counted(chosen, pool=pool)})
    return pd.DataFrame(rows, columns=list(STATE_COLUMNS))


def _cases(records: Records) -> pd.DataFrame:
    """Return what tells states apart of every case that has an image."""
    import pandas as pd

    parts = []
    for frame in (records.sources, records.followups):
        kept = frame[["item", "relation", "verdict", STATE, "reply", "why"]].astype(object)
        kept[READ_BY] = read_by(frame)
        error = kept["verdict"] == Verdict.ERROR.value
        parts.append(kept.assign(image=independent(frame))[kept[STATE].notna() | error].fillna(""))
    return pd.concat(parts, ignore_index=True)


def _marks(texts: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    error = texts["verdict"] == Verdict.ERROR.value
    states = {name: (texts[STATE] == name) & ~error for name in ("value", "not_relevant", "refusal", "unparsed")}
    replies = {
        name: (texts["reply"] == reply) & ~error
        for name, reply in (("by_filter", "content_filter"), ("cut_off", "length"), ("malformed", "malformed"))
    }
    refused = states["refusal"] & (texts["why"] == "refusal")
    by = {f"by_{name}": (texts[READ_BY] == name) & ~error for name in (SCHEMA, RULES, JUDGE)}
    return {"error": error, "marks": {**states, "refused_after_answer": refused, **replies, **by}}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Facts:
    image: NDArray[np.int64]
    images: int
    error: NDArray[np.bool_]
    marks: Mapping[str, NDArray[np.bool_]]
    resampler: Resampler

    def counted(self, rows: NDArray[np.int64], *, pool: bool) -> dict[str, object]:
        """Return the counts of some cases; of a pool the interval is a bootstrap where enough images differ."""
        counts = {name: int(mark[rows].sum()) for name, mark in self.marks.items()}
        answered_rows = rows[~self.error[rows]]
        rate = counts["refusal"] / answered_rows.size if answered_rows.size else float("nan")
        asked, refused = (
            np.bincount(self.image[part], minlength=self.images).astype(np.float64)
            for part in (answered_rows, rows[self.marks["refusal"][rows]])
        )
        images = int(np.count_nonzero(asked))
        few = min(np.count_nonzero(refused), np.count_nonzero(refused < asked)) < FEW_CLUSTERS
        if pool and not few:
            drawn = self.resampler.sums(np.stack([refused, asked], axis=1).astype(np.float32)).astype(np.float64)
            with np.errstate(invalid="ignore", divide="ignore"):
                low, high = percentile_ends(drawn[:, 0] / drawn[:, 1])
        else:
            low, high = wilson_of_rate(rate, images)
        return {
            "asked": int(rows.size),
            **counts,
            "errors": int(rows.size - answered_rows.size),
            "refusal_rate": round(rate, 6),
            "ci_low": round(low, 6),
            "ci_high": round(high, 6),
        }


def cost_table(records: Records) -> pd.DataFrame:
    """Return tokens, cost, latency and calls sent, in all, by relation and by question: :data:`COST_COLUMNS`.

    Tokens, dollars and attempts are sums over answers (of a call that asked several questions each has its share of
    tokens and dollars). ``without_cost`` counts answers whose price is not known. Seconds are of whole calls, over
    answers that came from a server and not from a cache.

    Args:
        records: Records of one system.
    """
    import pandas as pd

    names = ["item", "relation", "prompt_tokens", "completion_tokens", "cost_usd", "seconds", "attempts"]
    frames = [answered(frame) for frame in (records.sources, records.followups)]
    if not all(name in frame.columns for frame in frames for name in names):
        return pd.DataFrame(columns=list(COST_COLUMNS))
    cases = pd.concat([frame[names].astype({"item": object, "relation": object}) for frame in frames])
    numbers = {name: cases[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names[2:]}
    rows: list[dict[str, object]] = [{"by": ALL, "name": ALL, **_costs(numbers)}]
    for by in ("relation", "item"):
        codes, unique = pd.factorize(cases[by].to_numpy(dtype=object))
        for code, name in enumerate(unique):
            chosen = np.flatnonzero(codes == code)
            rows.append({"by": by, "name": name, **_costs({key: value[chosen] for key, value in numbers.items()})})
    return pd.DataFrame(rows, columns=list(COST_COLUMNS))


def _costs(numbers: Mapping[str, NDArray[np.float64]]) -> dict[str, object]:
    def total(name: str, digits: int = 6) -> float:
        known = numbers[name][~np.isnan(numbers[name])]
        return round(float(known.sum()), digits) if known.size else float("nan")

    seconds = numbers["seconds"][numbers["attempts"] > 0]
    seconds = seconds[~np.isnan(seconds)]
    return {
        "answers": int(numbers["cost_usd"].size),
        "prompt_tokens": total("prompt_tokens"),
        "completion_tokens": total("completion_tokens"),
        "cost_usd": total("cost_usd", 8),
        "without_cost": int(np.isnan(numbers["cost_usd"]).sum()),
        "seconds_median": round(float(np.median(seconds)), 4) if seconds.size else float("nan"),
        "seconds_p95": round(float(np.quantile(seconds, 0.95)), 4) if seconds.size else float("nan"),
        "attempts": total("attempts"),
    }

"""The images whose answers flip most, with what was answered under every relation: the slides' illustration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtest.core.address import address_text
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.records import answered
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED

if TYPE_CHECKING:
    import pandas as pd

MOST_IMAGES = 3
MOST_FOLLOWUPS = 14


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """What was answered to one question about one picture.

    Attributes:
        words: The answer's words.
        value: What was read from them, "" where nothing was.
        state: ``value``, ``not_relevant``, ``refusal`` or ``unparsed``.
        flipped: It flipped against the source's; None where that is not judged.
        right: It has something in common with the truth; None where that is not judged.
        wanted: What was expected of it.
        why: The code of the judgement.
    """

    words: str
    value: str
    state: str
    flipped: bool | None
    right: bool | None
    wanted: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One picture: the source, or what a relation made of it.

    Attributes:
        relation: Its relation, ``source`` for the source.
        severity: Its severity.
        repeat: Its repeat.
        frame: Its frame.
    """

    relation: str
    severity: int
    repeat: int
    frame: int


@dataclass(frozen=True, kw_only=True)
class Illustration:
    """One image with all that was answered about it.

    Attributes:
        dataset: Data set, as in the records, and likewise the following.
        seed_id: Id of the seed as the records show it.
        flips: Answers that flipped.
        judged: Answers that were judged.
        pictures: The source and its follow-ups, ``unchanged`` left out.
        questions: Names and wordings of the questions, those with most flips first.
        kinds: The types of their answers (:class:`medtest.language.questions.values.Kind`).
        truths: The true answers by question, "" where none is known.
        said: By question and number of the picture.
    """

    dataset: str
    seed_id: str
    flips: int
    judged: int
    pictures: tuple[Shown, ...]
    questions: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...]
    truths: tuple[str, ...]
    said: tuple[tuple[GivenAnswer | None, ...], ...]

    def address(self, picture: Shown) -> str:
        """Return a picture's address, as reports print it."""
        return address_text(
            self.dataset, self.seed_id, picture.relation, picture.severity, picture.frame, picture.repeat
        )


def worst_images(records: Records, most: int = MOST_IMAGES) -> tuple[Illustration, ...]:
    """Return the images with most flips under relations, the worst first; those without any flip are left out.

    Args:
        records: Records of one system.
        most: How many.
    """
    cases = answered(records.followups)
    cases = cases[(cases["relation"] != UNCHANGED).to_numpy(dtype=bool)]
    judged = cases["self_agreement"].notna().to_numpy(dtype=bool)
    marked = cases.assign(_flip=((cases["self_agreement"] == 0) & judged).astype(int), _judged=judged.astype(int))
    by_image = marked.groupby(["dataset", "seed_id"], sort=False, observed=True)[["_flip", "_judged"]].sum()
    by_image = by_image.assign(share=by_image["_flip"] / by_image["_judged"].clip(lower=1))
    # Shares are compared, and not counts: an image with more follow-ups is not worse for that.
    chosen = by_image[by_image["_flip"] > 0].sort_values(["share", "_flip"], ascending=False, kind="stable")
    found = []
    for key, row in chosen.head(most).iterrows():
        dataset, seed_id = str(key[0]), str(key[1])  # type: ignore[index]
        own = marked[(marked["dataset"] == dataset) & (marked["seed_id"] == seed_id)]
        sources = answered(records.sources)
        at = sources[(sources["dataset"] == dataset) & (sources["seed_id"] == seed_id)]
        found.append(_illustration(dataset, seed_id, int(row["_flip"]), int(row["_judged"]), at, own))
    return tuple(found)


def _illustration(
    dataset: str, seed_id: str, flips: int, judged: int, sources: pd.DataFrame, cases: pd.DataFrame
) -> Illustration:
    by_picture = cases.groupby(["relation", "severity", "repeat", "frame"], sort=False, observed=True)["_flip"].sum()
    order = [
        Shown(relation=str(key[0]), severity=int(key[1]), repeat=int(key[2]), frame=int(key[3]))
        for key in by_picture.index
    ]
    if len(order) > MOST_FOLLOWUPS:  # of many severities those that flip most, in the order of the records
        flipped = dict(zip(order, by_picture.tolist(), strict=True))
        kept = sorted(order, key=lambda one: -flipped[one])[:MOST_FOLLOWUPS]
        order = [one for one in order if one in kept]
    pictures = (Shown(relation=SOURCE, severity=0, repeat=0, frame=0), *order)
    by_item = cases.groupby("item", sort=False, observed=True)["_flip"].sum().to_dict()
    items = sorted(dict.fromkeys(sources["item"].astype(str)), key=lambda item: -int(by_item.get(item, 0)))
    answers = {}
    for frame in (sources, cases):
        for row in frame.to_dict("records"):
            shown = Shown(
                relation=str(row["relation"]),
                severity=int(row["severity"]),
                repeat=int(row["repeat"]),
                frame=int(row["frame"]),
            )
            answers[str(row["item"]), shown] = row
    at_source = {str(row["item"]): row for row in sources.to_dict("records")}
    return Illustration(
        dataset=dataset,
        seed_id=seed_id,
        flips=flips,
        judged=judged,
        pictures=pictures,
        questions=tuple((item, str(at_source[item]["question"])) for item in items),
        kinds=tuple(str(at_source[item]["kind"] or "") for item in items),
        truths=tuple(str(at_source[item]["truth"] or "") for item in items),
        said=tuple(tuple(_said(answers.get((item, shown))) for shown in pictures) for item in items),
    )


def _said(row: dict[object, object] | None) -> GivenAnswer | None:
    if row is None:
        return None
    same, right = row["self_agreement"], row["agreement"]
    return GivenAnswer(
        words=str(row["answer"] or ""),
        value=str(row["said"] or ""),
        state=str(row["state"]),
        flipped=None if same != same or same is None else same == 0,
        right=None if right != right or right is None else right == 1,
        wanted=str(row["wanted"] or ""),
        why=str(row["why"] or ""),
    )

"""Images with most flips, with the answers under every relation, as illustrated in the slides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from medtest.core.cases import Address
from medtest.core.deferred import pd
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.records import answered
from medtest.tasks.ask.tables.rows import UNCHANGED

MOST_IMAGES = 3
MOST_FOLLOWUPS = 14


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """Answer to one question about one picture.

    Attributes:
        words: Text of the answer.
        value: Value parsed from it, "" if none.
        state: ``value``, ``not_relevant``, ``refusal`` or ``unparsed``.
        flipped: True if it flipped against the source's; None if not judged.
        right: True if it shares a value with the truth; None if not judged.
        wanted: Expected value.
        why: Reason code of the judgement.
    """

    words: str
    value: str
    state: str
    flipped: bool | None
    right: bool | None
    wanted: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Illustration:
    """One image with all answers about it.

    Attributes:
        flips: Number of answers that flipped.
        judged: Number of answers that were judged.
        pictures: Addresses of the source and its follow-ups, without ``unchanged``.
        questions: Names and wordings of the questions, those with most flips first.
        kinds: Types of their answers (:class:`medtest.language.questions.values.Kind`).
        truths: True answers by question, "" if unknown.
        said: Answers by question and index of the picture.
    """

    flips: int
    judged: int
    pictures: tuple[Address, ...]
    questions: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...]
    truths: tuple[str, ...]
    said: tuple[tuple[GivenAnswer | None, ...], ...]


def worst_images(records: Records) -> tuple[Illustration, ...]:
    """Return the images with most flips under relations, worst first, without images that have no flip.

    Args:
        records: Records of one system.
    """
    cases = answered(records.followups)
    cases = cases[(cases["relation"] != UNCHANGED).to_numpy(dtype=bool)]
    judged = cases["self_agreement"].notna().to_numpy(dtype=bool)
    marked = cases.assign(_flip=((cases["self_agreement"] == 0) & judged).astype(int), _judged=judged.astype(int))
    by_image = marked.groupby(["dataset", "seed_id"], sort=False, observed=True)[["_flip", "_judged"]].sum()
    by_image = by_image.assign(share=by_image["_flip"] / by_image["_judged"].clip(lower=1))
    # Compare shares, not counts: an image with more follow-ups is not worse for that.
    flipping = by_image[by_image["_flip"] > 0].sort_values(["share", "_flip"], ascending=False, kind="stable")
    illustrations = []
    for key, row in flipping.head(MOST_IMAGES).iterrows():
        dataset, seed_id = str(key[0]), str(key[1])  # type: ignore[index]
        image_cases = marked[(marked["dataset"] == dataset) & (marked["seed_id"] == seed_id)]
        sources = answered(records.sources)
        at = sources[(sources["dataset"] == dataset) & (sources["seed_id"] == seed_id)]
        illustrations.append(_illustration(dataset, seed_id, int(row["_flip"]), int(row["_judged"]), at, image_cases))
    return tuple(illustrations)


def _illustration(
    dataset: str, seed_id: str, flips: int, judged: int, sources: pd.DataFrame, cases: pd.DataFrame
) -> Illustration:
    by_picture = cases.groupby(["relation", "severity", "repeat", "frame"], sort=False, observed=True)["_flip"].sum()
    source = Address(dataset=dataset, seed_id=seed_id)
    order = [_picture(source, *key) for key in by_picture.index]
    if len(order) > MOST_FOLLOWUPS:  # of many severities those with most flips, in the order of the records
        flipped = dict(zip(order, by_picture.tolist(), strict=True))
        top = sorted(order, key=lambda picture: -flipped[picture])[:MOST_FOLLOWUPS]
        order = [picture for picture in order if picture in top]
    pictures = (source, *order)
    by_item = cases.groupby("item", sort=False, observed=True)["_flip"].sum().to_dict()
    items = sorted(dict.fromkeys(sources["item"].astype(str)), key=lambda item: -int(by_item.get(item, 0)))
    answers = {}
    for frame in (sources, cases):
        for row in frame.to_dict("records"):
            picture = _picture(source, row["relation"], row["severity"], row["repeat"], row["frame"])
            answers[str(row["item"]), picture] = row
    at_source = {str(row["item"]): row for row in sources.to_dict("records")}
    return Illustration(
        flips=flips,
        judged=judged,
        pictures=pictures,
        questions=tuple((item, str(at_source[item]["question"])) for item in items),
        kinds=tuple(str(at_source[item]["kind"] or "") for item in items),
        truths=tuple(str(at_source[item]["truth"] or "") for item in items),
        said=tuple(tuple(_said(answers.get((item, picture))) for picture in pictures) for item in items),
    )


def _picture(source: Address, relation: object, severity: int, repeat: int, frame: int) -> Address:
    return replace(source, relation=str(relation), severity=int(severity), repeat=int(repeat), frame=int(frame))


def _said(row: dict[object, object] | None) -> GivenAnswer | None:
    if row is None:
        return None
    agreement, right = row["self_agreement"], row["agreement"]
    return GivenAnswer(
        words=str(row["answer"] or ""),
        value=str(row["said"] or ""),
        state=str(row["state"]),
        flipped=None if agreement != agreement or agreement is None else agreement == 0,
        right=None if right != right or right is None else right == 1,
        wanted=str(row["wanted"] or ""),
        why=str(row["why"] or ""),
    )

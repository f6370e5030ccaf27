"""A second look: a study of follow-ups that were flagged or disputed in another study."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from medtest.core.errors import Mistake, OutputProblem
from medtest.study.database import now
from medtest.study.make import MadeStudy, new_folder, write_study
from medtest.study.model import Item
from medtest.study.options import StudyOptions
from medtest.study.questions import StudyKind
from medtest.study.results.ratings import read_ratings
from medtest.study.results.tables import second_look
from medtest.study.store import IMAGES, StudyStore


def make_review(folder: Path, options: StudyOptions, to: Path) -> MadeStudy:
    """Write a study of another one's doubtful items, which needs neither suite nor data.

    Its annotators see the same images without the first answers, so that they judge independently.

    Args:
        folder: The first study.
        options: Only ``annotators``, ``raters``, ``repeat`` and ``draw`` are used.
        to: The new folder.

    Raises:
        UserMistakes: The first study is one of artefacts, or has no doubtful items.
        OutputProblem: The folder cannot be written.
    """
    with StudyStore(folder) as store:
        if not store.kind.compares:
            raise Mistake(
                where=folder.name, found=f"a study of kind {store.kind}", allowed="a study of pairs"
            ).as_error()
        chosen = second_look(read_ratings(store))
        meta = dict(store.meta)
    if not chosen:
        problem = "nothing flagged and no disagreement"
        raise Mistake(where=folder.name, found=problem, allowed="a study with items for a second look").as_error()
    groups: dict[str, list[Item]] = {}
    for number, item in enumerate(chosen, start=1):
        groups.setdefault(item.relation, []).append(replace(item, id=number))
    seed = int(meta["seed"]) if options.draw is None else options.draw
    copied = {key: value for key, value in meta.items() if key not in {"format", "secret"}}
    copied |= {"created": now(), "options": options.model_dump(mode="json"), "review_of": folder.name, "seed": seed}
    with new_folder(to) as draft:
        _copy_images(folder, draft, chosen)
        longest = write_study(draft, copied, groups, [], [], options, seed)
    return MadeStudy(
        folder=to,
        kind=StudyKind.PAIRS,
        items={name: len(items) for name, items in groups.items()},
        catches=0,
        training=0,
        annotators=options.annotators,
        longest=longest,
    )


def _copy_images(folder: Path, draft: Path, items: list[Item]) -> None:
    try:
        (draft / IMAGES).mkdir()
        for name in sorted({name for item in items for name in (item.source_file, item.followup_file)}):
            shutil.copyfile(folder / IMAGES / name, draft / IMAGES / name)
    except OSError as error:
        raise OutputProblem(f"the images of {folder.name} cannot be copied: {error.strerror}") from error

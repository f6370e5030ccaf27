"""The user's images with questions from the contest's JSON, Kvasir-VQA, VQA-RAD or a CSV, or with the 18."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from medtest.core.cases import Ask, Seed, SeedRef
from medtest.core.plugins import PartSettings
from medtest.language.questions.questions import by_name
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.check import Rules
from medtest.seeds.folders.files import ids_in_place, marked, metadata_of
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.folders.source import FolderSource, Listing, usable
from medtest.seeds.labels.entries import LabelEntry
from medtest.seeds.questions.choice import Answered, gather
from medtest.seeds.questions.settings import QuestionFolderSettings, ask_of
from medtest.seeds.volumes.check import Checked


class QuestionFolder(FolderSource):
    """Images with questions from a folder, all checked before a run."""

    Settings: ClassVar[type[PartSettings]] = QuestionFolderSettings
    task: ClassVar[str] = "answer"
    revision: ClassVar[int] = 1
    holds: ClassVar[str] = "your images"

    settings: QuestionFolderSettings

    def load(self, ref: SeedRef) -> Seed:
        """Read one seed's files.

        Raises:
            UserMistakes: A file has changed since it was checked and cannot be read any more.
        """
        fields = usable(ref)
        image = self._frame(fields["image"], 0, tuple(fields["span"]))
        return Seed(
            ref=ref,
            image=image,
            expected=marked(self._mask(fields["mask"], 0, image)),
            kind="answer",
            asks=tuple(_unpacked(item) for item in fields["asks"]),
            together=self.settings.ask == "together",
        )

    def _digest_head(self, listing: Listing) -> list[object]:
        return [self.settings.ask]

    def _look(self, root: Path, listing: Listing) -> None:
        gathered = gather(root, self.settings, dataset=self.dataset)
        listing.take(gathered)
        listing.nothing = "no image with a question"
        listing.metadata = metadata_of(root, self.settings.metadata)
        askings = gathered.askings
        ids = ids_in_place([entry.name for entry, _ in askings], [entry.wrong is None for entry, _ in askings])
        files = [
            ((entry, asked, seed_id), Pair(image=entry.image, mask=entry.mask), entry.problems)
            for (entry, asked), seed_id in zip(askings, ids, strict=True)
        ]
        rules = Rules(reading=self._reading(), negatives=True)
        for (entry, asked, seed_id), _, checked in self._looked_at(root, files, rules, listing):
            if len(checked.slices) != 1 and not checked.problems:
                reason = f"holds {len(checked.slices)} images; questions are asked of files with one"
                checked = replace(checked, problems=(SeedProblem(file=shown(entry.image), reason=reason),))
            if checked.problems:
                items = tuple(question.name for question, _ in asked)
                listing.fault(SeedRef(dataset=self.dataset, seed_id=seed_id, items=items), checked)
            else:
                self._add_one(entry, asked, seed_id, checked, listing)

    def _add_one(
        self, entry: LabelEntry, asked: Sequence[Answered], seed_id: str, checked: Checked, listing: Listing
    ) -> None:
        asks = [_packed(ask_of(question, answers)) for question, answers in asked]
        locator = {
            "image": str(entry.image),
            "mask": str(entry.mask) if entry.mask is not None else "",
            "span": checked.slices[0].span,
            "asks": asks,
        }
        ref = SeedRef(
            dataset=self.dataset,
            seed_id=seed_id,
            items=tuple(question.name for question, _ in asked),
            locator=json.dumps(locator, ensure_ascii=False),
        )
        facts = listing.facts(self.dataset, (seed_id, entry.name), entry.image)
        listing.add(ref, facts, [*checked.digests[:2], *checked.slices[0].span, asks])
        listing.contents[checked.digests[0]] += 1


def _packed(ask: Ask) -> list[Any]:
    """Return a question as stored in a locator; for the 18 official questions the name is enough."""
    truth = None if ask.truth is None else list(ask.truth)
    return [ask.item, truth] if ask.id is not None else [ask.item, truth, ask.text, ask.kind]


def _unpacked(fields: Sequence[Any]) -> Ask:
    name, truth = fields[0], tuple(fields[1] or ())
    question = by_name(name)
    if question is not None:
        return ask_of(question, truth)
    return Ask(item=name, text=fields[2], kind=fields[3], truth=truth or None)

"""Images that a user has, with questions from the contest's JSON, Kvasir-VQA, VQA-RAD or a CSV, or with none."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from medtest.cases import Ask, Mask, Seed, SeedRef
from medtest.errors import Mistake, UserMistakes
from medtest.imagefile import BadFileError
from medtest.plugins import PartSettings
from medtest.seeds.base import SeedProblem, SeedSource
from medtest.seeds.folder_check import Checked, Rules, check_pairs
from medtest.seeds.folder_layout import LayoutError, Pair, shown
from medtest.seeds.folder_metadata import Metadata
from medtest.seeds.folder_seed import (
    CHANGED,
    LONGEST_ID,
    below,
    data_root,
    frozen,
    id_of,
    metadata_of,
    nothing_left,
    read_mask_of,
    stop_at,
    without_row,
)
from medtest.seeds.frames import Reading, opened_frames
from medtest.seeds.label_layouts.common import key_of
from medtest.seeds.question_choice import Asking, Gathered, gather
from medtest.seeds.question_settings import QuestionFolderSettings, ask_of
from medtest.vqa.questions import by_name


@dataclass(slots=True)
class _Listing:
    """What one look at the folder found.

    Attributes:
        refs: Seeds in order.
        digests: What determines each of them beside its reference.
        problems: Files and rows that cannot be used.
        notices: What else is to know.
        contents: Image contents that were seen, and how often.
        unmatched: Images without a row in the metadata.
        ignored: Leftovers that were passed over.
    """

    refs: list[SeedRef] = field(default_factory=list)
    digests: list[list[object]] = field(default_factory=list)
    problems: list[SeedProblem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    contents: Counter[str] = field(default_factory=Counter)
    unmatched: list[str] = field(default_factory=list)
    ignored: int = 0


class QuestionFolder(SeedSource):
    """Images with questions from a folder, every file looked at before a run."""

    Settings: ClassVar[type[PartSettings]] = QuestionFolderSettings
    output_kind: ClassVar[str] = "answer"
    needs_root: ClassVar[bool] = True
    revision: ClassVar[int] = 1

    settings: QuestionFolderSettings

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._listing: _Listing | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def refs(self) -> Sequence[SeedRef]:
        """Return every image that is asked about in natural order of names, each of its files looked at.

        Raises:
            UserMistakes: ``data=`` is missing or no folder, there are several files of questions or one that cannot be
                read, or files cannot be used and ``on_bad_seed`` is ``stop``: one report names every file.
        """
        return tuple(self._listed().refs)

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files and rows left out under ``on_bad_seed: skip``."""
        return tuple(self._listed().problems)

    def notices(self) -> Sequence[str]:
        """Return which images and questions are left out, and where no answer is known."""
        return tuple(self._listed().notices)

    def ignored(self) -> int:
        """Return how many leftovers of operating systems and thumbnails were passed over."""
        return self._listed().ignored

    def digest(self) -> str:
        """Return a SHA-256 over seeds in order: ids, clusters, strata, questions and answers, contents of files."""
        listing = self._listed()
        head = [type(self).__name__, self.revision, self.settings.ask]
        total = hashlib.sha256(json.dumps(head, ensure_ascii=True).encode())
        for ref, digests in zip(listing.refs, listing.digests, strict=True):
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), digests]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    def load(self, ref: SeedRef) -> Seed:
        """Read one seed's files.

        Raises:
            UserMistakes: A file has changed since it was looked at and cannot be read any more.
        """
        root = data_root(self.root, "your images")
        given = json.loads(ref.locator)
        now, expected = given["image"], None
        try:
            with opened_frames(below(root, now), self._reading()) as frames:
                low, high = given["span"]
                image = frames.rgb(0, (low, high))
            if given["mask"]:
                now = given["mask"]
                expected = read_mask_of(below(root, now), 0, self._reading())
        except (BadFileError, IndexError) as error:
            raise UserMistakes([Mistake(where=shown(now), found=str(error), fix=CHANGED)]) from error
        if expected is not None and expected.shape != image.shape[:2]:
            raise UserMistakes([Mistake(where=shown(now), found="has another size than its image by now")])
        return Seed(
            ref=ref,
            image=image,
            expected=_some(expected),
            kind="answer",
            asks=tuple(_unpacked(item) for item in given["asks"]),
            together=self.settings.ask == "together",
        )

    def _reading(self) -> Reading:
        return Reading(max_pixels=self.settings.max_pixels)

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> _Listing:
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def _list(self) -> _Listing:
        root, settings = data_root(self.root, "your images"), self.settings
        try:
            gathered = gather(root, settings, dataset=self.dataset)
        except (LayoutError, BadFileError) as error:
            raise _layout_mistake(root, self.dataset, error) from error
        listing = _Listing(problems=list(gathered.problems), notices=list(gathered.notices), ignored=gathered.ignored)
        metadata = metadata_of(root, settings.metadata)
        self._add(root, gathered, metadata, listing)
        if listing.problems and settings.on_bad_seed == "stop":
            raise stop_at(listing.problems)
        if not listing.refs:
            raise nothing_left(root, listing.problems, "no image with a question")
        if metadata is not None and listing.unmatched:
            raise without_row(metadata, listing.unmatched)
        twice = sum(listing.contents.values()) - len(listing.contents)
        if twice:
            listing.notices.append(f"{twice:,} images have the very contents of another; intervals take them for two.")
        return listing

    def _add(self, root: Path, gathered: Gathered, metadata: Metadata | None, listing: _Listing) -> None:
        ids = [id_of(PurePosixPath(one.entry.name).parts) for one in gathered.askings]
        often = Counter(ids)
        pairs = [
            (Pair(key=key_of(one.entry.name), image=one.entry.image, mask=one.entry.mask), None)
            for one in gathered.askings
        ]
        checks = check_pairs(root, pairs, Rules(reading=self._reading(), negatives=True))
        for one, plain_id, checked in zip(gathered.askings, ids, checks, strict=True):
            if checked.problems:
                listing.problems += checked.problems
            elif len(checked.slices) != 1:
                reason = f"holds {len(checked.slices)} images; questions are asked of files with one"
                listing.problems.append(SeedProblem(file=shown(one.entry.image), reason=reason))
            else:
                # Names in other scripts lose their letters in an id, which a hash then tells apart.
                seed_id = plain_id if often[plain_id] == 1 else _hashed(plain_id, one.entry.name)
                self._add_one(one, seed_id, checked, metadata, listing)

    def _add_one(
        self, one: Asking, seed_id: str, checked: Checked, metadata: Metadata | None, listing: _Listing
    ) -> None:
        entry = one.entry
        names = (seed_id, str(entry.image), entry.name, entry.image.name)
        facts = metadata.of(self.dataset, names) if metadata else None
        if metadata is not None and facts is None:
            listing.unmatched.append(shown(entry.image))
        asks = [_packed(ask_of(question, answers)) for question, answers in one.asked]
        locator = {
            "image": str(entry.image),
            "mask": str(entry.mask) if entry.mask is not None else "",
            "span": checked.slices[0].span,
            "asks": asks,
        }
        listing.refs.append(
            SeedRef(
                dataset=self.dataset,
                seed_id=seed_id,
                cluster=facts.cluster if facts else "",
                strata=facts.strata if facts else (),
                items=tuple(question.name for question, _ in one.asked),
                locator=json.dumps(locator, ensure_ascii=False),
            )
        )
        listing.digests.append([*checked.digests[:2], *checked.slices[0].span, asks])
        listing.contents[checked.digests[0]] += 1


def _packed(ask: Ask) -> list[Any]:
    """Return a question as a locator holds it; of the 18 the name says the rest."""
    truth = None if ask.truth is None else list(ask.truth)
    return [ask.item, truth] if ask.id is not None else [ask.item, truth, ask.text, ask.kind]


def _unpacked(given: Sequence[Any]) -> Ask:
    name, truth = given[0], tuple(given[1] or ())
    known = by_name(name)
    if known is not None:
        return ask_of(known, truth)
    return Ask(item=name, text=given[2], kind=given[3], truth=truth or None)


def _some(mask: Mask | None) -> Mask | None:
    """Return a mask that cannot be written to; None for an empty one, which says of nothing where it is."""
    return frozen(mask) if mask is not None and mask.any() else None


def _hashed(seed_id: str, name: str) -> str:
    return f"{seed_id[: LONGEST_ID - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _layout_mistake(root: Path, dataset: str, error: LayoutError | BadFileError) -> UserMistakes:
    if isinstance(error, BadFileError):
        return UserMistakes([Mistake(where=shown(root.name or "."), key="data", found=str(error), allowed="a folder")])
    key = error.key if error.key == "data" else f"seeds.{dataset}.{error.key}"
    return UserMistakes(
        [Mistake(where=shown(root.name or "."), key=key, found=error.found, fix=error.fix)],
        heading="the data folder cannot be used",
    )

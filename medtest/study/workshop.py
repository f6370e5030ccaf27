"""Images of a study: collected, and written under opaque names.

Follow-ups come from the store of follow-ups (:mod:`medtest.runner.followups`). Missing ones are made and stored there,
so that people judge the same images that systems were tested with. Crafted ones are read from a run of their system.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from medtest.core.cases import SOURCE, UNCHANGED, Address, Image, Mask, PreparedSeed, Seed, SeedRef, image_sha256
from medtest.core.errors import OutputProblem
from medtest.core.files.images import BadFileError, read_rgb
from medtest.core.probes import Need
from medtest.core.recent import Recent
from medtest.realism.folders import RealFolder, RealPicture, real_folders, without_names
from medtest.realism.options import RealPlaces
from medtest.runner.followups import DamagedFile, FollowUpStore
from medtest.runner.followups.maker import EntryMaker, LoadedSeed, expected_mask
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.followups.store import FOLDER
from medtest.runner.privacy.rules import Scrubber, ShownNames
from medtest.runner.replaying.crafted_runs import read_from_runs
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts
from medtest.study.model import Item, Phase
from medtest.study.questions import REAL, Role, expected_choice
from medtest.study.store import IMAGES
from medtest.suite.model import Invocation, Suite

_KEPT_SEEDS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class LesionImage:
    """An image with the known lesion on it.

    Attributes:
        image: uint8 H×W×3 RGB.
        mask: bool H×W, or None if unknown.
        sha256: SHA-256 of the image, as in records.
    """

    image: Image
    mask: Mask | None
    sha256: str


class Workshop:
    """Seeds and relations of a suite, and the folder a study is written to.

    Args:
        suite: The suite.
        invocation: Only ``data``, ``limit`` and ``only`` are used.
        folder: Folder of the study, in which ``images/`` is created.

    Attributes:
        addresses: Candidate follow-ups by relation, without the floor relation.
        sources: Their source cases.
        parts: Name of each relation's part by relation id.
    """

    def __init__(self, suite: Suite, invocation: Invocation, folder: Path) -> None:
        self._folder = folder
        self._suite = suite
        self._making = Parts(suite, invocation.data, invocation.batch_size)
        names = [name for name in self._making.relations if name in (invocation.only.relations or {name})]
        read_from_runs(suite, invocation, self._making, names)
        self._names = ShownNames.of(suite.privacy, invocation.home)
        self._refs: dict[tuple[str, str], tuple[int, SeedRef]] = {}
        for number, ref in self._making.needed_refs(limit=invocation.limit, only=invocation.only):
            self._refs[ref.dataset, ref.seed_id] = (number, ref)
        self._prepared: Recent[tuple[str, str], LoadedSeed] = Recent(_KEPT_SEEDS)
        self._recipe = SuiteKeys(suite, self._making.relations, self._names)
        self._maker = EntryMaker(self._making, self._recipe, Scrubber(self._names))
        self._store = FollowUpStore.open(invocation.home / FOLDER, create=True)
        self._files: dict[str, str] = {}
        self.parts = {plan.id: plan.info.name for plan in suite.relations}
        self.addresses: dict[str, list[Address]] = {name: [] for name in self.parts if name != UNCHANGED}
        self.sources: list[Address] = []
        self._choose(invocation)
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)

    def _choose(self, invocation: Invocation) -> None:
        for unit in self._making.plan([*self._refs.values()]).units():
            for place in unit.chosen(limit=invocation.limit, only=invocation.only):
                case = unit.cases[place]
                if case.is_source:
                    self.sources.append(case)
                elif case.relation in self.addresses:
                    self.addresses[case.relation].append(case)
        only = invocation.only.relations
        self.addresses = {name: cases for name, cases in self.addresses.items() if cases and (not only or name in only)}

    def leave_out(self, seeds: Iterable[Address]) -> None:
        """Exclude seeds from further draws."""
        out = {(address.dataset, address.seed_id) for address in seeds}
        self.sources = [case for case in self.sources if (case.dataset, case.seed_id) not in out]
        self.addresses = {
            name: [case for case in cases if (case.dataset, case.seed_id) not in out]
            for name, cases in self.addresses.items()
        }

    def source_name(self, address: Address) -> str:
        """Return the source of an address as items name it."""
        return f"{address.dataset}/{self._names.seed_id(address.dataset, address.seed_id)}"

    def real_folders(self, places: RealPlaces) -> tuple[list[RealFolder], list[str]]:
        """Return the folders of real pictures of the suite's relations, and notices.

        Raises:
            UserMistakes: A folder cannot be used.
        """
        folders, notices = real_folders(places, {name: self.parts[name] for name in self.addresses})
        hashed = self._suite.privacy.seed_ids == "hashed"
        return [without_names(folder) if hashed else folder for folder in folders], notices

    def real_item(self, number: int, folder: RealFolder, picture: RealPicture, notices: list[str]) -> Item | None:
        """Write a real picture, prepared like a seed, and return its item; None with a notice if it cannot be read."""
        try:
            image = read_rgb(picture.path)
        except BadFileError as error:
            notices.append(f"{folder.relation}: {picture.name} {error}")
            return None
        ref = SeedRef(dataset=REAL, seed_id=picture.name, cluster=picture.group)
        image = self._making.prepare(Seed(ref=ref, image=image)).image
        sha256 = image_sha256(image)
        file = self._write(image, sha256)
        return Item(
            id=number,
            dataset=REAL,
            seed_id=picture.group,
            relation=folder.relation,
            repeat=folder.pictures.index(picture),
            part=folder.part,
            source_sha256=sha256,
            followup_sha256=sha256,
            source_file=file,
            followup_file=file,
            width=image.shape[1],
            height=image.shape[0],
            expected=expected_choice(REAL),
        )

    def close(self) -> None:
        """Close the store of follow-ups."""
        self._store.close()

    def seed(self, address: Address) -> PreparedSeed:
        """Return a prepared seed; the last few are cached."""
        return self._loaded(address).seed

    def _loaded(self, address: Address) -> LoadedSeed:
        key = (address.dataset, address.seed_id)
        if key not in self._prepared:
            self._prepared[key] = self._maker.load(*self._refs[key])
        return self._prepared[key]

    def picture(self, address: Address) -> LesionImage | None:
        """Return the image of a case, or None if the relation does not apply."""
        loaded = self._loaded(address)
        seed = loaded.seed
        if address.is_source:
            return LesionImage(image=seed.image, mask=seed.mask, sha256=seed.sha256)
        key = self._recipe.followup_key(loaded.key, address)
        entry = self._store.by_key(key)
        if entry is not None:
            if entry.skipped:
                return None
            with suppress(DamagedFile):  # made again below, replacing the damaged file
                mask = self._store.mask(entry.mask_sha256) if entry.mask_sha256 else None
                return LesionImage(
                    image=self._store.image(entry.followup_sha256), mask=mask, sha256=entry.followup_sha256
                )
        case = self._making.make(seed, address)
        if case.follow is None:
            return None
        mask = expected_mask(seed, case.follow)
        self._keep(loaded, key, case, mask)
        return LesionImage(image=case.follow.image, mask=mask, sha256=case.sha256)

    def _keep(self, loaded: LoadedSeed, key: str, case: MadeCase, mask: Mask | None) -> None:
        """Add a new follow-up to the store."""
        seed, follow, store = loaded.seed, case.follow, self._store
        if follow is None or self._making.relations[case.address.relation].needs is not Need.NOTHING:
            return
        for image in (seed.image, follow.image):
            store.put_image(image)
        masks = ["" if each is None else store.put_mask(each) for each in (seed.mask, mask)]
        store.put(loaded.key, [self._maker.entry(loaded, key, case, source_mask=masks[0], mask=masks[1])])

    def item(
        self,
        number: int,
        address: Address,
        shown: LesionImage,
        *,
        role: Role = Role.ITEM,
        phase: Phase = "main",
        expected: Mapping[str, object] | None = None,
    ) -> Item:
        """Write the images of an item and return it; ``shown`` is compared with the address's source."""
        seed = self.seed(address)
        height, width = shown.image.shape[:2]
        return Item(
            id=number,
            phase=phase,
            role=role,
            dataset=address.dataset,
            seed_id=self._names.seed_id(address.dataset, address.seed_id),
            relation=address.relation,
            severity=address.severity,
            frame=address.frame,
            repeat=address.repeat,
            part=self.parts.get(address.relation, SOURCE),
            source_sha256=seed.sha256,
            followup_sha256=shown.sha256,
            source_file=self._write(seed.image, seed.sha256),
            followup_file=self._write(shown.image, shown.sha256),
            width=width,
            height=height,
            outlines={"source": outlines(seed.mask), "followup": outlines(shown.mask)},
            expected=expected or {},
        )

    def _write(self, image: Image, sha256: str) -> str:
        if sha256 not in self._files:
            name = f"{secrets.token_hex(16)}.png"
            try:
                (self._folder / IMAGES / name).write_bytes(png(image))
            except OSError as error:
                raise OutputProblem(f"the study's images cannot be written: {error.strerror}") from error
            self._files[sha256] = name
        return self._files[sha256]


def picture_of(image: Image, mask: Mask | None) -> LesionImage:
    """Return an image made only for the study."""
    return LesionImage(image=image, mask=mask, sha256=image_sha256(image))


def outlines(mask: Mask | None, tolerance: float = 0.75) -> list[list[list[int]]]:
    """Return a mask's simplified contours as lists of [x, y] in pixels, longest first, at most 40."""
    if mask is None or not mask.any():
        return []
    contours: Any = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)[0]
    simple = [cv2.approxPolyDP(contour, tolerance, True)[:, 0].tolist() for contour in contours]
    return sorted((points for points in simple if len(points) > 2), key=len, reverse=True)[:40]


def png(image: Image) -> bytes:
    """Return a uint8 RGB image as PNG, without metadata."""
    good, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 4])
    if not good:  # pragma: no cover - OpenCV encodes every uint8 image
        raise ValueError("an image could not be encoded")
    return bytes(data.tobytes())

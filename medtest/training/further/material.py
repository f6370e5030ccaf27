"""The data of a further training: originals, as many perturbed images drawn from them, and held-out pairs of both.

Follow-ups are made by the suite's relations, seed by seed, under addresses of their own, and kept in the store of
follow-ups. What training reads lies beside its state as arrays on disk (``.npy``, mapped into memory), so that memory
does not grow with the data.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, Mask, SeedRef, image_sha256
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.preparation import prepare
from medtest.runner.records.rows import params_text
from medtest.runner.replaying.crafted_runs import crafted_facts
from medtest.runner.units.parts import Parts
from medtest.suite.digest import digest_of
from medtest.suite.model import PartPlan, Suite
from medtest.suite.plan import Plan
from medtest.training.further.draw import PerturbationSlot, draw_slots, split
from medtest.training.further.kept import Kept
from medtest.training.further.leak import Print, prints_of
from medtest.training.further.recipe import SegmentationRecipe
from medtest.training.segmentation.data import Pairs, shrink, shrink_mask

DATASET = "training"
"""Data set id of training images: its follow-ups are never those that the same suite makes of test seeds."""
KINDS = ("originals", "perturbed", "held_clean", "held_perturbed")
MANIFEST = "drawn.csv"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairMaterial:
    """What a further training reads.

    Attributes:
        originals: Training pairs.
        perturbed: Perturbed pairs made from them.
        held_out: Held-out pairs, ``clean`` and, where the recipe has some, ``perturbed``.
        counts: Number of pairs of each kind, and how many draws had to be replaced.
        digest: SHA-256 over every pixel and name.
    """

    originals: Pairs
    perturbed: Pairs
    held_out: Mapping[str, Pairs]
    counts: Mapping[str, int]
    digest: str


def training_suite(suite: Suite, settings: Mapping[str, Any] | None = None) -> Suite:
    """Return the suite with the training folder in place of its seeds; relations, seed and preparation are its own.

    Args:
        suite: The suite that tests before and after.
        settings: Settings of the folder's source (``on_bad_seed`` …).
    """
    info = part("seeds", "image_mask_folders")
    kind = info.load()
    plan = PartPlan(id=DATASET, info=info, settings=kind.Settings(**{**info.defaults, **(settings or {})}))
    return replace(suite, seeds=(plan,))


def labelled(parts: Parts, data: str) -> list[tuple[int, SeedRef]]:
    """Return every training image with the number of its source.

    Raises:
        MedtestError: There are fewer than two.
    """
    found = [(number, ref) for number, source in enumerate(parts.sources) for ref in source.refs()]
    if len(found) < 2:
        raise MedtestError(f"{data}: {len(found)} training pairs were found; at least two are needed")
    return found


def training_prints(parts: Parts) -> dict[str, Print]:
    """Return what every training picture is known by, by its name."""
    how = parts.suite.prepare
    prints = prints_of(parts.sources, size=how.size, resize=how.resize)
    return {f"{ref.dataset}/{ref.seed_id}": one for ref, one in prints}


def prepare_material(
    parts: Parts,
    prints: Mapping[str, Print],
    recipe: SegmentationRecipe,
    *,
    size: int,
    folder: Path,
    store: Path | None = None,
    progress: Progress | None = None,
) -> PairMaterial:
    """Return the material of a training, from its folder where it lies there already.

    Args:
        parts: Of :func:`training_suite`.
        prints: What each picture is known by.
        recipe: How many perturbed images, drawn how, and how many pairs are held out.
        size: Side that the network takes; training pairs are stored somewhat larger, so that crops stay sharp.
        folder: Where the arrays lie; made where it is missing.
        store: Folder of the store that keeps follow-ups between trainings and suites; they are made anew without.
        progress: Called with images done and images in all.

    Raises:
        UserMistakes: Files cannot be used.
        MedtestError: There are too few images, or none of them could be perturbed.
    """
    refs = labelled(parts, DATASET)
    known_by = [prints[f"{ref.dataset}/{ref.seed_id}"].native for _, ref in refs]
    trained, held = split([ref for _, ref in refs], known_by, held_out=recipe.validation.held_out, seed=recipe.seed)
    shape = [case for case in Plan((), parts.relations, 1).shape if case[0] != "unchanged"]
    by_index = {int(index): refs[int(index)][1] for index in trained}
    held_refs = {int(index): refs[int(index)][1] for index in held}
    wanted = round(recipe.perturbed * len(trained))
    drawn = draw_slots(by_index, shape, count=wanted, how=recipe.draw, seed=recipe.seed)
    watched = draw_slots(
        held_refs,
        shape,
        count=recipe.validation.perturbed * len(held),
        how="balanced",
        seed=recipe.seed,
        held=True,
    )
    side = _stored_side(size, parts.suite.prepare.size)
    whole = folder / f"arrays-{_identity(parts, trained, held, [*drawn, *watched], (side, size))[:12]}"
    if not (whole / MANIFEST).is_file():
        with _fresh(whole) as partial:
            kept = Kept(parts, store)
            writer = _Writer(parts, partial, kept)
            writer.open("originals", len(trained), side)
            writer.open("perturbed", len(drawn), side)
            writer.open("held_clean", len(held), size)
            writer.open("held_perturbed", len(watched), size)
            writer.write(refs, {"train": list(by_index), "held": list(held_refs)}, drawn, watched, progress)
            kept.close()
            writer.close(kept)
    return _read(whole)


def _identity(
    parts: Parts,
    trained: NDArray[np.int64],
    held: NDArray[np.int64],
    slots: Sequence[PerturbationSlot],
    sides: tuple[int, int],
) -> str:
    """Return a digest of what the arrays hold."""
    return digest_of(
        {
            "seed": parts.suite.seed,
            **parts.suite.prepare.covers(),
            "sides": list(sides),
            "seeds": [source.digest() for source in parts.sources],
            "relations": {
                plan.id: [
                    plan.info.name,
                    type(parts.relations[plan.id]).revision,
                    plan.settings.counted(),
                ]
                for plan in parts.suite.relations
            },
            "trained": [int(index) for index in trained],
            "held": [int(index) for index in held],
            "slots": [[str(one) for one in slot.candidates] for slot in slots],
            **crafted_facts(parts),
        }
    )


def _stored_side(size: int, prepared: int | None) -> int:
    """Return the side of stored training pairs: larger than the network takes, not larger than they were prepared."""
    larger = int(1.25 * size)
    return larger if prepared is None else max(size, min(larger, prepared))


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    """Give a folder to write to that takes its name only when it is whole."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


@dataclass
class _Group:
    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    rows: list[dict[str, str]]
    side: int
    place: int = 0

    def add(self, image: Image, mask: Mask, row: dict[str, str]) -> None:
        self.images[self.place] = shrink(image, self.side)
        stored = shrink_mask(mask.astype(np.uint8) * 255, self.side)
        self.masks[self.place] = stored
        self.rows.append({**row, "place": str(self.place), "mask_sha256": image_sha256(stored)})
        self.place += 1


class _Writer:
    """Fills the arrays, one source image after the other."""

    def __init__(self, parts: Parts, folder: Path, kept: Kept) -> None:
        self._parts = parts
        self._folder = folder
        self._kept = kept
        self._groups: dict[str, _Group] = {}
        self._replaced = 0
        self._lost = 0

    def open(self, kind: str, count: int, side: int) -> None:
        """Make the arrays of a kind."""
        arrays = [
            np.lib.format.open_memmap(self._folder / f"{kind}_{name}.npy", "w+", np.uint8, (count, side, side, *rest))
            for name, rest in (("images", (3,)), ("masks", ()))
        ]
        self._groups[kind] = _Group(images=arrays[0], masks=arrays[1], rows=[], side=side)

    def write(
        self,
        refs: Sequence[tuple[int, SeedRef]],
        parted: Mapping[str, Sequence[int]],
        drawn: Sequence[PerturbationSlot],
        watched: Sequence[PerturbationSlot],
        progress: Progress | None,
    ) -> None:
        """Write every original and every drawn follow-up."""
        total = sum(len(indices) for indices in parted.values())
        done = 0
        for kinds, indices, slots in (
            (("originals", "perturbed"), parted["train"], drawn),
            (("held_clean", "held_perturbed"), parted["held"], watched),
        ):
            of: dict[int, list[PerturbationSlot]] = {}
            for slot in slots:
                of.setdefault(slot.index, []).append(slot)
            for index in indices:
                self._one(refs[index], of.get(index, []), kinds)
                done += 1
                if progress is not None:
                    progress(done, total)

    def _one(self, found: tuple[int, SeedRef], slots: Sequence[PerturbationSlot], kinds: tuple[str, str]) -> None:
        source, ref = found
        loaded = self._parts.sources[source].load(ref)
        if loaded.expected is None:
            raise MedtestError(f"{ref.dataset}/{ref.seed_id} has no mask; every training image needs one")
        how = self._parts.suite.prepare
        seed = prepare(loaded, size=how.size, resize=how.resize)
        if seed.mask is None:
            raise MedtestError(f"{ref.dataset}/{ref.seed_id} has no mask; every training image needs one")
        name = f"{ref.dataset}/{ref.seed_id}"
        clean = {"kind": kinds[0], "name": name, "params": "", "sha256": seed.sha256}
        self._groups[kinds[0]].add(seed.image, seed.mask, clean)
        if slots:
            self._kept.begin(seed, loaded.image)
        taken: set[Address] = set()
        for slot in slots:
            self._perturbed(slot, kinds[1], taken)

    def _perturbed(self, slot: PerturbationSlot, kind: str, taken: set[Address]) -> None:
        for number, address in enumerate(slot.candidates):
            found = None if address in taken else self._kept.take(address)
            if found is None:
                continue
            taken.add(address)
            self._replaced += number > 0
            row = {"kind": kind, "name": str(address), "params": params_text(found.params), "sha256": found.sha256}
            self._groups[kind].add(found.image, found.mask, row)
            return
        self._lost += 1

    def close(self, kept: Kept) -> None:
        """Finish the arrays and write the manifest last."""
        counts = {kind: group.place for kind, group in self._groups.items()}
        for group in self._groups.values():
            for array in (group.images, group.masks):
                if isinstance(array, np.memmap):
                    array.flush()
        facts = {**counts, "replaced": self._replaced, "lost": self._lost, "made": kept.made, "reused": kept.reused}
        (self._folder / "counts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        with (self._folder / MANIFEST).open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(
                file, ("kind", "place", "name", "sha256", "mask_sha256", "params"), lineterminator="\n"
            )
            table.writeheader()
            for group in self._groups.values():
                table.writerows(group.rows)


def _read(folder: Path) -> PairMaterial:
    import hashlib

    with (folder / MANIFEST).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = {str(key): int(value) for key, value in json.loads((folder / "counts.json").read_text()).items()}
    found: dict[str, Pairs] = {}
    for kind in KINDS:
        names = tuple(row["name"] for row in rows if row["kind"] == kind)
        arrays = [np.load(folder / f"{kind}_{name}.npy", mmap_mode="r") for name in ("images", "masks")]
        found[kind] = Pairs(images=arrays[0][: len(names)], masks=arrays[1][: len(names)], names=names)
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\x1f".join((row["kind"], row["name"], row["sha256"], row["mask_sha256"])).encode() + b"\n")
    held = {"clean": found["held_clean"], "perturbed": found["held_perturbed"]}
    return PairMaterial(
        originals=found["originals"],
        perturbed=found["perturbed"],
        held_out={kind: pairs for kind, pairs in held.items() if len(pairs)},
        counts=counts,
        digest=digest.hexdigest(),
    )

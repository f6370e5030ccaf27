"""Export of follow-ups as files, for systems that run elsewhere and return a folder of predictions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np

from medtest.core.cases import Address, Image, ReasonCode
from medtest.core.errors import MedtestError, Mistake, OutputProblem, UserMistakes, typed_error
from medtest.runner.folder import output_problems, writing, writing_text
from medtest.runner.records.rows import params_text
from medtest.runner.replaying.crafted_runs import crafted_facts, read_from_runs
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import NOT_STORED, Parts
from medtest.suite.digest import digest_of
from medtest.suite.model import Invocation, Suite
from medtest.suite.plan import Unit
from medtest.systems.adapters.image_files import write_image

MANIFEST = "manifest.csv"
COLUMNS = ("address", "file", "params", "scale", "sha256", "skipped")
"""Columns of ``manifest.csv``.

The case's address; its file below the folder, "" if there is none; parameters as JSON; physical distance from identity;
SHA-256 of shape, dtype and pixels as in the records; the reason if there is no file.
"""

_DRAFT = ".manifest.part"
_MARK = ".medtest-export"
"""File with a digest of everything that affects the pixels, so that two suites are not mixed in one folder."""
_PNG = [cv2.IMWRITE_PNG_COMPRESSION, 3]


def export_followups(suite: Suite, invocation: Invocation, to: Path) -> int:
    """Write the chosen sources and follow-ups and ``manifest.csv``, resuming an interrupted export.

    Sources are ``<dataset>/<seed_id>.png``, follow-ups ``<dataset>/<seed_id>/<stem>.png``: the names under which
    ``model=predictions`` and ``model=results`` look for answers. Images are prepared: RGB PNG, for series PNG (8 and 16
    bit, flat) or ``.npy``.

    Args:
        suite: The suite; its systems are not used.
        invocation: Provides ``data``, ``limit`` and ``only``.
        to: The target folder, created if missing.

    Returns:
        The number of images in the folder.

    Raises:
        UserMistakes: The suite's privacy forbids it, no run stores crafted follow-ups, or the folder holds the
            follow-ups of something else.
        OutputProblem: The folder cannot be written.
    """
    check_privacy(suite)
    parts = Parts(suite, invocation.data, invocation.batch_size)
    read_from_runs(suite, invocation, parts, invocation.only.relations or None)
    refs = parts.needed_refs(limit=invocation.limit, only=invocation.only)
    plan = parts.plan(refs)
    with output_problems(to / MANIFEST):
        to.mkdir(parents=True, exist_ok=True)
    manifest = _Written(to, _identity(suite, parts))
    try:
        for unit in plan.units():
            chosen = unit.chosen(limit=invocation.limit, only=invocation.only)
            if chosen and not manifest.has([unit.cases[index] for index in chosen]):
                _export_unit(parts, refs[unit.index][0], unit, chosen, to, manifest)
    finally:
        manifest.close()
    manifest.finish(str(case) for unit in plan.units() for case in unit.cases)
    return manifest.images


def check_privacy(suite: Suite) -> None:
    """Refuse to write images if the suite forbids it.

    Raises:
        UserMistakes: The suite forbids it.
    """
    if suite.privacy.seed_ids == "hashed" or suite.privacy.images == "none":
        raise Mistake(
            where="suite",
            key="privacy",
            found=f"seed_ids: {suite.privacy.seed_ids}, images: {suite.privacy.images}",
            allowed="seed_ids: plain, images: samples",
            fix="Exported files are images under the names of their seeds; a suite may forbid that.",
        ).as_error()


def _identity(suite: Suite, parts: Parts) -> str:
    """Return a digest of everything that affects the pixels."""
    return digest_of(
        {
            "seed": suite.seed,
            **suite.prepare.covers(),
            "seeds": [source.digest() for source in parts.sources],
            "relations": {
                p.id: [p.info.name, type(parts.relations[p.id]).revision, p.settings.counted()] for p in suite.relations
            },
            **crafted_facts(parts),
        }
    )


def _export_unit(parts: Parts, source: int, unit: Unit, chosen: Sequence[int], to: Path, manifest: _Written) -> None:
    seed = parts.prepared(source, unit.ref)
    folder = _inside(Path(unit.ref.dataset) / unit.ref.seed_id)
    with output_problems(folder):
        (to / folder).mkdir(parents=True, exist_ok=True)
    for index in chosen:
        case = parts.make(seed, unit.cases[index])
        if case.reason.code in NOT_STORED:
            lost = case.reason.code == ReasonCode.FOLLOW_UP_LOST  # the run has its record and does not craft it again
            first = "Run the suite with fresh=true first" if lost else "Run the whole suite first"
            raise MedtestError(f"{case.address}: {case.reason.text}. {first}, or choose less with only=.")
        if case.follow is None:
            manifest.add(case, "", "", "")
            continue
        image, ending = case.follow.image, _suffix(case)
        stem = folder.parent / folder.name if case.address.is_source else folder / case.address.stem
        name = stem.with_name(f"{stem.name}{ending}")
        if case.task.series:
            write_image(to / name, image, case.spec)
        else:
            _save(to / name, image)
        manifest.add(case, name.as_posix(), params_text(case.follow.params), repr(float(case.follow.scale)))
    manifest.flush()


def _inside(name: Path) -> Path:
    if name.is_absolute() or ".." in name.parts:
        raise Mistake(where="seeds", key="seed_id", found=str(name), allowed="a name inside the folder").as_error()
    return name


def _suffix(case: MadeCase) -> str:
    """Return the suffix of an exported image: PNG for flat pictures of 8 and 16 bits, otherwise ``.npy``."""
    if not case.task.series or case.follow is None:
        return ".png"
    flat = case.spec.axes in ("yx", "yxc") and case.follow.image.dtype in (np.uint8, np.uint16)
    return ".png" if flat else ".npy"


def _save(path: Path, image: Image) -> None:
    encoded, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), _PNG)
    if not encoded:
        raise OutputProblem(f"{path.name} could not be encoded as PNG.")
    with writing(path) as file:
        file.write(data.tobytes())


class _Written:
    """Growing manifest: a draft that is appended to after each seed and sorted at the end.

    Args:
        to: The folder.
        identity: Digest of everything that affects its pixels.

    Raises:
        UserMistakes: The folder holds the follow-ups of something else.
    """

    def __init__(self, to: Path, identity: str) -> None:
        self._to = to
        self._rows: dict[str, dict[str, str]] = {}
        self._fresh: list[dict[str, str]] = []
        self._check(identity)
        for name in (MANIFEST, _DRAFT):
            self._rows |= {row["address"]: row for row in _rows(to / name)}
        draft = to / _DRAFT
        with output_problems(draft):
            with writing_text(draft) as file:
                _table(file).writerows([dict(zip(COLUMNS, COLUMNS, strict=True)), *self._rows.values()])
            self._file: IO[str] = draft.open("a", encoding="utf-8", newline="")

    def _check(self, identity: str) -> None:
        mark = self._to / _MARK
        if not mark.exists():
            if any(self._to.iterdir()):
                raise _other_folder(self._to)
            with writing_text(mark) as file:
                file.write(f"{identity}\n")
        elif mark.read_text(encoding="utf-8").strip() != identity:
            raise _other_folder(self._to)

    @property
    def images(self) -> int:
        """Number of images."""
        return sum(bool(row["file"]) for row in self._rows.values())

    def close(self) -> None:
        """Close the draft; it is kept so that a later call can resume."""
        self._file.close()

    def has(self, cases: Sequence[Address]) -> bool:
        """Return True if all these cases are written and their files exist."""
        for case in cases:
            row = self._rows.get(str(case))
            if row is None or (row["file"] and not (self._to / row["file"]).is_file()):
                return False
        return True

    def add(self, case: MadeCase, file: str, params: str, scale: str) -> None:
        """Add a case."""
        row = {"address": str(case.address), "file": file, "params": params, "scale": scale, "sha256": case.sha256}
        self._fresh.append({**row, "skipped": case.reason.text})

    def flush(self) -> None:
        """Append the cases added since the last call; their files must be on disk."""
        with output_problems(self._to / _DRAFT):
            _table(self._file).writerows(self._fresh)
            self._file.flush()
        self._rows |= {row["address"]: row for row in self._fresh}
        self._fresh = []

    def finish(self, order: Iterable[str]) -> None:
        """Write ``manifest.csv`` in the order of the plan."""
        with writing_text(self._to / MANIFEST) as file:
            table = _table(file)
            table.writeheader()
            table.writerows(self._rows[address] for address in order if address in self._rows)
        (self._to / _DRAFT).unlink(missing_ok=True)


def _table(file: IO[Any]) -> csv.DictWriter[str]:
    return csv.DictWriter(file, COLUMNS, lineterminator="\n")


def _rows(path: Path) -> list[dict[str, str]]:
    """Read a manifest; a partial line left by a killed process is dropped."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return []
    whole = text[: text.rfind("\n") + 1]
    rows = csv.DictReader(io.StringIO(whole, newline=""))
    return [row for row in rows if None not in row and None not in row.values()]


def _other_folder(folder: Path) -> UserMistakes:
    return typed_error(
        "to",
        f"{folder}, which holds other files or other follow-ups",
        "a new folder, or one that an earlier export of the same suite and data began",
    )

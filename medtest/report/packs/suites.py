"""Packing of a suite: as composed, as written, with hashes of its seeds and of some follow-ups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from medtest.core import __version__
from medtest.core.errors import MedtestError, Mistake, UserMistakes, typed_error
from medtest.report.packs.contents import (
    DATA,
    FOLLOW_UPS,
    FORMAT,
    HEAD,
    LOCK,
    SEEDS,
    SUITES,
    WRITTEN,
    PackedPart,
    PackHead,
    SuiteFacts,
    packed_files,
)
from medtest.report.packs.lists import CaseLine, Progress, SeedLine, Surveyor, list_text, make_lists
from medtest.report.packs.locks import lock_text
from medtest.report.packs.pixels import PixelWriter
from medtest.report.packs.writing import check_target, write_pack
from medtest.runner.folder import output_problems
from medtest.runner.reporting.software import lock_of
from medtest.suite.checking.exclusion import COPY
from medtest.suite.compose import Loaded, load, needs_data
from medtest.suite.digest import run_digest
from medtest.suite.model import Invocation, PartPlan, Privacy, Selection, Suite
from medtest.suite.reading.library import find_suite, shown
from medtest.suite.reading.safety import read_suite


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A written pack.

    Attributes:
        file: Path of the pack.
        sha256: SHA-256 of the file, to be passed on to recipients.
        bytes: Size of the file.
        head: Head of the pack.
        notices: Notices for the packer, one per line.
    """

    file: Path
    sha256: str
    bytes: int
    head: PackHead
    notices: tuple[str, ...] = ()


def pack_suite(
    loaded: Loaded,
    invocation: Invocation,
    to: Path,
    *,
    folders: Sequence[Path],
    images: bool = False,
    progress: Progress | None = None,
) -> tuple[Packed, list[SeedLine], list[CaseLine]]:
    """Pack a suite as composed.

    Args:
        loaded: The suite.
        invocation: Only ``data``, ``home`` and ``limit`` are used.
        to: The ZIP file to write, which must not exist.
        folders: Folders searched for suites, for the files as written.
        images: Whether to include the seeds' pixels.
        progress: Called with the number of finished seeds and their total.

    Returns:
        The pack, all seeds in order, and some follow-ups.

    Raises:
        UserMistakes: The file exists, or the suite's privacy forbids images.
        MedtestError: A seed cannot be loaded.
        OutputProblem: The file cannot be written.
    """
    suite = loaded.suite
    check_target(to, "to")
    if images:
        check_images(suite.privacy)
    if invocation.only != Selection():
        raise typed_error("only", "a selection", "limit=N")
    with TemporaryDirectory(prefix="medtest-pack-") as scratch, output_problems(to):
        stage = Path(scratch)
        surveyor = Surveyor(suite, invocation)
        writer = PixelWriter(stage / DATA) if images else None
        seeds, cases = make_lists(surveyor, progress=progress, each=None if writer is None else writer.add)
        _write_suite(suite, stage, folders)
        notices = _local_settings(suite, stage)
        runs = writer is not None and writer.count > 0 and _reproduces_seeds(suite, invocation, stage / DATA, seeds)
        if writer is not None:
            notices += _about_pixels(suite, writer, runs)
        parts = parts_of(suite)
        versions = lock_of(part.origin for part in parts.values() if part.origin != "medtest")
        (stage / SEEDS).write_text(list_text(seeds, SeedLine), encoding="utf-8")
        (stage / FOLLOW_UPS).write_text(list_text(cases, CaseLine), encoding="utf-8")
        facts = SuiteFacts(
            parts=parts,
            systems=dict(systems_covered(suite, surveyor)),
            limit=invocation.limit,
            left_out=surveyor.crafted(),
            hashed=surveyor.hashed,
            needs_data=needs_data(suite),
            runs_from_data=runs,
        )
        packed = sealed_pack(
            stage,
            to,
            versions,
            kind="suite",
            suite=suite.name,
            suite_version=suite.version,
            privacy=suite.privacy.stated(),
            of_suite=facts,
        )
    return replace(packed, notices=tuple(notices)), seeds, cases


def sealed_pack(stage: Path, to: Path, versions: Mapping[str, str], **facts: Any) -> Packed:
    """Write the lock and the head of a pack into its folder, and all of it into a ZIP file.

    Args:
        stage: Folder of the pack's files.
        to: The ZIP file.
        versions: Versions that figures may depend on.
        facts: Further fields of :class:`~medtest.report.packs.contents.PackHead`.

    Raises:
        OutputProblem: The file cannot be written.
    """
    (stage / LOCK).write_text(lock_text(versions), encoding="utf-8")
    head = PackHead(format=FORMAT, medtest=__version__, versions=versions, files=packed_files(stage), **facts)
    (stage / HEAD).write_text(head.text(), encoding="utf-8")
    sha256, size = write_pack(stage, to)
    return Packed(file=to, sha256=sha256, bytes=size, head=head)


def suite_text(suite: Suite) -> str:
    """Return a composed suite as YAML that composes to the same suite."""
    return yaml.safe_dump(plain_composed(suite), sort_keys=False, allow_unicode=True)


def plain_composed(suite: Suite) -> dict[str, Any]:
    """Return a composed suite as JSON values."""
    values: dict[str, Any] = json.loads(json.dumps(suite.composed))
    return values


def parts_of(suite: Suite) -> dict[str, PackedPart]:
    """Return the parts of a suite by key, such as ``relations.blur``."""
    return {f"{family}.{plan.id}": _part(plan) for family, plan in _plans(suite)}


def systems_covered(suite: Suite, surveyor: Surveyor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the content covered by the digest of each system's run, by system id; unavailable systems are left out."""
    for name, system in suite.build_systems().items():
        try:
            digest = run_digest(
                suite, name, seeds=surveyor.parts.sources, relations=surveyor.parts.relations, system=system
            )
        except (MedtestError, OSError):
            continue  # Missing weights or an unset key are reported by the run.
        yield name, json.loads(json.dumps(digest.covers))


def check_images(privacy: Privacy) -> None:
    """Refuse to pack images that a suite's privacy settings withhold.

    Raises:
        UserMistakes: The privacy settings are not the defaults.
    """
    stated = privacy.stated()
    if privacy != Privacy():
        raise Mistake(
            where="suite",
            key="privacy",
            found=", ".join(f"{name}: {value}" for name, value in stated.items()),
            allowed="images=true only with seed_ids: plain, images: samples, prompts: plain",
            fix="remove images=; the pack then holds what the privacy settings allow",
        ).as_error()


def _write_suite(suite: Suite, stage: Path, folders: Sequence[Path]) -> None:
    """Write the suite as composed, and the files it was composed from."""
    for name in (SUITES, WRITTEN):
        (stage / name).mkdir()
    (stage / SUITES / f"{suite.name}.yaml").write_text(suite_text(suite), encoding="utf-8")
    if suite.exclude is not None:
        (stage / SUITES / COPY).write_text(suite.exclude.text(), encoding="utf-8")
    waiting, done = [suite.name], set()
    while waiting:
        name = waiting.pop()
        path = None if name in done else find_suite(name, folders)
        done.add(name)
        if path is not None:
            (stage / WRITTEN / f"{name}.yaml").write_bytes(path.read_bytes())
            waiting += read_suite(path, shown(path)).parents


def _local_settings(suite: Suite, stage: Path) -> list[str]:
    """Return the settings that a recipient has to type, since suites hold no paths, addresses or code."""
    try:
        again = load(str(stage / SUITES / f"{suite.name}.yaml")).suite
    except UserMistakes as error:
        settings = [
            f"{mistake.key} ({mistake.allowed})" if mistake.allowed else mistake.key for mistake in error.mistakes
        ]
        return [f"Not packed; recipients have to type: {'; '.join(settings)[:600]}"]
    lost = sorted(
        f"systems.{plan.id}.{name}"
        for plan, other in zip(suite.systems, again.systems, strict=True)
        for name, value in plan.settings.model_dump(mode="json").items()
        if value != other.settings.model_dump(mode="json").get(name)
    )
    return [f"Not packed, because suites hold no paths, addresses or code: {', '.join(lost)}"] if lost else []


def _reproduces_seeds(suite: Suite, invocation: Invocation, data: Path, seeds: list[SeedLine]) -> bool:
    """Return True if the packed pixels, read as the suite reads its data, give the packed seeds."""
    if not needs_data(suite):
        return False
    try:
        surveyor = Surveyor(suite, replace(invocation, data=data, limit=None))
        return make_lists(surveyor)[0] == seeds
    except MedtestError:
        return False


def _about_pixels(suite: Suite, writer: PixelWriter, runs: bool) -> list[str]:
    if not needs_data(suite):
        return ["No images are packed: the seeds are generated wherever the suite runs."]
    if runs:
        return [f"{writer.count:,} images are packed without metadata; the suite runs from them."]
    return [
        f"{writer.count:,} images are packed for viewing only. The suite cannot run from them, because its seed "
        "source reads more than pictures and masks: send the data separately."
    ]


def _plans(suite: Suite) -> Iterator[tuple[str, PartPlan]]:
    yield from (("seeds", plan) for plan in suite.seeds)
    yield from (("relations", plan) for plan in suite.relations)
    yield from (("systems", plan) for plan in (*suite.systems, *suite.crafters.values()))
    yield "oracles", suite.oracle.part
    if suite.oracle.reader is not None:
        yield "readers", suite.oracle.reader


def _part(plan: PartPlan) -> PackedPart:
    try:
        brought = "" if plan.info.origin == "medtest" else version(plan.info.origin)
    except PackageNotFoundError:
        brought = ""
    return PackedPart(
        name=plan.info.name,
        target=plan.info.target,
        revision=int(plan.info.load().revision),
        origin=plan.info.origin,
        version=brought,
    )

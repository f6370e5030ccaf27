"""Packing of a finished run: its records, the other inputs of its tables and report, and the hashes of those."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from medtest.core.errors import UserMistakes
from medtest.core.files import file_sha256
from medtest.core.files.written import written_in
from medtest.core.plugins import parts
from medtest.core.records import PICTURES
from medtest.report.packs.contents import RunFacts, packed_files
from medtest.report.packs.findings import listed
from medtest.report.packs.suites import Packed, check_images, sealed_pack
from medtest.report.packs.writing import check_target
from medtest.report.pages.comparison import REPORT
from medtest.report.pages.material import INSIDE, SAMPLES, read_run
from medtest.report.views import remake, views_of
from medtest.results.records.damage import damaged
from medtest.results.records.wanted import SUITE_FILE, Wanted
from medtest.results.tables import FOLDER as TABLES
from medtest.runner.folder import OUTPUTS, RECORDS, RUN_FILE, VIEWS, check_format, output_problems, write_run
from medtest.runner.records.answers import THUMBNAILS
from medtest.runner.reporting.software import lock_of
from medtest.suite.model import Privacy
from medtest.suite.reading.safety import read_suite

_ACCOUNTS = re.compile(
    rf"(?:{VIEWS}/[^/]+/)?(?:run\.json|suite\.yaml|cases\.parquet|readings\.json|excluded_by_study\.csv)"
    rf"|records\.parquet|records/shard-[^/]+\.parquet|gates\.jsonl|{INSIDE}/[^/]+\.(?:json|csv)"
)
_SHOWN = re.compile(
    rf"(?:{VIEWS}/[^/]+/)?{SAMPLES}/[^/]+\.(?:png|jpe?g|json)|{INSIDE}/[^/]+\.png"
    rf"|{THUMBNAILS}/pack-[0-9a-f]{{24}}\.parquet"
)
_KEPT = re.compile(r"(?:crafted|pictures)/(?:images|masks)/[0-9a-f]{2}/[0-9a-f]{64}\.png")
_ANSWERS = re.compile(r"answers/pack-[0-9a-f]{24}\.parquet")
_OF_REFERENCE = re.compile(r"run\.json|suite\.yaml|records\.parquet|records/shard-[^/]+\.parquet")
_WRITTEN = (RUN_FILE, "gates.jsonl")
"""Files that the making of tables writes to."""


def travelling(privacy: Privacy, images: bool | None) -> tuple[bool, bool]:
    """Return which pictures of a run are packed.

    Args:
        privacy: Privacy settings of its suite.
        images: True for all, False for none, None for those shown in its report.

    Returns:
        Whether those shown in its report are packed, with its stored answers (if these are pictures, only together with
        the others); and whether those drawn by systems and crafted follow-ups are.

    Raises:
        UserMistakes: All were requested, and the suite forbids it.
    """
    if images:
        check_images(privacy)
    return images is not False and privacy.images == "samples", bool(images)


def pack_run(folder: Path, to: Path, *, images: bool | None = None) -> Packed:
    """Pack one finished run.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        to: The ZIP file to write, which must not exist.
        images: Pictures to pack, see :func:`travelling`.

    Raises:
        UserMistakes: The file exists, files of the run are damaged, or its suite forbids images.
        OutputProblem: The file cannot be written, or the packed files give no tables.
    """
    check_target(to, "to")
    check_format(folder)
    if bad := damaged(folder):
        raise UserMistakes(bad)
    privacy = privacy_of(folder)
    shown, drawn = travelling(privacy, images)
    with TemporaryDirectory(prefix="medtest-pack-") as scratch, output_problems(to):
        stage = Path(scratch) / "stage"
        own, reference = _place(folder), _reference_of(folder)
        beside = "" if reference is None else _place(reference)
        _copy(
            folder,
            stage / own,
            _chosen(folder, shown=shown, drawn=drawn),
            reference=os.path.relpath(beside, own) if beside else None,
        )
        if reference is not None and beside != own:
            _copy(reference, stage / beside, _matching(reference, _OF_REFERENCE), reference=None)
        hashes = remade(stage, own, Path(scratch) / "made", packed_files(stage))
        lacking = _lacking(folder, hashes, {} if drawn else _with_pictures(folder, stage, own))
        for name in hashes:
            if name.endswith((".csv", ".tex")):
                _link(Path(scratch) / "made" / own / name, stage / own / name)
        run = read_run(folder)
        versions = lock_of(info.origin for info in parts("tables").values())
        packed = sealed_pack(
            stage,
            to,
            versions,
            kind="run",
            suite=str(run.get("suite", folder.parent.parent.name)),
            suite_version=str(run.get("suite_version", "")),
            privacy=privacy.stated(),
            of_run=RunFacts(
                folder=own,
                system=str(run.get("system", folder.parent.name)),
                reference=beside,
                made=hashes,
                lacking=lacking,
            ),
        )
    notices = [*_notices(privacy, shown=shown), *_about_tables(lacking, _changed_tables(folder, hashes))]
    return replace(packed, notices=tuple(notices))


def privacy_of(folder: Path) -> Privacy:
    """Return the privacy settings of a run's suite; the strictest if they cannot be read.

    Raises:
        UserMistakes: The run's suite.yaml has invalid content.
    """
    document = read_suite(folder / SUITE_FILE, f"{folder.name}/{SUITE_FILE}")
    if document.mistakes:
        raise UserMistakes(document.mistakes[:5])
    stated = document.values.get("privacy")
    stated = stated if isinstance(stated, dict) else {}
    return Privacy(
        seed_ids="hashed" if stated.get("seed_ids", "plain") != "plain" else "plain",
        images="none" if stated.get("images", "samples") != "samples" else "samples",
        prompts="none" if stated.get("prompts", "plain") != "plain" else "plain",
    )


def remade(pack: Path, own: str, scratch: Path, names: Iterable[str]) -> dict[str, str]:
    """Make tables and reports of a packed run in a copy; return their hashes by name below its folder.

    Args:
        pack: The pack's folder, which is not changed.
        own: Folder of the run within it.
        scratch: Folder for the copy.
        names: Files of the pack; only those below ``outputs/`` are used.

    Raises:
        OutputProblem: They cannot be made.
    """
    for name in names:
        path = pack / name
        if name.startswith(f"{OUTPUTS}/") and path.parent.name != TABLES:
            _link(path, scratch / name, copied=path.name in _WRITTEN)
    folder = scratch / own
    remake(folder)
    for view in _views(folder):
        remake(folder, view=view)
    hashes: dict[str, str] = {}
    for target in (folder, *(folder / VIEWS / view for view in _views(folder))):
        for path in (target / REPORT, *written_in(target / TABLES)):
            hashes[path.relative_to(folder).as_posix()] = file_sha256(path)
    return hashes


def _views(folder: Path) -> list[str]:
    return views_of(folder)[0]


def _place(folder: Path) -> str:
    """Return the folder of a run within a pack: ``outputs/<suite>/<system>/<digest>``, wherever it was copied to."""
    places = folder.resolve().parts
    if places[-4:-3] == (OUTPUTS,):
        return "/".join(places[-4:])
    run = read_run(folder)
    return "/".join((OUTPUTS, *(str(run.get(key) or key) for key in ("suite", "system", "digest"))))


def _reference_of(folder: Path) -> Path | None:
    """Return the run that a run's flips are relative to, None if there is none or it no longer exists."""
    named = read_run(folder).get("reference")
    folder_of_reference = (folder / str(named)).resolve() if named else None
    return (
        folder_of_reference if folder_of_reference is not None and (folder_of_reference / RECORDS).is_file() else None
    )


def _matching(folder: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    written: dict[Path, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or path.is_symlink() or not pattern.fullmatch(name):
            continue
        if path.parent.name in (SAMPLES, INSIDE):  # users' own files in these folders are not packed
            own_files = written.setdefault(path.parent, written_in(path.parent))
            if path not in own_files:
                continue
        yield name


def _chosen(folder: Path, *, shown: bool, drawn: bool) -> Iterator[str]:
    yield from _matching(folder, _ACCOUNTS)
    if shown and (drawn or not Wanted.from_folder(folder).task.storage.pictures):
        yield from _matching(folder, _ANSWERS)
    if shown:
        yield from _matching(folder, _SHOWN)
    if drawn:
        yield from _matching(folder, _KEPT)


def _copy(folder: Path, to: Path, names: Iterator[str], *, reference: str | None) -> None:
    """Copy files of a run, removing machine-specific entries from ``run.json``."""
    for name in names:
        _link(folder / name, to / name, copied=Path(name).name in _WRITTEN)
        if Path(name).name == RUN_FILE:
            content = read_run((folder / name).parent)
            write_run((to / name).parent, {**content, "mlflow_run_id": None, "reference": reference})


def _link(source: Path, target: Path, *, copied: bool = False) -> None:
    """Hard-link a file, or copy it if linking fails or the file will be written to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not copied:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)


def _with_pictures(folder: Path, stage: Path, own: str) -> dict[str, str]:
    """Return the hashes of tables made with the pictures that are not packed; empty if there are none."""
    if not (folder / PICTURES).is_dir():
        return {}
    with TemporaryDirectory(prefix="medtest-pack-") as scratch:
        whole = Path(scratch) / "whole"
        for path in sorted(path for path in (stage / OUTPUTS).rglob("*") if path.is_file()):
            _link(path, whole / path.relative_to(stage))
        for name in _matching(folder, _KEPT):
            _link(folder / name, whole / own / name)
        return remade(whole, own, Path(scratch) / "made", packed_files(whole))


def _lacking(folder: Path, hashes: dict[str, str], whole: dict[str, str]) -> list[str]:
    """Return the run's tables that are missing or different in the pack because pictures are left out."""
    existing = [path.relative_to(folder).as_posix() for path in written_in(folder / TABLES)]
    lost = [name for name in existing if name not in hashes]
    other = [name for name in whole if hashes.get(name) != whole[name]]
    return sorted(name for name in {*lost, *other} if name.endswith((".csv", ".tex")))


def _changed_tables(folder: Path, hashes: dict[str, str]) -> list[str]:
    """Return the tables in the run's folder that differ when made from its pack."""
    return [name for name in hashes if (folder / name).is_file() and file_sha256(folder / name) != hashes[name]]


def _notices(privacy: Privacy, *, shown: bool) -> Iterator[str]:
    if privacy.images == "none":
        yield "No pictures are packed, because the suite's privacy settings say images: none."
    elif not shown:
        yield "No pictures are packed, so a report made from this pack shows none."


def _about_tables(lacking: list[str], other: list[str]) -> Iterator[str]:
    if lacking:
        yield (
            f"These tables differ or are missing when made from this pack: {listed(lacking, 30)}. They need pictures "
            "drawn by systems, which images=true packs, or a gate typed on the command line."
        )
    stale = [name for name in other if not name.endswith(REPORT) and name not in lacking]
    if stale:
        yield (
            f"These tables were made again for this pack and differ from those in the run's folder: "
            f"{listed(stale, 30)}. To update the folder: medtest tables FOLDER."
        )

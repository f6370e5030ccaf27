"""Packs a finished run: its records and what else its tables and report are made of, and what those hash to."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from medtest.core.errors import UserMistakes
from medtest.core.files import file_sha256
from medtest.core.files.written import written_in
from medtest.core.plugins import parts
from medtest.core.records import PICTURES
from medtest.core.version import __version__
from medtest.report.packs.contents import FORMAT, HEAD, LOCK, PackHead, RunFacts, packed_files
from medtest.report.packs.findings import listed
from medtest.report.packs.locks import lock_of, lock_text
from medtest.report.packs.suites import Packed, check_images
from medtest.report.packs.writing import check_target, write_pack
from medtest.report.pages.comparison import REPORT
from medtest.report.pages.material import INSIDE, SAMPLES, read_run
from medtest.report.views import remake, views_of
from medtest.results.records.damage import damaged
from medtest.results.records.wanted import SUITE_FILE, Wanted
from medtest.results.tables import FOLDER as TABLES
from medtest.runner.folder import OUTPUTS, RECORDS, RUN_FILE, VIEWS, output_problems, write_run
from medtest.suite.model import Privacy
from medtest.suite.reading.safety import read_suite

_ACCOUNTS = re.compile(
    rf"(?:{VIEWS}/[^/]+/)?(?:run\.json|suite\.yaml|cases\.parquet|readings\.json|excluded_by_study\.csv)"
    rf"|records\.parquet|records/shard-[^/]+\.parquet|gates\.jsonl|{INSIDE}/[^/]+\.(?:json|csv)"
)
_SHOWN = re.compile(rf"(?:{VIEWS}/[^/]+/)?{SAMPLES}/[^/]+\.(?:png|jpe?g|json)|{INSIDE}/[^/]+\.png")
_KEPT = re.compile(r"(?:crafted|pictures)/(?:images|masks)/[0-9a-f]{2}/[0-9a-f]{64}\.png")
_ANSWERS = re.compile(r"answers/pack-[0-9a-f]{24}\.parquet")
_OF_REFERENCE = re.compile(r"run\.json|suite\.yaml|records\.parquet|records/shard-[^/]+\.parquet")
_WRITTEN = (RUN_FILE, "gates.jsonl")
"""Files that making tables writes to."""


@dataclass(frozen=True, kw_only=True)
class Travelling:
    """Which pictures of a run travel.

    Attributes:
        shown: Those that its report shows.
        kept: Those that systems drew, and follow-ups that were crafted on one.
        answers: What the run keeps of answers; where that is pictures, with ``kept`` alone.
    """

    shown: bool
    kept: bool
    answers: bool


def travelling(privacy: Privacy, images: bool | None) -> Travelling:
    """Return which pictures of a run travel.

    Args:
        privacy: What its suite says.
        images: True for all, False for none, None for those that its report shows.

    Raises:
        UserMistakes: All were asked for, and the suite forbids it.
    """
    if images:
        check_images(privacy)
    allowed = images is not False and privacy.images == "samples"
    return Travelling(shown=allowed, kept=bool(images), answers=allowed)


def pack_run(folder: Path, to: Path, *, images: bool | None = None) -> Packed:
    """Pack one finished run.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        to: The ZIP file to write, which must not be there.
        images: Which pictures travel, :func:`travelling`.

    Raises:
        UserMistakes: The file is there, files of the run are damaged, or its suite forbids images.
        OutputProblem: The file cannot be written, or tables cannot be made of what is packed.
    """
    check_target(to, "to")
    if bad := damaged(folder):
        raise UserMistakes(bad)
    privacy = privacy_of(folder)
    which = travelling(privacy, images)
    with TemporaryDirectory(prefix="medtest-pack-") as scratch, output_problems(to):
        stage = Path(scratch) / "stage"
        own, reference = _place(folder), _reference_of(folder)
        beside = "" if reference is None else _place(reference)
        _copy(folder, stage / own, _chosen(folder, which), reference=os.path.relpath(beside, own) if beside else None)
        if reference is not None and beside != own:
            _copy(reference, stage / beside, _matching(reference, _OF_REFERENCE), reference=None)
        made = remade(stage, own, Path(scratch) / "made", packed_files(stage))
        lacking = _lacking(folder, made, _with_pictures(folder, which, stage, own))
        for name in made:
            if name.endswith((".csv", ".tex")):
                _link(Path(scratch) / "made" / own / name, stage / own / name)
        run = read_run(folder)
        versions = lock_of(info.origin for info in parts("tables").values())
        (stage / LOCK).write_text(lock_text(versions), encoding="utf-8")
        head = PackHead(
            format=FORMAT,
            kind="run",
            medtest=__version__,
            suite=str(run.get("suite", folder.parent.parent.name)),
            suite_version=str(run.get("suite_version", "")),
            privacy=privacy.stated(),
            versions=versions,
            files=packed_files(stage),
            of_run=RunFacts(
                folder=own,
                system=str(run.get("system", folder.parent.name)),
                reference=beside,
                made=made,
                lacking=lacking,
            ),
        )
        (stage / HEAD).write_text(head.text(), encoding="utf-8")
        sha256, size = write_pack(stage, to)
    notices = [*_notices(which, privacy), *_about_tables(lacking, _remade_otherwise(folder, made))]
    return Packed(file=to, sha256=sha256, bytes=size, head=head, notices=tuple(notices))


def privacy_of(folder: Path) -> Privacy:
    """Return what the suite of a run says of privacy, the strictest where it cannot be read.

    Raises:
        UserMistakes: The run's suite.yaml holds what no suite does.
    """
    document = read_suite(folder / SUITE_FILE, f"{folder.name}/{SUITE_FILE}")
    if document.mistakes:
        raise UserMistakes(document.mistakes[:5])
    said = document.values.get("privacy")
    said = said if isinstance(said, dict) else {}
    return Privacy(
        seed_ids="hashed" if said.get("seed_ids", "plain") != "plain" else "plain",
        images="none" if said.get("images", "samples") != "samples" else "samples",
        prompts="none" if said.get("prompts", "plain") != "plain" else "plain",
    )


def remade(pack: Path, own: str, scratch: Path, names: Iterable[str]) -> dict[str, str]:
    """Make tables and reports of a packed run in a copy, and return what they hash to, by name below its folder.

    Args:
        pack: The pack's folder, which stays as it is.
        own: Where the run lies in it.
        scratch: Where the copy is made.
        names: The pack's files; those below ``outputs/`` count.

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
    found: dict[str, str] = {}
    for target in (folder, *(folder / VIEWS / view for view in _views(folder))):
        for path in (target / REPORT, *written_in(target / TABLES)):
            found[path.relative_to(folder).as_posix()] = file_sha256(path)
    return found


def _views(folder: Path) -> list[str]:
    return views_of(folder)[0]


def _place(folder: Path) -> str:
    """Return where a run lies in a pack: ``outputs/<suite>/<system>/<digest>``, wherever its folder was copied to."""
    places = folder.resolve().parts
    if places[-4:-3] == (OUTPUTS,):
        return "/".join(places[-4:])
    run = read_run(folder)
    return "/".join((OUTPUTS, *(str(run.get(key) or key) for key in ("suite", "system", "digest"))))


def _reference_of(folder: Path) -> Path | None:
    """Return the run that a run's flips are relative to, None where there is none or it is gone."""
    named = read_run(folder).get("reference")
    found = (folder / str(named)).resolve() if named else None
    return found if found is not None and (found / RECORDS).is_file() else None


def _matching(folder: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    ours: dict[Path, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or path.is_symlink() or not pattern.fullmatch(name):
            continue
        if path.parent.name in (SAMPLES, INSIDE):  # a user's files there do not travel
            kept = ours.setdefault(path.parent, written_in(path.parent))
            if path not in kept:
                continue
        yield name


def _chosen(folder: Path, which: Travelling) -> Iterator[str]:
    yield from _matching(folder, _ACCOUNTS)
    if which.answers and (which.kept or not Wanted.from_folder(folder).task.pictured):
        yield from _matching(folder, _ANSWERS)
    if which.shown:
        yield from _matching(folder, _SHOWN)
    if which.kept:
        yield from _matching(folder, _KEPT)


def _copy(folder: Path, to: Path, names: Iterator[str], *, reference: str | None) -> None:
    """Copy files of a run; what it says of itself goes without what means nothing elsewhere."""
    for name in names:
        _link(folder / name, to / name, copied=Path(name).name in _WRITTEN)
        if Path(name).name == RUN_FILE:
            content = read_run((folder / name).parent)
            write_run((to / name).parent, {**content, "mlflow_run_id": None, "reference": reference})


def _link(source: Path, target: Path, *, copied: bool = False) -> None:
    """Give a file a second name, or copy it where that cannot be or it will be written to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not copied:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)


def _with_pictures(folder: Path, which: Travelling, stage: Path, own: str) -> dict[str, str]:
    """Return what tables hash to where pictures that stay are at hand; nothing where none are, or all travel."""
    if which.kept or not (folder / PICTURES).is_dir():
        return {}
    with TemporaryDirectory(prefix="medtest-pack-") as scratch:
        whole = Path(scratch) / "whole"
        for path in sorted(path for path in (stage / OUTPUTS).rglob("*") if path.is_file()):
            _link(path, whole / path.relative_to(stage))
        for name in _matching(folder, _KEPT):
            _link(folder / name, whole / own / name)
        return remade(whole, own, Path(scratch) / "made", packed_files(whole))


def _lacking(folder: Path, made: dict[str, str], whole: dict[str, str]) -> list[str]:
    """Return tables that the run has and its pack has not, or has otherwise since pictures stay."""
    there = [path.relative_to(folder).as_posix() for path in written_in(folder / TABLES)]
    lost = [name for name in there if name not in made]
    other = [name for name in whole if made.get(name) != whole[name]]
    return sorted(name for name in {*lost, *other} if name.endswith((".csv", ".tex")))


def _remade_otherwise(folder: Path, made: dict[str, str]) -> list[str]:
    """Return tables that lie in the run's folder and are others when they are made of its pack."""
    return [name for name in made if (folder / name).is_file() and file_sha256(folder / name) != made[name]]


def _notices(which: Travelling, privacy: Privacy) -> Iterator[str]:
    if privacy.images == "none":
        yield "No pictures are packed: the suite's privacy says images: none."
    elif not which.shown:
        yield "No pictures are packed: the report that is made of this pack shows none."


def _about_tables(lacking: list[str], other: list[str]) -> Iterator[str]:
    if lacking:
        yield (
            f"Of this pack alone other tables are made, or none: {listed(lacking, 30)}. They rest on pictures that "
            "systems drew, which images=true packs, or on a gate that was typed."
        )
    stale = [name for name in other if not name.endswith(REPORT) and name not in lacking]
    if stale:
        yield (
            f"Made anew for this pack, and others than those that lie in the run's folder: {listed(stale, 30)}. "
            "medtest tables makes those anew too."
        )

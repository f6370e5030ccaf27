"""Check of a pack against this machine: data, follow-ups, systems, tables, versions."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from medtest.core.errors import Mistake, UserMistakes, typed_error
from medtest.core.files import file_sha256
from medtest.core.plugins import FAMILIES, parts
from medtest.core.portable import processor_notices
from medtest.report.packs.compare import about_cases, about_seeds, about_suite, about_systems, compare_data
from medtest.report.packs.contents import DATA, FOLLOW_UPS, SEEDS, SUITES, RunFacts, SuiteFacts
from medtest.report.packs.findings import PackFinding, Sameness, about_versions, listed
from medtest.report.packs.lists import CaseLine, Progress, SeedLine, Surveyor, read_list
from medtest.report.packs.locks import ANSWERS, PIXELS, TABLES, Touches, other_versions
from medtest.report.packs.reading import PackFolder
from medtest.report.packs.runs import remade
from medtest.report.packs.suites import parts_of, plain_composed, systems_covered
from medtest.report.pages.comparison import REPORT
from medtest.runner.reporting.software import lock_of
from medtest.suite.compose import Loaded, load, needs_data
from medtest.suite.model import Invocation
from medtest.suite.reading.safety import read_suite

LAST_DIGITS = 1e-9
"""Relative difference below which numbers count as equal."""
Invocations = Callable[[Loaded], Invocation]
"""Returns the invocation of a loaded suite."""


def check_pack(
    pack: PackFolder,
    overrides: Sequence[str] = (),
    *,
    config_dirs: Sequence[Path] = (),
    invocation_of: Invocations,
    progress: Progress | None = None,
) -> list[PackFinding]:
    """Return the findings on a pack, one per topic.

    Args:
        pack: The unpacked pack.
        overrides: Overrides typed after a suite: ``data=PATH``, ``limit=N``, ``checkpoint=PATH``.
        config_dirs: Folders like ``conf/``.
        invocation_of: Returns the invocation of a loaded suite.
        progress: Called with the number of finished seeds and their total.

    Raises:
        UserMistakes: The suite cannot be composed here, or its data are missing.
        MedtestError: Tables cannot be made.
    """
    files = _about_files(pack)
    if pack.head.of_run is not None:
        if overrides:
            allowed = "no overrides with a pack of a run: its tables are made from its records"
            raise Mistake(where="command line", found=" ".join(overrides), allowed=allowed).as_error()
        return [*files, *_check_run(pack, pack.head.of_run)]
    facts = pack.head.of_suite or SuiteFacts()
    return [*files, *_check_suite(pack, facts, overrides, config_dirs, invocation_of, progress)]


def _about_files(pack: PackFolder) -> list[PackFinding]:
    """Return a finding on files changed since unpacking, ignoring those of a run that are remade anyway."""
    grows = ("/run.json", "/gates.jsonl", ".csv", ".tex") if pack.head.of_run is not None else ()
    changed = [name for name in pack.changed if not name.endswith(grows)]
    if not changed:
        return []
    words = f"{len(changed):,} changed since the pack was unpacked"
    return [PackFinding(topic="files", state=Sameness.MATTERS, words=words, lines=(listed(changed),))]


# --- a suite ----------------------------------------------------------------------------------------------------------


def _check_suite(
    pack: PackFolder,
    facts: SuiteFacts,
    overrides: Sequence[str],
    config_dirs: Sequence[Path],
    invocation_of: Invocations,
    progress: Progress | None,
) -> list[PackFinding]:
    name = f"{SUITES}/{pack.head.suite}.yaml"
    packed = _composed(pack, name)
    _check_parts(facts, overrides)
    limit = [f"limit={facts.limit}"] if facts.limit is not None else []
    loaded = load(str(pack.folder / name), [*limit, *overrides], config_dirs=config_dirs)
    suite, invocation = loaded.suite, invocation_of(loaded)
    if invocation.data is None and needs_data(suite):
        if not facts.runs_from_data:
            raise typed_error(
                "data",
                "nothing",
                "the folder of the images that the suite is run on",
                f"medtest check {pack.where} data=PATH",
            )
        invocation = replace(invocation, data=pack.folder / DATA)
    seeds = read_list(pack.text(SEEDS), SeedLine, pack.where)
    cases = read_list(pack.text(FOLLOW_UPS), CaseLine, pack.where)
    versions = lock_of(part.origin for part in facts.parts.values() if part.origin != "medtest")
    others = other_versions(pack.head.versions, versions)
    surveyor = Surveyor(suite, invocation)
    if invocation.limit is not None and invocation.limit != facts.limit:
        first = {line.key for line in _first(seeds, invocation.limit)}
        seeds = [line for line in seeds if line.key in first]
        cases = [line for line in cases if (line.dataset, line.seed_id) in first]
    if "prompts" in {*facts.hashed, *surveyor.hashed} and facts.hashed != surveyor.hashed:
        reason = "the prompts are hashed with the sender's key, so they cannot be compared"
        about = [PackFinding(topic=topic, state=Sameness.UNKNOWN, words=reason) for topic in ("data", "follow-ups")]
    else:
        compared = compare_data(surveyor, facts, seeds, cases, progress)
        decoders = [version for version in others if PIXELS in version.touches]
        about = [about_seeds(compared, len(seeds), decoders), about_cases(compared, facts.left_out)]
    whole = about_suite(plain_composed(suite), packed, parts_of(suite), facts.parts)
    systems = about_systems(
        dict(systems_covered(suite, surveyor)), facts.systems, same_seeds=about[0].state is Sameness.SAME
    )
    pixels = [finding.state for finding in about]
    pixel_state = Sameness.MATTERS if Sameness.MATTERS in pixels else about[1].state
    answers = Sameness.UNKNOWN if any(ANSWERS in version.touches for version in others) else Sameness.SAME
    states: dict[Touches, Sameness] = {PIXELS: pixel_state, ANSWERS: answers, TABLES: Sameness.UNKNOWN}
    of_versions = about_versions(others, states, count=len(versions))
    notices = processor_notices()
    if notices:
        of_versions = replace(of_versions, lines=(*of_versions.lines, *notices))
    return [whole, *about, systems, of_versions]


def _first(seeds: Sequence[SeedLine], limit: int) -> list[SeedLine]:
    """Return the first seeds of each data set, as counted by ``limit``."""
    counts: dict[str, int] = {}
    lines = []
    for line in seeds:
        counts[line.dataset] = counts.get(line.dataset, 0) + 1
        if counts[line.dataset] <= limit:
            lines.append(line)
    return lines


def _composed(pack: PackFolder, name: str) -> dict[str, Any]:
    """Return the packed suite as plain data.

    Raises:
        UserMistakes: It is not a valid suite, or says what no suite may.
    """
    document = read_suite(pack.folder / name, f"{pack.where}: {name}")
    if document.mistakes:
        raise UserMistakes(document.mistakes)
    return document.values


def _check_parts(facts: SuiteFacts, overrides: Sequence[str]) -> None:
    """Check that parts from other packages are installed here, since packs carry no code.

    Raises:
        UserMistakes: Parts are missing.
    """
    chosen = any(token.startswith(("model=", "systems=")) for token in overrides)
    missing = []
    for key, part in facts.parts.items():
        family = next((name for name in FAMILIES if name == key.partition(".")[0]), None)
        if family is None or part.name in parts(family) or (family == "systems" and chosen):
            continue
        brought = f"the package {part.origin} {part.version}".strip()
        missing.append(
            Mistake(
                where="pack",
                key=key,
                found=f"{part.name}, which is not installed here",
                allowed=f"installed parts; the sender had it from {brought}",
                fix="install that package if you trust it, because packs contain no code"
                + ("; or type model=NAME for another system" if family == "systems" else ""),
            )
        )
    if missing:
        raise UserMistakes(missing)


# --- a run ------------------------------------------------------------------------------------------------------------


def _check_run(pack: PackFolder, facts: RunFacts) -> list[PackFinding]:
    others = other_versions(pack.head.versions, lock_of(info.origin for info in parts("tables").values()))
    with TemporaryDirectory(prefix="medtest-check-") as scratch:
        digests = remade(pack.folder, facts.folder, Path(scratch) / "pack", pack.head.files)
        table = _compare_tables(
            facts, digests, packed=pack.folder / facts.folder, here=Path(scratch) / "pack" / facts.folder
        )
    state = table[0].state
    count = len(pack.head.versions)
    return [*table, about_versions(others, {TABLES: state}, count=count)]


def _compare_tables(facts: RunFacts, hashes: dict[str, str], *, packed: Path, here: Path) -> list[PackFinding]:
    """Return the findings on tables and reports.

    Args:
        facts: Facts of the packed run.
        hashes: Hashes of the files made here, by name.
        packed: The run's folder in the pack.
        here: Folder of the tables made here.
    """
    names = [name for name in facts.made if not name.endswith(REPORT)]
    lines, worst = [], Sameness.SAME
    same = [name for name in names if hashes.get(name) == facts.made[name]]
    rounded = [
        name for name in names if name not in same and _equal_up_to_rounding(packed / name, here / name, facts, name)
    ]
    other = [name for name in names if name in hashes and name not in (*same, *rounded)]
    missing, more = [name for name in names if name not in hashes], [name for name in hashes if name not in facts.made]
    if rounded:
        lines.append(f"different in the last digits only: {listed(rounded, 30)}")
        worst = Sameness.OTHER
    if more:
        lines.append(f"made only here: {listed(more, 30)}")
        worst = Sameness.OTHER
    if missing:
        lines.append(f"not made here: {listed(missing, 30)}")
        worst = Sameness.MATTERS
    if other:
        lines.append(f"different: {listed(other, 30)}")
        worst = Sameness.MATTERS
    if facts.lacking:
        lines.append(f"different in the packed run, which had more pictures or gates: {listed(facts.lacking, 30)}")
    words = f"{len(same):,} of {len(names):,} are identical when made from the records again"
    return [
        PackFinding(topic="tables", state=worst, words=words, lines=tuple(lines)),
        _about_report(facts, hashes, worst),
    ]


def _about_report(facts: RunFacts, hashes: dict[str, str], tables: Sameness) -> PackFinding:
    names = [name for name in facts.made if name.endswith(REPORT)]
    other = [name for name in names if hashes.get(name) != facts.made[name]]
    if not other:
        return PackFinding(topic="report", state=Sameness.SAME, words="identical when made again")
    if tables is Sameness.MATTERS:
        return PackFinding(topic="report", state=Sameness.MATTERS, words="different page, from different tables")
    words = "different page from equal tables: its text or the encoding of its pictures differs"
    return PackFinding(topic="report", state=Sameness.OTHER, words=words)


def _equal_up_to_rounding(packed: Path, own: Path, facts: RunFacts, name: str) -> bool:
    """Return True if two tables differ only in the last digits of numbers; False if the packed one was replaced."""
    if not name.endswith(".csv"):
        return False
    try:
        if file_sha256(packed) != facts.made[name]:
            return False  # remade since it was unpacked
        with (
            packed.open(encoding="utf-8", newline="") as packed_file,
            own.open(encoding="utf-8", newline="") as own_file,
        ):
            return all(
                _equal_rows(packed_row, own_row)
                for packed_row, own_row in zip_longest(csv.reader(packed_file), csv.reader(own_file))
            )
    except (OSError, ValueError, csv.Error):
        return False


def _equal_rows(packed_row: list[str] | None, own_row: list[str] | None) -> bool:
    if packed_row is None or own_row is None or len(packed_row) != len(own_row):
        return False
    return all(
        packed_cell == own_cell or _equal_cells(packed_cell, own_cell)
        for packed_cell, own_cell in zip(packed_row, own_row, strict=True)
    )


def _equal_cells(packed_cell: str, own_cell: str) -> bool:
    try:
        packed_number, own_number = float(packed_cell), float(own_cell)
    except ValueError:
        return False
    return abs(packed_number - own_number) <= LAST_DIGITS * max(abs(packed_number), abs(own_number), LAST_DIGITS)

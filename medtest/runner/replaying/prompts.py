"""Export of a plan's prompts, to be drawn elsewhere, and the match of the drawn pictures by id."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from medtest.api.drawn.store import pixels_of
from medtest.core.cases import UNCHANGED, Address, Image, image_sha256
from medtest.core.errors import MedtestError, Mistake, UserMistakes, typed_error
from medtest.core.files.images import BadFileError, read_bytes
from medtest.core.files.walk import file_below, files_below
from medtest.core.files.written import WrittenFiles
from medtest.relations.prompts.base import PromptRelation
from medtest.runner.folder import output_problems
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite
from medtest.systems.pictures.finished import EXPORTED, SUFFIXES
from medtest.systems.pictures.picture_table import TABLE, TABLE_COLUMNS, read_rows, words_sha256

LINES = "prompts.jsonl"
"""The rows of :data:`EXPORTED` as JSON lines."""
COLUMNS = ("id", "number", "file", "address", "prompt")
"""Columns of both.

Id of the prompt; number of its picture, from 1; file name to save it under, without suffix; address of the case; words.
"""
_NAMED = re.compile(r"(?<![0-9a-z])(p\d{4,}-[0-9a-f]{4})(?:[-_ ](\d{1,3}))?(?![0-9a-z])", re.IGNORECASE)
"""Id and number in the name of a picture."""
_NUMBER = re.compile(r"\d{1,3}")


@dataclass(frozen=True, kw_only=True)
class ExportedPrompts:
    """Rows of an export.

    Attributes:
        rows: One for each picture to be drawn, with :data:`COLUMNS`.
        not_made: Number of follow-ups that have no prompt, by reason.
    """

    rows: list[dict[str, str]]
    not_made: Mapping[str, int] = field(default_factory=dict)

    @property
    def prompts(self) -> int:
        """Number of prompts."""
        return len({row["id"] for row in self.rows})


def prompts_of(suite: Suite, invocation: Invocation, most: int) -> ExportedPrompts:
    """Return the pictures that a plan needs, source by source.

    Repeats of the unchanged prompt are further pictures of the source's prompt, and the pictures of one changed prompt
    share its id. An id holds the start of a hash of address and words, so that pictures of another plan match nothing.

    Args:
        suite: The suite; its systems are not used.
        invocation: Provides ``data``, ``limit`` and ``only``.
        most: Largest number of pictures of one prompt.

    Raises:
        UserMistakes: The suite has no prompts, or its privacy keeps them or the ids of seeds from files.
    """
    _check(suite)
    parts = Parts(suite, invocation.data, invocation.batch_size)
    refs = parts.needed_refs(limit=invocation.limit, only=invocation.only)
    rows: list[dict[str, str]] = []
    not_made: Counter[str] = Counter()
    ids: dict[Address, str] = {}
    drawn: Counter[str] = Counter()
    for unit in parts.plan(refs).units():
        chosen = unit.chosen(limit=invocation.limit, only=invocation.only)
        if not chosen:
            continue
        seed = parts.prepared(refs[unit.index][0], unit.ref)
        for index in chosen:
            case = parts.make(seed, unit.cases[index])
            first = _first(parts, case.address)
            if case.follow is None or case.follow.prompt is None:
                not_made[f"{case.verdict.value}: {case.reason.text}"] += case.address == first
                continue
            text = case.follow.prompt.text
            name = ids.setdefault(first, f"p{len(ids) + 1:04d}-{words_sha256(f'{first} {text}')[:4]}")
            drawn[name] += 1
            if drawn[name] <= most:
                values = (name, str(drawn[name]), f"{name}-{drawn[name]}", str(case.address), text)
                rows.append(dict(zip(COLUMNS, values, strict=True)))
    return ExportedPrompts(rows=rows, not_made=not_made)


def _check(suite: Suite) -> None:
    fix = "medtest export writes the images of other suites"
    if not suite.task.prompts:
        raise Mistake(where="suite", key="seeds", found="images", allowed="seeds that are prompts", fix=fix).as_error()
    if suite.privacy.seed_ids == "hashed" or suite.privacy.prompts == "none":
        raise Mistake(
            where="suite",
            key="privacy",
            found=f"seed_ids: {suite.privacy.seed_ids}, prompts: {suite.privacy.prompts}",
            allowed="seed_ids: plain, and prompts that may be stored",
            fix="Exported files hold the words of prompts and the ids of their seeds; a suite may forbid that.",
        ).as_error()


def _first(parts: Parts, address: Address) -> Address:
    """Return the address of the first case that shows the same prompt."""
    if address.relation == UNCHANGED:
        return address.source()
    relation = parts.relations.get(address.relation)
    pictures = relation.pictures() if isinstance(relation, PromptRelation) else 1
    return replace(address, repeat=address.repeat // pictures * pictures)


def write_prompts(exported: ExportedPrompts, to: Path) -> None:
    """Write the rows as CSV and as JSON lines.

    Raises:
        UserMistakes: The folder holds other prompts, or files of these names that medtest did not write.
        OutputProblem: It cannot be written.
    """
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in exported.rows)
    files = {EXPORTED: _csv(COLUMNS, exported.rows), LINES: lines.encode("utf-8", "surrogatepass")}
    before = to / EXPORTED
    written = WrittenFiles(to)
    written.check(files, "file")
    if before.is_file() and before.read_bytes() != files[EXPORTED]:
        raise typed_error(
            "file",
            f"{to}, which holds the prompts of another plan",
            "a new folder, since pictures of the earlier prompts would match none of these",
        )
    with output_problems(before):
        written.write(files)


def _csv(columns: tuple[str, ...], rows: list[dict[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------------------------------------------- the way back


@dataclass(kw_only=True)
class MatchedPictures:
    """Pictures of exported prompts.

    Attributes:
        planned: Number of pictures to be drawn.
        files: File below the folder, by address.
        missing: Ids and numbers of the pictures that are not there.
        problems: Files that cannot be used, each with its reason.
        alike: Ids of prompts whose pictures are all the same.
    """

    planned: int = 0
    files: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)


def import_pictures(exported: Path, pictures: Path, names: Path | None = None) -> MatchedPictures:
    """Match pictures with exported prompts by id, and write the table that ``finished_pictures`` reads.

    Args:
        exported: Folder of the export, where the table is written.
        pictures: Folder of the pictures; their names hold id and number (``p0007-3fa9-2.png``; no number is 1).
        names: CSV file with columns ``id``, ``number`` and ``file`` (below ``pictures``) instead; None for none.

    Raises:
        UserMistakes: A file cannot be read, or no picture matches.
        OutputProblem: The table cannot be written.
    """
    rows = _read(exported / EXPORTED, COLUMNS, "file")
    matched = MatchedPictures(planned=len(rows))
    ids = {row["id"] for row in rows}
    places = _places(pictures, names, ids, matched)
    table: list[dict[str, str]] = []
    hashes: dict[str, list[str]] = {}
    for row in rows:
        number = _number(row["number"])
        file = places.get((row["id"], number), "")
        sha256 = _hash(pictures, file, matched) if file else ""
        if sha256:
            matched.files[row["address"]] = file
            hashes.setdefault(row["id"], []).append(sha256)
        else:
            matched.missing.append(row["file"])
        if sha256 or number > 1:  # a case whose prompt has another picture is left out, any other is an ERROR
            values = (row["address"], file if sha256 else "", words_sha256(row["prompt"]))
            table.append(dict(zip(TABLE_COLUMNS, values, strict=True)))
    if not matched.files:
        raise typed_error(
            "pictures",
            f"{pictures} (no picture of these prompts)",
            f"files named after the column file of {EXPORTED}, such as {rows[0]['file']}.png",
        )
    matched.alike = [name for name, values in hashes.items() if len(values) > 1 and len(set(values)) == 1]
    written = WrittenFiles(exported)
    written.check([TABLE], "file")
    with output_problems(exported / TABLE):
        written.write({TABLE: _csv(TABLE_COLUMNS, table)})
    return matched


def _read(path: Path, columns: tuple[str, ...], key: str) -> list[dict[str, str]]:
    try:
        rows = read_rows(path)
    except MedtestError as error:
        raise _unusable(key, str(error), columns) from None
    if not rows or any(name not in rows[0] for name in columns):
        raise _unusable(key, f"{path.name} without rows, or without a column", columns)
    return rows


def _unusable(key: str, problem: str, columns: tuple[str, ...]) -> UserMistakes:
    allowed = f"a CSV file with the columns {', '.join(columns)}"
    fix = "medtest prompts export suite=t2i file=FOLDER" if key == "file" else ""
    return typed_error(key, problem, allowed, fix)


def _places(folder: Path, names: Path | None, ids: set[str], matched: MatchedPictures) -> dict[tuple[str, int], str]:
    """Return the file of every picture, below the folder, by id and number; two files of one are a problem."""
    places: dict[tuple[str, int], str] = {}
    for name, number, file in _named(folder, names):
        if name not in ids:
            matched.problems.append(f"{file}: {name} is no id of these prompts")
        elif (name, number) in places:
            matched.problems.append(f"{file}: {places[name, number]} has the same id and number")
        else:
            places[name, number] = file
    return places


def _named(folder: Path, names: Path | None) -> Iterator[tuple[str, int, str]]:
    """Yield id, number and file of every picture that has an id."""
    if names is not None:
        for row in _read(names, ("id", "file"), "table"):
            yield row["id"].strip().lower(), _number(row.get("number", "").strip() or "1"), row["file"].strip()
        return
    for path in sorted(files_below(folder)):
        named = _NAMED.search(path.stem)
        if named and path.suffix.lower() in SUFFIXES:
            yield named[1].lower(), int(named[2] or 1), path.relative_to(folder).as_posix()


def _number(text: str) -> int:
    """Return a picture's number; 0, which no picture has, for any other text."""
    return int(text) if _NUMBER.fullmatch(text) else 0


def _hash(folder: Path, file: str, matched: MatchedPictures) -> str:
    """Return the SHA-256 of a picture's pixels; "" if it cannot be read, which is a problem."""
    try:
        return image_sha256(_pixels(folder, file))
    except BadFileError as error:
        matched.problems.append(f"{file} {error}")
        return ""


def _pixels(folder: Path, file: str) -> Image:
    path = file_below(folder, file)
    if path is None:
        raise BadFileError("is not in the folder")
    return pixels_of(read_bytes(path))

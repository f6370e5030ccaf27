"""Check that shards make one complete run: each present once, finished, with one digest, division and choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.errors import Mistake, UserMistakes, typed_mistake
from medtest.core.files import read_object
from medtest.runner.folder import RECORDS, RUN_FILE, SHARD_FOLDERS
from medtest.runner.records.parts import PartAccount
from medtest.runner.reporting.frozen import STATED
from medtest.suite.sharding import Shard

RUN_NAMES = ("suite", "system", "digest")
"""Keys of ``run.json`` that name the folders of a run below ``outputs/``."""
_NAMED = 12


@dataclass(frozen=True, kw_only=True)
class ShardPart:
    """Finished shard of one system.

    Attributes:
        folder: Its folder.
        account: Its metadata.
        run: The rest of its ``run.json``.
    """

    folder: Path
    account: PartAccount
    run: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in messages: its path as typed."""
        return str(self.folder)


def typed_shards(typed: Sequence[Path]) -> list[Path]:
    """Return the typed shards' folders, and the shards in typed runs' folders.

    Other names matched by ``shards/*`` are ignored: locks, and shards moved aside by ``fresh=true``.

    Raises:
        UserMistakes: A folder is neither a shard's nor a run's.
    """
    shards = [path for path in typed if not _beside_shards(path)]
    return [shard for path in shards or typed for shard in shards_in(path)]


def _beside_shards(path: Path) -> bool:
    """Return True for files that runs leave beside a shard's folder."""
    name, _, ending = path.name.partition(".")
    with suppress(ValueError):
        Shard.of_folder(name)
        return (ending == "lock" and not path.is_dir()) or ending.startswith("old-")
    return False


def shards_in(folder: Path) -> list[Path]:
    """Return a shard's folder itself, or the shards of a run's folder.

    Raises:
        UserMistakes: It is neither.
    """
    if _shard_of(folder) is not None:
        return [folder]
    inside = folder if folder.name == SHARD_FOLDERS else folder / SHARD_FOLDERS
    folders = [path for path in sorted(inside.glob("*-of-*")) if path.is_dir() and _shard_of(path) is not None]
    if not folders:
        raise folder_mistake(
            str(folder),
            "a shard's folder (…/shards/3-of-16), or that of a run that was made with shard=K/N",
            "look for it below outputs/<suite>/<system>/",
        ).as_error()
    return folders


def _shard_of(folder: Path) -> Shard | None:
    with suppress(ValueError):
        return Shard.of_folder(folder.resolve().name)
    return None


def whole_run(folders: Sequence[Path]) -> list[ShardPart]:
    """Return the shards after checking that they make one complete run.

    Raises:
        UserMistakes: They do not.
    """
    mistakes: list[Mistake] = []
    parts: list[ShardPart] = []
    for folder in folders:
        account, run = PartAccount.read(folder), read_object(folder / RUN_FILE)
        if account is None or not (folder / RECORDS).is_file():
            problem = f"{folder}: not a finished shard: its {RUN_FILE} or {RECORDS} is missing"
            mistakes.append(folder_mistake(problem, "finished shards", "run its command again to finish it"))
        elif invalid := [str(run.get(key)) for key in RUN_NAMES if not _is_name(run.get(key))]:
            problem = f"{folder}: its {RUN_FILE} names {invalid[0][:80]!r}, which is not a folder name"
            mistakes.append(folder_mistake(problem, "unmodified shards", "run the shard's command again"))
        elif account.shard != _shard_of(folder):
            problem = f"{folder}: its {RUN_FILE} says that it is shard {account.shard}"
            mistakes.append(folder_mistake(problem, "folders with their original names", "rename it back"))
        else:
            parts.append(ShardPart(folder=folder, account=account, run=run))
    if mistakes:
        raise UserMistakes(mistakes)
    first = parts[0]
    mistakes += [mistake for part in parts[1:] if (mistake := _other_run_mistake(first, part)) is not None]
    mistakes = mistakes or [*_duplicates(parts), *_missing(parts), *_unfinished(parts)]
    if mistakes:
        raise UserMistakes(mistakes, f"nothing was merged: {len(mistakes)} mistake{'s' * (len(mistakes) > 1)}")
    return parts


def _other_run_mistake(first: ShardPart, part: ShardPart) -> Mistake | None:
    """Return the mistake if a shard belongs to another run than the first one, else None."""
    for key in ("suite", "digest"):
        if part.run.get(key) != first.run.get(key):
            differing = (
                _describe_differences(first.run, part.run) if part.run.get("suite") == first.run.get("suite") else ""
            )
            return folder_mistake(
                f"{part.name}: of {key} {part.run.get(key)}, and {first.name} of {first.run.get(key)}{differing}",
                "shards of one run of one system",
                "join them one run after the other, or run the shard again under the same suite, data and weights",
            )
    if part.account.of != first.account.of:
        problem = f"{part.name}: shard {part.account.shard}, and {first.name}: shard {first.account.shard}"
        return folder_mistake(problem, "shards of one division, which do not overlap", "name those of one division")
    if (part.account.seeds, part.account.cases) != (first.account.seeds, first.account.cases):
        problem = f"{part.name}: of a plan of {part.account.seeds:,} seeds, and {first.name} of {first.account.seeds:,}"
        return folder_mistake(problem, "shards of one plan", "give every shard the same data")
    if part.account.chosen != first.account.chosen:
        problem = f"{part.name}: another choice of cases (limit=, only=) than {first.name}"
        return folder_mistake(problem, "one choice of cases in all shards", f"as {first.name}: {first.account.command}")
    if stated_plan(part.run).get("hash") != stated_plan(first.run).get("hash"):
        return folder_mistake(
            f"{part.name}: follows {_plan_words(part.run)}, and {first.name} {_plan_words(first.run)}",
            "shards that follow one frozen plan, or none",
            "copy that plan to outputs/<suite>/frozen/ of every machine, and run the shard's command again",
        )
    return None


def stated_plan(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the statement of a ``run.json`` on the frozen plan that the run follows; empty without one."""
    stated = run.get(STATED)
    return stated if isinstance(stated, Mapping) else {}


def _plan_words(run: Mapping[str, Any]) -> str:
    stated = stated_plan(run)
    if not stated:
        return "no frozen plan"
    return f"the plan frozen at {str(stated.get('frozen_at'))[:40]}, {str(stated.get('hash'))[:16]}"


def _is_name(value: object) -> bool:
    """Return True if a text from an untrusted ``run.json`` is a plain folder name."""
    return isinstance(value, str) and Path(value).name == value != ".." and value.isprintable()


def _describe_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Describe the differences between two digests' contents."""
    first_covers, second_covers = first.get("covers"), second.get("covers")
    if not (isinstance(first_covers, dict) and isinstance(second_covers, dict)):
        return ""
    names = [name for name in {**first_covers, **second_covers} if first_covers.get(name) != second_covers.get(name)]
    return f"; they differ in {', '.join(names[:_NAMED])}" if names else ""


def _duplicates(parts: Sequence[ShardPart]) -> Iterator[Mistake]:
    for number, count in sorted(Counter(part.account.number for part in parts).items()):
        if count > 1:
            paths = [part.name for part in parts if part.account.number == number]
            problem = f"shard {number}/{parts[0].account.of} {count} times: {', '.join(paths)}"
            yield folder_mistake(problem, "every shard once", "name one of them")


def _missing(parts: Sequence[ShardPart]) -> Iterator[Mistake]:
    total = parts[0].account.of
    gaps = sorted({*range(1, total + 1)} - {part.account.number for part in parts})
    if gaps:
        numbers = ", ".join(f"{number}/{total}" for number in gaps[:_NAMED])
        suffix = f" and {len(gaps) - _NAMED:,} more" if len(gaps) > _NAMED else ""
        fix = f"name the folders of shard{'s' * (len(gaps) > 1)} {numbers}{suffix} too, or run shard={gaps[0]}/{total}"
        yield folder_mistake(f"{total - len(gaps)} of {total} shards", f"all {total} shards", fix)


def _unfinished(parts: Sequence[ShardPart]) -> Iterator[Mistake]:
    for part in parts:
        account = part.account
        if account.finished < account.asked:
            problem = f"{part.name}: {account.finished:,} of {account.asked:,} cases are finished"
            yield folder_mistake(problem, "finished shards", f"continue it: {account.command}".rstrip(": "))


def folder_mistake(problem: str, allowed: str, fix: str = "") -> Mistake:
    """Return the mistake for a typed folder."""
    return typed_mistake("FOLDER", problem, allowed, fix)

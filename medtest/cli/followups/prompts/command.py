"""``medtest prompts``: write prompts to be drawn elsewhere, and match the pictures that come back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from medtest.cli.followups.prompts.geneval import geneval
from medtest.cli.followups.prompts.review import review
from medtest.cli.terminal import GroupedCommands, console, say
from medtest.cli.typed import ConfigDirs, Tokens, own_keys, split_tokens
from medtest.core.cases import UNCHANGED
from medtest.core.errors import nearest_name, typed_error

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

PICTURES = 4
"""Usual number of pictures of each prompt."""
_MOST_PICTURES = 100
_COMMAND = "export.json"
"""File with the tokens of an export, for the command that judges its pictures."""
_MOST_LINES = 5
_IMPORT = ("file", "pictures", "table")


@app.callback()
def prompts() -> None:
    """Check how prompts are read, export them to be drawn anywhere, and import the pictures."""


app.command("geneval")(geneval)
app.command("review")(review)


@app.command("export")
def export(tokens: Tokens, config_dir: ConfigDirs = None) -> None:
    """Write all prompts of a plan with ids: medtest prompts export suite=t2i file=DIR pictures=4."""
    from medtest.core.files.written import check_out, note_out
    from medtest.report.pages.words import counted
    from medtest.runner.folder import output_problems, writing_text
    from medtest.runner.replaying.prompts import prompts_of, write_prompts
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    out = console()
    name, overrides, own, words = split_tokens(tokens, "file", "pictures")
    if words or not own.get("file"):
        example = "medtest prompts export suite=t2i file=DIR"
        raise typed_error("file", found=" ".join(words) or "none", allowed="file=DIR", fix=example)
    pictures = _pictures(own.get("pictures", str(PICTURES)))
    overrides = [token for token in overrides if not token.startswith("model=")]
    with own_keys("file", "pictures"):
        suite = load(name, overrides, config_dirs=config_dir or []).suite
        overrides += _several(suite, overrides, pictures)
        loaded = load(name, overrides, config_dirs=config_dir or [])
    exported = prompts_of(loaded.suite, invocation_of(loaded), pictures)
    folder = Path(own["file"]).expanduser()
    with output_problems(folder / _COMMAND):
        folder.mkdir(parents=True, exist_ok=True)
    check_out([folder / _COMMAND], "file")
    write_prompts(exported, folder)
    with writing_text(folder / _COMMAND) as file:
        json.dump({"suite": name, "tokens": overrides}, file, indent=2)
    note_out([folder / _COMMAND])
    say(out, f"{folder}: {counted(exported.prompts, 'prompt')}, {counted(len(exported.rows), 'picture')} to draw")
    for reason, count in exported.not_made.items():
        say(out, f"  without a prompt: {counted(count, 'follow-up')} ({reason})")
    say(out, "Save each picture under the name in the column file of prompts.csv (.png, .jpg …), then:")
    say(out, f"  medtest prompts import {shlex.quote('file=' + own['file'])}")


def _pictures(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_PICTURES:
        raise typed_error("pictures", text, f"pictures of each prompt, 1 to {_MOST_PICTURES}")
    return int(text)


def _several(suite: Any, typed: Sequence[str], pictures: int) -> list[str]:
    """Return the settings that give every prompt of a suite several pictures, without those that were typed."""
    tokens = [f"relations.{UNCHANGED}.repeats={max(1, pictures - 1)}"]
    tokens += [
        f"relations.{plan.id}.pictures={pictures}"
        for plan in suite.relations
        if pictures > 1 and hasattr(plan.settings, "pictures")
    ]
    keys = {token.lstrip("+").partition("=")[0] for token in typed}
    return [token for token in tokens if token.partition("=")[0] not in keys]


@app.command("import")
def import_command(
    tokens: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE",
            help="file=DIR of the export; pictures=FOLDER elsewhere; table=FILE.csv with id, number, file",
        ),
    ],
) -> None:
    """Match pictures with exported prompts by id: medtest prompts import file=DIR (then model=finished_pictures)."""
    from medtest.runner.replaying.prompts import import_pictures

    out = console()
    own = _own(tokens)
    folder = _folder(own["file"], "file")
    pictures = _folder(own["pictures"], "pictures") if own.get("pictures") else folder
    names = Path(own["table"]).expanduser() if own.get("table") else None
    matched = import_pictures(folder, pictures, names)
    say(out, f"{folder / 'pictures.csv'}: {len(matched.files):,} of {matched.planned:,} pictures")
    _lines(out, matched.problems, "file", "cannot be used")
    _lines(out, matched.missing, "picture", "missing")
    _lines(out, matched.alike, "prompt", "with the same picture several times, which measures no floor")
    say(out, "Judge them:")
    beside = [] if pictures == folder else [f"table={own['file']}/pictures.csv"]
    settings = [f"folder={own.get('pictures') or own['file']}", *beside]
    say(out, f"  {shlex.join(['medtest', 'run', *_planned(folder), 'model=finished_pictures', *settings])}")


def _own(tokens: Sequence[str]) -> dict[str, str]:
    own: dict[str, str] = {}
    for token in tokens:
        key, equals, value = token.partition("=")
        if not equals or key not in _IMPORT:
            raise typed_error(key, token, ", ".join(f"{name}=" for name in _IMPORT), nearest=nearest_name(key, _IMPORT))
        own[key] = value
    if not own.get("file"):
        raise typed_error("file", "none", "file=DIR", "medtest prompts import file=DIR")
    return own


def _folder(text: str, key: str) -> Path:
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise typed_error(key, text, "an existing folder")
    return folder


def _planned(folder: Path) -> list[str]:
    """Return suite and tokens of the export in a folder."""
    from medtest.core.files import read_object

    content = read_object(folder / _COMMAND)
    tokens = content.get("tokens")
    return [f"suite={content.get('suite', 't2i')}", *(map(str, tokens) if isinstance(tokens, list) else ())]


def _lines(out: Console, lines: Sequence[str], noun: str, words: str) -> None:
    from medtest.report.pages.words import counted

    if not lines:
        return
    say(out, f"{counted(len(lines), noun)} {words}:")
    for line in lines[:_MOST_LINES]:
        say(out, f"  {line}")
    if len(lines) > _MOST_LINES:
        say(out, f"  and {len(lines) - _MOST_LINES:,} more")

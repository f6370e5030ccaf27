"""Arguments and options shared by commands, and parsing of tokens: a suite, its overrides, keys of the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error


def complete_token(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tokens that an unfinished word may become, for the completion of shells.

    Args:
        context: The command with its tokens before the word, ``tokens`` or ``suites``.
        incomplete: The word.
    """
    from medtest.suite.commandline.completion import completions

    words = context.params.get("tokens") or context.params.get("suites") or []
    return completions([str(word) for word in words], incomplete)


def complete_suite(context: typer.Context, incomplete: str) -> list[str]:
    """Return the suites whose names begin with a word, and the tokens that it may become."""
    from medtest.suite.reading.library import suite_folders, suite_names

    names = [name for name in suite_names(suite_folders()) if name.startswith(incomplete)]
    return [*names, *complete_token(context, incomplete)]


Tokens = Annotated[
    list[str],
    typer.Argument(
        metavar="KEY=VALUE",
        help="suite=NAME and any key of a run: data=PATH, model=NAME, relations.blur.severities=[3] …",
        autocompletion=complete_token,
    ),
]
ConfigDirs = Annotated[
    list[Path] | None,
    typer.Option("--config-dir", metavar="DIR", help="Folder of your own configuration (model/*.yaml …)."),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]


JUnitOption = Annotated[
    Literal["cells", "cases"] | None,
    typer.Option("--junit", help="Also write junit.xml, with one test case per cell or per case."),
]
BrowserForm: TypeAlias = Literal["page", "folder"]
"""Place of the pictures of the report's browser."""


def split_tokens(tokens: Sequence[str], *keys: str) -> tuple[str, list[str], dict[str, str], list[str]]:
    """Split tokens into the suite's name, overrides, the command's own keys, and bare words.

    Args:
        tokens: The typed tokens.
        keys: Keys of ``key=value`` tokens that belong to the command instead of the suite.

    Raises:
        UserMistakes: No suite was named.
    """
    own = {t.partition("=")[0]: t.partition("=")[2] for t in tokens if t.partition("=")[0] in keys and "=" in t}
    rest = [t for t in tokens if "=" not in t or t.partition("=")[0] not in keys]
    named = [t.removeprefix("suite=") for t in rest if t.startswith("suite=")]
    overrides = [t for t in rest if ("=" in t or t.startswith("~")) and not t.startswith("suite=")]
    words = [t for t in rest if "=" not in t and not t.startswith("~")]
    if not named and words:
        named, words = words[:1], words[1:]
    if not named:
        raise typed_error("suite", found="none", allowed="suite=NAME", fix="medtest list suites")
    return named[-1], overrides, own, words


@contextmanager
def own_keys(*keys: str) -> Iterator[None]:
    """Add the command's own keys, unknown to the suite's check, to the suggestions for mistyped keys."""
    try:
        yield
    except UserMistakes as error:
        mistakes = [entry if entry.key in keys else _proposing(entry, keys) for entry in error.mistakes]
        raise UserMistakes(mistakes, heading=error.heading) from error


def _proposing(mistake: Mistake, keys: Sequence[str]) -> Mistake:
    """Add the command's own keys to the suggestions for an unknown key; other mistakes are unchanged."""
    if mistake.found != f"the key {mistake.key}":
        return mistake
    named = [mistake.nearest] if mistake.nearest else []
    allowed = ", ".join(sorted({*keys, *mistake.allowed.split(", ")}))
    return replace(mistake, allowed=allowed, nearest=nearest_name(mistake.key, [*named, *keys]) or mistake.nearest)

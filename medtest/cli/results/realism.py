"""``medtest realism``: statistics of made artefacts against real ones that the user has."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from medtest.cli.terminal import bar, say
from medtest.cli.typed import own_keys, split_tokens
from medtest.core.errors import nearest_name, typed_error
from medtest.core.files.paths import home, path_from_here

if TYPE_CHECKING:
    from medtest.realism.run import Realism


def compare_with_real(tokens: Sequence[str], *, config_dirs: Sequence[Path], console: Console) -> None:
    """Measure made and real artefacts, print the figures, and write tables and a page.

    Raises:
        UserMistakes: The tokens have mistakes, or a folder of real pictures cannot be used.
        OutputProblem: The folder of the results cannot be written.
    """
    from medtest.realism.options import keys_of, options_of
    from medtest.realism.page import write_files
    from medtest.realism.run import compare_artefacts
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    keys = keys_of(tokens)
    name, overrides, own, words = split_tokens(tokens, *keys)
    if words:
        raise typed_error("", words[0], "KEY=VALUE", nearest=nearest_name(words[0], keys))
    options = options_of(own)
    with own_keys(*keys):
        loaded = load(name, overrides, config_dirs=config_dirs)
    with bar(console, "pictures") as progress:
        result = compare_artefacts(loaded.suite, invocation_of(loaded), options, progress)
    folder = options.to or home() / "outputs" / "realism" / loaded.suite.name
    written = write_files(result, folder, _command(tokens))
    _print(result, console)
    for path in written:
        say(console, path_from_here(path))


def _command(tokens: Sequence[str]) -> str:
    """Return the command for the page; values that are paths of this machine are left out."""
    shown = []
    for token in tokens:
        key, sign, value = token.partition("=")
        shown.append(f"{key}{sign}…" if sign and ("/" in value or value.startswith("~")) else token)
    return " ".join(["medtest", "realism", *map(shlex.quote, shown)])


def _print(result: Realism, console: Console) -> None:
    from medtest.realism import tables

    for notice in result.notices:
        say(console, notice)
    for relation in dict.fromkeys(row.relation for row in result.statistics):
        heads = ("n real/made", "real: quartiles", "made: quartiles", "inside 5-95 %", "IQR ratio", "target")
        rows = [row for row in result.statistics if row.relation == relation]
        shown = [(row.title, *tables.statistic_cells(row)) for row in rows]
        _show(f"{relation}: real and made", heads, shown, tables.TARGETS["statistics"], console)
    patch_rows = [(row.relation, *tables.patch_cells(row)) for row in result.patches]
    areas = ("artefacts", "clean tissue", "gain", "patches", "made less real, in sd", "target")
    _show("made against real patches, area under the ROC curve", areas, patch_rows, tables.TARGETS["patches"], console)
    seam_rows = [(row.relation, *tables.seam_cells(row)) for row in result.seams]
    controls = ("pasted", "hard", "untouched", "patches", "target")
    _show("seams, area under the ROC curve", controls, seam_rows, tables.TARGETS["seams"], console)


def _show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], target: str, console: Console) -> None:
    """Print a table and its target; nothing without rows."""
    if not rows:
        return
    table = Table(title=title)
    for head in ("", *heads):
        table.add_column(head)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    say(console, f"Target: {target}.")

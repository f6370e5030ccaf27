"""Commands that are tried before they are printed: composed, their seeds listed, their systems checked."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from medtest.core.errors import MedtestError, UserMistakes
from medtest.seeds.folders.layout import shown

if TYPE_CHECKING:
    from medtest.seeds.base import SeedSource
    from medtest.seeds.datasets.looked import SuiteLine

MODEL = "model=openai_compatible"
"""A model whose address no suite knows."""

EXAMPLE = ("base_url=http://127.0.0.1:8000/v1", "model_name=NAME")
"""An example of its address."""


def prove(line: SuiteLine, typed: str) -> tuple[str, str]:
    """Do what a run does before loading anything heavy, and return the command that succeeds.

    A model whose address only the user knows is planned with an example address. If not every file was read to its end,
    the command is limited to the first images, which were.

    Args:
        line: Command line for a data set.
        typed: The inspected path as typed.

    Returns:
        The command, "" if it does not start, and a remark on it, or the reason why there is none.
    """
    tokens = line.tokens(typed)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        return _proof(tokens)
    except UserMistakes as error:
        return "", "; ".join(_in_words(error))
    except (MedtestError, OSError) as error:
        return "", str(error)
    finally:
        logging.disable(before)


def _proof(tokens: tuple[str, ...]) -> tuple[str, str]:
    from medtest.runner.prepared import prepare_run
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    notes: list[str] = []
    if MODEL in tokens:
        tokens = (*tokens, *EXAMPLE, "plan=true")
        notes.append("insert the address and the model of your server; without plan=true, the model is queried")
    name, *overrides = (token.removeprefix("suite=") if index == 0 else token for index, token in enumerate(tokens))
    loaded = load(name, overrides, for_run=True)
    invocation = invocation_of(loaded)
    first = _first_read(loaded.suite.build_seeds(invocation.data))
    if first is not None:
        tokens, invocation = (*tokens, f"limit={first}"), replace(invocation, limit=first)
        notes.append("limited to the first images, whose files are read completely")
    prepare_run(loaded.suite, invocation)
    return shown(f"medtest run {shlex.join(tokens)}"), "; ".join(notes)


def _first_read(sources: Sequence[SeedSource]) -> int | None:
    """Return the number of leading seeds per data set whose files were read completely; None for all of them."""
    read_counts: list[int] = []
    for source in sources:
        unread = source.unread()
        counts: dict[str, int] = {}
        ended: set[str] = set()
        for ref in source.places() if unread else ():
            if (ref.dataset, ref.seed_id) in unread:
                ended.add(ref.dataset)
            counts[ref.dataset] = counts.get(ref.dataset, 0) + (ref.dataset not in ended)
        read_counts += [count for dataset, count in counts.items() if dataset in ended]
    return max(1, min(read_counts)) if read_counts else None


def _in_words(error: UserMistakes) -> list[str]:
    return [
        f"{mistake.where}: {mistake.found}" + (f"; {mistake.fix}" if mistake.fix else "")
        for mistake in error.mistakes[:3]
    ]

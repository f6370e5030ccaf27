"""Commands that are proven to start before they are printed: composed, their seeds listed, their systems checked."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.errors import MedtestError, UserMistakes
from medtest.seeds.folders.layout import shown

if TYPE_CHECKING:
    from medtest.seeds.base import SeedSource
    from medtest.seeds.datasets.looked import SuiteLine

MODEL = "model=openai_compatible"
"""A model that no suite knows the address of."""

EXAMPLE = ("base_url=http://127.0.0.1:8000/v1", "model_name=NAME")
"""An address as it may be."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What became of a line for the command line.

    Attributes:
        tokens: The line that starts; empty where none does.
        note: What is to know of it, or why there is none.
    """

    tokens: tuple[str, ...] = ()
    note: str = ""

    @property
    def command(self) -> str:
        """The line as one types it."""
        start = "python run.py" if Path("run.py").is_file() else "medtest run"
        return shown(f"{start} {shlex.join(self.tokens)}")


def prove(line: SuiteLine, typed: str) -> Proof:
    """Do what a run does before it loads anything heavy, and return the line that gets through.

    A model whose address only the user knows is planned with an example of one; where not every file was read to its
    end, the line takes the first images, which were.

    Args:
        line: How to run on a data set.
        typed: The inspected path as it was typed.
    """
    tokens = line.tokens(typed)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        return _proof(tokens)
    except UserMistakes as error:
        return Proof(note="; ".join(_in_words(error)))
    except (MedtestError, OSError) as error:
        return Proof(note=str(error))
    finally:
        logging.disable(before)


def _proof(tokens: tuple[str, ...]) -> Proof:
    from medtest.runner.prepared import prepare_run
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    notes: list[str] = []
    if MODEL in tokens:
        tokens = (*tokens, *EXAMPLE, "plan=true")
        notes.append("with your server's address and its model, without plan=true, it is asked")
    name, *overrides = (token.removeprefix("suite=") if at == 0 else token for at, token in enumerate(tokens))
    loaded = load(name, overrides, for_run=True)
    invocation = invocation_of(loaded)
    first = _first_read(loaded.suite.build_seeds(invocation.data))
    if first is not None:
        tokens, invocation = (*tokens, f"limit={first}"), replace(invocation, limit=first)
        notes.append("the first images, whose files were read to their end")
    prepare_run(loaded.suite, invocation)
    return Proof(tokens=tokens, note="; ".join(notes))


def _first_read(sources: Sequence[SeedSource]) -> int | None:
    """Return how many of the first seeds of every data set were read to their end; None for all of them."""
    found: list[int] = []
    for source in sources:
        unread = source.unread()
        counts: dict[str, int] = {}
        ended: set[str] = set()
        for ref in source.places() if unread else ():
            if (ref.dataset, ref.seed_id) in unread:
                ended.add(ref.dataset)
            counts[ref.dataset] = counts.get(ref.dataset, 0) + (ref.dataset not in ended)
        found += [count for dataset, count in counts.items() if dataset in ended]
    return max(1, min(found)) if found else None


def _in_words(error: UserMistakes) -> list[str]:
    return [
        f"{mistake.where}: {mistake.found}" + (f"; {mistake.fix}" if mistake.fix else "")
        for mistake in error.mistakes[:3]
    ]

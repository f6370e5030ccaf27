"""``medtest weights``: content of a checkpoint, and conversion of old ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from medtest.cli.terminal import GroupedCommands, console, say

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command("convert")
def convert_command(
    source: Annotated[str, typer.Argument(metavar="IN", help="The old checkpoint.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The new file: .safetensors or .pth.")],
    trust: Annotated[
        bool, typer.Option("--i-trust-this-file", help="Do not ask: I know who made this file, and trust them.")
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace the new file where it is there already.")] = False,
) -> None:
    """Write a checkpoint's weights, under their official names, to a file that can be read without running code.

    An old pickle may run any code when it is read. It is read in a process of its own, and only if you trust it.
    """
    from medtest.systems.checkpoints.convert import convert

    out = console()

    def trusted() -> bool:
        name = Path(source).name
        if trust:
            return True
        say(out, f"{name} holds more than weights: reading it runs whatever code is in it, as you, on this machine.")
        if not sys.stdin.isatty():
            out.print("Nobody is here to ask; --i-trust-this-file answers yes.")
            return False
        return typer.confirm("Do you know who made it, and trust them?", default=False)

    done = convert(source, target, trusted=trusted, overwrite=overwrite)
    contents = f"the weights of {done.network}" if done.network else "weights of a network that medtest does not know"
    say(out, f"{done.path}: {done.entries} tensors, {contents}; SHA-256 {done.sha256}")


@app.command("show")
def show_command(
    checkpoint: Annotated[str, typer.Argument(metavar="FILE", help="A checkpoint.")],
) -> None:
    """Show what a checkpoint holds: likely network, number of tensors and parameters, SHA-256."""
    from medtest.core.errors import UserMistakes
    from medtest.systems.checkpoints.checkpoint import looks_like, read_state
    from medtest.systems.checkpoints.weights import is_ours, read_info
    from medtest.systems.files import cached_sha256, file_mistakes, user_path

    mistakes = file_mistakes(checkpoint, where="command line", key="FILE")
    if mistakes:
        raise UserMistakes(mistakes)
    path = user_path(checkpoint)
    state = read_state(path)
    out = console()
    if is_ours(path):
        info = read_info(path)
        say(out, f"network     {info.network.get('family')}, compact, taking {info.size} pixels")
    else:
        say(out, f"network     {looks_like(state) or 'none that medtest knows'}")
    numbers = sum(value.numel() for value in state.values())
    say(out, f"tensors     {len(state)}, {numbers:,} numbers")
    say(out, f"SHA-256     {cached_sha256(path)}")

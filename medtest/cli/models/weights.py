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
        bool,
        typer.Option("--i-trust-this-file", help="Read the file without asking: you know its author and trust them."),
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace OUT if it exists.")] = False,
) -> None:
    """Write the weights of an old checkpoint, under their official names, to a file that runs no code when read.

    An old pickle can run any code when it is read. It is read in a separate process, and only if you trust it.
    """
    from medtest.systems.checkpoints.checkpoint import looks_like
    from medtest.systems.checkpoints.convert import convert
    from medtest.systems.files import cached_sha256, user_path

    out = console()

    def trusted() -> bool:
        name = Path(source).name
        if trust:
            return True
        say(out, f"{name} holds more than weights: reading it runs its code with your rights on this machine.")
        if not sys.stdin.isatty():
            out.print("Not a terminal: cannot ask. If you trust the file, add --i-trust-this-file.")
            return False
        return typer.confirm("Do you know and trust its author?", default=False)

    state = convert(source, target, trusted=trusted, overwrite=overwrite)
    network, path = looks_like(state), user_path(target)
    contents = f"the weights of {network}" if network else "weights of an unknown network"
    say(out, f"{path}: {len(state)} tensors, {contents}; SHA-256 {cached_sha256(path)}")


@app.command("show")
def show_command(
    checkpoint: Annotated[str, typer.Argument(metavar="FILE", help="A checkpoint.")],
) -> None:
    """Show the content of a checkpoint: likely network, tensors, parameters, SHA-256."""
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
        say(out, f"network     {info.network.get('family')}, compact, input side {info.size} pixels")
    else:
        say(out, f"network     {looks_like(state) or 'unknown'}")
    numbers = sum(value.numel() for value in state.values())
    say(out, f"tensors     {len(state)}, {numbers:,} numbers")
    say(out, f"SHA-256     {cached_sha256(path)}")

"""``medtest objects``: libraries of cut-outs for the relations instrument, feces and blood."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from medtest.cli.terminal import GroupedCommands, bar, console, say

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
def objects() -> None:
    """Libraries of cut-outs that the relations instrument, feces and blood paste."""


@app.command("build")
def build(
    path: Annotated[Path, typer.Argument(help="Folder of images and masks.")],
    layout: Annotated[Literal["kvasir-instrument", "ead2020", "masks"], typer.Option(help="Layout of the folder.")],
    out: Annotated[Path, typer.Option(help="Library to write; objects/NAME is available as library=NAME.")],
    licence: Annotated[
        str, typer.Option("--license", "--licence", help="Licence of the images, stored with each cut-out.")
    ],
    kind: Annotated[
        Literal["instrument", "feces", "blood"] | None,
        typer.Option(help="Object that the masks mark; required with --layout masks."),
    ] = None,
    source: Annotated[str, typer.Option(help="Origin of the images, stored with each cut-out.")] = "",
    smallest: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Smallest area, as a fraction of the field.")
    ] = 0.002,
    largest: Annotated[float, typer.Option(min=0.0, max=1.0, help="Largest area, as a fraction of the field.")] = 0.5,
) -> None:
    """Build a library of cut-outs from your images and masks."""
    from medtest.relations.objects.build import BuildOptions, build_library

    options = BuildOptions(kind=kind, source=source, licence=licence, smallest=smallest, largest=largest)
    out_console = console()
    with bar(out_console, "images") as progress:
        report = build_library(layout, path, out, options, progress)
    counted = ", ".join(f"{number} {name}" for name, number in sorted(report.written.items()))
    say(out_console, f"{counted} written to {out.name} ({report.partial} partial views, left out by default)")
    for name, reason in report.skipped[:20]:
        say(out_console, f"  skipped {name}: {reason}")
    if len(report.skipped) > 20:
        out_console.print(f"  and {len(report.skipped) - 20} more")
    where = f"library={out.name}" if out.parent.name == "objects" else "library_folder=PATH"
    for name in sorted(report.written):  # each kind of object is pasted by the relation of the same name
        drawn = " relations.instrument.kind=cutout" if name == "instrument" else ""
        say(out_console, f"Use it: relations.{name}.{where}{drawn}")


@app.command("list")
def list_objects(
    library: Annotated[str, typer.Argument(help="bundled, or the name or folder of a library.")] = "bundled",
) -> None:
    """List the cut-outs of a library with source and licence."""
    from rich.table import Table

    from medtest.relations.objects.library import KINDS, load_library

    folder = library if Path(library).is_dir() else None
    cutouts = load_library(library, folder)
    table = Table(title=f"{cutouts.label}: {cutouts.digest[:12]}")
    for column in ("kind", "name", "% of field", "pixels", "partial", "licence", "source"):
        table.add_column(column)
    for kind in KINDS:
        for info in cutouts.kind(kind):
            share = f"{100 * info.area:.2f}"
            partial = "yes" if info.partial else ""
            table.add_row(kind, info.name, share, str(info.pixels), partial, info.licence, info.source)
    console().print(table)

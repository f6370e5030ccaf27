"""``medtest data``: data sets of a folder or an archive, and commands to run on them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from medtest.cli.terminal import GroupedCommands
from medtest.core.errors import ExitCode
from medtest.seeds.folders.layout import shown

if TYPE_CHECKING:
    from medtest.seeds.datasets.inspect import Inspection
    from medtest.seeds.datasets.looked import Looked, SuiteLine

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

_MOST_LINES = 12
_BAR = 24
_MOST_CLASSES = 20


@app.callback()
def data() -> None:
    """Inspect data sets: content, completeness, and commands that run on them."""


@app.command("inspect")
def inspect(
    path: Annotated[Path, typer.Argument(help="Folder or archive (.zip, .tar, .tar.gz). Archives are not unpacked.")],
) -> None:
    """Identify data sets and compare them with published ones. Exit code 2: none found, or unusable files."""
    from rich.progress import Progress

    from medtest.seeds.datasets.inspect import PIXEL_SECONDS, inspect_path
    from medtest.seeds.folders.check import kept_looks

    console = Console(highlight=False, markup=False)
    with kept_looks(PIXEL_SECONDS):  # the printed commands are tried on these files
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("reading files", total=None)
            inspection = inspect_path(
                path.expanduser(), progress=lambda done, total: bar.update(task, completed=done, total=total)
            )
        _print_inspection(console, str(path), inspection)
    if inspection.empty or not inspection.usable:
        raise typer.Exit(int(ExitCode.MISTAKE))


@app.command("questions")
def questions(
    tokens: Annotated[list[str], typer.Argument(help="suite=NAME to=DIR, then data=PATH, limit=N, settings of seeds.")],
) -> None:
    """Write images, questions and true answers in MEDVQA-GI's format: medtest data questions suite=medvqa to=DIR."""
    from medtest.cli.data.questions import write_development

    write_development(tokens, console=Console(highlight=False, markup=False))


@app.command("submission")
def submission(
    run: Annotated[Path, typer.Argument(help="Folder of a run on the 18 questions.")],
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = Path("submission.json"),
) -> None:
    """Write a MEDVQA-GI submission from the answers of a run to its source images."""
    from medtest.cli.data.questions import write_submission

    write_submission(run, out, console=Console(highlight=False, markup=False))


@app.command("answers")
def answers(
    file: Annotated[Path, typer.Argument(help="CSV file with the columns question, answer and, optionally, expected.")],
    out: Annotated[Path, typer.Option(help="CSV file to write.")] = Path("read.csv"),
) -> None:
    """Parse answers from a CSV file as a run does: value, state and stage of each, and counts."""
    from medtest.cli.data.questions import write_readings

    write_readings(file, out, console=Console(highlight=False, markup=False))


@app.command("known")
def list_known() -> None:
    """List the data sets that medtest recognises: published images, sizes, and sources."""
    from medtest.seeds.datasets.facts import known

    console = Console(highlight=False, markup=False)
    for facts in known().values():
        sizes = ", ".join(facts.sizes) or (f"{facts.smallest} to {facts.largest}" if facts.largest else "")
        console.print(f"{facts.key}", style="bold", end="")
        pairs = f"{facts.pairs:,} pairs of question and answer" if facts.pairs else ""
        contents = ", ".join(text for text in (f"{facts.images:,} images", pairs, sizes) if text)
        console.print(f"  {facts.title}: {contents}", soft_wrap=True)
        unconfirmed = f"not confirmed: {facts.unconfirmed}" if facts.unconfirmed else ""
        for text in (facts.source, facts.paper, facts.licence, unconfirmed):
            if text:
                console.print(f"  {text}", soft_wrap=True)


def _print_inspection(console: Console, typed: str, inspection: Inspection) -> None:
    commands: list[str] = []
    for looked in inspection.looked:
        _print_set(console, looked)
        if looked.line is not None:
            without = " (without the refused files)" if looked.problems else ""
            commands.append(_print_line(console, looked.line, typed, f"run{without}:"))
        for variant, line in looked.also:
            commands.append(_print_line(console, line, typed, "or:", f"({variant})"))
        console.print()
    for name, inside in (inspection.archives or {}).items():
        _print_archive(console, typed, name, inside)
    for line, counts in inspection.suites:
        _print_suite(console, typed, line, counts)
    if inspection.together is not None:
        sets = inspection.together.sets
        console.print(f"{len(sets)} data sets in one run: {', '.join(sets)}", style="bold", soft_wrap=True)
        commands.insert(0, _print_line(console, inspection.together, typed, "run:"))
        console.print()
    if inspection.rest:
        console.print("These files belong to no data set, and no run reads them:")
        for rest in inspection.rest:
            console.print(f"  {rest}", soft_wrap=True)
    if inspection.ignored:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(inspection.ignored.items()))
        console.print(shown(f"Ignored: {kinds}."), soft_wrap=True)
    for note in inspection.notes:
        console.print(f"Note: {note}.", soft_wrap=True)
    if inspection.empty:
        formats = "PNG, JPEG, BMP, TIFF, WebP, DICOM, NIfTI"
        console.print(f"No images were found that medtest can read ({formats}).", soft_wrap=True)
    started = next(filter(None, commands), "")
    if started:
        console.print(f"This command was checked and starts:\n  {started}", soft_wrap=True)


def _print_line(console: Console, line: SuiteLine, typed: str, label: str, remark: str = "") -> str:
    """Print and return a command that was tried and starts; without one print the reason, and return ""."""
    from medtest.cli.data.proof import prove

    command, note = prove(line, typed)
    if command:
        notes = "  ".join(text for text in (remark, f"({note})" if note else "") if text)
        console.print(f"  {label:<8} {command}" + (f"  {notes}" if notes else ""), soft_wrap=True)
    else:
        console.print(shown(f"  note:    no command for suite={line.suite}: {note}"), soft_wrap=True)
    return command


def _print_set(console: Console, looked: Looked) -> None:
    dataset, facts = looked.found, looked.found.facts
    name = facts.title if facts is not None else dataset.title or "images"
    part = f", {dataset.part}" if dataset.part else ""
    where = "" if str(dataset.where) == "." else f"  in {dataset.where}/"
    console.print(shown(f"{name}{part}{where}"), style="bold", soft_wrap=True)
    images = f"{dataset.count:,}" + (f" of {facts.images:,} published" if facts is not None else "")
    content = {
        "masks": "image files",
        "images": "image files, no masks",
        "labels": "image files with labels",
        "questions": "image files with questions",
        "maps": "prediction maps",
    }[dataset.holds]
    console.print(shown(f"  images:  {images} ({content}; {dataset.layout})"), soft_wrap=True)
    if looked.pairs is not None and dataset.holds == "masks":
        rule = f", masks are named {looked.rule}" if looked.rule else ""
        console.print(f"  pairs:   {looked.pairs:,} with a mask{rule}")
    if looked.classes:
        console.print("  classes: " + "\n           ".join(_class_lines(looked)), soft_wrap=True)
    if looked.questions:
        console.print(shown("  questions: " + "; ".join(looked.questions)), soft_wrap=True)
    if looked.sizes:
        console.print("  sizes:   " + "\n           ".join(_histogram(looked.sizes)), soft_wrap=True)
    for note in looked.notes:
        console.print(shown(f"  note:    {note}"), soft_wrap=True)
    if looked.problems:
        files = len({problem.file for problem in looked.problems})
        console.print(f"  problem: {files:,} file{'' if files == 1 else 's'} that would be refused", style="red")
        for problem in looked.problems[:_MOST_LINES]:
            console.print(f"           {problem.file}: {problem.reason}", soft_wrap=True)
        if len(looked.problems) > _MOST_LINES:
            console.print(f"           and {len(looked.problems) - _MOST_LINES:,} more")


def _class_lines(looked: Looked) -> list[str]:
    width = max(len(name) for name, _, _ in looked.classes[:_MOST_CLASSES])
    lines = [
        shown(f"{name:<{width}} {count:>7,}" + (f"  of {published:,} published" if published else ""))
        for name, count, published in looked.classes[:_MOST_CLASSES]
    ]
    if len(looked.classes) > _MOST_CLASSES:
        lines.append(f"and {len(looked.classes) - _MOST_CLASSES:,} more")
    return lines


def _histogram(sizes: tuple[tuple[str, int], ...]) -> list[str]:
    most = sizes[0][1]
    lines = []
    for size, count in sizes[:6]:
        bar = "█" * max(1, round(_BAR * count / most))
        lines.append(f"{size:>10} {count:>6,}  {bar}")
    if len(sizes) > 6:
        rest = sum(count for _, count in sizes[6:])
        lines.append(f"{'others':>10} {rest:>6,}  of {len(sizes) - 6:,} sizes")
    return lines


def _print_archive(console: Console, typed: str, name: str, inside: tuple[Looked, ...]) -> None:
    path = typed if name == "." else f"{typed.rstrip('/')}/{name}"
    console.print(shown(f"Archive {path}"), style="bold", soft_wrap=True)
    if not inside:
        console.print("  holds no images that medtest can read\n")
        return
    for looked in inside:
        facts = looked.found.facts
        title = facts.title if facts is not None else looked.found.title
        of = f" of {facts.images:,} published" if facts is not None else ""
        part = f", {looked.found.part}" if looked.found.part else ""
        text = f"  {title}{part}: {looked.found.count:,} images{of} ({looked.found.layout})"
        console.print(shown(text), soft_wrap=True)
        for note in looked.notes:
            console.print(shown(f"    note: {note}"), soft_wrap=True)
    folder = str(Path(path).with_suffix("")).removesuffix(".tar")
    if path.lower().endswith(".zip"):
        unpack = shlex.join(["unzip", "-q", path, "-d", folder])
    else:
        unpack = f"mkdir -p {shlex.quote(folder)} && {shlex.join(['tar', '-xf', path, '-C', folder])}"
    console.print(shown(f"  unpack:  {unpack}"), soft_wrap=True)
    console.print(shown(f"  then:    medtest data inspect {shlex.quote(folder)}"), end="\n\n", soft_wrap=True)


def _print_suite(console: Console, typed: str, line: SuiteLine, counts: dict[str, int] | object) -> None:
    from medtest.seeds.datasets.known import coverage

    console.print(f"{line.suite}: the tables of the paper, on {len(line.sets)} of its data sets", style="bold")
    if isinstance(counts, dict):
        for text in coverage(list(counts), counts):
            console.print(f"  {text}", soft_wrap=True)
    _print_line(console, line, typed, "run:")
    console.print()

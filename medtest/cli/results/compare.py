"""``medtest compare``: a comparison of finished runs from their records, with the cases that changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from medtest.cli.terminal import say
from medtest.core.errors import ExitCode, typed_error
from medtest.core.files.paths import home as default_home
from medtest.core.files.paths import path_from_here
from medtest.core.files.written import check_out, note_out
from medtest.report.compared.named import find_run, no_run
from medtest.report.compared.page import FILES, chosen_cases, overall_row, write_compared
from medtest.report.compared.pairs import ComparedPair, compare_pair, names_of, read_material
from medtest.report.compared.strips import changed_strips
from medtest.report.console import conditions_view
from medtest.report.pages.conclusions import points_words
from medtest.report.pages.material import Material
from medtest.results.gating.conditions import PASSED, Margins, newly_lost
from medtest.results.records.records_io import RECORDS
from medtest.runner.folder import output_problems
from medtest.suite.model import Invocation, Suite


def compare_runs(
    tokens: Sequence[str], *, out: Path | None, strips: int, console: Console, margins: Margins | None = None
) -> ExitCode:
    """Compare runs with the first one and write a page with its tables.

    Args:
        tokens: Runs (:func:`medtest.report.compared.named.find_run`), and ``KEY=VALUE`` tokens for systems that are
            queried again for strips (``data=PATH``).
        out: Folder of the page; ``outputs/compare/A-B`` by default.
        strips: Number of newly failing, and of newly passing, cases to draw.
        console: Console for the result.
        margins: Allowed deterioration from the first run; None for the default of a gate.

    Returns:
        ``OK`` if every run is shown to be no worse than the first, else ``GATE_FAILED``.

    Raises:
        UserMistakes: A run does not exist, or shares no case with the first.
        OutputProblem: Records cannot be read, or the page cannot be written.
    """
    home = default_home()
    typed = [token for token in tokens if "=" in token and not Path(token).expanduser().exists()]
    names = [token for token in tokens if token not in typed]
    if len(names) < 2:
        fix = "medtest compare polyp_seg/pranet polyp_seg/ssformer"
        raise typed_error("runs", " ".join(names) or "none", "two or more runs, the baseline first", fix)
    with TemporaryDirectory(prefix="medtest-compare-") as scratch:
        materials = [_material(name, home, Path(scratch)) for name in names]
        called = names_of(materials)
        folder = out or home / "outputs" / "compare" / "-".join(_plain(name) for name in called)
        check_out((folder / name for name in FILES), "--out")
        base, *others = materials
        pairs = [
            compare_pair(base, other, (called[0], name), margins)
            for other, name in zip(others, called[1:], strict=True)
        ]
        drawn = [
            changed_strips(
                [pair.base, pair.other],
                chosen_cases(pair, max(strips, 2)),
                Path(scratch) / "strips" / str(number),
                compose=_composed if strips else None,
                typed=typed,
            )
            for number, pair in enumerate(pairs)
        ]
        written = write_compared(pairs, drawn, folder)
        with output_problems(folder / FILES[0]):
            note_out(written)
    for pair in pairs:
        say(console, _headline(pair))
        console.print(conditions_view(pair.conditions))
    for path in written:
        say(console, path_from_here(path))
    lost = [pair.names[1] for pair in pairs if pair.verdict != PASSED]
    held = f"no worse than {called[0]} (margin {pairs[0].margins.percent:g} points)"
    if lost:
        say(console, f"Exit code 1: {', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not shown to be {held}.")
        return ExitCode.GATE_FAILED
    say(console, f"Exit code 0: {', '.join(called[1:])} {'is' if len(pairs) == 1 else 'are'} {held}.")
    return ExitCode.OK


def _headline(pair: ComparedPair) -> str:
    """Return the difference of a pair's rates, and the losses of the second run."""
    row = overall_row(pair)
    rates = "no case is judged in both runs"
    if row is not None:
        has_interval = row["ci_low"] == row["ci_low"]
        interval = f" ({points_words(row['ci_low'])} to {points_words(row['ci_high'])})" if has_interval else ""
        better = f"{row['better']} is better" if row["better"] else "no difference shown"
        rates = f"{points_words(row['difference'])} points{interval} on {row['cases']:,} common cases: {better}"
    return f"{pair.names[1]} less {pair.names[0]}: {rates}; {newly_lost(pair.conditions)}"


def _composed(suite: str, tokens: Sequence[str]) -> tuple[Suite, Invocation]:
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    loaded = load(suite, tokens)
    return loaded.suite, invocation_of(loaded)


def _material(name: str, home: Path, scratch: Path) -> Material:
    folder = find_run(name, home, key="runs")
    if folder is None:
        from medtest.report.tracking.store import fetch_run

        folder = fetch_run(name, home, scratch / name)
        if folder is None or not (folder / RECORDS).is_file():
            raise no_run(name, home, "runs")
    return read_material(folder)


def _plain(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)[:60]

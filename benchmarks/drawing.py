"""Do the oracle's intervals cover what the defects of the simulated product that draws are set to?

``python benchmarks/drawing.py [--campaigns N] [--prompts N] [--only DEFECT …] [--workers N] [--write FILE]`` runs, for
each defect, steady and drawn anew, and for each rate, seeded campaigns without HTTP and without pixels
(``_drawing_campaigns.py``) and compares truth rate and net with what follows from the rate by arithmetic. A share of
intervals that cover is accepted where a one-sided exact binomial test at 5 %, Holm over all rates, does not find it
below 95 %. With all defects off every net must be covered by 0. Then it prints which operator finds which defect under
which rule. It ends with 1 where a share is not accepted, a sound product errs, or a defect is found by nothing.
``--write`` puts shorter tables between the marks of a page. ``--pixels N`` does something else: it paints N prompts and
their follow-ups under SS, lets the reader ``bundled`` look, and compares the same figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from _drawing_campaigns import (
    CAP,
    EXPERIMENTS,
    MOST,
    RATES,
    SHARED,
    Coverage,
    Pair,
    coverage,
    is_withheld,
    is_wrong,
    look_of,
    paired,
    pairs_of,
    picture_of,
    truth,
)

from benchmarks._sizes import options
from medtest.core.plugins import part
from medtest.readers.pictures.base import PictureContent
from medtest.results.cube.intervals import paired_score, wilson_ends
from medtest.results.cube.paired import holm
from medtest.simlab.drawing.artist import Artist, Drawing
from medtest.simlab.drawing.defects import RATES as DEFECTS
from medtest.simlab.drawing.defects import DrawingDefects
from medtest.tasks.depict.rules import RULES, STRICT
from medtest.tasks.depict.views import NO_CHANGE, SceneLook

LEVEL = 0.05
OPERATORS = ("ec", "er_r", "er_a", "ss", "ec_er_r", "ec_er_a")
FOUND_AT, FOUND_IN, TRIES = 0.3, 0.8, 20
"""Rate at which a defect shall be found, share of campaigns that find it, and how many are run."""
TRUTH, REFUSED = "truth", "refused"
COLUMNS = (*RULES, TRUTH, REFUSED)
MARKS = ("<!-- made by benchmarks/drawing.py -->", "<!-- end -->")


@dataclass(frozen=True)
class Cell:
    """What a rule says of a defect under an operator.

    Attributes:
        mean: Mean over campaigns: net of asking again, or the rate against truth, or of refusals.
        found: Share of campaigns whose 95 % interval lies above 0.
    """

    mean: float
    found: float


def cells(pairs: Sequence[Pair], artists: Sequence[Artist]) -> dict[str, Cell]:
    """Return what each rule finds with each of some products, any kind of error."""
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in COLUMNS}
    for artist in artists:
        counts = {name: [0, 0, 0] for name in COLUMNS}  # operator alone, asked anew alone, judged
        for pair in pairs:
            drawn = [picture_of(artist, one) for one in (pair.source, pair.after, pair.again)]
            for name, own, floor in _judged(pair, drawn):
                counts[name][0] += own and not floor
                counts[name][1] += floor and not own
                counts[name][2] += 1
        for name, (more, less, whole) in counts.items():
            if whole:
                low = wilson_ends(more, whole)[0] if name in (TRUTH, REFUSED) else paired_score(more, less, whole)[0]
                values[name].append(((more - less) / whole, low if more else 0.0))
    return {
        name: Cell(sum(v for v, _ in found) / len(found), sum(low > 0 for _, low in found) / len(found))
        for name, found in values.items()
        if found
    }


def _judged(pair: Pair, drawn: Sequence[Drawing]) -> Iterator[tuple[str, bool, bool]]:
    """Yield of each rule whether the operator's pair is wrong, and whether the pair of one prompt is."""
    source, after, again = drawn
    if is_withheld(source):
        return
    yield REFUSED, is_withheld(after), False
    if is_withheld(after) or is_withheld(again):
        return
    looks = [look_of(one) for one in (source, after, again)]
    yield TRUTH, bool(is_wrong(truth(looks[1], pair.after, pair.change), "whole")), False
    shape = pair.change.shape
    for rule in RULES:
        own = is_wrong(paired(rule, looks[0], looks[1], pair.after, pair.change, shape), "whole")
        floor = is_wrong(paired(rule, looks[0], looks[2], pair.again, NO_CHANGE, shape), "whole")
        yield rule, bool(own), bool(floor)


def found_by(defect: str, prompts: int, tries: int = TRIES) -> dict[str, dict[str, Cell]]:
    """Return by operator what each rule finds of a defect, steady, at the rate :data:`FOUND_AT`; "" for none."""
    rates = {defect: FOUND_AT} if defect else {}
    defects = DrawingDefects(**rates, most_entities=MOST, cap=CAP)  # type: ignore[arg-type]
    artists = [Artist(number, defects, SHARED) for number in range(tries if defect else 1)]
    return {operator: cells(pairs_of(operator, prompts), artists) for operator in OPERATORS}


# -------------------------------------------------------------------------------------------------------------- tables


def _experiment(job: tuple[int, int, int]) -> list[Coverage]:
    """Return all coverages of one experiment."""
    number, campaigns, prompts = job
    found: list[Coverage] = []
    for anew, rate in product((False, True), RATES):
        found += coverage(EXPERIMENTS[number], rate, anew=anew, campaigns=campaigns, prompts=prompts)
    return found


def _found(job: tuple[str, int]) -> dict[str, dict[str, Cell]]:
    return found_by(*job)


def coverage_table(found: Sequence[Coverage]) -> tuple[list[str], bool]:
    """Return the lines of a table of shares, and whether all are accepted."""
    corrected = holm([one.p() for one in found])
    accepted = all(p > LEVEL for p in corrected)
    figures = list(dict.fromkeys(one.what for one in found))
    rates = list(dict.fromkeys(one.rate for one in found))
    columns = [(figure, rate) for figure in figures for rate in rates]
    lines = [f"| defect (operator, errors) | drawn | {' | '.join(f'{figure}, {rate:g}' for figure, rate in columns)} |"]
    lines.append("|---|---|" + "---|" * len(columns))
    rows: dict[tuple[str, bool], dict[tuple[str, float], str]] = {}
    for one, p in zip(found, corrected, strict=True):
        share = f"{100 * one.covered / one.campaigns:.1f}{'' if p > LEVEL else ' **missed**'}"
        cell = f"{share} ({one.implied:.3f})"
        rows.setdefault((one.name, one.anew), {})[one.what, one.rate] = cell
    for (name, anew), by_column in rows.items():
        cells_of = " | ".join(by_column.get(column, "-") for column in columns)
        lines.append(f"| {name} | {'each time' if anew else 'steady'} | {cells_of} |")
    furthest = max(abs(one.mean - one.implied) for one in found)
    return [*lines, "", f"Means over the campaigns differ from what is implied by {furthest:.3f} at most."], accepted


def shares_table(found: Sequence[Coverage]) -> list[str]:
    """Return the lines of a table with the lowest and the highest share of each defect over its rates."""
    figures = list(dict.fromkeys(one.what for one in found))
    columns = list(product(figures, (False, True)))
    drawn = {False: "steady", True: "each time"}
    lines = [f"| defect (operator, errors) | {' | '.join(f'{figure}, {drawn[anew]}' for figure, anew in columns)} |"]
    lines.append("|---|" + "---|" * len(columns))
    for name in dict.fromkeys(one.name for one in found):
        texts = []
        for column in columns:
            shares = [
                100 * one.covered / one.campaigns for one in found if (one.name, one.what, one.anew) == (name, *column)
            ]
            ends = [f"{share:.1f}" for share in (min(shares), max(shares))] if shares else ["-"]
            texts.append(" to ".join(dict.fromkeys(ends)))
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return lines


def detection_table(found: dict[str, dict[str, dict[str, Cell]]], rules: Sequence[str] = COLUMNS) -> list[str]:
    """Return the lines of a table: a figure in percent for defect, rule and operator, bold where found.

    Rows without a figure above or below 0 are left out.
    """
    lines = [f"| defect | rule | {' | '.join(f'`{name}`' for name in OPERATORS)} |"]
    lines.append("|---|---|" + "---|" * len(OPERATORS))
    for defect, by_operator in found.items():
        for rule in rules:
            judged = [by_operator[operator].get(rule) for operator in OPERATORS]
            texts = ["-" if cell is None else f"{100 * cell.mean:.0f}" for cell in judged]
            if set(texts) <= {"-", "0", "-0"}:
                continue
            bold = [cell is not None and cell.found >= FOUND_IN for cell in judged]
            shown = " | ".join(f"**{text}**" if mark else text for text, mark in zip(texts, bold, strict=True))
            lines.append(f"| `{defect or 'none'}` | {rule} | {shown} |")
    return lines


SEEN = (("", "whole"), ("sides_swapped", "relations"), ("entities_dropped", "entities"), ("counts_capped", "counts"))
SIZE = 256


def seen_in_pixels(prompts: int, weights: str = "") -> Iterator[tuple[str, float, float, float, float]]:
    """Yield of some defects at :data:`FOUND_AT` what a reader of pixels finds under SS, net, and what is implied.

    Args:
        prompts: How many pairs are painted.
        weights: Of the reader ``bundled``; "" for those that ship.

    Yields:
        Defect ("" for none), what is implied, net of asking again, and its 95 % interval.
    """
    made = part("readers", "bundled")
    reader = made.load()("bundled", made.load().Settings(**{**made.defaults, **({"path": weights} if weights else {})}))
    reader.open(device="cpu", threads=1)
    pairs = pairs_of("ss", prompts)
    for defect, kind in SEEN:
        rates = {defect: FOUND_AT} if defect else {}
        artist = Artist(1, DrawingDefects(**rates, most_entities=MOST, cap=CAP), SHARED)  # type: ignore[arg-type]
        experiment = next((one for one in EXPERIMENTS if (one.defect, one.operator) == (defect, "ss")), None)
        more = less = 0
        implied = 0.0
        for pair in pairs:
            drawn = [picture_of(artist, one) for one in (pair.source, pair.after, pair.again)]
            pictures = [artist.paint(one, SIZE) for one in drawn]
            looks = [SceneLook.of(scene) for scene in reader.look(pictures, [PictureContent("")] * len(pictures))]
            shape = pair.change.shape
            own = is_wrong(paired(STRICT, looks[0], looks[1], pair.after, pair.change, shape), kind)
            floor = is_wrong(paired(STRICT, looks[0], looks[2], pair.again, NO_CHANGE, shape), kind)
            more, less = more + bool(own and not floor), less + bool(floor and not own)
            implied += experiment.pair(pair, FOUND_AT) if experiment and experiment.prompts(pair) else 0.0
        count = len(pairs)
        yield defect, implied / count, (more - less) / count, *paired_score(more, less, count)
    reader.close()


def _pixels(prompts: int, weights: str) -> int:
    missed = 0
    for defect, implied, net, low, high in seen_in_pixels(prompts, weights):
        covers = low <= implied <= high
        missed += not covers
        sys.stdout.write(f"{defect or 'none'}: implied {implied:.3f}, net {net:.3f} ({low:.3f} to {high:.3f})")
        sys.stdout.write(f"{'' if covers else ' MISSED'}\n")
    return 1 if missed else 0


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Coverage of the oracle's intervals on the simulated product.")
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[], help="names of defects")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", type=Path, help="a page with the marks")
    parser.add_argument("--pixels", type=int, default=0, help="prompts to paint, for the reader bundled")
    parser.add_argument("--weights", default="", help="with --pixels: the reader's, where not those that ship")
    asked = options(parser, campaigns=2, prompts=25, workers=1, only=["sides_swapped"])
    if asked.pixels:
        return _pixels(asked.pixels, asked.weights)
    began = time.perf_counter()
    chosen = [number for number, one in enumerate(EXPERIMENTS) if not asked.only or one.defect in asked.only]
    names = [name for name in DEFECTS if not asked.only or name in asked.only]
    for operator in OPERATORS:
        pairs_of(operator, asked.prompts)  # the workers, which are forked, find them made
    with ProcessPoolExecutor(asked.workers, get_context("fork")) as pool:
        found = pool.map(_experiment, [(number, asked.campaigns, asked.prompts) for number in chosen])
        seen = pool.map(_found, [(name, asked.prompts) for name in ("", *names)])
        coverages = [one for part in found for one in part]
        lines, accepted = coverage_table(coverages)
        detected = dict(zip(("", *names), seen, strict=True))
    nothing = all(cell.mean == 0 for by_rule in detected[""].values() for cell in by_rule.values())
    missed = [
        name
        for name in names
        if not any(cell.found >= FOUND_IN for by_rule in detected[name].values() for cell in by_rule.values())
    ]
    text = "\n".join([*lines, "", *detection_table(detected)])
    sys.stdout.write(text + "\n\n")
    sys.stdout.write(f"{asked.campaigns} campaigns a rate in {time.perf_counter() - began:.0f} s; ")
    sys.stdout.write(f"shares {'accepted' if accepted else 'MISSED'}; without defects ")
    sys.stdout.write(f"{'nothing' if nothing else 'ERRORS'}; found by nothing: {', '.join(missed) or 'none'}\n")
    if asked.write:
        page = [*shares_table(coverages), "", lines[-1], "", *detection_table(detected, (STRICT, TRUTH, REFUSED))]
        _write(asked.write, "\n".join(page))
    return 0 if accepted and nothing and not missed else 1


def _write(page: Path, text: str) -> None:
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

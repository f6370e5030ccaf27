"""Calibration of the simulated product's soft scores against what drawn endoscopic pictures show.

    python -m benchmarks soft
    python benchmarks/soft.py --pictures=20 --rates 0 0.1 0.3

The reader ``ask`` asks for every finding and instrument, once with each rate of the defect ``nondeterminism``. Printed
are Brier's score of the probabilities and of the answers (0 is best, 0.25 that of a coin), and the share of
things that are there by probability of yes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._sizes import options
from medtest.cli.data.labelled import question_pictures
from medtest.core.cases import image_sha256
from medtest.core.scenes import Entity, dumped, pool_of
from medtest.readers.pictures.ask import AskReaderSettings, PictureAsker
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.labelled import LabelledPicture

BINS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
NO_DEFECTS = {"saturation_flips": 0.0, "blur_not_relevant": 0.0, "blood_instruments": 0.0, "refusals": 0.0}


def asked(pictures: Sequence[LabelledPicture], classes: Sequence[str], rate: float) -> NDArray[np.float64]:
    """Return for every picture and class: probability of yes, answer in words, truth; without unclear answers."""
    pools = (dumped(pool_of([Entity(name=name) for name in classes]).as_json()),)
    defects = {**NO_DEFECTS, "nondeterminism": rate}
    settings = AskReaderSettings(system="simlab", settings={"defects": defects}, soft=20, card="none")
    reader = PictureAsker("ask", settings)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        reader.keep_in([Path(folder)])
        reader.open(device="cpu", threads=1)
        try:
            for start in range(0, len(pictures), reader.at_once):
                some = pictures[start : start + reader.at_once]
                images = [picture.pixels() for picture in some]
                contents = [PictureContent(image_sha256(image), pools) for image in images]
                for picture, scene in zip(some, reader.look(images, contents), strict=True):
                    yes = {belief.names[0]: belief.yes for belief in scene.beliefs if belief.kind == "entities"}
                    told = [name for name in classes if name in yes and scene.tells.names(name)]
                    truth, seen = picture.truth.names(), scene.names()
                    rows += [(yes[name], float(seen[name] > 0), float(truth[name] > 0)) for name in told]
        finally:
            reader.close()
    return np.array(rows)


def main() -> None:
    """Ask, and print scores and reliability for each rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rates", type=float, nargs="*", default=[0.0, 0.1, 0.3])
    chosen = options(parser, pictures=4)
    labelled = question_pictures(chosen.pictures, chosen.seed)
    for rate in chosen.rates:
        soft, hard, truth = asked(labelled.pictures, sorted(labelled.classes), rate).T
        briers = [float(np.mean((said - truth) ** 2)) for said in (soft, hard)]
        print(
            f"nondeterminism {rate:g}: {len(truth):,} questions; Brier {briers[0]:.4f} soft, {briers[1]:.4f} in words"
        )
        for low, high in zip(BINS, BINS[1:], strict=False):
            within = (soft >= low) & ((soft < high) | (high == 1.0))
            if within.any():
                line = f"yes {soft[within].mean():.3f} on average, there {truth[within].mean():.3f}"
                print(f"  {low:g} to {high:g}: {int(within.sum()):,} questions, {line}")


if __name__ == "__main__":
    main()

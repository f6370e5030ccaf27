"""Fit the temperature of IS-embed: ``python scripts/fit_temperature.py`` writes the embeddings' temperature.json.

Scenes of one thing each are drawn from a seed, a thing of every class in turn; the temperature is the one of the least
negative log-likelihood of their classes (C. Guo et al., ICML 2017).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.phantoms.scenes.names import CLASSES, COLOURS, Placed
from medtest.phantoms.scenes.scene import draw_scene
from medtest.readers.embeddings.bundled import TEMPERATURE, BundledEmbedding
from medtest.results.fidelity.measures.inception_score import fit_temperature, negative_log_likelihood

SEED = 20251


def scene(number: int, seed: int = SEED) -> Image:
    """Return the scene of one thing, of class ``number`` counted round."""
    rng = np.random.default_rng([seed, number])
    width, height = rng.uniform(0.25, 0.6, 2)
    left, top = rng.uniform(0.02, 0.98 - width), rng.uniform(0.02, 0.98 - height)
    colour = COLOURS[int(rng.integers(len(COLOURS)))]
    box = (left, top, left + width, top + height)
    return draw_scene([Placed(name=CLASSES[number % len(CLASSES)], colour=colour, box=box)], rng=rng)


def scores_of(network: BundledEmbedding, count: int, seed: int = SEED) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the scores of so many scenes, and their classes' numbers."""
    found = []
    for start in range(0, count, network.at_once):
        numbers = range(start, min(start + network.at_once, count))
        found.append(network.embed([scene(number, seed) for number in numbers]).scores)
    return np.concatenate(found), np.arange(count, dtype=np.int64) % len(CLASSES)


def main() -> None:
    """Fit, print and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=TEMPERATURE)
    given = parser.parse_args()
    network = BundledEmbedding()
    network.open(device="cpu", threads=1)
    scores, labels = scores_of(network, given.scenes)
    temperature = fit_temperature(scores, labels)
    facts = {
        "weights": network.fingerprint()["weights"],
        "temperature": round(temperature, 4),
        "scenes": given.scenes,
        "accuracy": round(float((scores.argmax(1) == labels).mean()), 4),
        "nll": round(negative_log_likelihood(scores, labels, temperature), 4),
        "nll_at_1": round(negative_log_likelihood(scores, labels, 1.0), 4),
    }
    given.out.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(facts))


if __name__ == "__main__":
    main()

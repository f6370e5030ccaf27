"""Train the head of chexnet_sides: ``python scripts/film_sides.py FOLDER`` writes its weights to a folder.

Chest phantoms are drawn from a seed, and a linear head is fitted to the features that the compact CheXNet has of them
(:mod:`medtest.systems.classification.networks.chexnet_sides`): logistic regression with an L2 penalty, positive and
negative films of each finding weighing the same, by L-BFGS. 6,000 films take about four minutes on one core.
``scripts/pack_weights.py FOLDER chexnet_sides-compact`` packs the weights. Without FOLDER the head that ships is
evaluated on films of another seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.files import file_sha256
from medtest.core.files.tensors import write_tensors
from medtest.phantoms.chest import make
from medtest.phantoms.chest.sides import CHEST_SIDES, SIDED, SIDES, UNSIDED, sides_of
from medtest.systems.classification.families import CheXNetSystem
from medtest.systems.classification.film_sides import FORMAT, CheXNetSidesSystem
from medtest.systems.classification.networks.chexnet_sides import pooled_halves

BATCH = 16
PENALTY = 0.01
STEPS = 400
SEED, UNSEEN_SEED = 41_000, 51_000


def films(seed: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return pooled features and truth of films.

    Args:
        seed: Seed of the phantoms.
        count: Number of films.

    Returns:
        Features of the patient's left and right half, float [N, 2, 2C]; findings without a side, float [N, unsided];
        the others by side, float [N, sided, 2].
    """
    system = CheXNetSystem("chexnet", CheXNetSystem.Settings(fuse_norms=False))
    system.open(device="cpu", threads=torch.get_num_threads())
    halves, plain, by_side = [], [], []
    for start in range(0, count, BATCH):
        phantoms = [make(number, seed) for number in range(start, min(start + BATCH, count))]
        with torch.inference_mode():
            inputs = system.inputs([system.fitted(phantom.image) for phantom in phantoms])
            maps = functional.relu(system.network.densenet121.features(inputs))  # type: ignore[operator, union-attr]
            halves.append(torch.stack(pooled_halves(maps), dim=1))
        for phantom in phantoms:
            sides = sides_of(phantom.facts)
            plain.append([name in phantom.labels for name in UNSIDED])
            by_side.append([[side in sides.get(name, ()) for side in SIDES] for name in SIDED])
    return torch.cat(halves), torch.tensor(plain).float(), torch.tensor(by_side).float()


def fit(features: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights [M, D] and biases [M] of logistic regressions with balanced classes.

    Args:
        features: float [N, D], standardised.
        truth: float [N, M], 0 or 1.
    """
    head = nn.Linear(features.shape[1], truth.shape[1])
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    share = truth.mean(0)
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(head(features), truth, pos_weight=(1 - share) / share)
        loss = loss + PENALTY * head.weight.square().sum() / truth.shape[1]
        loss.backward()
        return loss

    optimizer.step(closure)
    return head.weight.detach(), head.bias.detach()


def train(count: int) -> dict[str, Tensor]:
    """Return the head's weights, for features that are not standardised."""
    halves, plain, by_side = films(SEED, count)
    mean, deviation = halves.flatten(0, 1).mean(0), halves.flatten(0, 1).std(0) + 1e-3
    scaled = (halves - mean) / deviation
    fits = [fit(scaled.mean(1), plain), fit(scaled.flatten(0, 1), by_side.transpose(1, 2).flatten(0, 1))]
    weight = torch.cat([weight for weight, _ in fits]) / deviation
    return {"weight": weight, "bias": torch.cat([bias for _, bias in fits]) - weight @ mean}


def evaluate(count: int) -> None:
    """Print sensitivity and specificity of the shipped network at 0.5, and the share of right sides where it reads."""
    system = CheXNetSidesSystem("chexnet_sides", CheXNetSidesSystem.Settings())
    system.open(device="cpu", threads=torch.get_num_threads())
    answers, labels, sides = [], [], []
    for start in range(0, count, BATCH):
        phantoms = [make(number, UNSEEN_SEED) for number in range(start, min(start + BATCH, count))]
        answers += system.predict([phantom.image for phantom in phantoms], [])
        labels += [phantom.labels for phantom in phantoms]
        sides += [sides_of(phantom.facts) for phantom in phantoms]
    scores = np.array(answers)
    print("| finding | with | sensitivity | specificity | read, on one side | side right |\n|---|---|---|---|---|---|")
    for name in (*UNSIDED, *SIDED):
        own = [f"{side} {name}" for side in SIDES] if name in SIDED else [name]
        score = scores[:, [CHEST_SIDES.names.index(label) for label in own]]
        present, seen = np.array([name in its for its in labels]), (score > 0.5).any(1)
        cells = [f"{present.sum()}", f"{seen[present].mean():.3f}", f"{1 - seen[~present].mean():.3f}"]
        if name in SIDED:
            one = np.array([len(its.get(name, ())) == 1 for its in sides]) & seen
            left = np.array(["left" in its.get(name, ()) for its in sides])
            right = (score[:, 0] > score[:, 1]) == left
            cells += [f"{one.sum()}", f"{right[one].mean():.3f}"]
        print(f"| {name} | {' | '.join([*cells, '', ''][:5])} |")


def main() -> None:
    """Train and write the head, or evaluate the one that ships."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", help="folder to write to; none evaluates the head that ships")
    parser.add_argument("--films", type=int, default=6000, help="films to train or evaluate on")
    arguments = parser.parse_args()
    if arguments.folder is None:
        evaluate(arguments.films)
        return
    system = CheXNetSidesSystem("chexnet_sides", CheXNetSidesSystem.Settings())
    facts = {"format": FORMAT, "films_sha256": file_sha256(system.film_weights), "films": arguments.films, "seed": SEED}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_tensors(arguments.folder / system.compact_weights.name, train(arguments.films), facts)


if __name__ == "__main__":
    main()

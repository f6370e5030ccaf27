"""Train the head of ``chexnet_sides``: ``python scripts/finding_heads.py FOLDER`` writes its weights.

Phantoms are drawn from a seed, and a linear head is fitted to the features that the compact network below has of them
(:mod:`medtest.systems.classification.heads`): logistic regression with an L2 penalty, positive and negative pictures of
each class weighing the same, by L-BFGS. It takes minutes on one core. ``scripts/pack_weights.py FOLDER SYSTEM-compact``
packs the weights. Without FOLDER the head that ships is evaluated on phantoms of another seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.cases import Image
from medtest.core.files import file_sha256
from medtest.core.files.tensors import write_tensors
from medtest.core.plugins import parts
from medtest.phantoms import chest
from medtest.phantoms.chest.sides import SIDED, SIDES, UNSIDED, sides_of
from medtest.systems.classification.heads import FORMAT, CheXNetSidesSystem
from medtest.systems.classification.networks.heads import pooled_halves

BATCH = 16
PENALTY = 0.01
STEPS = 400
SYSTEM = "chexnet_sides"
SEED, PICTURES = 41_000, 6000
"""Seed and number of the films that the head is trained on."""
UNSEEN_SEED = 51_000


def film(number: int, seed: int) -> tuple[Image, list[str]]:
    """Return a film and its classes."""
    phantom = chest.make(number, seed)
    sides = sides_of(phantom.facts)
    plain = [name for name in UNSIDED if name in phantom.labels]
    return phantom.image, [*plain, *(f"{side} {name}" for name in SIDED for side in sides.get(name, ()))]


def make_system() -> CheXNetSidesSystem:
    """Return the system, not opened."""
    kind = parts("systems")[SYSTEM].load()
    system: CheXNetSidesSystem = kind(SYSTEM, kind.Settings())
    return system


def pictures(seed: int, count: int) -> Iterator[tuple[list[Image], list[list[bool]]]]:
    """Yield batches of pictures with the truth of every class."""
    classes = make_system().classes.names
    for start in range(0, count, BATCH):
        made = [film(number, seed) for number in range(start, min(start + BATCH, count))]
        yield [image for image, _ in made], [[label in labels for label in classes] for _, labels in made]


def features(seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Return features, float [N, V, D] with V views (the halves of a film), and truth, float [N, C]."""
    system = make_system()
    network, info = system.trunk_with_head()
    system._take(info)  # its input's side
    network.eval()
    rows, truth = [], []
    for images, labels in pictures(seed, count):
        with torch.inference_mode():
            inputs = system.inputs([system.fitted(image) for image in images])
            maps = functional.relu(network.films.densenet121.features(inputs))  # type: ignore[union-attr, operator]
            rows.append(torch.stack(pooled_halves(maps), dim=1))
        truth += labels
    return torch.cat(rows), torch.tensor(truth).float()


def fit(rows: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights [M, D] and biases [M] of logistic regressions with balanced classes.

    Args:
        rows: float [N, D], standardised.
        truth: float [N, M], 0 or 1.
    """
    head = nn.Linear(rows.shape[1], truth.shape[1])
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    share = truth.mean(0)
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(head(rows), truth, pos_weight=(1 - share) / share)
        loss = loss + PENALTY * head.weight.square().sum() / truth.shape[1]
        loss.backward()
        return loss

    optimizer.step(closure)
    return head.weight.detach(), head.bias.detach()


def train(count: int) -> dict[str, Tensor]:
    """Return the head's weights."""
    rows, truth = features(SEED, count)
    mean, deviation = rows.flatten(0, 1).mean(0), rows.flatten(0, 1).std(0) + 1e-3
    mean, deviation = mean.half().float(), deviation.half().float()  # as they are stored
    scaled = (rows - mean) / deviation
    sided = truth[:, len(UNSIDED) :].reshape(len(truth), len(SIDED), 2)
    fits = [fit(scaled.mean(1), truth[:, : len(UNSIDED)])]
    fits += [fit(scaled.flatten(0, 1), sided.transpose(1, 2).flatten(0, 1))]
    weight = torch.cat([weight for weight, _ in fits]) / deviation
    return {"weight": weight, "bias": torch.cat([bias for _, bias in fits]) - weight @ mean}


def evaluate(count: int) -> None:
    """Print sensitivity and specificity at 0.5 by finding, and the share of right sides where one is read."""
    system = make_system()
    system.open(device="cpu", threads=torch.get_num_threads())
    answers: list[Any] = []
    truth: list[list[bool]] = []
    for images, labels in pictures(UNSEEN_SEED, count):
        answers += system.predict(images, [])
        truth += labels
    _sides(system.classes.names, np.array(answers), np.array(truth))


def _shares(seen: Any, present: Any) -> str:
    return f"{present.sum()} | {seen[present].mean():.3f} | {1 - seen[~present].mean():.3f}"


def _sides(names: Sequence[str], scores: Any, true: Any) -> None:
    print("| finding | with | sensitivity | specificity | read, on one side | side right |\n|---|---|---|---|---|---|")
    for name in (*UNSIDED, *SIDED):
        columns = [names.index(label) for label in ([f"{side} {name}" for side in SIDES] if name in SIDED else [name])]
        score, present, seen = scores[:, columns], true[:, columns].any(1), (scores[:, columns] > 0.5).any(1)
        text = _shares(seen, present)
        if name in SIDED:
            one = (true[:, columns].sum(1) == 1) & seen
            right = (score[:, 0] > score[:, 1]) == true[:, columns[0]]
            print(f"| {name} | {text} | {one.sum()} | {right[one].mean():.3f} |")
        else:
            print(f"| {name} | {text} |  |  |")


def main() -> None:
    """Train and write a head, or evaluate the one that ships."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", help="folder to write to; none evaluates the head that ships")
    parser.add_argument("--pictures", type=int, default=PICTURES, help="pictures to train or evaluate on")
    arguments = parser.parse_args()
    count = arguments.pictures
    if arguments.folder is None:
        evaluate(count)
        return
    system = make_system()
    facts = {"format": FORMAT, "trunk_sha256": file_sha256(system.trunk_weights), "pictures": count, "seed": SEED}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_tensors(arguments.folder / system.compact_weights.name, train(count), facts)


if __name__ == "__main__":
    main()

"""Score-based attack with a distilled linear surrogate, for images without usable gradients.

The network is queried on coarse patterns of ±ε around an image; a linear surrogate of those patterns is fitted to its
logits (ridge regression), and the image is moved in the direction of growing surrogate loss. Patterns become finer from
round to round, and each round starts from the best image so far. It needs only scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from medtest.core.probes import Probe
from medtest.relations.adversarial.attack import AttackBatch, SearchResult, losses_of, noise

if TYPE_CHECKING:
    from torch import Tensor

_SALT = 5000
_GRIDS = (3, 6, 12)
"""Patches along each side, by round."""
_RIDGE = 0.1
_CHUNK = 16
"""Images per query batch."""


def distilled_search(batch: AttackBatch, probe: Probe, *, tries: int) -> SearchResult:
    """Search each image of a batch with its own surrogate.

    Args:
        batch: The images.
        probe: Probe of the system; scores are enough.
        tries: Most queries per image; at least 4.
    """
    images, queries = [], []
    for row in range(len(batch.images)):
        image, spent = _search(batch.part(torch.tensor([row])), probe, max(1, tries // len(_GRIDS) - 1))
        images.append(image)
        queries.append(spent)
    return SearchResult(images=torch.cat(images), queries=queries)


def _search(batch: AttackBatch, probe: Probe, each: int) -> tuple[Tensor, int]:
    """Return the image of greatest margin met for a single image, 1×3×H×W, and the number of queries."""
    rng, loss = noise(batch.cases[0], _SALT), losses_of(batch.goal, "margin")
    rows = torch.zeros(_CHUNK, dtype=torch.int64, device=batch.images.device)

    def losses(images: Tensor) -> Tensor:
        return loss(probe.logits(images), rows[: len(images)])

    best, greatest, spent = batch.images.clone(), loss(batch.clean, rows[:1])[0], 0
    direction = torch.zeros_like(best)
    for grid in _GRIDS:
        shape = (each, 3, min(grid, best.shape[2]), min(grid, best.shape[3]))
        signs = torch.from_numpy(rng.choice((-1.0, 1.0), shape).astype(np.float32)).to(best.device)
        tried = _move_along(batch, best, _spread(signs, best))
        scores = torch.cat([losses(part) for part in torch.split(tried, _CHUNK)])
        spent += len(tried)
        weights = _ridge_weights(signs.flatten(1).double(), scores.double()).to(best.dtype).view(1, *shape[1:])
        direction += _spread(weights / weights.abs().max().clamp_min(1e-12), best)
        guess = _move_along(batch, batch.images, direction.sign())
        at_guess = losses(guess)
        spent += 1
        if at_guess[0] > greatest:
            best, greatest = guess, at_guess[0]
        top = int(scores.argmax())
        if scores[top] > greatest:
            best, greatest = tried[top : top + 1], scores[top]
    return best, spent


def _ridge_weights(signs: Tensor, scores: Tensor) -> Tensor:
    """Return the weights of a ridge regression of scores on signs, float64, one per column."""
    away = scores - scores.mean()
    gram = signs @ signs.T + _RIDGE * len(signs) * torch.eye(len(signs), dtype=signs.dtype, device=signs.device)
    weights: Tensor = signs.T @ torch.linalg.solve(gram, away)
    return weights


def _spread(patches: Tensor, image: Tensor) -> Tensor:
    return functional.interpolate(patches, size=image.shape[2:], mode="nearest")


def _move_along(batch: AttackBatch, start: Tensor, signs: Tensor) -> Tensor:
    """Return images moved by ε along signs, within ε of the source and the changeable pixels, in whole levels."""
    epsilon = ((batch.epsilon * 255 + 1e-4).floor() / 255)[:, None, None, None]
    near = torch.minimum(torch.maximum(start + epsilon * signs, batch.images - epsilon), batch.images + epsilon)
    return torch.where(batch.within, near.clamp(0.0, 1.0), batch.images.expand_as(near))

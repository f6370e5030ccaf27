"""Inception score with a temperature (ACTesting, equation 16), and fitting of the temperature.

T. Salimans et al., NeurIPS 2016; the temperature: TISE (T. Dinh et al., ECCV 2022) after C. Guo et al., ICML 2017.

It is IS only if the scores are those of Inception-v3. An overconfident classifier rates pictures too high; its scores
are divided by T before the softmax. T = 1 is the plain score.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from medtest.results.fidelity.features import Floats, Integers, PictureFeatures, Rows
from medtest.results.fidelity.measures.estimates import INFLUENCE, Estimate, cluster_numbers, interval_of_influence

SPLITS: Final = 10
_NOTHING: Final = 1e-300
SHUFFLED_BY: Final = 2020
"""Seed of the shuffle before the splits: that of torch-fidelity, so that both use the same splits."""


def inception_score(
    scores: PictureFeatures,
    *,
    temperature: float = 1.0,
    splits: int = SPLITS,
    shuffle: bool = True,
    seed: int = SHUFFLED_BY,
    clusters: Sequence[Hashable] | None = None,
) -> Estimate:
    """Return the mean over splits of exp(mean KL(p(y|x) ‖ p(y))).

    It takes two passes over the scores; memory holds splits × classes sums and one number per picture.

    Args:
        scores: Scores of C classes before the softmax.
        temperature: Divisor of the scores, above 0.
        splits: Number of parts of nearly equal size; fewer if there are fewer pictures.
        shuffle: If True, shuffle the pictures before splitting.
        seed: Seed of the shuffle.
        clusters: The cluster of each picture; None if each is its own.

    Raises:
        ValueError: The temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"a temperature must be above 0, not {temperature}")
    count, classes = scores.count, scores.dimension
    if count < 1:
        return Estimate(value=float("nan"), warning="no picture")
    parts = min(splits, count)
    split = _splits(count, parts, shuffle=shuffle, seed=seed)
    sizes = np.bincount(split, minlength=parts)
    mean = np.zeros((parts, classes))
    entropy = np.zeros(count)  # Σ p log p of each picture
    for start, chunk in _numbered(scores):
        log = _log_softmax(chunk, temperature)
        chances = np.exp(log)
        parts_here = split[start : start + len(chunk)]
        np.add.at(mean, parts_here, chances)
        entropy[start : start + len(chunk)] = _product(chances, log).sum(1)
    mean /= sizes[:, None]
    with np.errstate(divide="ignore"):
        log_mean = np.log(mean)
    gains = np.zeros(count)
    for start, chunk in _numbered(scores):
        parts_here = split[start : start + len(chunk)]
        chances = np.exp(_log_softmax(chunk, temperature))
        gains[start : start + len(chunk)] = entropy[start : start + len(chunk)] - _product(
            chances, log_mean[parts_here]
        ).sum(1)
    means = np.bincount(split, weights=gains, minlength=parts) / sizes
    split_scores = np.exp(means)
    value = float(split_scores.mean())
    codes, cluster_count = cluster_numbers(range(count) if clusters is None else clusters)
    influence = split_scores[split] * (gains - means[split]) / (sizes[split] * parts)
    low, high = interval_of_influence(value, [(influence, codes[0])])
    return Estimate(
        value=value,
        low=max(low, 1.0) if low == low else low,
        high=high,
        method=INFLUENCE if low == low else "",
        spread=float(split_scores.std()),
        count=count,
        clusters=cluster_count,
        warning=_few(count, classes, parts),
    )


def _few(count: int, classes: int, parts: int) -> str:
    if count // parts >= classes:
        return ""
    return f"{count // parts:,} pictures per split are fewer than the {classes:,} classes: the score rises with N"


def _splits(count: int, parts: int, *, shuffle: bool, seed: int) -> Integers:
    """Return the split index of each picture; splits are runs of the shuffled array, as in torch-fidelity."""
    order = np.random.RandomState(seed).permutation(count) if shuffle else np.arange(count)
    split = np.zeros(count, np.int64)
    for number in range(parts):
        split[order[number * count // parts : (number + 1) * count // parts]] = number
    return split


def _numbered(scores: PictureFeatures) -> Iterator[tuple[int, Rows]]:
    """Yield chunks with the index of their first row."""
    start = 0
    for chunk in scores.chunks():
        yield start, chunk
        start += len(chunk)


def _log_softmax(chunk: Rows, temperature: float) -> Floats:
    values = chunk.astype(np.float64) / temperature
    values -= values.max(1, keepdims=True)
    shifted: Floats = values - np.log(np.exp(values).sum(1, keepdims=True))
    return shifted


def _product(chances: Floats, logs: Floats) -> Floats:
    """Return p · log q, with 0 for p near 0, where log q may be minus infinity."""
    return np.multiply(chances, logs, out=np.zeros_like(chances), where=chances > _NOTHING)


def negative_log_likelihood(scores: Rows, labels: Integers, temperature: float) -> float:
    """Return the mean of -log p(true class) at a temperature, in nats."""
    logs = _log_softmax(scores, temperature)
    return float(-logs[np.arange(len(labels)), labels].mean())


def fit_temperature(scores: Rows, labels: Integers) -> float:
    """Return the temperature that minimizes the negative log-likelihood (C. Guo et al., ICML 2017, section 4.2).

    The likelihood is concave in 1/T, so its slope has one zero, which bisection finds without optimizer settings.

    Args:
        scores: N×C, before the softmax, of pictures whose classes are known.
        labels: int64 N in [0, C).

    Raises:
        ValueError: Shapes do not match, a label is not a class, or no temperature in [0.01, 100] is best: every picture
            is right by a margin, or scores are unrelated to labels.
    """
    if scores.ndim != 2 or labels.shape != (len(scores),) or not len(scores):
        raise ValueError(f"scores of shape {scores.shape} and labels of shape {labels.shape} do not match")
    if labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise ValueError(f"a label is not in 0 to C - 1 for C = {scores.shape[1]}")
    values = scores.astype(np.float64)
    true = values[np.arange(len(labels)), labels]

    def slope(sharpness: float) -> float:
        return float((true - (np.exp(_log_softmax(values, 1 / sharpness)) * values).sum(1)).mean())

    low, high = 0.01, 100.0
    if slope(low) <= 0 or slope(high) >= 0:
        raise ValueError("no temperature between 0.01 and 100 fits these scores and labels")
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return 1 / float(np.sqrt(low * high))

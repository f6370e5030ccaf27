"""Scores a classifier on unseen phantoms, and puts trained weights into the package with their model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Address
from medtest.errors import MedtestError
from medtest.paths import package_folder
from medtest.systems.base import LabelAnswer, Missing, System
from medtest.systems.files import cached_sha256
from medtest.training.classification.cases import maker, squared
from medtest.training.classification.families import ClassifierFamily, kind_of
from medtest.training.classification.scores import areas

SEED = 6_021
"""Suite seed of the phantoms of the card; no training draws from it."""
REPLICATES = 2_000
BATCH = 8
NAMES = {
    "agdn": "AGDN (Xing et al., IEEE TMI 2020)",
    "dsinet": "DSI-Net (Zhu, Chen and Yuan, IEEE TMI 2021)",
    "attnmel": "AttnMel (Yan, Kawahara and Hamarneh, IPMI 2019)",
    "inceptionv3_dr": "Inception-v3 on diabetic retinopathy (Xu et al., Medical Image Analysis 2021)",
    "chexnet": "CheXNet (Rajpurkar et al., arXiv 1711.05225)",
}
_MULTI = "mean AUROC"


@dataclass(frozen=True, kw_only=True, eq=False)
class PhantomScores:
    """What a classifier scores on phantoms.

    Attributes:
        count: How many.
        name: ``accuracy``, or ``mean AUROC`` where several classes may hold.
        score: That score.
        low: Lower end of its 95 % bootstrap interval over phantoms.
        high: Upper end.
        classes: Recall of each class, or AUROC of each finding, by name.
    """

    count: int
    name: str
    score: float
    low: float
    high: float
    classes: dict[str, float]

    def __str__(self) -> str:
        return f"{self.name} {self.score:.3f} ({self.low:.3f} to {self.high:.3f})"


def evaluate_phantoms(system: System, count: int, *, seed: int = SEED) -> PhantomScores:
    """Ask an opened classifier about unseen phantoms, as a suite shows them.

    Raises:
        MedtestError: It has no answer for one.
    """
    kind = kind_of(system.name)
    truth: list[NDArray[np.float32]] = []
    scores: list[NDArray[np.float64]] = []
    make = maker(kind.phantoms)
    for start in range(0, count, BATCH):
        made = [make(index, seed, size=kind.stored) for index in range(start, min(start + BATCH, count))]
        images = [_shown(one.image, kind) for one in made]
        addresses = [Address(dataset="evaluation", seed_id=str(start + place)) for place in range(len(made))]
        for one, answer in zip(made, system.predict(images, addresses), strict=True):
            if isinstance(answer, Missing):
                raise MedtestError(f"{system.record_name} has no answer for phantom {start}: {answer.reason}")
            given: Any = answer.scores if isinstance(answer, LabelAnswer) else answer
            scores.append(np.asarray(given, np.float64))
            truth.append(np.array([name in one.labels for name in kind.classes.names], np.float32))
    return _found(np.stack(scores), np.stack(truth), kind)


def _shown(image: Any, kind: ClassifierFamily) -> NDArray[np.uint8]:
    """Return the middle of a phantom at the side the network takes."""
    cut = (kind.stored - kind.side) // 2
    return squared(image[cut : cut + kind.side, cut : cut + kind.side] if cut else image, kind.side)


def _found(scores: NDArray[np.float64], truth: NDArray[np.float32], kind: ClassifierFamily) -> PhantomScores:
    names = kind.classes.names
    rng = np.random.Generator(np.random.PCG64(0))
    draws = rng.integers(len(truth), size=(REPLICATES, len(truth)))
    if kind.classes.multi:
        single = scores.astype(np.float32)
        each = areas(single, truth)
        drawn = np.array([np.nanmean(areas(single[draw], truth[draw])) for draw in draws[:300]])
        score, name = float(np.nanmean(each)), _MULTI
    else:
        right = scores.argmax(axis=1) == truth.argmax(axis=1)
        each = np.array([right[truth[:, place] > 0].mean() for place in range(len(names))])
        drawn = right[draws].mean(axis=1)
        score, name = float(right.mean()), "accuracy"
    low, high = np.percentile(drawn, [2.5, 97.5])
    classes = {one: float(value) for one, value in zip(names, each, strict=True)}
    return PhantomScores(count=len(truth), name=name, score=score, low=float(low), high=float(high), classes=classes)


def release_classifier(
    network: str, weights: Path, *, commands: Sequence[str], phantoms: int, notes: Sequence[str] = (), threads: int = 1
) -> Path:
    """Copy weights to the package's folder, score them there on unseen phantoms, and write the card beside them.

    Args:
        network: Name of the network.
        weights: What a training wrote.
        commands: The commands that made them, for the card.
        phantoms: Number of unseen phantoms.
        notes: Further paragraphs of the card.
        threads: Threads of torch.

    Returns:
        The card.

    Raises:
        MedtestError: The weights cannot be used.
    """
    from safetensors.torch import load_file

    from medtest.systems.checkpoints.weights import load_network, read_info, save_weights
    from medtest.training.evaluate import open_system

    built, _ = load_network(weights)  # refuses what is not ours before anything is overwritten
    info = read_info(weights)
    if info.network.get("family") != network:
        raise MedtestError(f"{weights.name}: these are weights of {info.network.get('family')}, not of {network}")
    target = package_folder() / "weights" / f"{network}-compact.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    save_weights(target, load_file(weights), info)
    system = open_system(network, threads=threads, settings={"input": "as_is"})
    found = evaluate_phantoms(system, phantoms)
    system.close()
    card = target.with_suffix(".md")
    parameters = sum(one.numel() for one in built.parameters())
    card.write_text(
        card_text(network, target, found, parameters=parameters, side=info.size, commands=commands, notes=notes),
        encoding="utf-8",
    )
    return card


def card_text(
    network: str,
    weights: Path,
    found: PhantomScores,
    *,
    parameters: int,
    side: int,
    commands: Sequence[str],
    notes: Sequence[str] = (),
) -> str:
    """Return a model card in Markdown."""
    kind = kind_of(network)
    what = "AUROC" if kind.classes.multi else "recall"
    lines = [
        f"# {weights.stem}",
        "",
        f"A compact sibling of {NAMES[network]}: the same classes, narrower and shallower.",
        f"It is what `model={network}` runs without a checkpoint.",
        "",
        f"- {parameters:,} parameters, half precision on disk ({weights.stat().st_size / 1e6:.1f} MB), float32 at work",
        f"- input {side}×{side}; answers {', '.join(kind.classes.names)}"  # noqa: RUF001
        + (", of which several may hold" if kind.classes.multi else ""),
        f"- SHA-256 `{cached_sha256(weights)}`",
        "- weights: CC BY 4.0; code: Apache-2.0",
        "",
        "## Data",
        "",
        f"Phantoms alone: procedural images of `medtest.phantoms` ({kind.phantoms}), made by the command itself.",
        "It has never seen an image of a patient. Weights drawn at random, no pre-training.",
        "",
        "## How it was made",
        "",
        "```bash",
        *commands,
        "```",
        "",
        *(line for note in notes for line in (note, "")),
        "## Figures",
        "",
        f"On {found.count} unseen phantoms, 95 % percentile bootstrap interval: **{found}**.",
        "",
        f"| class | {what} |",
        "|---|---|",
        *(f"| {name} | {value:.3f} |" for name, value in found.classes.items()),
        "",
        f"`medtest train evaluate --model {network} --phantoms {found.count}` gives them again.",
        "",
        "## Limits",
        "",
        "It is a stand-in with which suites run anywhere. It is not the published network, its figures say nothing",
        "about the published one nor about patients, and it must not be used on patients.",
        "",
    ]
    return "\n".join(lines)

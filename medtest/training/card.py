"""The model card that lies beside bundled weights: what they are, what they saw, what they can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medtest.systems.files import cached_sha256
from medtest.training.evaluate import NetworkScores

DATA = """\
- 560 image and mask pairs of Kvasir-SEG (Jha et al., MMM 2020), the same pictures as the segmented images of
  HyperKvasir (Borgli et al., Scientific Data 2020), licensed CC BY 4.0. 40 further pairs chose the step that was kept;
  the test pairs below were used for no choice.
- Phantoms: procedural colonoscopy images of `medtest.phantoms`, made by the command itself, with masks."""

LIMITS = """\
- It is a small stand-in with which suites run anywhere. It is not the published network, its figures say nothing about
  the published one, and it must not be used on patients.
- It has seen one real collection (Norwegian hospitals, Olympus processors, images with polyps only). Other scopes,
  capsule images and images without a polyp are outside of what it learned.
- Its training varied size, orientation, exposure and colour (now and then with a green or purple cast), blur and noise:
  milder than, and not drawn from, medtest's own relations."""

_BACKBONE = """\
The backbone starts from that of `pranet-compact` (the same modules; its card says how it was made, with the same 560
pairs), the rest from weights drawn at random; no pre-training on other data. Validation used the same 40 pairs."""
ORIGINS = {
    "pranet": "Weights drawn at random, no pre-training on other data.",
    "sanet": _BACKBONE
    + """
Four of five training images took the colours (mean and standard deviation per channel in LAB) of another training
image, as SANet's colour exchange does; values are clipped and do not wrap. Loss: cross-entropy and Dice.""",
    "tganet": _BACKBONE
    + """
Loss: cross-entropy and Dice of the mask, and cross-entropy of the two judgements (number: one or multiple; size: small,
medium or large), whose truth is read off each mask's boxes. The five word vectors are constants drawn at random, not
BPEmb's; they lie in the weights. Input: blue, green, red, divided by 255.""",
}
FAMILIES = {
    "pranet": "PraNet (Fan et al., MICCAI 2020, arXiv 2006.11392)",
    "sanet": "SANet (Wei et al., MICCAI 2021, arXiv 2108.00882)",
    "tganet": "TGANet (Tomar et al., MICCAI 2022, arXiv 2205.04280)",
    "ssformer": "SSFormer (Wang et al., MICCAI 2022, arXiv 2203.03635)",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class CardFacts:
    """What a card states.

    Attributes:
        family: ``pranet``, ``sanet``, ``tganet`` or ``ssformer``.
        weights: The weights' file.
        parameters: Number of parameters.
        size: Side in pixels the network takes.
        threshold: Probability above which a pixel is lesion.
        commands: The commands that made the weights, in order.
        evaluations: Scores on images that no training saw.
        notes: Further sentences, one paragraph each.
    """

    family: str
    weights: Path
    parameters: int
    size: int
    threshold: float
    commands: Sequence[str]
    evaluations: Sequence[NetworkScores]
    notes: Sequence[str] = ()


def card_text(facts: CardFacts) -> str:
    """Return a model card in Markdown."""
    name = facts.weights.stem
    rows = [
        f"| {one.name} | {one.dice.count} | {one.dice.mean:.3f} | "
        f"{one.dice.low:.3f} to {one.dice.high:.3f} | {one.iou.mean:.3f} | {one.iou.low:.3f} to {one.iou.high:.3f} |"
        for one in facts.evaluations
    ]
    lines = [
        f"# {name}",
        "",
        f"A compact sibling of {FAMILIES.get(facts.family, facts.family)}: the same classes, narrower and shallower.",
        "It segments polyps in colonoscopy images and is what `model=" + facts.family + "` runs without a checkpoint.",
        "",
        f"- {facts.parameters:,} parameters, half precision on disk ({facts.weights.stat().st_size / 1e6:.1f} MB), "
        "float32 at work",
        f"- input {facts.size}×{facts.size}; output a probability per pixel, cut at {facts.threshold:g}",  # noqa: RUF001
        f"- SHA-256 `{cached_sha256(facts.weights)}`",
        "- weights: CC BY 4.0, made from data under that licence (attribution below); code: Apache-2.0",
        "",
        "## Data",
        "",
        DATA,
        "",
        "## How it was made",
        "",
        ORIGINS.get(facts.family, ORIGINS["pranet"]),
        "",
        "Commands, in order:",
        "",
        "```bash",
        *facts.commands,
        "```",
        "",
        *(line for note in facts.notes for line in (note, "")),
        "## Figures",
        "",
        "Unchanged images at 512×512 (masks nearest), 95 % percentile bootstrap intervals over images:",  # noqa: RUF001
        "",
        "| images | n | mean Dice | 95 % | mean IoU | 95 % |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "`medtest train evaluate` gives them again.",
        "",
        "## Limits",
        "",
        LIMITS,
        "",
    ]
    return "\n".join(lines)

"""Release of trained weights: copies them into the package, with scores and model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtest.core.errors import MedtestError
from medtest.core.files.paths import package_folder
from medtest.systems.checkpoints.weights import load_network, save_weights
from medtest.systems.files import cached_sha256
from medtest.training.classification.evaluate import evaluate_phantoms
from medtest.training.classification.families import KINDS
from medtest.training.evaluate import evaluate, folder_images, open_system, phantom_images

NAMES = {
    "pranet": "PraNet (Fan et al., MICCAI 2020, arXiv 2006.11392)",
    "sanet": "SANet (Wei et al., MICCAI 2021, arXiv 2108.00882)",
    "tganet": "TGANet (Tomar et al., MICCAI 2022, arXiv 2205.04280)",
    "ssformer": "SSFormer (Wang et al., MICCAI 2022, arXiv 2203.03635)",
    "agdn": "AGDN (Xing et al., IEEE TMI 2020)",
    "dsinet": "DSI-Net (Zhu, Chen and Yuan, IEEE TMI 2021)",
    "attnmel": "AttnMel (Yan, Kawahara and Hamarneh, IPMI 2019)",
    "inceptionv3_dr": "Inception-v3 on diabetic retinopathy (Xu et al., Medical Image Analysis 2021)",
    "chexnet": "CheXNet (Rajpurkar et al., arXiv 1711.05225)",
}


def release(
    network: str,
    weights: Path,
    *,
    commands: Sequence[str],
    data: Sequence[Path] = (),
    phantoms: int,
    size: int | None = None,
    threshold: float | None = None,
    notes: Sequence[str] = (),
    threads: int = 1,
) -> Path:
    """Copy weights to the package folder, score them, and write the card next to them.

    Args:
        network: Name of the compact network.
        weights: Weights file of a training.
        commands: The commands that created them, for the card.
        data: Folders of real test pairs, for segmentation networks.
        phantoms: Number of unseen phantoms.
        size: Input side, if validation chose another than the training's.
        threshold: Threshold chosen in validation.
        notes: Further paragraphs of the card.
        threads: Threads of torch.

    Returns:
        The card.

    Raises:
        MedtestError: The weights or the data cannot be used.
    """
    from medtest.core.files.tensors import read_tensors

    built, info = load_network(weights)  # rejects foreign files before anything is overwritten
    if info.network.get("family") != network:
        raise MedtestError(f"{weights.name}: these are weights of {info.network.get('family')}, not of {network}")
    info = replace(info, size=size or info.size, threshold=threshold or info.threshold)
    defence = info.defence.get("name", "")
    name = f"{network}-compact-{defence}" if defence else f"{network}-compact"
    target = package_folder() / "weights" / f"{name}.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    save_weights(target, read_tensors(weights), info)
    card = target.with_suffix(".md")
    text = card_text(
        Path(__file__).with_name("card.md.jinja"),
        network=network,
        weights=target,
        info=info,
        kind=KINDS.get(network),
        sibling=NAMES.get(network, ""),
        parameters=sum(parameter.numel() for parameter in built.parameters()),
        megabytes=target.stat().st_size / 1e6,
        sha256=cached_sha256(target),
        commands=commands,
        notes=notes,
        found=_scores(network, data, phantoms, defence=defence, threads=threads),
    )
    card.write_text(text, encoding="utf-8")
    return card


def _scores(network: str, data: Sequence[Path], phantoms: int, *, defence: str, threads: int) -> Any:
    """Return the bundled network's scores on images that no training saw."""
    if network in KINDS:
        settings = {"input": "as_is", **({"weights": defence} if defence else {})}
        system = open_system(network, threads=threads, settings=settings)
        scores: Any = evaluate_phantoms(system, phantoms)
    else:
        system = open_system(network, threads=threads)
        sets = [(f"{root.name} (real pairs)", folder_images(root)) for root in data]
        if phantoms:
            sets.append(("unseen phantoms", phantom_images(phantoms)))
        scores = [evaluate(system, pairs, name=name) for name, pairs in sets]
    system.close()
    return scores


def card_text(template: Path, **facts: Any) -> str:
    """Return a model card in Markdown."""
    from jinja2 import Environment, StrictUndefined

    # Markdown: medtest never renders it as HTML
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
    return environment.from_string(template.read_text(encoding="utf-8")).render(**facts).rstrip() + "\n"

"""Puts trained weights into the package, scored, with their model card: the last step of making bundled weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from medtest.paths import package_folder
from medtest.training.card import CardFacts, card_text
from medtest.training.evaluate import evaluate, folder_images, open_system, phantom_images


def release(
    network: str,
    weights: Path,
    *,
    commands: Sequence[str],
    data: Sequence[Path],
    phantoms: int,
    size: int | None = None,
    threshold: float | None = None,
    notes: Sequence[str] = (),
    threads: int = 1,
) -> Path:
    """Copy weights to the package's folder, score them there, and write the card beside them.

    Args:
        network: Name of the compact network.
        weights: What a training wrote.
        commands: The commands that made them, for the card.
        data: Folders of real test pairs.
        phantoms: Number of unseen phantoms.
        size: Side the network takes, where validation found another than the training's.
        threshold: Threshold that validation found.
        notes: Further paragraphs of the card.
        threads: Threads of torch.

    Returns:
        The card.

    Raises:
        MedtestError: The weights or the data cannot be used.
    """
    from safetensors.torch import load_file

    from medtest.systems.checkpoints.weights import load_network, read_info, save_weights

    built, _ = load_network(weights)  # refuses what is not ours before anything is overwritten
    info = read_info(weights)
    info = replace(info, size=size or info.size, threshold=threshold or info.threshold)
    target = package_folder() / "weights" / f"{network}-compact.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    save_weights(target, load_file(weights), info)
    system = open_system(network, threads=threads)
    sets = [(f"{root.name} (real pairs)", folder_images(root)) for root in data]
    if phantoms:
        sets.append(("unseen phantoms", phantom_images(phantoms)))
    evaluations = [evaluate(system, pairs, name=name) for name, pairs in sets]
    system.close()
    facts = CardFacts(
        family=network,
        weights=target,
        parameters=sum(p.numel() for p in built.parameters()),
        size=info.size,
        threshold=info.threshold,
        commands=commands,
        evaluations=evaluations,
        notes=notes,
    )
    card = target.with_suffix(".md")
    card.write_text(card_text(facts), encoding="utf-8")
    return card

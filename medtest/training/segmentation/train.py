"""Training of the bundled compact segmentation networks, and of others of the same classes.

Differences between the families are in :mod:`medtest.training.segmentation.steps` (``loss_of`` creates a family's loss,
``answer_of`` selects the answer's logits), in ``systems.checkpoints.inputs`` (input formats) and in
:mod:`medtest.training.segmentation.colour` (SANet's colour exchange, a setting of ``data.PairBatches``); further
training builds on the same three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.training.segmentation.data import Pairs, folder_source, pairs_from_source, phantom_pairs
from medtest.training.settings.options import SegmentationOptions

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.training.engine.prepared import PreparedTraining
    from medtest.training.engine.trainer import Evaluation, Loss
    from medtest.training.segmentation.data import Floats

CACHE_SCALE = 1.25
"""Pairs are stored larger than the network's input by this factor, so that a crop loses little sharpness."""
VALIDATION_PHANTOMS = 48
EXCHANGE = {"sanet": 0.8}
"""Share of images with exchanged colours, by family, unless set in the options."""
VALIDATION_SEED = 7
"""Suite seed of the validation phantoms, which are never trained on."""


def _load(options: SegmentationOptions, out: Path) -> tuple[dict[str, Pairs], dict[str, Pairs]]:
    """Load and split the real pairs and generate the phantoms; return training and validation pairs by kind."""
    from medtest.training.segmentation.data import shrink_pairs

    large = int(options.size * CACHE_SCALE)
    training: dict[str, Pairs] = {}
    validation: dict[str, Pairs] = {}
    if options.data:
        real = Pairs.join([pairs_from_source(folder_source(root), size=large) for root in options.data])
        if len(real) <= options.held_out:
            raise MedtestError(f"{len(real)} pairs are too few to hold {options.held_out} of them out")
        order = np.random.Generator(np.random.PCG64([options.seed, 3])).permutation(len(real))
        training["real"] = real.take(order[options.held_out :])
        if options.held_out:
            validation["real"] = shrink_pairs(real.take(order[: options.held_out]), options.size)
    if options.phantoms:
        phantoms = phantom_pairs(
            options.phantoms,
            seed=options.phantom_seed,
            size=large,
            cache=out / "phantoms",
            negatives=options.phantom_negatives,
        )
        training["phantoms"] = phantoms
        unseen = phantom_pairs(VALIDATION_PHANTOMS, seed=VALIDATION_SEED, size=options.size, cache=out / "phantoms")
        validation["phantoms"] = unseen
    if not training:
        raise MedtestError("nothing to train on: give data= folders, a number of phantoms, or both")
    return training, validation


def _shares(options: SegmentationOptions, training: Sequence[Pairs]) -> list[tuple[Pairs, int]]:
    """Return the number of pairs of each set in a batch."""
    if len(training) == 1:
        return [(training[0], options.batch)]
    phantom_count = round(options.batch * options.phantom_share)
    return [(training[0], options.batch - phantom_count), (training[1], phantom_count)]


def prepare_segmentation(options: SegmentationOptions, out: Path) -> PreparedTraining:
    """Return the training of a compact network; phantoms are kept in ``phantoms/`` of its folder.

    The score is the mean Dice on held-out real pairs and on phantoms, averaged if there are both.

    Raises:
        UserMistakes: Files of the data cannot be used.
        MedtestError: Options or data do not fit.
    """
    from medtest.systems.checkpoints.inputs import INPUTS
    from medtest.systems.pytorch import networks
    from medtest.training.engine.initial import initialise
    from medtest.training.engine.prepared import PreparedTraining, compact_writer
    from medtest.training.engine.start import backbone_from, start_from
    from medtest.training.engine.trainer import Training
    from medtest.training.segmentation.augment import Augmentation
    from medtest.training.segmentation.data import PairBatches

    if options.network not in networks.SEGMENTATION:
        names = ", ".join(networks.SEGMENTATION)
        raise MedtestError(f"no compact network is called {options.network!r}; there are {names}")
    sets, held_out = _load(options, out)
    config = networks.COMPACT[options.network]
    network = networks.make(config)
    initialise(network, options.seed)
    if options.start_from is not None:
        start_from(network, options.start_from)
    if options.backbone_from is not None:
        backbone_from(network, options.network, options.backbone_from)
    weights = out / f"{options.network}.safetensors"
    digests = [pairs.digest() for pairs in (*sets.values(), *held_out.values())]
    training = Training(
        network=network,
        recipe=options.recipe(),
        validation=options.validation(watched=bool(held_out)),
        batch=PairBatches(
            _shares(options, list(sets.values())),
            sizes=options.sizes or [options.size],
            seed=options.seed,
            changes=Augmentation(),
            kind=INPUTS[options.network],
            exchange=EXCHANGE.get(options.network, 0.0) if options.exchange is None else options.exchange,
        ).batch,
        loss=_loss(options),
        evaluate=_evaluation(options, held_out),
        write=compact_writer(weights, config, size=options.size),
        steps=options.steps,
        steps_per_epoch=options.steps,
        seed=options.seed,
        device=options.device,
        identity={**options.identity(), "data": digests, "network": networks.describe(config)},
        prefix="val_dice_",
    )
    sizes = {f"pairs_{name}": len(pairs) for name, pairs in sets.items()}
    return PreparedTraining(training=training, weights=weights, name=f"{options.network}-compact", params=sizes)


def _loss(options: SegmentationOptions) -> Loss:
    """Return the loss of a batch: the family's, for the network's answer."""
    from medtest.training.engine.precision import autocast, in_float32
    from medtest.training.segmentation.steps import loss_of

    compare = loss_of(options.network, auxiliary=options.auxiliary)
    precision, device = options.recipe().precision, options.device

    def loss(network: nn.Module, batch: tuple[Floats, Floats, Floats]) -> tuple[Tensor, Mapping[str, Tensor]]:
        images, truth, weights = (torch.from_numpy(array).to(device) for array in batch)
        with autocast(precision, device):
            outputs = network(images.contiguous(memory_format=torch.channels_last))
        return compare(in_float32(outputs), truth, weights), {}

    return loss


def _evaluation(options: SegmentationOptions, validation: Mapping[str, Pairs]) -> Callable[[nn.Module], Evaluation]:
    """Return the evaluation: mean Dice by kind of pair."""
    from medtest.systems.checkpoints.inputs import INPUTS
    from medtest.systems.segmentation.networks.answers import answer_of
    from medtest.training.engine.trainer import Evaluation
    from medtest.training.scores import dice_of

    def evaluate(network: nn.Module) -> Evaluation:
        def forward(images: Tensor, truth: Tensor) -> tuple[Tensor, float]:
            outputs = network(images.to(options.device, memory_format=torch.channels_last))
            return answer_of(options.network, outputs, (truth.shape[2], truth.shape[3])), 0.0

        kind = INPUTS[options.network]
        facts = {name: float(dice_of(forward, pairs, kind=kind)[0].mean()) for name, pairs in validation.items()}
        return Evaluation(score=float(np.mean(list(facts.values()))) if facts else 0.0, loss=0.0, facts=facts)

    return evaluate

"""How each family of classification networks wants its pixels."""

from __future__ import annotations

from collections.abc import Mapping

from medtest.systems.checkpoints.inputs import IMAGENET, PLAIN, InputKind

ATTNMEL: Mapping[str, InputKind] = {
    "isic2016": InputKind(mean=(0.7012, 0.5517, 0.4875), std=(0.0942, 0.1331, 0.1521)),
    "isic2017": InputKind(mean=(0.6820, 0.5312, 0.4736), std=(0.0840, 0.1140, 0.1282)),
}
"""By the data set on which AttnMel was trained."""
CIFAR10 = InputKind(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))

INPUTS: Mapping[str, InputKind] = {
    "agdn": PLAIN,
    "dsinet": PLAIN,
    "attnmel": ATTNMEL["isic2016"],
    "inceptionv3_dr": CIFAR10,
    "chexnet": IMAGENET,
}
"""By family."""

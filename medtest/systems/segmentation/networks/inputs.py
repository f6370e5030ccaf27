"""How each family of segmentation networks wants its pixels.

PraNet, SANet and SSFormer take RGB with ImageNet's mean and standard deviation. TGANet takes what OpenCV reads, blue
first, divided by 255 and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from medtest.systems.checkpoints.inputs import IMAGENET, PLAIN_BLUE_FIRST, InputKind

INPUTS: Mapping[str, InputKind] = {
    "pranet": IMAGENET,
    "sanet": IMAGENET,
    "tganet": PLAIN_BLUE_FIRST,
    "ssformer": IMAGENET,
}
"""By family."""

"""The families of classification networks; :mod:`medtest.systems.networks` joins them with those of other kinds."""

from __future__ import annotations

from medtest.systems.checkpoints.families import Family
from medtest.systems.classification.networks.agdn import AGDN, AGDNConfig
from medtest.systems.classification.networks.attnmel import AttnMel, AttnMelConfig
from medtest.systems.classification.networks.chexnet import CheXNet, CheXNetConfig
from medtest.systems.classification.networks.dsinet import DSINet, DSINetConfig
from medtest.systems.classification.networks.inception import InceptionConfig, InceptionDR
from medtest.systems.classification.networks.xception import XceptionConfig

_SMALL_XCEPTION = XceptionConfig(stem=(8, 16), entry=(24, 48, 96), middle=3, last=112, tail=(112, 112, 128))

FAMILIES: tuple[Family, ...] = (
    Family(
        name="agdn",
        network=AGDN,
        config=AGDNConfig,
        published={"agdn": AGDNConfig()},
        compact=AGDNConfig(first=12, growth=12, bottleneck=3, layers=(1, 4, 8, 6)),
    ),
    Family(
        name="dsinet",
        network=DSINet,
        config=DSINetConfig,
        published={"dsinet": DSINetConfig()},
        compact=DSINetConfig(
            backbone=_SMALL_XCEPTION,
            shortcut=12,
            aspp=24,
            head=16,
            points=50,
            gate=25,
            cls=(112, 112, 128),
            context=16,
        ),
    ),
    Family(
        name="attnmel",
        network=AttnMel,
        config=AttnMelConfig,
        published={"attnmel": AttnMelConfig()},
        compact=AttnMelConfig(widths=(8, 24, 48, 96, 192), attention_width=64),
    ),
    Family(
        name="inceptionv3_dr",
        network=InceptionDR,
        config=InceptionConfig,
        published={"inceptionv3_dr": InceptionConfig()},
        # Without the side head, which needs inputs of 299 pixels and is not in the recipe's loss.
        compact=InceptionConfig(sixteenths=5, auxiliary=False),
    ),
    Family(
        name="chexnet",
        network=CheXNet,
        config=CheXNetConfig,
        published={"chexnet": CheXNetConfig()},
        compact=CheXNetConfig(growth=16, blocks=(4, 8, 16, 12), stem=32),
    ),
)

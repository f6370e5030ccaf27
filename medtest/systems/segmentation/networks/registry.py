"""The families of segmentation networks; :mod:`medtest.systems.networks` joins them with those of other kinds."""

from __future__ import annotations

from typing import TypeAlias

from medtest.systems.checkpoints.families import Family
from medtest.systems.segmentation.networks.mit import MitConfig
from medtest.systems.segmentation.networks.pranet import PraNet, PraNetConfig
from medtest.systems.segmentation.networks.res2net import Res2NetConfig
from medtest.systems.segmentation.networks.sanet import SANet, SANetConfig
from medtest.systems.segmentation.networks.ssformer import SSFORMER_L, SSFORMER_S, SSFormer, SSFormerConfig
from medtest.systems.segmentation.networks.tganet import TGANet, TGANetConfig

NetworkConfig: TypeAlias = PraNetConfig | SANetConfig | TGANetConfig | SSFormerConfig

PUBLISHED: dict[str, NetworkConfig] = {
    "pranet": PraNetConfig(),
    "sanet": SANetConfig(),
    "tganet": TGANetConfig(),
    "ssformer_s": SSFORMER_S,
    "ssformer_l": SSFORMER_L,
}
"""The published networks."""

_SMALL_RES2NET = Res2NetConfig(
    stem=(16, 16, 32), planes=(24, 40, 72, 112), blocks=(2, 2, 3, 2), base_width=32, classes=0
)

COMPACT: dict[str, NetworkConfig] = {
    "pranet": PraNetConfig(
        backbone=_SMALL_RES2NET,
        channels=24,
        coarse_width=64,
        coarse_kernel=3,
        fine_width=32,
    ),
    "sanet": SANetConfig(backbone=_SMALL_RES2NET, channels=64),
    "tganet": TGANetConfig(backbone=_SMALL_RES2NET, channels=24, squeeze=4, own_words=True),
    "ssformer": SSFormerConfig(
        backbone=MitConfig(
            widths=(32, 64, 128, 192), depths=(2, 2, 3, 2), heads=(1, 2, 4, 6), drop_path=0.05, stem=(16, 24)
        ),
        embed=48,
        unused_fuse=False,
    ),
}
"""Small siblings of the same classes, whose trained weights ship with medtest."""


def _of(*names: str) -> dict[str, NetworkConfig]:
    return {name: PUBLISHED[name] for name in names}


FAMILIES: tuple[Family, ...] = (
    Family(name="pranet", network=PraNet, config=PraNetConfig, published=_of("pranet"), compact=COMPACT["pranet"]),
    Family(name="sanet", network=SANet, config=SANetConfig, published=_of("sanet"), compact=COMPACT["sanet"]),
    Family(name="tganet", network=TGANet, config=TGANetConfig, published=_of("tganet"), compact=COMPACT["tganet"]),
    Family(
        name="ssformer",
        network=SSFormer,
        config=SSFormerConfig,
        published=_of("ssformer_s", "ssformer_l"),
        compact=COMPACT["ssformer"],
    ),
)

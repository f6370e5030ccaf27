"""Helpers: an image and systems made from settings."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from medtest.core.plugins import part
from medtest.systems.base import System

IMAGE = np.zeros((32, 48, 3), np.uint8)
IMAGE[:, 24:, 0] = 200


def make_system(name: str, **settings: Any) -> System:
    """Give a system as a worker gets it: pickled and unpickled."""
    info = part("systems", name)
    kind = info.load()
    system: System = kind(name, kind.Settings(**{**info.defaults, **settings}))
    return pickle.loads(pickle.dumps(system))  # noqa: S301

"""Helpers: classifiers of libraries as systems, opened and asked."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medtest.core.plugins import part
from medtest.systems.base import System

sys.path.insert(0, str(Path(__file__).parent / "classification"))
from classifier_parts import ask

NAMES = ["melanoma", "nevus", "keratosis"]


def system_of(name: str, kind: str = "label", **changed: Any) -> System:
    info = part("systems", name)
    system: System = info.load()(name, info.load().Settings(**{**info.defaults, **changed}))
    system.kind = kind
    return pickle.loads(pickle.dumps(system))  # as a worker gets it  # noqa: S301


def answers_of(system: System, *images: np.ndarray) -> list[np.ndarray]:
    return both_of(system, *images)[0]


def both_of(system: System, *images: np.ndarray) -> tuple[list[np.ndarray], torch.Tensor]:
    """Return the answers, and the inputs of the network."""
    assert not system.check()
    answers, inputs = ask(system, *images)
    return [np.asarray(answer) for answer in answers], inputs

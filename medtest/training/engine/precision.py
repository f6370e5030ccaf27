"""Number format of a training's forward pass."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from medtest.core.errors import MedtestError


def precision_of(precision: str, device: str) -> str:
    """Return ``fp32``, ``bf16`` or ``amp``.

    Args:
        precision: A recipe's ``precision``.
        device: "cpu" or "cuda:N".

    Raises:
        MedtestError: The recipe requires float16 on a CPU.
    """
    on_cuda = device.startswith("cuda")
    if precision == "auto":
        return "amp" if on_cuda else "fp32"
    if precision == "amp" and not on_cuda:
        raise MedtestError("precision=amp (float16 with a gradient scaler) needs a CUDA device; bf16 runs on a CPU too")
    return precision


def autocast(precision: str, device: str) -> AbstractContextManager[None]:
    """Return the context of a forward pass with a recipe's precision."""
    name = precision_of(precision, device)
    kind = torch.float16 if name == "amp" else torch.bfloat16
    return torch.autocast(device.partition(":")[0], kind, enabled=name != "fp32")


def in_float32(outputs: Any) -> Any:
    """Convert a network's outputs, keeping their nesting, to float32, in which losses are computed."""
    if isinstance(outputs, Tensor):
        return outputs.float()
    if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        return type(outputs)(*(in_float32(output) for output in outputs))
    if isinstance(outputs, tuple | list):
        return type(outputs)(in_float32(output) for output in outputs)
    return outputs

"""Temporary inspection of a network that leaves it unchanged. Imports torch.

Code that asks a network for gradients must restore everything: modes, parameters, buffers, gradients and the states of
the random number generators, whether it succeeds or raises.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from medtest.core.errors import BadOutput


@contextmanager
def untouched(network: nn.Module, device: str) -> Iterator[None]:
    """Run a network in evaluation mode, without gradients of its parameters, and restore everything at the end.

    Args:
        network: The network, whose gradients with respect to inputs may be computed inside.
        device: Its device, ``cpu`` or ``cuda:N``.

    Raises:
        BadOutput: It has changed its own weights in the meantime.
    """
    modules = list(network.modules())
    with ExitStack() as stack:
        _restore_random_states(stack, device)
        for module in modules:
            if module.training:
                module.training = False
                stack.callback(setattr, module, "training", True)
        for module in modules:
            _replace_inference_tensors(stack, module)
        for weight in network.parameters():
            if weight.requires_grad:
                stack.callback(weight.requires_grad_(False).requires_grad_, True)
        for module in modules:
            for name, buffer in module._buffers.items():
                if isinstance(buffer, Tensor):
                    version = None if buffer.is_inference() else buffer._version
                    stack.callback(_restore_buffer, module, name, buffer, version, buffer.clone())
        versions = [(weight, weight._version) for weight in network.parameters() if not weight.is_inference()]
        yield
        if any(weight._version != version for weight, version in versions):
            raise BadOutput("changes its own weights while it answers, so its answers depend on their order")


@contextmanager
def same_random_numbers(device: str) -> Iterator[None]:
    """Restore the states of all random number generators at the end."""
    with ExitStack() as stack:
        _restore_random_states(stack, device)
        yield


def _restore_random_states(stack: ExitStack, device: str) -> None:
    stack.callback(torch.set_rng_state, torch.get_rng_state())
    stack.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002 - a network may use it
    stack.callback(random.setstate, random.getstate())
    if device.startswith("cuda"):
        stack.callback(torch.cuda.set_rng_state, torch.cuda.get_rng_state(device), device)


def _restore_buffer(module: nn.Module, name: str, buffer: Tensor, version: int | None, content: Tensor) -> None:
    """Restore content and place of a buffer."""
    if version is None or buffer._version != version:
        with torch.inference_mode(buffer.is_inference()), torch.no_grad():
            buffer.copy_(content)
    if dict(module._buffers.items()).get(name) is not buffer:
        if isinstance(module, torch.jit.ScriptModule):  # has no dictionary to write to, but accepts the attribute
            setattr(module, name, buffer)
        else:
            module._buffers[name] = buffer


def _replace_inference_tensors(stack: ExitStack, module: nn.Module) -> None:
    """Replace a module's tensors created in inference mode, which no gradient can pass, by plain copies."""
    if isinstance(module, torch.jit.ScriptModule):
        return
    contents: tuple[dict[str, Any], ...] = (module._parameters, module._buffers, vars(module))
    for content in contents:
        for name, value in list(content.items()):
            if isinstance(value, Tensor) and value.is_inference():
                stack.callback(content.__setitem__, name, value)
                content[name] = _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, nn.Parameter):
        return nn.Parameter(value.detach().clone(), requires_grad=False)
    return value.clone()


class PlainTensors(TorchFunctionMode):
    """Passes plain copies of tensors created in inference mode to every function.

    For networks that keep such tensors where they cannot be found (in a closure, in the cache of a function).
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call ``func`` with plain tensors."""
        plain_kwargs = {key: _normal(value) for key, value in (kwargs or {}).items()}
        return func(*(_normal(value) for value in args), **plain_kwargs)


def _normal(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone() if value.is_inference() else value
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return type(value)(_normal(item) for item in value) if type(value) in (list, tuple) else value
    return value

"""Temporary inspection of a network that leaves it unchanged. Imports torch.

Code that asks a network for gradients must restore everything: modes, parameters, buffers, gradients and the states of
the random number generators, whether it succeeds or raises.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
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
        stack.callback(_random_states(device))
        stack.callback(_modes(modules))
        stack.callback(_plain_tensors(modules))
        weights = list(network.parameters())
        stack.callback(_needing_gradients(weights))
        stack.callback(_buffers(modules))
        versions = [(weight, weight._version) for weight in weights if not weight.is_inference()]
        yield
        if any(weight._version != version for weight, version in versions):
            raise BadOutput("changes its own weights while it answers, so that nothing can be said of them")


@contextmanager
def same_random_numbers(device: str) -> Iterator[None]:
    """Restore the states of all random number generators at the end."""
    put_back = _random_states(device)
    try:
        yield
    finally:
        put_back()


def _random_states(device: str) -> Callable[[], None]:
    numbers, words, state = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002 - a network may use it
    on_device = torch.cuda.get_rng_state(device) if device.startswith("cuda") else None

    def put_back() -> None:
        torch.set_rng_state(numbers)
        np.random.set_state(words)  # noqa: NPY002
        random.setstate(state)
        if on_device is not None:
            torch.cuda.set_rng_state(on_device, device)

    return put_back


def _modes(modules: list[nn.Module]) -> Callable[[], None]:
    trained = [module for module in modules if module.training]
    for module in trained:
        module.training = False

    def put_back() -> None:
        for module in trained:
            module.training = True

    return put_back


def _needing_gradients(weights: list[nn.Parameter]) -> Callable[[], None]:
    trained = [weight for weight in weights if weight.requires_grad]
    for weight in trained:
        weight.requires_grad_(False)

    def put_back() -> None:
        for weight in trained:
            weight.requires_grad_(True)

    return put_back


def _buffers(modules: list[nn.Module]) -> Callable[[], None]:
    copies = [
        (module, name, buffer, None if buffer.is_inference() else buffer._version, buffer.clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if isinstance(buffer, Tensor)
    ]

    def put_back() -> None:
        for module, name, buffer, version, content in copies:
            if version is None or buffer._version != version:
                with torch.inference_mode(buffer.is_inference()), torch.no_grad():
                    buffer.copy_(content)
            if dict(module._buffers.items()).get(name) is not buffer:
                _set_buffer(module, name, buffer)

    return put_back


def _set_buffer(module: nn.Module, name: str, buffer: Tensor) -> None:
    """Restore a module's buffer; a TorchScript module has no dictionary to write to, but accepts the attribute."""
    if isinstance(module, torch.jit.ScriptModule):
        setattr(module, name, buffer)
    else:
        module._buffers[name] = buffer


def _plain_tensors(modules: list[nn.Module]) -> Callable[[], None]:
    """Replace tensors created in inference mode, which no gradient can pass, by plain copies."""
    replaced: list[tuple[Any, str, Any]] = []
    for module in modules:
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for content in (module._parameters, module._buffers, vars(module)):
            for name, value in list(content.items()):
                if isinstance(value, Tensor) and value.is_inference():
                    replaced.append((content, name, value))
                    content[name] = _plain(value)

    def put_back() -> None:
        for content, name, value in replaced:
            content[name] = value

    return put_back


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

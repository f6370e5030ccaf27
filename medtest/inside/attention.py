"""Attention maps: the two of AttnMel, and attention rollout of any vision transformer. Imports torch.

Rollout follows Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020, section 3: each layer's
weights, averaged over heads and with half of them for the residual connection, are multiplied through the layers. Shown
is the row of the class token, or the mean over tokens without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.inside.hooks import token_grid


class AttentionReader:
    """Reads attention in forward passes within ``with reader.attached():``, leaving the network unchanged.

    Args:
        network: The network.
    """

    def __init__(self, network: nn.Module) -> None:
        from medtest.systems.classification.networks.attnmel import AttentionModule

        self._network = network
        self._own = {name: module for name, module in network.named_modules() if isinstance(module, AttentionModule)}
        self._maps: dict[str, Tensor] = {}
        self._weights: list[Tensor] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Read the passes within the block; hooks and functions are always restored afterwards."""
        handles: list[Any] = []
        plain = functional.scaled_dot_product_attention
        fast = torch.backends.mha.get_fastpath_enabled()

        def watched(query: Tensor, key: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            if query.shape[:-2] == key.shape[:-2]:
                self._see(_dot_product_weights(query, key, *args, **kwargs))
            return plain(query, key, *args, **kwargs)

        try:
            for name, module in self._own.items():
                handles.append(module.register_forward_hook(self._keep_map(name)))
            if not self._own:
                handles += [module.register_forward_hook(self._find) for module in self._network.modules()]
                torch.backends.mha.set_fastpath_enabled(False)  # its kernel would hide the weights
                functional.scaled_dot_product_attention = watched
            yield
        finally:
            functional.scaled_dot_product_attention = plain
            torch.backends.mha.set_fastpath_enabled(fast)
            for handle in handles:
                handle.remove()

    def _keep_map(self, name: str) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: tuple[Tensor, Tensor]) -> None:
            self._maps[name] = output[0].detach()[:, 0].float().clone()

        return keep

    def _find(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """Record weights computed by a layer itself, from the input of a dropout of weights or the layer's output."""
        values = [*inputs, *(output if isinstance(output, tuple) else (output,))]
        if not isinstance(module, nn.Softmax | nn.Dropout | nn.Identity) and not isinstance(output, tuple):
            return
        for value in values:
            if not isinstance(value, Tensor):
                continue
            averaged = isinstance(module, nn.MultiheadAttention) and value.ndim == 3
            of_heads = value[:, None] if averaged and value.shape[-1] == value.shape[-2] else value
            if _are_weights(of_heads):
                self._see(of_heads)
                return

    def _see(self, weights: Tensor) -> None:
        mean = weights.detach().float().mean(dim=1)
        # The same weights may pass several hooks: directly, through a dropout, and in the block's output.
        if not (self._weights and self._weights[-1].shape == mean.shape and torch.equal(self._weights[-1], mean)):
            self._weights.append(mean)

    def take(self, images: int, shape: tuple[int, int]) -> dict[str, Tensor]:
        """Return the maps since the last call by name, float32 B×h×w, ≥ 0; empty if there are none.

        Args:
            images: Number of images B.
            shape: Height and width of the network's input.
        """
        maps, weights = self._maps, self._weights
        self._maps, self._weights = {}, []
        if maps:
            return {name: attention_map for name, attention_map in maps.items() if len(attention_map) == images}
        if not weights or any(
            layer_weights.shape != weights[0].shape or len(layer_weights) != images for layer_weights in weights
        ):
            return {}  # windows or reduced keys: layers refer to different tokens
        attention_map = rollout(weights, shape)
        return {} if attention_map is None else {"attention rollout": attention_map}


def rollout(weights: Sequence[Tensor], shape: tuple[int, int]) -> Tensor | None:
    """Return the attention rollout, float32 B×h×w; None if the tokens form no grid.

    Args:
        weights: Weights of each layer, B×T×T, with rows that sum to 1, averaged over heads.
        shape: Height and width of the image in pixels.
    """
    grid = token_grid(int(weights[0].shape[-1]), shape)
    if grid is None:
        return None
    rows, columns = grid
    flow: Tensor | None = None
    same = torch.eye(weights[0].shape[-1], device=weights[0].device)
    for layer in weights:
        mixed = (layer + same) / 2
        mixed = mixed / mixed.sum(dim=-1, keepdim=True)
        flow = mixed if flow is None else mixed @ flow
    assert flow is not None  # noqa: S101 - there is at least one layer
    leading = int(flow.shape[-1]) - rows * columns
    drawn = flow[:, 0, leading:] if leading else flow.mean(dim=1)
    return drawn.reshape(len(flow), rows, columns)


def _dot_product_weights(
    query: Tensor,
    key: Tensor,
    _value: Tensor | None = None,
    attn_mask: Tensor | None = None,
    _dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **_more: Any,
) -> Tensor:
    """Return the weights of a scaled dot product, B×heads×T×T', which fused kernels do not return."""
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    return scores.softmax(dim=-1).reshape(len(query), -1, scores.shape[-2], scores.shape[-1])


def _are_weights(value: Tensor) -> bool:
    """Return True if a tensor is B×heads×T×T with rows of weights that sum to 1."""
    if value.ndim != 4 or value.shape[-1] != value.shape[-2] or not value.is_floating_point():
        return False
    rows = value.detach().float().sum(dim=-1)
    return bool((value.detach() >= 0).all()) and bool(torch.allclose(rows, torch.ones_like(rows), atol=1e-3))

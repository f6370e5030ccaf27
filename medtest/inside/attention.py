"""Where a network looks: the two attention maps of AttnMel, and attention rollout of any vision transformer.

Rollout is that of Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020, section 3: the mean over
heads of each layer's weights, half of it the residual connection, multiplied through the layers; shown is what the
class token draws on, or the mean over tokens where there is none. Imports torch.
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
    """Reads attention in forward passes within ``with reader.attached():``; leaves nothing in the network.

    Args:
        network: The network.
    """

    def __init__(self, network: nn.Module) -> None:
        from medtest.systems.classification.networks.attnmel import AttentionModule

        self._network = network
        self._own = {name: one for name, one in network.named_modules() if isinstance(one, AttentionModule)}
        self._maps: dict[str, Tensor] = {}
        self._weights: list[Tensor] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Read what passes within; hooks and functions are as before afterwards, whatever happens."""
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
        """See weights that a layer computes by itself: what a dropout of weights is given, or what it returns."""
        given = [*inputs, *(output if isinstance(output, tuple) else (output,))]
        if not isinstance(module, nn.Softmax | nn.Dropout | nn.Identity) and not isinstance(output, tuple):
            return
        for value in given:
            of_heads = value[:, None] if isinstance(module, nn.MultiheadAttention) and _is_square(value) else value
            if isinstance(of_heads, Tensor) and _are_weights(of_heads):
                self._see(of_heads)
                return

    def _see(self, weights: Tensor) -> None:
        mean = weights.detach().float().mean(dim=1)
        # One layer's weights may pass several hooks: as they are, through a dropout, and in what the block returns.
        if not (self._weights and self._weights[-1].shape == mean.shape and torch.equal(self._weights[-1], mean)):
            self._weights.append(mean)

    def take(self, images: int, shape: tuple[int, int]) -> dict[str, Tensor]:
        """Return the maps of the pass since the last call, by name: float32 B×h×w, ≥ 0; none where there are none.

        Args:
            images: B.
            shape: Height and width of what the network was given.
        """
        maps, weights = self._maps, self._weights
        self._maps, self._weights = {}, []
        if maps:
            return {name: found for name, found in maps.items() if len(found) == images}
        if not weights or any(one.shape != weights[0].shape or len(one) != images for one in weights):
            return {}  # windows and reduced keys: no two layers look at the same tokens
        found = rollout(weights, shape)
        return {} if found is None else {"attention rollout": found}


def rollout(weights: Sequence[Tensor], shape: tuple[int, int]) -> Tensor | None:
    """Return the attention rollout, float32 B×h×w; None where tokens lie on no grid.

    Args:
        weights: Of each layer B×T×T, rows that sum to 1, averaged over heads.
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
    """Return the weights of a scaled dot product, which its fused kernels do not give: B×heads×T×T'."""
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    return scores.softmax(dim=-1).reshape(len(query), -1, scores.shape[-2], scores.shape[-1])


def _is_square(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 3 and value.shape[-1] == value.shape[-2]


def _are_weights(value: Tensor) -> bool:
    """Whether a tensor is B×heads×T×T with rows of weights that sum to 1."""
    if value.ndim != 4 or value.shape[-1] != value.shape[-2] or not value.is_floating_point():
        return False
    rows = value.detach().float().sum(dim=-1)
    return bool((value.detach() >= 0).all()) and bool(torch.allclose(rows, torch.ones_like(rows), atol=1e-3))

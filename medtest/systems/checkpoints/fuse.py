"""Fusion of batch norms into the preceding convolutions, for inference: same function, fewer memory passes.

In evaluation mode a batch norm is an affine map per channel, so convolution and norm are one convolution. The pairs are
determined in a forward pass instead of guessed from names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtest.core.deferred import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


def fuse_norms(network: nn.Module, *example: Tensor) -> int:
    """Fold batch norms into convolutions, in place, and return their number.

    Args:
        network: In evaluation mode, float32. A convolution whose output goes into a norm must go nowhere else, as in
            all networks of medtest.
        example: Inputs of the forward pass that determines the pairs; small ones suffice.
    """
    from torch import nn
    from torch.nn.utils.fusion import fuse_conv_bn_weights

    pairs: dict[nn.BatchNorm2d, nn.Conv2d] = {}
    uses: dict[nn.Module, int] = {}
    convolved: dict[int, tuple[nn.Conv2d, Any]] = {}  # the tensor is stored so that its id is not reused

    def after_convolution(module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(module, nn.Conv2d):
            convolved[id(output)] = (module, output)
        uses[module] = uses.get(module, 0) + 1

    def before_norm(module: nn.Module, inputs: Any) -> None:
        if isinstance(module, nn.BatchNorm2d) and id(inputs[0]) in convolved:
            pairs[module] = convolved[id(inputs[0])][0]
        uses[module] = uses.get(module, 0) + 1

    handles = [m.register_forward_hook(after_convolution) for m in network.modules() if isinstance(m, nn.Conv2d)]
    handles += [m.register_forward_pre_hook(before_norm) for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    try:
        with torch.inference_mode():
            network(*example)
    finally:
        for handle in handles:
            handle.remove()
    fused: dict[nn.Module, nn.Module] = {}
    for norm, convolution in pairs.items():
        # Fusing a module that runs twice in a pass would change both places.
        if uses[norm] == 1 and uses[convolution] == 1 and norm.running_mean is not None:
            weight, bias = fuse_conv_bn_weights(
                convolution.weight,
                convolution.bias,
                norm.running_mean,
                norm.running_var,  # type: ignore[arg-type]
                norm.eps,
                norm.weight,
                norm.bias,
            )
            convolution.weight, convolution.bias = weight, bias
            fused[norm] = nn.Identity()
    for parent in network.modules():
        for name, child in list(parent.named_children()):
            if child in fused:
                setattr(parent, name, fused[child])
    return len(fused)

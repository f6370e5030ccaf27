"""Forward passes of a source with its follow-ups through a network, with the captured features.

Images are processed as in ``predict`` (fitted, inputs, forward), so that features and attention belong to the recorded
answers; saliency uses the probe, which has gradients. Nothing of a seed is kept once its numbers are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask, PreparedSeed
from medtest.core.errors import MedtestError, Mistake
from medtest.core.probes import Need
from medtest.inside.attention import AttentionReader
from medtest.inside.hooks import as_map, captured, first_tensor, is_scripted, pooled
from medtest.inside.layers import chosen_layers
from medtest.inside.saliency import Method, saliency_of, score_of
from medtest.systems.pytorch.torch_system import TorchSystem
from medtest.systems.pytorch.untouched import untouched

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.systems.base import System

_CHUNK = 8


@dataclass(eq=False)
class Seen:
    """Features of a network for some images, with one entry per image.

    Attributes:
        fitted: Input of the network, uint8 h×w×3.
        vectors: Pooled features by layer, float32 B×C.
        flat: Complete features by layer, one float32 array per image.
        maps: Feature maps by layer, float32 B×h×w, except layers without positions or with several crops.
        attention: Attention maps by name, float32 B×h×w, ≥ 0.
    """

    fitted: list[Image] = field(default_factory=list)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    flat: dict[str, list[NDArray[np.float32]]] = field(default_factory=dict)
    maps: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    attention: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def network_of(system: System) -> TorchSystem:
    """Return the system that runs a torch network, opened or not.

    Raises:
        UserMistakes: The system is not a torch network.
    """
    inner = system.inner
    if not isinstance(inner, TorchSystem):
        raise Mistake(
            where=system.record_name,
            found="a system that is not a torch network",
            allowed="a network of medtest, torchvision, timm, Hugging Face, smp, MONAI or TorchScript",
            fix="take the network's own weights instead of its answers or its ONNX export",
        ).as_error()
    return inner


class Looker:
    """Inspects one opened system.

    Args:
        system: The system.
        layers: Layers to inspect, published names or the network's own; empty for defaults.
        example: An image of the suite for a trial pass.

    Attributes:
        layers: The layers, in the order in which they were named or run.
        notices: Parts that could not be inspected, with the reason.

    Raises:
        UserMistakes: The system is not an inspectable network, or has no such layer.
    """

    def __init__(self, system: System, layers: Sequence[str], example: Image) -> None:
        inner = network_of(system)
        self.system, self._torch = system, inner
        self.notices: list[str] = []
        network = inner.network
        self.layers: list[str] = []
        if is_scripted(network):
            if layers:
                raise Mistake(
                    where=system.record_name,
                    key="layers",
                    found=", ".join(layers),
                    allowed="none: a TorchScript program calls no hooks of its inner layers",
                    fix="leave layers out for saliency alone, or take the network before it was exported",
                ).as_error()
            self.notices.append("A TorchScript program calls no hooks of its layers: only its saliency is shown.")
            self._attention: AttentionReader | None = None
            return
        self._attention = AttentionReader(network)
        with untouched(network, inner.device), torch.no_grad():
            self.layers = chosen_layers(network, layers, lambda: self._forward([inner.fitted(example)]))

    def _forward(self, fitted: Sequence[Image]) -> Any:
        return self._torch.forward(self._torch.inputs(list(fitted)))

    def see(self, images: Sequence[Image]) -> Seen:
        """Show images to the network and return its features, leaving the network unchanged.

        Args:
            images: uint8 H×W×3 of equal size.
        """
        look = Seen(fitted=[self._torch.fitted(image) for image in images])
        if not self.layers and self._attention is None:
            return look
        step = min(_CHUNK, self._torch.largest_batch or _CHUNK)
        parts = [self._see(look.fitted[at : at + step]) for at in range(0, len(images), step)]
        for name in parts[0][0]:
            look.vectors[name] = np.concatenate([part[0][name] for part in parts])
            look.flat[name] = [vector for part in parts for vector in part[1][name]]
        for name in parts[0][2]:
            look.maps[name] = np.concatenate([part[2][name] for part in parts])
        for name in parts[0][3]:
            look.attention[name] = np.concatenate([part[3][name] for part in parts])
        return look

    def _see(self, fitted: Sequence[Image]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
        count, shape = len(fitted), (int(fitted[0].shape[0]), int(fitted[0].shape[1]))
        with ExitStack() as stack:
            stack.enter_context(untouched(self._torch.network, self._torch.device))
            stack.enter_context(torch.no_grad())
            captures = stack.enter_context(captured(self._torch.network, self.layers))
            if self._attention is not None:
                stack.enter_context(self._attention.attached())
            self._forward(fitted)
            outputs = {name: captures[name] for name in self.layers if name in captures}
            looked = {} if self._attention is None else self._attention.take(count, shape)
        vectors = {name: _array(pooled(output, count)) for name, output in outputs.items()}
        flat = {name: list(_array(output).reshape(count, -1)) for name, output in outputs.items()}
        maps = {
            name: _array(feature_map)
            for name, output in outputs.items()
            if len(output) == count and (feature_map := as_map(output, shape)) is not None
        }
        return vectors, flat, maps, {name: _array(attention_map) for name, attention_map in looked.items()}

    def fitted_mask(self, mask: Mask | None) -> Mask | None:
        """Return a mask cropped and resized like the network's input."""
        if mask is None:
            return None
        shown = self._torch.fitted(np.repeat((mask.astype(np.uint8) * 255)[..., None], 3, axis=2))
        return np.asarray(shown[..., 0] > 127)

    def saliency(self, seed: PreparedSeed, images: Sequence[Image], method: Method) -> tuple[Any, str]:
        """Return the saliency of a seed's images, float32 B×H×W, and the score's name; None and "" if there is none."""
        from medtest.systems.pytorch.probe import probe_of

        try:
            if self._torch.offers() is not Need.GRADIENTS:
                self._note("It gives no gradients: there is no saliency.")
                return None, ""
            probe = probe_of(self.system, classes=seed.classes)
            with probe.attached():
                score, name = score_of(probe, images[0])
                step = min(_CHUNK, self._torch.largest_batch or _CHUNK)
                maps = [
                    saliency_of(score, images[at : at + step], method=method, device=probe.device)
                    for at in range(0, len(images), step)
                ]
                return np.concatenate(maps), name
        except MedtestError:
            raise
        except Exception as error:  # noqa: BLE001 - third-party networks may fail here; features do not need gradients
            self._note(f"There is no saliency: {type(error).__name__}: {error}"[:300])
            return None, ""

    def _note(self, words: str) -> None:
        if words not in self.notices:
            self.notices.append(words)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    first = first_tensor(tensor)
    return np.asarray((tensor if first is None else first).detach().float().cpu().numpy(), np.float32)

"""Pixel attribution: gradients of one score with respect to the prepared image, by Captum.

Gradient saliency follows Simonyan, Vedaldi and Zisserman (2013), as in Xu et al. 2021, section 4.3: the largest
absolute gradient over the channels. Integrated gradients follow Sundararajan, Taly and Yan (2017), starting from black.
Both use the system's probe, so that they refer to the prepared image even if the system crops or resizes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import torch
from medtest.core.errors import Mistake

if TYPE_CHECKING:
    from medtest.core.cases import Image
    from medtest.core.probes import Probe

Method: TypeAlias = Literal["gradient", "integrated"]
STEPS = 32
"""Number of points on the path from black to the image."""


def need(module: str, extra: str, purpose: str) -> None:
    """Check that an optional library is installed.

    Raises:
        UserMistakes: It is not installed.
    """
    if find_spec(module) is None:
        raise Mistake(
            where=purpose, found=f"{module} is not installed", fix=f"pip install 'medtest[{extra}]'"
        ).as_error()


def saliency_of(
    score: Callable[[Any], Any], images: Sequence[Image], *, method: Method = "gradient", device: str = "cpu"
) -> NDArray[np.float32]:
    """Return the attribution of a score to each pixel.

    Args:
        score: Maps float32 B×3×H×W in [0, 1] to one score per image, differentiable.
        images: uint8 H×W×3 of equal size.
        method: ``gradient`` or ``integrated``.
        device: Device of the computation.

    Returns:
        float32 B×H×W, ≥ 0: the largest absolute value over the channels (gradient), the absolute value of their sum
        (integrated).
    """
    need("captum", "inside", "saliency")
    from captum.attr import IntegratedGradients, Saliency

    pixels = torch.from_numpy(np.stack(images)).to(device).permute(0, 3, 1, 2).float() / 255
    pixels.requires_grad_(True)
    with torch.enable_grad():
        if method == "gradient":
            attribution = Saliency(score).attribute(pixels, abs=True).amax(dim=1)
        else:
            black = torch.zeros_like(pixels)
            attribution = IntegratedGradients(score).attribute(pixels, black, n_steps=STEPS, internal_batch_size=8)
            attribution = attribution.sum(dim=1).abs()
    return np.asarray(attribution.detach().cpu().numpy(), np.float32)


def score_of(probe: Probe, source: Image) -> tuple[Callable[[Any], Any], str]:
    """Return the score for saliency: the system's answer to the source, followed through the follow-ups.

    For labels it is the logit of the highest class. For masks it is the mean logit of the pixels predicted as lesion in
    the source, or of all pixels if there are none.

    Args:
        probe: The system.
        source: The source image, uint8 H×W×3.

    Returns:
        The function and its name.
    """
    pixels = torch.from_numpy(np.array(source)[None]).to(probe.device).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        logits = probe.logits(pixels)[0]
    if probe.classes is not None:
        best = int(logits.argmax())
        return lambda pixel_batch: probe.logits(pixel_batch)[:, best], probe.classes.names[best]
    chosen = logits > 0
    weights = (chosen if bool(chosen.any()) else torch.ones_like(chosen)).float()
    return lambda pixel_batch: (probe.logits(pixel_batch) * weights).sum(dim=(1, 2)) / weights.sum(), "lesion"

"""Which pixels an answer hangs on: gradients of one score with respect to the prepared image, by Captum.

Gradient saliency is that of Simonyan, Vedaldi and Zisserman (2013), as in Xu et al. 2021, section 4.3: the largest
absolute gradient over the channels. Integrated gradients are those of Sundararajan, Taly and Yan (2017) from black.
Both walk the way of the system's probe, so that they lie on the prepared image whatever the system crops or resizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.errors import Mistake

if TYPE_CHECKING:
    from medtest.core.cases import Image, Mask
    from medtest.core.probes import Probe

Method: TypeAlias = Literal["gradient", "integrated"]
STEPS = 32
"""Points on the way from black to the image."""


def need(module: str, extra: str, what: str) -> None:
    """Check that an optional library is there.

    Raises:
        UserMistakes: It is not.
    """
    if find_spec(module) is None:
        raise Mistake(where=what, found=f"{module} is not installed", fix=f"pip install 'medtest[{extra}]'").as_error()


def saliency_of(
    score: Callable[[Any], Any], images: Sequence[Image], *, method: Method = "gradient", device: str = "cpu"
) -> NDArray[np.float32]:
    """Return how much a score hangs on each pixel.

    Args:
        score: Maps float32 B×3×H×W in [0, 1] to one score an image, differentiable.
        images: uint8 H×W×3 of one size.
        method: ``gradient`` or ``integrated``.
        device: Where it runs.

    Returns:
        float32 B×H×W, ≥ 0: the largest absolute value over the channels (gradient), the absolute value of their sum
        (integrated).
    """
    need("captum", "inside", "saliency")
    import torch
    from captum.attr import IntegratedGradients, Saliency

    pixels = torch.from_numpy(np.stack(images)).to(device).permute(0, 3, 1, 2).float() / 255
    pixels.requires_grad_(True)
    with torch.enable_grad():
        if method == "gradient":
            found = Saliency(score).attribute(pixels, abs=True).amax(dim=1)
        else:
            black = torch.zeros_like(pixels)
            found = IntegratedGradients(score).attribute(pixels, black, n_steps=STEPS, internal_batch_size=8)
            found = found.sum(dim=1).abs()
    return np.asarray(found.detach().cpu().numpy(), np.float32)


def score_of(probe: Probe, source: Image, mask: Mask | None = None) -> tuple[Callable[[Any], Any], str]:
    """Return the score that saliency is of: what the system answers to the source, followed through its follow-ups.

    Of labels it is the logit of the class with the highest one. Of masks it is the mean logit of the pixels that it
    took for lesion in the source, of all pixels where it took none.

    Args:
        probe: The system.
        source: The source image, uint8 H×W×3.
        mask: What it is to be instead of the system's own answer, of masks.

    Returns:
        The function and its name.
    """
    import torch

    pixels = torch.from_numpy(np.array(source)[None]).to(probe.device).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        logits = probe.logits(pixels)[0]
    if probe.classes is not None:
        best = int(logits.argmax())
        return lambda given: probe.logits(given)[:, best], probe.classes.names[best]
    chosen = logits > 0 if mask is None else torch.from_numpy(mask).to(logits.device)
    weights = (chosen if bool(chosen.any()) else torch.ones_like(chosen)).float()
    return lambda given: (probe.logits(given) * weights).sum(dim=(1, 2)) / weights.sum(), "lesion"

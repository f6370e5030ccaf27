"""Original shock filter: dilation where the image is concave, erosion where it is convex."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field, along_and_across, around, laplacian, minmod_slope, repeated

Detector = Literal["laplacian", "gradient"]
LARGEST_STEP = 0.5
"""Above it the scheme satisfies no maximum principle in two dimensions (Osher and Rudin 1990, section 3)."""


def original_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 10,
    step: Annotated[float, Setting(gt=0.0, le=LARGEST_STEP)] = 0.1,
    detector: Detector = "laplacian",
) -> Field:
    """Filter by u_t = -sign(L(u)) |∇u|.

    Osher, Rudin: Feature-oriented image enhancement using shock filters. SIAM J. Numerical Analysis 27 (1990), section
    3; slopes by minmod, so that no value leaves the range of its neighbourhood and the total variation does not grow.

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        iterations: Steps.
        step: Time step, at most 0.5; a shock moves by at most iterations times step pixels.
        detector: L: ``laplacian`` is u_xx + u_yy (used in the (α, σ) paper), ``gradient`` is u_ηη, the second
            derivative along the gradient.

    Returns:
        The same shape and type.
    """

    def once(u: Field) -> Field:
        n = around(u)
        edges = laplacian(u, n) if detector == "laplacian" else along_and_across(u, n)[0]
        slope = minmod_slope(u, n)
        slope *= step
        slope *= np.sign(edges)
        return u - slope

    return repeated(once, image, 1, iterations)


class OriginalShock(ImageFilter):
    """Shock filter by Osher and Rudin."""

    function = staticmethod(original_shock)

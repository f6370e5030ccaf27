"""Follow-ups by address for any seed, including relations for 8-bit RGB images applied to grey ones.

A relation with ``any_image`` accepts images of every dtype and dimension. The others (lighting, motion, objects …) need
8-bit RGB images of height by width: such seeds are passed on unchanged; an 8-bit grey seed is passed as three equal
colours and the luma of the result is kept. Everything else is not applicable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import cv2
import numpy as np

from medtest.core.cases import Address, FollowUp, ImageSpec, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.recent import per_seed
from medtest.core.tasks.base import task_of
from medtest.relations.base import Relation


def follow_up(relation: Relation, seed: PreparedSeed, address: Address, suite_seed: int) -> FollowUp:
    """Make the follow-up of an address for any seed.

    Args:
        relation: The relation that the address names.
        seed: Any prepared seed.
        address: Severity and frame; all random numbers come from it and from the suite's seed.
        suite_seed: The suite's ``seed``.

    Raises:
        NotApplicable: The relation does not apply to the seed or does not support its image.
    """
    return on_any_image(relation, seed, lambda coloured: _make_follow_up(relation, coloured, address, suite_seed))


def on_any_image(relation: Relation, seed: PreparedSeed, make: Callable[[PreparedSeed], FollowUp]) -> FollowUp:
    """Make a follow-up of any seed by a function that takes the seeds a relation accepts.

    Args:
        relation: The relation.
        seed: Any prepared seed.
        make: Makes the follow-up; a grey seed is passed as three equal colours, and the luma of the result is kept.

    Raises:
        NotApplicable: The relation does not support the seed's image.
    """
    image = seed.image
    if relation.any_image or not task_of(seed.kind).series:
        return make(seed)
    if image.dtype != np.uint8 or seed.spec.axes not in ("yxc", "yx"):
        raise NotApplicable(f"it changes 8-bit pictures; this image is {image.dtype} with the axes {seed.spec.axes}")
    if seed.spec.axes == "yxc":
        return make(seed)
    result = make(_coloured(seed))
    return replace(result, image=cv2.cvtColor(result.image, cv2.COLOR_RGB2GRAY))


def _make_follow_up(relation: Relation, seed: PreparedSeed, address: Address, suite_seed: int) -> FollowUp:
    rng = relation.generator(address, suite_seed)
    if relation.frames() == 1:
        return relation.follow_up(seed, address.severity, rng)
    sequence = address.sequence_generator(suite_seed)
    return relation.apply(seed, relation.sample_frame(seed, address.severity, address.frame, rng, sequence))


@per_seed
def _coloured(seed: PreparedSeed) -> PreparedSeed:
    """Return a grey seed as RGB with three equal colours, with its own frame and grey mask."""
    from medtest.preparation.frame import fit_field
    from medtest.preparation.grey import grey_mask

    image = cv2.cvtColor(seed.image, cv2.COLOR_GRAY2RGB)
    frame = fit_field(image, aspect=seed.width / seed.height).frame(seed.height, seed.width)
    return replace(
        seed,
        image=image,
        frame=frame,
        grey=grey_mask(image, frame),
        mask=None,
        spec=ImageSpec(low=seed.spec.low, high=seed.spec.high),
        _memo={},
    )

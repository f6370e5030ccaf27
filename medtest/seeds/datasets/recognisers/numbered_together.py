"""CVC-ColonDB of 2012: images 1.bmp and masks p1.bmp in one folder, beside other files s1.bmp and c1.bmp."""

from __future__ import annotations

import re
from collections.abc import Iterator

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.identify import image_stems
from medtest.seeds.datasets.tree import Tree

_IMAGES, _MASKS = r"[0-9]+", r"p[0-9]+"


class NumberedTogether(Recogniser):
    """Folders in which numbers name images and the same numbers after a p name polyp masks."""

    name = "numbered images with masks p1, p2, … beside them"
    order = 30

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each such folder; files s… and c…, or the name of a parent, identify CVC-ColonDB."""
        for where in tree.folders:
            stems = [path for path in image_stems(tree, where) if re.fullmatch(r"[pcs]?[0-9]+", path)]
            images = {stem for stem in stems if stem.isdigit()}
            masks = {stem[1:] for stem in stems if stem[0] == "p"}
            if len(images & masks) < 1 or len(images & masks) < 0.5 * len(images):
                continue
            others = {stem[0] for stem in stems} & {"c", "s"}
            named = "colondb" in "".join(c for c in str(where / tree.name).casefold() if c.isalnum())
            yield Found(
                layout="images 1, 2, … and masks p1, p2, … in one folder",
                where=where,
                images=where,
                masks=where,
                count=len(images),
                mask_count=len(masks),
                dataset="cvc-colondb" if others or named else "",
                image_names=_IMAGES,
                mask_names=_MASKS,
            )

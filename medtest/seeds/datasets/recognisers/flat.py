"""Image files in one folder, with masks beside them as name_mask or without masks."""

from __future__ import annotations

from collections.abc import Iterator

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.identify import stems_of
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.pairing import mask_of


class Flat(Recogniser):
    """Folders with image files that no other recogniser has claimed."""

    name = "images in one folder"
    order = 90

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each folder that directly holds image files."""
        for where in tree.folders:
            stems = set(stems_of(tree.folders[where]))
            if not stems:
                continue
            masks = {stem for stem in stems if any(base in stems for base in mask_of(stem))}
            yield Found(
                layout="images and masks in one folder" if masks else "images without masks",
                where=where,
                images=where,
                masks=where if masks else None,
                count=len(stems) - len(masks),
                mask_count=len(masks),
                holds="masks" if masks else "images",
            )

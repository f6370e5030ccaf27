"""A folder of images beside a folder of masks, under any usual names: most archives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.facts import by_alias, mixtures, plain
from medtest.seeds.datasets.identify import identify, image_stems
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.layout import IMAGE_FOLDERS, MASK_FOLDERS, natural_key

_PARTS = ("train", "training", "val", "valid", "validation", "test", "testing")
_PNG_FIRST = ("png", "tif", "tiff", "bmp", "jpg")
"""Preferred format if an archive holds its images in several, best first."""


class FolderPairs(Recogniser):
    """Pairs of folders recognised by their names; PraNet's TrainDataset is split by file names."""

    name = "folders of images and masks"
    order = 20

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return every pair, with its data set if it can be identified."""
        for where in tree.all_folders():
            yield from self._at(tree, where)

    def _at(self, tree: Tree, where: PurePosixPath) -> Iterator[Found]:
        folders = {path.name.casefold(): path for path in sorted(tree.below(where), key=lambda p: natural_key(p.name))}
        images = next((folders[name] for name in IMAGE_FOLDERS if name in folders), None)
        masks = next((folders[name] for name in MASK_FOLDERS if name in folders), None)
        if images is None and masks is not None:
            # ETIS-Larib names its image folder after itself, beside Ground Truth.
            images = next((path for name, path in folders.items() if plain(name) in by_alias()), None)
        if images is None:
            return
        stems = image_stems(tree, images)
        if not stems:
            return
        mask_stems = image_stems(tree, masks) if masks is not None else []
        layout = f"{images.name}/ and {masks.name}/" if masks is not None else f"{images.name}/ without masks"
        rank = next((n for n, name in enumerate(_PNG_FIRST) if where.name.casefold() == name), 0)
        mixture = next((m for m in mixtures() if plain(m["folder"]) == plain(where.name or tree.name)), {})
        split = []
        for part in mixture.get("splits", ()):
            own, own_masks = (sum(bool(re.fullmatch(part["names"], s)) for s in names) for names in (stems, mask_stems))
            if own:
                split.append(
                    Found(
                        layout=f"{mixture['title']}, {layout}",
                        where=where,
                        images=images,
                        masks=masks,
                        count=own,
                        mask_count=own_masks,
                        dataset=part["dataset"],
                        part=part["part"],
                        image_names=part["names"],
                        mask_names=part["names"],
                        holds="masks" if masks is not None else "images",
                    )
                )
        yield from split
        if split:
            return
        yield Found(
            layout=layout,
            where=where,
            images=images,
            masks=masks,
            count=len(stems),
            mask_count=len(mask_stems),
            dataset=by_alias().get(plain(images.name)) or identify(tree, where, stems),
            part=where.name if where.name.casefold() in _PARTS else "",
            holds="masks" if masks is not None else "images",
            rank=rank,
        )

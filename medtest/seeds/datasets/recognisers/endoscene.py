"""CVC-EndoSceneStill in its authors' layout: ``CVC-300`` and ``CVC-612``, each with ``bbdd`` and ``gtpolyp``."""

from __future__ import annotations

from collections.abc import Iterator

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.facts import plain
from medtest.seeds.datasets.identify import image_stems
from medtest.seeds.datasets.tree import Tree

_PARTS = {"cvc300": "endoscene-cvc-300", "cvc612": "endoscene-cvc-612"}


class EndoScene(Recogniser):
    """The two halves of EndoScene; masks of lumen, specular spots and border are ignored."""

    name = "EndoScene"
    order = 10

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each folder with ``bbdd`` and ``gtpolyp``."""
        for where in tree.all_folders():
            folders = {path.name.casefold(): path for path in tree.below(where)}
            images, masks = folders.get("bbdd"), folders.get("gtpolyp")
            if images is None or masks is None:
                continue
            yield Found(
                layout="bbdd/ and gtpolyp/",
                where=where,
                images=images,
                masks=masks,
                count=len(image_stems(tree, images)),
                mask_count=len(image_stems(tree, masks)),
                dataset=_PARTS.get(plain(where.name or tree.name), ""),
                claims=tuple(folders.values()),
            )

"""Images with a table of labels beside them or beside their folder, recognised by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.identify import image_stems, stems_of
from medtest.seeds.datasets.recognisers.class_folders import PARTS
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.layout import IMAGE_FOLDERS, MASK_FOLDERS

_TABLE = re.compile(
    r"(?:(?P<part>train|training|val|valid|validation|test|testing)(?:[_\- ]?(?:labels?|set))?"
    r"|(?:.+[_\- ])?(?:labels?|ground[_\- ]?truth|classes|diagnos[ei]s|grades|findings)|gt)\.(?:csv|tsv)",
    re.I,
)


class LabelTableFiles(Recogniser):
    """Label tables recognised by name: labels.csv, groundtruth.csv, train.csv and similar."""

    name = "images and a table of labels"
    order = 18

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each such table with its images: in a usual folder, in a folder named after its part, or beside it."""
        for where, match in tree.matching(_TABLE):
            images = _images(tree, where, match["part"])
            if images is None:
                continue
            masks = next((p for p in tree.below(where) if p.name.casefold() in MASK_FOLDERS), None)
            yield Found(
                layout=f"{match[0]} and {f'{images.name}/' if images != where else 'images beside it'}",
                where=where,
                images=images,
                masks=masks,
                count=len(image_stems(tree, images)),
                mask_count=len(image_stems(tree, masks)) if masks is not None else 0,
                part=PARTS.get((match["part"] or "").casefold(), ""),
                holds="labels",
                reader="table",
                tables=(where / match[0],),
            )


def _images(tree: Tree, where: PurePosixPath, part: str | None) -> PurePosixPath | None:
    """Return the folder that holds a table's images."""
    folders = {path.name.casefold(): path for path in tree.below(where)}
    if part and part.casefold() in folders and image_stems(tree, folders[part.casefold()]):
        return folders[part.casefold()]
    named = next((folders[name] for name in IMAGE_FOLDERS if name in folders), None)
    if named is not None and image_stems(tree, named):
        return named
    return where if stems_of(tree.folders.get(where, ())) else None

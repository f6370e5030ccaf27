"""ISIC 2016 and 2017, task 3: ``…_Data`` folders of images, a ground-truth CSV for each part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.identify import image_stems
from medtest.seeds.datasets.tree import Tree

_CSV = re.compile(
    r"(?P<year>ISBI2016|ISIC-2017)_(?:ISIC_)?(?P<part>Training|Validation|Test(?:_v2)?)?(?:_?Part3B?_?)"
    r"(?P<other>Training|Test)?_?GroundTruth(?:\s*\([0-9]+\))?\.csv",
    re.I,
)
_IMAGE = re.compile(r"isic_[0-9]+")
_SPLITS = {"training": "train", "validation": "val", "test": "test"}


class Isic(Recogniser):
    """A ground-truth CSV with the folders of its part's images and masks, wherever they were unpacked."""

    name = "ISIC 2016 and 2017"
    order = 12

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each part whose CSV and images are present."""
        for where, match in tree.matching(_CSV):
            part = (match["part"] or match["other"] or "").lower().removesuffix("_v2")
            dataset = _isic_part(tree, where, match[0], match["year"][-4:], part) if part else None
            if dataset is not None:
                yield dataset


def _isic_part(tree: Tree, where: PurePosixPath, name: str, year: str, part: str) -> Found | None:
    images = _best(tree, where, rf".*{year}.*{part}(?:_v2)?_data")
    if images is None:
        return None
    masks = _best(tree, where, rf".*{year}(?:_isic)?.*part1.*groundtruth", containing=part)
    stems = [stem for stem in image_stems(tree, images) if _IMAGE.fullmatch(stem)]
    own = [stem for stem in image_stems(tree, images) if stem.endswith("_segmentation")]
    mask_count = len(image_stems(tree, masks)) if masks is not None else len(own)
    return Found(
        layout=f"{images.name}/ and {name}",
        where=where,
        images=images,
        masks=masks,
        count=len(stems),
        mask_count=mask_count,
        dataset=f"isic-{year}",
        part=_SPLITS[part],
        holds="labels",
        claims=(images, *([masks] if masks is not None else [])),
        reader="isic",
        tables=(where / name,),
    )


def _best(tree: Tree, near: PurePosixPath, pattern: str, containing: str = "") -> PurePosixPath | None:
    """Return the folder matching a pattern that directly holds most images, preferring those below the CSV."""
    rule = re.compile(pattern, re.I)
    fitting = [
        (len(image_stems(tree, path)), path.is_relative_to(near), path)
        for path in tree.all_folders()
        if path.name and rule.fullmatch(path.name) and containing in path.name.lower() and tree.folders.get(path)
    ]
    fitting = [candidate for candidate in fitting if candidate[0]]
    return max(fitting, key=lambda candidate: (candidate[1], candidate[0]))[2] if fitting else None

"""One folder per class: Kvasir-Capsule, KID, CAD-CAP, and folders that look like classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.facts import by_alias, known, plain
from medtest.seeds.datasets.identify import stems_of
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.layout import IMAGE_FOLDERS, MASK_FOLDERS

PARTS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}
"""Parts of a data set by usual folder names."""

MOST_CLASSES = 60
"""Most sibling folders taken for classes; larger numbers are cases."""

_ANNOTATIONS = re.compile(r".+[-_ ]annotations", re.I)
_CASE = re.compile(
    r"(?:patient|case|video|seq|sequence|study|series|subject|session|exam|clip|batch|part|fold|set|base|images?)"
    r"[_\- ]?[0-9]+",
    re.I,
)
"""Folders of patients, videos or downloads, which are not classes."""

_NO_CLASSES = {*IMAGE_FOLDERS, *MASK_FOLDERS, *PARTS, "labels", "labelled_images", "labelled", "unlabelled", "data"}

_KVASIR = {"normalcleanmucosa", "reducedmucosalview", "bloodfresh", "bloodhematin", "ampullaofvater"}
"""Names found in no other set; polyps and ulcers alone are ambiguous."""

_KID = {"vascular", "inflammatory", "polypoid"}
_CAD_CAP = {"vascular", "vascularlesions", "inflammatory", "inflammatorylesions"}


class CapsuleClasses(Recogniser):
    """Class folders of the three public capsule endoscopy sets, recognised by class names."""

    name = "classes of capsule endoscopy"
    order = 14

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each folder whose sub-folders are named after the classes of one of the sets."""
        for where in tree.all_folders():
            yield from self._at(tree, where)

    def _at(self, tree: Tree, where: PurePosixPath) -> Iterator[Found]:
        # Compare names first: archives of DICOM have tens of thousands of folders.
        if not (_KVASIR | _KID | _CAD_CAP) & {plain(path.name) for path in tree.below(where)}:
            return
        folders = _with_images(tree, where)
        by_name = {plain(path.name): path for path in folders}
        own = {plain(name) for name, _ in known()["kvasir-capsule"].class_counts}
        others = {name for name in by_name if not _ANNOTATIONS.fullmatch(by_name[name].name)}
        kid = {name for name in by_name if name.startswith("normal") and len(name) > len("normal")}
        if len(own & set(by_name)) >= 2 and _KVASIR & set(by_name):
            chosen = {name: path for name, path in by_name.items() if name in own}
            yield _labels_found(tree, where, chosen, reader="kvasir_capsule", dataset="kvasir-capsule")
        elif _KID & set(by_name) and (kid or any(_ANNOTATIONS.fullmatch(path.name) for path in folders)):
            chosen = {name: path for name, path in by_name.items() if not _ANNOTATIONS.fullmatch(path.name)}
            yield _labels_found(tree, where, chosen, reader="kid", dataset="kid", claims=tuple(folders), mask=r".+m")
        elif "normal" in by_name and _CAD_CAP & others and others <= {"normal", *_CAD_CAP}:
            named = plain(where.name or tree.name) in {plain(a) for a in known()["cad-cap"].aliases}
            marked = any(stem.endswith("_a") for path in folders for stem in stems_of(tree.folders[path]))
            yield _labels_found(
                tree, where, by_name, reader="cad_cap", dataset="cad-cap" if named or marked else "", mask=r".+_a"
            )


class ClassFolders(Recogniser):
    """Sibling folders of images whose names denote neither parts nor cases."""

    name = "class folders"
    order = 80

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each parent of such folders."""
        aliases = {**by_alias(), **by_alias("labels")}
        for where in tree.all_folders():
            if len(list(tree.below(where))) < 2:
                continue
            folders = _with_images(tree, where)
            if not 2 <= len(folders) <= MOST_CLASSES or stems_of(tree.folders.get(where, ())):
                continue
            if any(plain(path.name) in aliases or not _is_possible_class(path.name) for path in folders):
                continue
            by_name = {path.name: path for path in folders}
            yield _labels_found(tree, where, by_name, reader="class_folders", dataset="")


def _is_possible_class(name: str) -> bool:
    return name.casefold() not in _NO_CLASSES and not _CASE.fullmatch(name) and not _ANNOTATIONS.fullmatch(name)


def _with_images(tree: Tree, where: PurePosixPath) -> list[PurePosixPath]:
    return [path for path in tree.below(where) if stems_of(tree.folders.get(path, ()))]


def _labels_found(
    tree: Tree,
    where: PurePosixPath,
    folders: Mapping[str, PurePosixPath],
    *,
    reader: str,
    dataset: str,
    claims: tuple[PurePosixPath, ...] = (),
    mask: str = "",
) -> Found:
    stems = [set(stems_of(tree.folders[path])) for path in folders.values()]
    masks = [
        stem
        for folder_stems in stems
        for stem in folder_stems
        if mask and re.fullmatch(mask, stem) and _image_of(stem) in folder_stems
    ]
    return Found(
        layout=f"{len(folders)} class folders",
        where=where,
        images=where,
        count=sum(map(len, stems)) - len(masks),
        mask_count=len(masks),
        dataset=dataset,
        part=PARTS.get(where.name.casefold(), ""),
        holds="labels",
        claims=claims or tuple(folders.values()),
        reader=reader,
    )


def _image_of(stem: str) -> str:
    """Return the name of the image that belongs to a mask of this name."""
    return stem.removesuffix("_a") if stem.endswith("_a") else stem.removesuffix("m")

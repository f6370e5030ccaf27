"""Images with a file of questions: the contest's gt.json, Kvasir-VQA, VQA-RAD, and files named like questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.facts import by_alias, known, plain
from medtest.seeds.datasets.identify import image_stems, stems_of
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.layout import IMAGE_FOLDERS

_CONTEST, _CONTEST_SET = "gt.json", "medvqa-gi-2023"
_NAMED = re.compile(r"(?:.*(?:question|vqa|qa[_\- ]?pairs?).*)\.(?:jsonl?|csv)", re.I)
_METADATA = re.compile(r"metadata\.(?:csv|jsonl?)", re.I)
"""Kvasir-VQA's file name; too common to be taken except below a folder named after that set."""

_RAD = re.compile(r"vqa[_\- ]?rad.*\.jsonl?", re.I)


class QuestionFiles(Recogniser):
    """Files of questions recognised by name, with their images in a usual folder or beside them."""

    name = "images and a file of questions"
    order = 16

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each such file that has images."""
        for where, names in sorted(tree.folders.items()):
            for name in sorted(names):
                dataset = _dataset(tree, where, name)
                questions = None if dataset is None else questions_at(tree, where / name, dataset)
                if questions is not None:
                    yield questions


def questions_at(tree: Tree, file: PurePosixPath, dataset: str) -> Found | None:
    """Return a file of questions with its images; None without images.

    Args:
        tree: The files below the root.
        file: The file.
        dataset: Id of the known data set that it belongs to, or "".
    """
    where = file.parent
    images = _images(tree, where)
    if images is None:
        return None
    count = len(image_stems(tree, images))
    if file.name.casefold() == _CONTEST and count == known()[_CONTEST_SET].images:
        dataset = _CONTEST_SET
    return Found(
        layout=f"{file.name} and {f'{images.name}/' if images != where else 'images beside it'}",
        where=where,
        images=images,
        count=count,
        dataset=dataset,
        title=where.name or tree.name,
        holds="questions",
        tables=(file,),
    )


def _dataset(tree: Tree, where: PurePosixPath, name: str) -> str | None:
    """Return the known data set of a file, "" for a private file; None if it holds no questions."""
    named = _dataset_name(tree, where)
    if name.casefold() == _CONTEST:
        return named if named == _CONTEST_SET else ""  # gt.json only gives the layout; the set needs its name or count
    if _RAD.fullmatch(name):
        return "vqa-rad"
    if _METADATA.fullmatch(name):
        return named if named == "kvasir-vqa" else None
    return named if _NAMED.fullmatch(name) else None


def _dataset_name(tree: Tree, where: PurePosixPath) -> str:
    aliases = by_alias("questions")
    names = [plain(folder.name or tree.name) for folder in (where, *where.parents)]
    exact = next((aliases[name] for name in names if name in aliases), "")
    begun = [alias for alias in aliases if len(alias) >= 6 and any(name.startswith(alias) for name in names)]
    return exact or (aliases[max(begun, key=len)] if begun else "")


def _images(tree: Tree, where: PurePosixPath) -> PurePosixPath | None:
    """Return the folder that holds the images of a file."""
    folders = {path.name.casefold(): path for path in tree.below(where)}
    usual = [folders[name] for name in IMAGE_FOLDERS if name in folders]
    others = [path for name, path in sorted(folders.items()) if "image" in name]
    for path in (*usual, *others):
        if image_stems(tree, path):
            return path
    return where if stems_of(tree.folders.get(where, ())) else None

"""ChestX-ray14: ``Data_Entry_2017.csv`` and lists, or CheXNet's lists, with images in one or twelve folders."""

from __future__ import annotations

import re
from collections.abc import Iterable

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.identify import stems_of
from medtest.seeds.datasets.tree import Tree, common_folder

_ENTRIES = re.compile(r"Data_Entry_2017(?:_v20[0-9]{2})?(?:\s*\([0-9]+\))?\.csv", re.I)
_LISTS = ("train_val_list.txt", "train_list.txt", "val_list.txt", "test_list.txt")
_IMAGE = re.compile(r"[0-9]{8}_[0-9]{3}")


class ChestXray14(Recogniser):
    """Data sets with the archive's table of findings, or with lists of images named as in ChestX-ray14."""

    name = "ChestX-ray14"
    order = 12

    def find(self, tree: Tree) -> Iterable[Found]:
        """Return the set once, with every folder that holds its images."""
        entries = [where / match[0] for where, match in tree.matching(_ENTRIES)]
        listed = {w: [w / n for n in names if n.lower() in _LISTS] for w, names in tree.folders.items()}
        listed = {folder: lists for folder, lists in listed.items() if lists}
        if not entries and not listed:
            return []
        home = sorted(entries)[0].parent if entries else sorted(listed)[0]
        folders = [path for path, names in tree.folders.items() if any(map(_IMAGE.fullmatch, stems_of(names)))]
        if not folders:
            return []
        images = common_folder([*folders, home])
        tables = (*sorted(entries)[:1], *listed.get(home, ()))
        count = sum(len([s for s in stems_of(tree.folders[path]) if _IMAGE.fullmatch(s)]) for path in folders)
        return [
            Found(
                layout=f"{', '.join(table.name for table in tables)}, {len(folders)} folders of images",
                where=images,
                images=images,
                count=count,
                dataset="chestxray14",
                holds="labels",
                claims=tuple(folders),
                reader="chestxray14",
                tables=tables,
            )
        ]

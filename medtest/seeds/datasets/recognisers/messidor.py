"""Messidor: workbooks ``Annotation_Base11.xls`` … (or CSVs made from them) above or beside its images."""

from __future__ import annotations

import re
from collections.abc import Iterable

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.identify import image_stems
from medtest.seeds.datasets.tree import Tree, common_folder

_TABLE = re.compile(r"(?:Annotation[_ ]Base[0-9]{2}|messidor[\w\- ]*)(?:\s*\([0-9]+\))?\.(?:xls|csv)", re.I)


class Messidor(Recogniser):
    """All tables of grades below one folder, with the images below it."""

    name = "Messidor"
    order = 12

    def find(self, tree: Tree) -> Iterable[Found]:
        """Return the set once, at the nearest common folder of its tables."""
        tables = sorted(where / match[0] for where, match in tree.matching(_TABLE))
        if not tables:
            return []
        where = common_folder([table.parent for table in tables])
        if not image_stems(tree, where) and where.name:
            where = where.parent  # the tables have a folder of their own
        stems = image_stems(tree, where)
        if not stems:
            return []
        folders = [path for path in tree.all_folders() if path.is_relative_to(where) and path in tree.folders]
        return [
            Found(
                layout=f"{len(tables)} tables of grades",
                where=where,
                images=where,
                count=len(stems),
                dataset="messidor",
                holds="labels",
                claims=tuple(folders),
                reader="messidor",
                tables=tuple(tables),
            )
        ]

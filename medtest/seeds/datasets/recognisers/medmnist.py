"""MedMNIST: ``pneumoniamnist.npz`` and its kind, also in the sizes 64, 128 and 224."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.facts import known
from medtest.seeds.datasets.tree import Tree

_NAME = re.compile(r"(?P<name>[a-z]+mnist)(?:_(?P<size>28|64|128|224))?\.npz", re.I)


class MedMnist(Recogniser):
    """Array files by their names; how many images they hold is read when one is looked at."""

    name = "MedMNIST"
    order = 12

    def find(self, tree: Tree) -> Sequence[Found]:
        """Return each file of a set's name."""
        found = []
        for where, names in tree.folders.items():
            for name in names:
                match = _NAME.fullmatch(name)
                facts = known().get(match["name"].lower()) if match else None
                if match is None or facts is None:
                    continue
                found.append(
                    Found(
                        layout=f"{name}, {match['size'] or 28} pixels a side",
                        where=where,
                        images=where / PurePosixPath(name),
                        count=facts.images,
                        dataset=facts.key,
                        title=facts.title,
                        holds="labels",
                        reader="medmnist",
                        tables=(where / name,),
                    )
                )
        return found

"""MedMNIST: ``pneumoniamnist.npz`` and similar files, also in the sizes 64, 128 and 224."""

from __future__ import annotations

import re
from collections.abc import Iterator

from medtest.seeds.datasets.base import Found, Recogniser
from medtest.seeds.datasets.facts import known
from medtest.seeds.datasets.tree import Tree

_NAME = re.compile(r"(?P<name>[a-z]+mnist)(?:_(?P<size>28|64|128|224))?\.npz", re.I)


class MedMnist(Recogniser):
    """MedMNIST array files recognised by name; their images are counted on inspection."""

    name = "MedMNIST"
    order = 12

    def find(self, tree: Tree) -> Iterator[Found]:
        """Return each file named after a MedMNIST set."""
        for where, match in tree.matching(_NAME):
            facts, file = known().get(match["name"].lower()), where / match[0]
            if facts is not None:
                yield Found(
                    layout=f"{file.name}, {match['size'] or 28} pixels a side",
                    where=where,
                    images=file,
                    count=facts.images,
                    dataset=facts.key,
                    holds="labels",
                    reader="medmnist",
                    tables=(file,),
                )

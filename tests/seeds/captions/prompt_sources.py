"""Sources of prompts as suites make them, and files of captions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from medtest.core.plugins import part
from medtest.seeds.captions.base import PromptSource
from medtest.suite.reading.library import deep_merge

CAPTIONS = {
    "139": ["A woman stands in a room.", "A dog sitting on a red couch near a table."],
    "285": ["Two cats lying on a bed near a window."],
    "632": ["A bear."],
    "1000": ["A man riding a horse and holding a flag, near a tree."],
}


def source(name: str, root: Path | None = None, seed: int = 5, **settings: Any) -> PromptSource:
    info = part("seeds", name)
    kind = info.load()
    merged = kind.Settings(**deep_merge(info.defaults, settings))
    return kind(dataset="words", settings=merged, root=root, suite_seed=seed)


def as_coco(captions: dict[str, list[str]]) -> str:
    """Return captions in COCO's own layout, with the annotations of an image apart from each other."""
    notes = [(int(image), text) for image, texts in captions.items() for text in texts]
    return json.dumps(
        {
            "info": {"year": 2017},
            "images": [{"id": int(image), "file_name": f"{int(image):012d}.jpg"} for image in captions],
            "annotations": [
                {"image_id": image, "id": number, "caption": text}
                for number, (image, text) in enumerate(sorted(notes, key=lambda note: note[1]))
            ],
        }
    )

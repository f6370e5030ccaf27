"""Modules that lie elsewhere than in the version before: their old names go on working for one release, with a warning.

Users name classes by their place in YAML (``class: medtest.core.oracles.masks:Masks``), and packages import them. A
line of :data:`MOVED` is all that a move needs.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED: Mapping[str, str] = {
    "medtest.api.answers": "medtest.api.wire.answers",
    "medtest.api.body": "medtest.api.wire.body",
    "medtest.cli.launch": "medtest.cli.run.launch",
    "medtest.core.oracles.answers": "medtest.tasks.ask.oracle",
    "medtest.core.oracles.labels": "medtest.tasks.classify.oracle",
    "medtest.core.oracles.masks": "medtest.tasks.segment.oracle",
    "medtest.core.oracles.quality": "medtest.tasks.restore.oracle",
    "medtest.core.oracles.regions": "medtest.tasks.region.oracle",
    "medtest.seeds.abdomens": "medtest.seeds.made.abdomens",
    "medtest.seeds.films": "medtest.seeds.made.films",
    "medtest.seeds.folder_source": "medtest.seeds.folders.source",
    "medtest.seeds.image_mask_folders": "medtest.seeds.folders.image_masks",
    "medtest.seeds.label_folder": "medtest.seeds.labels.folder",
    "medtest.seeds.label_phantoms": "medtest.seeds.made.label_phantoms",
    "medtest.seeds.liver_volumes": "medtest.seeds.volumes.liver_volumes",
    "medtest.seeds.phantoms": "medtest.seeds.made.phantoms",
    "medtest.seeds.question_folder": "medtest.seeds.questions.folder",
    "medtest.seeds.question_phantoms": "medtest.seeds.made.question_phantoms",
    "medtest.seeds.series_images": "medtest.seeds.volumes.series_images",
    "medtest.systems.adapters.huggingface": "medtest.systems.adapters.libraries.huggingface",
    "medtest.systems.adapters.monai_bundle": "medtest.systems.adapters.bundles.monai_bundle",
    "medtest.systems.adapters.predictions": "medtest.systems.adapters.folders.predictions",
    "medtest.systems.adapters.results": "medtest.systems.adapters.folders.results",
    "medtest.systems.adapters.smp": "medtest.systems.adapters.libraries.smp",
    "medtest.systems.adapters.timm_classifier": "medtest.systems.adapters.libraries.timm_classifier",
    "medtest.systems.adapters.torchvision_classifier": "medtest.systems.adapters.libraries.torchvision_classifier",
    "medtest.systems.label_border": "medtest.tasks.classify.border",
    "medtest.systems.restoration.bilateral": "medtest.systems.restoration.libraries",
    "medtest.systems.restoration.bm3d": "medtest.systems.restoration.libraries",
    "medtest.systems.restoration.median": "medtest.systems.restoration.libraries",
    "medtest.systems.restoration.non_local_means": "medtest.systems.restoration.libraries",
    "medtest.systems.restoration.total_variation": "medtest.systems.restoration.libraries",
    "medtest.systems.restoration.wavelet": "medtest.systems.restoration.libraries",
    "medtest.systems.series_border": "medtest.core.tasks.series_border",
}
"""Old name of a module, and where it lies."""


class MovedFinder(MetaPathFinder, Loader):
    """Finds a module under its old name: everything asked of it is asked of the one that it became."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for the old names, None for every other."""
        return ModuleSpec(name, self) if name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""
        return

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the ``__getattr__`` of its name's successor, and say so."""
        new = MOVED[module.__name__]
        warnings.warn(
            f"{module.__name__} is {new} now; the old name goes with the next release",
            FutureWarning,
            stacklevel=2,
        )
        there = importlib.import_module(new)

        def ask(name: str) -> Any:
            return getattr(there, name)

        vars(module)["__getattr__"] = ask


def old_names(names: Mapping[str, type]) -> Callable[[str], type]:
    """Return the ``__getattr__`` of a module some of whose classes were called otherwise in the version before."""

    def ask(name: str) -> type:
        if name not in names:
            raise AttributeError(name)
        text = f"{name} is {names[name].__name__} now; the old name goes with the next release"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return names[name]

    return ask


def install() -> None:
    """Let Python look for modules under their old names, once."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())

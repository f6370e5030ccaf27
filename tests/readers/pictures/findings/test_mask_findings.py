"""Segmentation systems as readers of findings: number, size and side of marked regions, on masks drawn here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from medtest.core.scenes import Scene
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.findings.masks import MaskReader, MaskReaderSettings
from medtest.systems.base import System


def _read(monkeypatch: pytest.MonkeyPatch, marked: np.ndarray[Any, Any], **settings: Any) -> Scene:
    class Marks(System):
        def fingerprint(self) -> dict[str, Any]:
            return {}

        def open(self, *, device: str, threads: int) -> None:
            pass

        def predict(self, images: Any, addresses: Any) -> Any:
            return [marked.astype(np.float32)] * len(images)

    reader = MaskReader("masks", MaskReaderSettings(**settings))
    monkeypatch.setattr(reader, "create_system", lambda: Marks("marks", Marks.Settings()))
    reader.open(device="cpu", threads=1)
    (scene,) = reader.look([np.zeros((*marked.shape, 3), np.uint8)], [PictureContent("0" * 64)])
    return scene


def test_regions_are_findings_with_size_and_side(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = np.zeros((200, 200), bool)
    rows, columns = np.mgrid[:200, :200]
    marked |= (rows - 60) ** 2 + (columns - 50) ** 2 < 20**2  # 40 of 200 pixels: 9 of 45 mm
    marked |= (rows - 140) ** 2 + (columns - 150) ** 2 < 30**2  # 60 pixels: 13.5 mm
    marked[2, 2] = True
    scene = _read(monkeypatch, marked, millimetres=45.0, sides=True)
    assert [entity.attributes for entity in scene.entities] == [("11-20mm", "left"), ("5-10mm", "right")]
    assert scene.tells.counts and scene.tells.attributes is not None and "left" in scene.tells.attributes


def test_an_unknown_scale_gives_no_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _read(monkeypatch, np.zeros((50, 50), bool))
    assert scene.entities == () and scene.tells.attributes == frozenset() and scene.tells.classes == {"polyp"}


def test_a_finding_that_no_order_names_is_a_mistake() -> None:
    (mistake,) = MaskReader("masks", MaskReaderSettings(system="pranet", finding="polip")).check()
    assert (mistake.key, mistake.nearest) == ("finding", "polyp")
    assert MaskReader("masks", MaskReaderSettings(system="pranet", finding="polyp")).check() == []

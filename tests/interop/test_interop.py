"""Relations in MAITE's workflows and NRTK's pipelines, with the real packages."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from medtest.core.errors import UserMistakes
from medtest.core.plugins import parts
from medtest.core.tasks.base import PICTURE
from medtest.interop.maite import APPLIED, RelationAugmentation
from medtest.interop.pictures import PictureChange
from medtest.relations.base import CraftedRelation
from medtest.testing import synthetic_seed

SIDE = 96


def picture(number: int) -> np.ndarray:
    return synthetic_seed(number, height=SIDE, width=SIDE).image


@dataclass
class Boxes:
    boxes: Any
    labels: Any
    scores: Any


@dataclass
class Masked(Boxes):
    masks: Any


class Pictures:
    """Data set of both protocols."""

    def __init__(self, *, detection: bool, count: int = 3) -> None:
        self.metadata = {"id": "pictures", "index2label": {0: "no polyp", 1: "polyp"}}
        self._detection, self._count = detection, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int, /) -> tuple[Any, Any, Any]:
        target: Any = np.array([0.0, 1.0])
        if self._detection:
            target = Boxes(np.array([[20.0, 30.0, 60.0, 70.0]]), np.array([1]), np.array([1.0]))
        return np.moveaxis(picture(index), -1, 0).copy(), target, {"id": index}


class Bright:
    """Classifier that answers the mean brightness."""

    metadata = {"id": "bright", "index2label": {0: "no polyp", 1: "polyp"}}

    def __call__(self, batch: Any, /) -> Any:
        means = [float(np.asarray(image).mean()) / 255 for image in batch]
        return [np.array([1 - mean, mean]) for mean in means]


class Middle:
    """Detector that answers the middle of the picture."""

    metadata = {"id": "middle", "index2label": {0: "no polyp", 1: "polyp"}}

    def __call__(self, batch: Any, /) -> Any:
        return [Boxes(np.array([[24.0, 24.0, 72.0, 72.0]]), np.array([1]), np.array([0.9])) for _ in batch]


class Count:
    """Metric that counts targets."""

    metadata = {"id": "count"}

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.seen = 0

    def update(self, preds: Any, targets: Any, metadata: Any, /) -> None:
        self.seen += len(targets)

    def compute(self) -> dict[str, Any]:
        return {"count": self.seen}


@pytest.mark.parametrize("detection", [False, True])
def test_maite_evaluates_with_a_relation(detection: bool) -> None:
    pytest.importorskip("maite")
    from maite.protocols import image_classification, object_detection
    from maite.tasks import evaluate

    protocol = (object_detection if detection else image_classification).Augmentation
    augmentation = RelationAugmentation("corruption_rotate" if detection else "contrast", severity=2, seed=7)
    assert isinstance(augmentation, protocol)
    problem = "object_detection" if detection else "image_classification"
    checked: Any = evaluate
    if find_spec("beartype"):  # MAITE checks types, shapes and metadata of every call with it
        from maite.spotcheck import spotcheck

        checked = spotcheck(evaluate, ai_problem=problem)
    arguments: dict[str, Any] = {
        "model": Middle() if detection else Bright(),
        "metric": Count(),
        "dataset": Pictures(detection=detection),
        "batch_size": 2,
        "augmentation": augmentation,
        "return_augmented_data": True,
        "return_preds": True,
    }
    result, _, batches = checked(**arguments)
    assert result == {"count": 3}
    again = evaluate(**{**arguments, "batch_size": 3})[2]
    flat = [datum for batch in batches for datum in zip(*batch, strict=True)]
    for (image, target, metadata), (other, _, _) in zip(flat, zip(*again[0], strict=True), strict=True):
        source = np.moveaxis(picture(metadata["id"]), -1, 0)
        assert image.shape == source.shape and image.dtype == np.uint8 and not np.array_equal(image, source)
        np.testing.assert_array_equal(image, other)  # for any batches
        (applied,) = metadata[APPLIED]
        assert applied["relation"] == augmentation.metadata[APPLIED]["relation"]
        assert not applied["skipped"] and applied["params"]
        json.dumps(metadata), json.dumps(augmentation.metadata)
        if detection:
            assert target.boxes.shape == (1, 4) and not np.array_equal(target.boxes, [[20, 30, 60, 70]])


@pytest.mark.parametrize("relation", ["corruption_rotate", "corruption_translate", "lens_distortion"])
def test_boxes_and_masks_move_with_the_pixels(relation: str) -> None:
    image = np.full((SIDE, SIDE, 3), 90, np.uint8)
    image[30:60, 20:50] = 220
    mask = np.zeros((SIDE, SIDE), bool)
    mask[30:60, 20:50] = True
    target = Masked(np.array([[20.0, 30.0, 50.0, 60.0]]), np.array([1]), np.array([1.0]), mask[None])
    augmentation = RelationAugmentation(relation, severity=3)
    (changed,), (moved,), _ = augmentation(([np.moveaxis(image, -1, 0)], [target], [{"id": "a"}]))
    rows, columns = np.nonzero(changed[0] > 155)
    expected_box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(moved.boxes[0], expected_box, atol=1.6)
    overlap = moved.masks[0] & (changed[0] > 155)
    assert 2 * overlap.sum() / (moved.masks[0].sum() + (changed[0] > 155).sum()) > 0.95
    np.testing.assert_array_equal(target.masks[0], mask)


def test_a_box_that_leaves_the_picture_is_left_out_and_a_skip_is_reported() -> None:
    augmentation = RelationAugmentation("corruption_translate", severity=5)
    target = Boxes(
        np.array([[0.0, 0, 2, 2], [94, 0, 96, 2], [0, 94, 2, 96], [94, 94, 96, 96]]), np.arange(4), np.ones(4)
    )
    _, (moved,), _ = augmentation(([np.moveaxis(picture(0), -1, 0)], [target], [{"id": 5}]))
    assert 0 < len(moved.boxes) == len(moved.labels) == len(moved.scores) < 4
    assert moved.boxes.min() >= 0 and moved.boxes.max() <= SIDE
    whole = Boxes(np.array([[0.0, 0, SIDE, SIDE]]), np.array([1]), np.ones(1))
    (same,), _, (metadata,) = RelationAugmentation("instrument")(
        ([np.moveaxis(picture(0), -1, 0)], [whole], [{"id": 5}])
    )
    np.testing.assert_array_equal(np.moveaxis(same, 0, -1), picture(0))
    assert "no room" in metadata[APPLIED][0]["skipped"]


def test_floats_and_grey_pictures_keep_their_type() -> None:
    change = PictureChange("contrast", severity=4)
    colours = change.change(picture(1), "a").image
    floats = change.change((picture(1) / 255).astype(np.float32), "a").image
    assert floats.dtype == np.float32
    np.testing.assert_allclose(floats, colours / 255, atol=1e-6)
    grey = picture(1)[..., :1].copy()
    assert change.change(grey, "a").image.shape == grey.shape
    for wrong in (picture(1).astype(np.int32), picture(1)[:0], np.full((9, 9), np.nan), np.zeros((4, 5, 7), np.uint8)):
        with pytest.raises(ValueError, match="a picture"):
            change.change(wrong)


@pytest.mark.slow
def test_every_relation_of_pictures_is_offered() -> None:
    offered = 0
    for name, info in parts("relations").items():
        cls = info.load()
        if issubclass(cls, CraftedRelation) or PICTURE not in cls.takes or name in ("perturb", "measured"):
            continue
        relation = cls(cls.Settings(**info.defaults))
        severity = relation.severities()[0]
        result = PictureChange(name, severity=severity).change(picture(2), "x")
        assert result.image.shape == (SIDE, SIDE, 3) and (result.params or result.skipped or name == "unchanged"), name
        offered += 1
    assert offered >= 30


@pytest.mark.slow
def test_nrtk_composes_relations_and_rebuilds_them_from_their_configuration() -> None:
    pytest.importorskip("nrtk")
    from nrtk.impls.perturb_image import ComposePerturber
    from nrtk.interfaces import PerturbImage
    from smqtk_core.configuration import from_config_dict, to_config_dict
    from smqtk_image_io.bbox import AxisAlignedBoundingBox

    from medtest.interop.nrtk import RelationPerturber

    settings = {"calibrate": {"ssim": [0.9]}}
    first = RelationPerturber("contrast", severity=1, seed=3, settings=settings)
    second = RelationPerturber("corruption_rotate", severity=2)
    assert isinstance(first, PerturbImage) and RelationPerturber in PerturbImage.get_impls()
    composed = ComposePerturber([first, second])
    box = (AxisAlignedBoundingBox((20, 30), (60, 70)), {"polyp": 1.0})
    image, boxes = composed(image=picture(0), boxes=[box], id="a")
    assert image.shape == picture(0).shape and image.dtype == np.uint8
    ((moved, scores),) = list(boxes)
    assert scores == {"polyp": 1.0} and moved != box[0] and box[0].min_vertex.tolist() == [20, 30]
    config = json.loads(json.dumps(to_config_dict(composed)))
    rebuilt = from_config_dict(config, PerturbImage.get_impls())
    again, _ = rebuilt(image=picture(0), boxes=[box], id="a")
    np.testing.assert_array_equal(image, again)
    other, _ = composed(image=picture(0), boxes=None, id="b")
    assert not np.array_equal(image, other)
    assert second(image=picture(0))[1] is None
    np.testing.assert_array_equal(first(image=picture(0))[0], first(image=picture(0).copy())[0])  # by content


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"relation": "contast"}, "did you mean: contrast"),
        ({"relation": "pgd"}, "needs a system to be crafted on"),
        ({"relation": "ss"}, "which needs prompts"),
        ({"relation": "lesion_erased"}, "which needs the answers of a system"),
        ({"relation": "blur", "severity": 9}, "allowed: 1, 2, 3, 4, 5"),
        ({"relation": "blur", "settings": {"sigma": 3}}, "settings.sigma"),
        ({"relation": "corruption_snow", "settings": {"form": "sequence"}}, "sequences"),
    ],
)
def test_mistakes_are_one_message(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UserMistakes, match=words):
        PictureChange(**arguments)


def test_without_nrtk_the_extra_is_named() -> None:
    code = "import sys; sys.modules['nrtk'] = None\ntry: import medtest.interop.nrtk\nexcept Exception as e: print(e)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'medtest[nrtk]'" in printed

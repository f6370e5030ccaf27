"""Phantoms with labels as seeds: classes, independence of their number, and digests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from medtest.core.plugins import part
from medtest.core.records import LABEL_FACTORS
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.preparation import prepare, seed_factors
from medtest.seeds.base import SeedSource


def source_of(suite_seed: int = 3, **settings: Any) -> SeedSource:
    info = part("seeds", "label_phantoms")
    cls = info.load()
    values = {**info.defaults, **settings}
    source: SeedSource = cls(dataset="made", settings=cls.Settings(**values), root=None, suite_seed=suite_seed)
    return source


@pytest.mark.parametrize(
    ("kind", "classes", "masks"),
    [("capsule", CAPSULE, True), ("dermoscopy", DERMOSCOPY, True), ("fundus", FUNDUS, True), ("chest", CHEST, False)],
)
def test_each_kind_is_a_seed(kind: str, classes: Any, masks: bool) -> None:
    source = source_of(what=kind, count=4, size=128)
    refs = source.refs()
    assert [ref.seed_id for ref in refs] == [f"{kind}-{i:05d}" for i in range(4)]
    assert source.classes() == classes and source.phantom
    for ref in refs:
        seed = source.load(ref)
        assert seed.kind == "label" and seed.classes == classes
        assert seed.labels is not None and classes.ordered(seed.labels) == seed.labels
        assert classes.multi or len(seed.labels) == 1
        assert seed.image.shape == (128, 128, 3) and (seed.expected is not None) == masks
        factors = seed_factors(prepare(seed, size=None))
        assert set(factors) == set(LABEL_FACTORS)
        assert (factors["factor_lesion_area"] is not None) == masks
        assert all(value is None or np.isfinite(value) for value in factors.values())


def test_a_phantom_does_not_depend_on_how_many_are_made() -> None:
    many, few = source_of(count=9, size=128), source_of(count=2, start=5, size=128)
    assert [ref.seed_id for ref in few.refs()] == ["capsule-00005", "capsule-00006"]
    assert (many.load(many.refs()[5]).image == few.load(few.refs()[0]).image).all()
    other = source_of(suite_seed=4, count=9, size=128)
    assert (many.load(many.refs()[5]).image != other.load(other.refs()[5]).image).any()


def test_the_digest_covers_all_settings_of_the_images() -> None:
    digests = {
        source_of(**settings).digest()
        for settings in ({}, {"count": 3}, {"start": 1}, {"size": 200}, {"what": "fundus"}, {"suite_seed": 4})
    }
    assert len(digests) == 6
    assert source_of().digest() == source_of(size=320).digest(), "320 is the capsule's own size"


def test_light_sharpness_and_salience() -> None:
    """Factors against hand computation: a field of one level with a square, blurred and not."""
    import cv2

    from medtest.core.cases import Seed, SeedRef

    image = np.full((128, 128, 3), 60, np.uint8)
    image[40:60, 40:60] = 160
    seed = Seed(ref=SeedRef(dataset="d", seed_id="s"), image=image, kind="label", classes=CAPSULE, labels=("normal",))
    factors = seed_factors(prepare(seed, size=None))
    share = 400 / 128**2
    assert factors["factor_brightness"] == pytest.approx(60 + 100 * share)
    assert factors["factor_contrast"] == pytest.approx(100 * np.sqrt(share * (1 - share)))
    # Laplacian of a step: +100 outside of and -100 inside of each edge, twice that in the four inner corners
    inside, outside = 4 * 20 - 4, 4 * 20
    corners = 4
    squares = (inside - corners) * 100**2 + corners * 200**2 + outside * 100**2
    total = -(inside - corners) * 100 - corners * 200 + outside * 100
    assert factors["factor_sharpness"] == pytest.approx(squares / 128**2 - (total / 128**2) ** 2)
    blurred = Seed(**{**{k: getattr(seed, k) for k in seed.__dataclass_fields__}, "image": cv2.blur(image, (9, 9))})
    softer = seed_factors(prepare(blurred, size=None))
    assert softer["factor_sharpness"] < 0.1 * factors["factor_sharpness"]
    assert 0 < factors["factor_salient_area"] < 0.2
    assert factors["factor_lesion_area"] is None and factors["factor_visible_area"] == 1.0


def test_each_is_one_case_without_a_question() -> None:
    refs = source_of(what="capsule", count=3, start=7).refs()
    assert [(ref.seed_id, ref.items) for ref in refs] == [(f"capsule-0000{n}", ("",)) for n in (7, 8, 9)]

"""The seed source ``phantoms``: seeds depend only on the suite's seed and their index."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from medtest.core.cases import image_sha256
from medtest.core.plugins import part
from medtest.seeds.made.phantoms import Phantoms, PhantomSettings


def source(dataset: str = "phantoms", suite_seed: int = 20240, **given_settings: Any) -> Phantoms:
    return Phantoms(dataset=dataset, settings=PhantomSettings(**given_settings), root=None, suite_seed=suite_seed)


def test_found_by_name_with_its_defaults() -> None:
    info = part("seeds", "phantoms")
    chosen = info.load()
    assert chosen is Phantoms
    values = chosen.Settings(**info.defaults)
    assert values == PhantomSettings()
    assert set(info.defaults) == set(PhantomSettings.model_fields)
    assert chosen.phantom
    assert not chosen.needs_root
    assert chosen.task == "mask"


def test_refs() -> None:
    refs = source(count=12).refs()
    assert [ref.seed_id for ref in refs[:2]] == ["phantom-0000", "phantom-0001"]
    assert len({ref.seed_id for ref in refs}) == 12
    assert all(ref.cluster == ref.seed_id and ref.dataset == "phantoms" for ref in refs)
    assert [ref.seed_id for ref in source(count=100_000).refs()][-1] == "phantom-99999"


@settings(max_examples=3)
@given(more=st.integers(13, 100_000))
def test_a_phantom_does_not_depend_on_how_many_or_in_what_order(more: int) -> None:
    few, many = source(count=12, size=[64, 80]), source(count=more, size=[64, 80])
    for index in (11, 3):
        from_few, from_many = few.load(few.refs()[index]), many.load(many.refs()[index])
        assert image_sha256(from_few.image) == image_sha256(from_many.image)
        np.testing.assert_array_equal(from_few.expected, from_many.expected)


def test_suite_seed_and_dataset_give_other_phantoms() -> None:
    hashes = set()
    for phantoms in (source(size=[64, 64]), source(size=[64, 64], suite_seed=1), source("other", size=[64, 64])):
        hashes.add(image_sha256(phantoms.load(phantoms.refs()[0]).image))
    assert len(hashes) == 3


def test_of_the_first_n_at_most_a_tenth_has_no_polyp() -> None:
    empty = []
    for suite_seed in (20240, 1):
        phantoms = source(count=40, suite_seed=suite_seed, size=[64, 64])
        flags = [not bool(np.any(phantoms.load(ref).expected)) for ref in phantoms.refs()]
        for n in range(1, 41):
            assert sum(flags[:n]) <= n / 10
        empty.append(sum(flags))
    assert sum(empty) >= 2


def test_settings_reach_the_generator() -> None:
    phantoms = source(count=4, polyps=2, frames=["round"], size=[96, 128])
    for ref in phantoms.refs():
        phantom = phantoms.make(ref)
        assert phantom.image.shape == (96, 128, 3)
        assert phantom.info["polyp_count"] == 2
        assert phantom.info["frame"] == "round"
        seed = phantoms.load(ref)
        assert seed.ref == ref
        np.testing.assert_array_equal(seed.image, phantom.image)
        np.testing.assert_array_equal(seed.expected, phantom.mask)
    without = source(count=3, negatives=1.0, size=[64, 64])
    assert not any(bool(np.any(without.load(ref).expected)) for ref in without.refs())


def test_digest_covers_all_relevant_settings() -> None:
    base = source().digest()
    assert base == source().digest()
    others = {
        source(suite_seed=1).digest(),
        source("other").digest(),
        source(count=21).digest(),
        source(polyps=1).digest(),
        source(frames=["none"]).digest(),
        source(size=[64, 64]).digest(),
        source(negatives=0.5).digest(),
        base,
    }
    assert len(others) == 8


def test_digest_changes_with_the_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    base = source().digest()
    monkeypatch.setattr(Phantoms, "revision", 10_000)
    assert source().digest() != base


def test_goes_to_a_worker() -> None:
    phantoms = pickle.loads(pickle.dumps(source(size=[64, 64])))  # noqa: S301 - our own bytes
    assert image_sha256(phantoms.load(phantoms.refs()[1]).image) == image_sha256(
        source(size=[64, 64]).load(source().refs()[1]).image
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 0},
        {"count": 100_001},
        {"count": "20"},
        {"polyps": 4},
        {"frames": []},
        {"frames": ["hexagonal"]},
        {"size": [512]},
        {"size": [63, 64]},
        {"size": [64, 5000]},
        {"negatives": -0.1},
        {"polyps": 1, "negatives": 0.5},
        {"colour": "red"},
    ],
)
def test_mistakes(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PhantomSettings(**wrong)

"""The relation ``gap``: images by a trained generator, and the search for its file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from generator_parts import DIGEST, ONE, SEVERAL, SIDE, SmallProbe, seed_of, write_generator
from relation_files import assert_every_key_is_documented

from medtest.core.cases import Classes, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.probes import CraftCase, Need
from medtest.relations.adversarial.gap import GenerativePerturbation
from medtest.relations.adversarial.generators.files import GeneratorSettings, found_files, load_generator, read_info
from medtest.testing import load_relation


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))


def relation_with(**settings: object) -> GenerativePerturbation:
    relation = load_relation("gap", **settings)
    assert isinstance(relation, GenerativePerturbation)
    return relation


def crafted(
    relation: GenerativePerturbation, seeds: list[PreparedSeed], probe: SmallProbe | None = None
) -> list[FollowUp]:
    rng = np.random.default_rng(0)
    cases = [
        CraftCase(seed=seed, params=relation.sample(seed, severity, rng))
        for seed in seeds
        for severity in relation.severities()
    ]
    results = relation.craft(cases, probe or SmallProbe(seeds[0].classes or ONE))
    errors = [result for result in results if not isinstance(result, FollowUp)]
    assert errors == []
    return [result for result in results if isinstance(result, FollowUp)]


def test_its_levels_are_the_papers_bounds_and_every_key_is_documented() -> None:
    assert_every_key_is_documented("gap")
    relation = relation_with()
    assert [relation.settings.levels[severity].linf for severity in relation.severities()] == [3, 7, 11, 13, 15]
    assert relation.needs is Need.GRADIENTS


@pytest.mark.parametrize("settings", [{}, {"universal": True}, {"target": ["bright"]}])
def test_saved_images_are_within_the_bound_as_whole_numbers(settings: dict[str, object]) -> None:
    generator_settings = GeneratorSettings(
        universal=bool(settings.get("universal")), target=tuple(settings.get("target", ()))
    )  # type: ignore[arg-type]
    write_generator(generator_settings)
    seeds = [seed_of(number) for number in range(3)]
    relation = relation_with(**settings)
    follow_ups = crafted(relation, seeds)
    for follow, seed in zip(follow_ups, [seed for seed in seeds for _ in range(5)], strict=True):
        moved = np.abs(follow.image.astype(int) - seed.image.astype(int))
        assert moved.max() <= follow.scale
        assert moved.max() >= follow.scale - 1  # the generator's largest value is scaled to the bound
        assert not moved[seed.frame].any()
        assert follow.image.dtype == np.uint8


def test_a_bound_that_is_no_whole_number_is_held_by_the_whole_levels_within_it() -> None:
    write_generator(GeneratorSettings())
    relation = relation_with(levels={3: {"linf": 10.7}}, severities=[3])
    seed = seed_of(0)
    (follow_up,) = crafted(relation, [seed])
    assert np.abs(follow_up.image.astype(int) - seed.image.astype(int)).max() == 10
    assert follow_up.scale == 10.7


def test_a_universal_perturbation_is_the_same_for_every_image_and_others_are_not() -> None:
    write_generator(GeneratorSettings(universal=True))
    write_generator(GeneratorSettings())
    seeds = [seed_of(number) for number in range(3)]

    def moved(universal: bool) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
        follow_ups = crafted(relation_with(universal=universal, severities=[3]), seeds)
        return [
            follow.image.astype(np.int64) - seed.image.astype(np.int64)
            for follow, seed in zip(follow_ups, seeds, strict=True)
        ]

    same = moved(True)
    assert all(np.array_equal(same[0], change) for change in same[1:])
    other = moved(False)
    assert not np.array_equal(other[0], other[1])


def test_follow_ups_do_not_depend_on_the_batch_and_leave_no_trace() -> None:
    import torch

    write_generator(GeneratorSettings())
    seeds = [seed_of(number) for number in range(3)]
    relation = relation_with()
    before = torch.random.get_rng_state()
    together = crafted(relation, seeds)
    alone = [follow_up for seed in seeds for follow_up in crafted(relation, [seed])]
    assert all(np.array_equal(a.image, b.image) for a, b in zip(together, alone, strict=True))
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_record_says_how_it_was_made() -> None:
    write_generator(GeneratorSettings())
    probe = SmallProbe()
    relation = relation_with(severities=[3])
    (follow_up,) = crafted(relation, [seed_of(1)], probe)
    assert follow_up.crafting is not None
    assert follow_up.crafting.reference == "answer"
    assert follow_up.crafting.zero_gradient is None
    assert follow_up.crafting.queries == probe.asked == relation.network_passes(3) == 3
    assert follow_up.crafting.float_label in ONE.names
    assert follow_up.params["epsilon"] == 11.0
    shown = SmallProbe().logits(_pixels(follow_up.image))
    answer = int(SmallProbe().logits(_pixels(seed_of(1).image)).argmax())
    assert follow_up.crafting.loss_after == pytest.approx(-float(shown.log_softmax(1)[0, answer]), abs=1e-4)


def _pixels(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]):  # type: ignore[no-untyped-def]
    import torch

    return torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float() / 255


def test_several_labels_are_joined_in_the_order_of_the_classes() -> None:
    write_generator(GeneratorSettings(target=("blue", "red")), classes=SEVERAL)
    write_generator(GeneratorSettings(), classes=SEVERAL)
    follow_ups = crafted(relation_with(target=["red", "blue"]), [seed_of(2, SEVERAL)])  # the order of targets is none
    assert all(follow_up.crafting is not None and follow_up.crafting.reference == "target" for follow_up in follow_ups)
    labels = {follow_up.crafting.float_label for follow_up in follow_ups if follow_up.crafting}
    assert all(set((label or "").split("|")) <= {*SEVERAL.names, ""} for label in labels)


def test_the_released_variant_repeats_itself_and_leaves_the_generator_unchanged() -> None:
    path = write_generator(GeneratorSettings(variant="released"), side=64)
    relation = relation_with(variant="released", severities=[3, 5])
    seed = seed_of(0, side=64)
    first, second = crafted(relation, [seed]), crafted(relation, [seed])
    assert all(np.array_equal(a.image, b.image) for a, b in zip(first, second, strict=True))
    assert "noise_seed" in first[0].params
    network, _ = load_generator(path)
    assert not network.training


def test_a_generator_for_other_images_is_reported_and_not_used() -> None:
    write_generator(GeneratorSettings())
    relation = relation_with(severities=[3])
    for seed in (seed_of(0, side=64), seed_of(0, Classes(names=("a", "b", "c")))):
        (error,) = relation.craft(
            [CraftCase(seed=seed, params=relation.sample(seed, 3, np.random.default_rng(0)))],
            SmallProbe(seed.classes or ONE),
        )
        assert isinstance(error, Exception)
        assert f"images of side {SIDE}" in str(error)
    assert relation.missing_on(DIGEST, "small", size=64)
    assert not relation.missing_on(DIGEST, "small", size=SIDE)


def test_a_missing_generator_is_one_mistake_with_the_command() -> None:
    words = "suite=s model=m phantoms=800"
    (mistake,) = relation_with().missing_on(DIGEST, "small", size=224, typed=words)
    assert mistake.fix == f"medtest train gap {words} linf=11"
    (mistake,) = relation_with(trained_at="each", severities=[2, 4]).missing_on(DIGEST, "small", typed=words)
    assert mistake.fix == f"medtest train gap {words} linf=7; then also linf=13"
    (mistake,) = relation_with(target=["b", "a"], universal=True).missing_on(DIGEST, "small", typed=words)
    assert mistake.fix == f"medtest train gap {words} linf=11 universal=true 'target=a|b'"
    write_generator(GeneratorSettings(linf=7))
    assert not relation_with(trained_at=7).missing_on(DIGEST, "small", typed=words)
    assert relation_with(trained_at=7).missing_on("another system", "small", typed=words)


def test_the_digest_of_a_run_covers_the_generators_file() -> None:
    relation = relation_with()
    nothing = relation.fingerprint_on(DIGEST)
    path = write_generator(GeneratorSettings())
    first = relation.fingerprint_on(DIGEST)
    assert first["generators"] == {"linf11": [hashlib.sha256(path.read_bytes()).hexdigest()]}
    write_generator(GeneratorSettings(), seed=1)
    assert len({str(nothing), str(first), str(relation.fingerprint_on(DIGEST))}) == 3


def test_a_file_says_what_its_generator_is() -> None:
    generator_settings = GeneratorSettings(linf=7, target=("dark",), variant="released")
    path = write_generator(generator_settings)
    info = read_info(path)
    assert info.settings == generator_settings
    assert info.classes == ONE
    assert info.side == SIDE
    assert info.mean == (0.6, 0.5, 0.4)
    assert found_files(DIGEST, generator_settings) == [path]
    assert found_files(DIGEST, GeneratorSettings(linf=7)) == []


def test_off_the_lesion_changes_nothing_of_it_and_without_a_mask_it_is_left_out() -> None:
    from dataclasses import replace

    write_generator(GeneratorSettings())
    lesion = np.zeros((SIDE, SIDE), bool)
    lesion[10:20, 10:20] = True
    seed = replace(seed_of(0), mask=lesion)
    relation = relation_with(where="off_lesion", severities=[3])
    (follow_up,) = crafted(relation, [seed])
    moved = (follow_up.image != seed.image).any(axis=2)
    assert moved.any()
    assert not moved[lesion | seed.frame].any()
    with pytest.raises(NotApplicable):
        relation.sample(seed_of(0), 3, np.random.default_rng(0))

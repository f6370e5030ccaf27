"""Training of the reader of drawn scenes: layouts, targets, loss, and resumed trainings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.errors import MedtestError, UserMistakes
from medtest.core.scenes import SeenEntity, Triple
from medtest.phantoms.scenes import CLASSES, COLOURS, Placed
from medtest.readers.pictures.bundled.network import (
    LARGE_FROM,
    SIDE,
    SMALL_TO,
    STRIDES,
    SceneMaps,
    load_scene_net,
    read_scene_info,
)
from medtest.readers.pictures.bundled.peaks import detected_objects, overlap
from medtest.training.run import train
from medtest.training.scenes.layouts import MOST_FILLED, MOST_HIDDEN, _stays_visible, pair_layout, random_layout
from medtest.training.scenes.losses import scene_loss
from medtest.training.scenes.options import SceneOptions
from medtest.training.scenes.pictures import Targets, _targets, training_batch
from medtest.training.scenes.scores import DetectionTally
from medtest.training.scenes.train import FILE

DOG = Placed(name="dog", colour="brown", box=(0.10, 0.40, 0.25, 0.52))
HOUSE = Placed(name="house", colour="white", box=(0.30, 0.20, 0.90, 0.85))
SMALL = SceneOptions(steps=4, batch=2, validate_every=2, watched=2, workers=0, mlflow=False, threads=1, warmup=1)


def _perfect_maps(targets: tuple[Targets, ...]) -> list[SceneMaps]:
    """Return the maps of a perfect network."""
    maps = []
    for target in targets:
        heat = torch.from_numpy(target.heat).clamp(1e-4, 1 - 1e-4)
        colours = torch.nn.functional.one_hot(torch.from_numpy(target.colours), len(COLOURS)).float() * 12.0
        maps.append(
            SceneMaps(heat=heat.logit(), edges=torch.from_numpy(target.edges), colours=colours.permute(0, 3, 1, 2))
        )
    return maps


def _targets_of(*scenes: list[Placed]) -> tuple[Targets, ...]:
    return tuple(_targets(list(scenes), large=bool(index)) for index in range(len(STRIDES)))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_layouts_stay_in_the_picture_and_hide_little(seed: int) -> None:
    for placed in (random_layout(np.random.default_rng(seed)), pair_layout(np.random.default_rng(seed), overlap=0.2)):
        for index, entity in enumerate(placed):
            assert 0 <= entity.box[0] < entity.box[2] <= 1
            assert 0 <= entity.box[1] < entity.box[3] <= 1
            for other in placed[:index]:
                width, height = (
                    min(entity.box[k + 2], other.box[k + 2]) - max(entity.box[k], other.box[k]) for k in (0, 1)
                )
                shared = max(width, 0) * max(height, 0)
                areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (entity.box, other.box)]
                inside = shared >= 0.95 * areas[0] and areas[0] <= MOST_FILLED * areas[1] + 1e-9
                assert shared <= MOST_HIDDEN * min(areas) + 1e-9 or inside


@pytest.mark.parametrize("share", [-0.1, 0.0, 0.2])
def test_pairs_share_the_requested_height(share: float) -> None:
    below, above = pair_layout(np.random.default_rng(3), overlap=share)
    least = min(entity.box[3] - entity.box[1] for entity in (below, above))
    assert above.box[3] - below.box[1] == pytest.approx(share * least)


def test_targets_of_the_maps_are_the_drawn_entities() -> None:
    detected = detected_objects(_perfect_maps(_targets_of([DOG, HOUSE], [])), 0.5)
    assert detected[1] == []
    by_class = {
        (CLASSES[entity.label], COLOURS[entity.colour]): [edge / SIDE for edge in entity.box] for entity in detected[0]
    }
    assert by_class == {("dog", "brown"): pytest.approx(DOG.box), ("house", "white"): pytest.approx(HOUSE.box)}


def test_large_entities_are_on_the_coarse_maps() -> None:
    fine, coarse = _targets_of([DOG, HOUSE])
    dog, house = (SIDE * ((b[2] - b[0]) * (b[3] - b[1])) ** 0.5 for b in (DOG.box, HOUSE.box))
    assert dog < LARGE_FROM < SMALL_TO < house
    assert np.argwhere(fine.heat == 1)[:, 1].tolist() == [CLASSES.index("dog")]
    assert np.argwhere(coarse.heat == 1)[:, 1].tolist() == [CLASSES.index("house")]


def test_entities_of_middle_size_are_on_both_maps() -> None:
    side = 0.5 * (LARGE_FROM + SMALL_TO) / SIDE
    cup = Placed(name="cup", colour="red", box=(0.3, 0.3, 0.3 + side, 0.3 + side))
    assert [np.argwhere(maps.heat == 1)[:, 1].tolist() for maps in _targets_of([cup])] == [[CLASSES.index("cup")]] * 2
    (detected,) = detected_objects(_perfect_maps(_targets_of([cup])), 0.5)
    assert [CLASSES[entity.label] for entity in detected] == ["cup"]  # and are one thing


def test_the_loss_is_least_for_right_maps() -> None:
    targets = _targets_of([DOG, HOUSE])
    right, parts = scene_loss(_perfect_maps(targets), targets)
    assert float(parts["edges"]) == pytest.approx(0.0, abs=1e-5)
    assert float(parts["colours"]) < 1e-3
    moved = [
        SceneMaps(heat=maps.heat, edges=maps.edges * 1.3, colours=maps.colours.roll(1, dims=1))
        for maps in _perfect_maps(targets)
    ]
    wrong, others = scene_loss(moved, targets)
    assert wrong > right
    # Edges 1.3 times as far: one box holds the other, so GIoU is the ratio of areas.
    assert float(others["edges"]) == pytest.approx(1 - 1 / 1.3**2, abs=1e-4)
    assert float(others["colours"]) == pytest.approx(12.0, abs=0.01)


def test_a_batch_follows_from_seed_and_step_alone() -> None:
    batch, same, other = training_batch(1, 5, 2), training_batch(1, 5, 2), training_batch(1, 6, 2)
    assert np.array_equal(batch[0], same[0])
    assert all(np.array_equal(a.heat, b.heat) for a, b in zip(batch[1], same[1], strict=True))
    assert not np.array_equal(batch[0], other[0])


def test_tallies_count_by_class_place_colour_and_relation() -> None:
    entities = (
        SeenEntity(name="dog", box=DOG.box, score=0.9, attributes=("black",)),
        SeenEntity(name="house", box=(0.3, 0.2, 0.9, 0.8), score=0.8, attributes=("white",)),
        SeenEntity(name="dog", box=(0.11, 0.41, 0.26, 0.53), score=0.5, attributes=("brown",)),
        SeenEntity(name="cat", box=DOG.box, score=0.4, attributes=("brown",)),
    )
    tally = DetectionTally()
    tally.add(
        [DOG, HOUSE],
        entities,
        [Triple(subject=0, predicate="left of", object=1), Triple(subject=0, predicate="on", object=1)],
    )
    assert (tally.drawn, tally.detected, tally.matched, tally.coloured) == (2, 4, 2, 1)
    assert tally.recall == 1.0
    assert tally.precision == 0.5
    assert tally.colours == 0.5
    assert tally.triples_matched == 1
    assert tally.triples_found == 2


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 2, 2), (1, 0, 3, 2)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 1, 1), (2, 2, 3, 3)) == 0.0


@pytest.mark.slow
def test_a_stopped_training_continues(tmp_path: Path) -> None:
    whole = train(SMALL, tmp_path / "whole")
    train(SMALL, tmp_path / "parts", stop=lambda done: done == 2)
    parts = train(SMALL, tmp_path / "parts")
    assert (parts.step, whole.step) == (4, 4)
    assert (tmp_path / "whole" / FILE).read_bytes() == (tmp_path / "parts" / FILE).read_bytes()
    network, info = load_scene_net(tmp_path / "whole" / FILE)
    assert info.classes == CLASSES
    assert info.colours == COLOURS
    assert sum(parameter.numel() for parameter in network.parameters()) < 5_000_000
    assert len(json.loads((tmp_path / "whole" / "history.json").read_text())) == 2
    begun = train(SMALL.model_copy(update={"start_from": tmp_path / "whole", "rate": 1e-9}), tmp_path / "on")
    on, _ = load_scene_net(begun.weights)
    kernels = [tensor for name, tensor in on.state_dict().items() if name == "stages.0.down.0.weight"]
    assert torch.allclose(kernels[0], network.state_dict()["stages.0.down.0.weight"], atol=1e-3)
    with pytest.raises(MedtestError, match="belongs to a training with another recipe"):
        train(SMALL.model_copy(update={"rate": 1e-4}), tmp_path / "parts")


def test_weights_of_something_else_are_refused(tmp_path: Path) -> None:
    from medtest.core.files.tensors import write_tensors

    file = tmp_path / "other.safetensors"
    write_tensors(file, {"a": torch.zeros(2)}, {"format": "medtest-network-1"})
    with pytest.raises(MedtestError, match=r"other\.safetensors"):
        read_scene_info(file)


def test_the_command_knows_its_options(tmp_path: Path) -> None:
    from medtest.cli.training.tokens import parse_scratch

    options, out, fresh = parse_scratch(["model=scenes", f"out={tmp_path}", "steps=7", "mlflow=false"], threads=1)
    assert isinstance(options, SceneOptions)
    assert (options.steps, options.mlflow, options.threads, out, fresh) == (7, False, 1, tmp_path, False)
    with pytest.raises(UserMistakes, match="step"):
        parse_scratch(["model=scenes", "step=7"])
    with pytest.raises(UserMistakes, match="scenes"):
        parse_scratch(["model=scene"])


def test_an_entity_inside_another_is_the_only_one_there() -> None:
    holder, small = (0.0, 0.0, 1.0, 1.0), (0.6, 0.6, 0.7, 0.7)
    assert _stays_visible(small, [holder])
    assert not _stays_visible(small, [holder, (0.1, 0.1, 0.2, 0.2)])  # the holder has something already
    assert not _stays_visible(small, [(0.0, 0.0, 0.8, 0.8), (0.5, 0.5, 1.0, 1.0)])  # inside two
    assert not _stays_visible((0.0, 0.0, 0.5, 0.5), [(0.25, 0.0, 0.75, 0.5)])  # half of a neighbour is hidden


def test_heat_falls_off_as_a_bell_curve_around_the_centre() -> None:
    box = tuple(edge / SIDE for edge in (72, 88, 152, 136))  # 80 by 48 pixels, centre (112, 112): cell 14 of 8 pixels
    maps = _targets_of([Placed(name="dog", colour="brown", box=box)])[0]
    plane = maps.heat[0, CLASSES.index("dog")]
    assert plane[14, 14] == 1.0
    for axis, side in ((1, 80), (0, 48)):
        deviation = 0.09 * side / 8  # in cells
        for cells in (1, 2):
            expected = np.exp(-0.5 * (cells / deviation) ** 2)
            both = [plane[14 + step * (axis == 0), 14 + step * (axis == 1)] for step in (-cells, cells)]
            assert both == pytest.approx([expected, expected], rel=1e-4)

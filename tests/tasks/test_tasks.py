"""Tasks: discovery by name, defaults of their roles, and outlines of expected answers."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from medtest.core.cases import (
    Address,
    Classes,
    Effect,
    FollowUp,
    ImageSpec,
    LabelOutput,
    Mask,
    MaskOutput,
    Output,
    PreparedSeed,
    RegionOutput,
    SeedRef,
)
from medtest.core.errors import BadOutput, UserMistakes
from medtest.core.oracles.moves import move_mask, moved_mask
from medtest.core.plugins import parts
from medtest.core.tasks.base import (
    PICTURE,
    PROMPT,
    Border,
    Case,
    CaseAnswer,
    SystemInput,
    Task,
    TaskDrawing,
    noun,
    task_of,
)
from medtest.relations.base import CraftedRelation, Relation
from medtest.runner.pictures.montage import draw_montage
from medtest.runner.pictures.strips import PANEL, draw_strip
from medtest.runner.units.made_case import MadeCase, SystemAnswer


def test_every_bundled_task_is_found_by_the_name_that_its_class_states() -> None:
    names = [name for name, info in parts("tasks").items() if info.origin == "medtest"]
    assert names == ["answer", "depiction", "image", "label", "mask", "region"]
    for name in names:
        task = task_of(name)
        assert (task.name, task) == (name, task_of(name))
        assert parts("oracles")[task.oracle].load().task == name
        assert issubclass(task.output, Output) and task.output is not Output
        assert not task.folder or name in parts("systems")[task.folder].load().tasks


def test_an_unknown_task_is_one_mistake() -> None:
    with pytest.raises(UserMistakes) as caught:
        task_of("masks")
    (mistake,) = caught.value.mistakes
    assert (mistake.found, mistake.nearest) == ("'masks'", "mask")
    assert "label, mask" in mistake.allowed


def test_every_seed_source_system_and_oracle_names_tasks_that_are_there() -> None:
    names = set(parts("tasks"))
    for family in ("seeds", "oracles"):
        assert {info.load().task for info in parts(family).values()} <= names  # type: ignore[arg-type]
    for name, info in parts("systems").items():
        assert set(info.load().tasks) <= names, name
    for name, info in parts("relations").items():
        crafted = issubclass(info.load(), CraftedRelation)  # made on a system's scores: of labels and masks alone
        of_tasks = crafted or info.load().control  # an oracle judges a control only if it says how
        assert info.load().takes <= ({*names, PROMPT} if of_tasks else {PICTURE, PROMPT}), name


ADDRESS = Address(dataset="d", seed_id="s", relation="moves", severity=5)


class Dot(Output):
    kind = "dot"


class DotBorder(Border):
    def check(self, raw: object, shown: SystemInput, system: object) -> Dot:
        if raw != "dot":
            raise BadOutput("gave no dot")
        return Dot()


class Dots(Task):
    name = "dot"
    output = Dot
    border = DotBorder()


def test_a_minimal_task_is_drawn_and_takes_the_inputs_of_relations() -> None:
    frame, grey = np.zeros((4, 4), np.bool_), np.ones((4, 4), np.float32)
    ref, image = SeedRef(dataset="d", seed_id="s"), np.zeros((4, 4, 3), np.uint8)
    task = Dots()
    seed = PreparedSeed(ref=ref, image=image, mask=None, original_mask=None, frame=frame, grey=grey, kind="dot")
    case = Case(
        seed=seed, image=None, reason="no room", before=CaseAnswer(output=Dot()), after=CaseAnswer(reason="broke")
    )
    shown = task.drawing.panels(case)
    assert [(panel.name, panel.words) for panel in shown.panels] == [("source", ""), ("follow-up\nbroke", "no room")]
    assert (shown.outlines, task.noun) == (False, "a dot")
    assert (task.tables.results(None, None).frames(), task.report.sections({})) == ({}, ())
    assert (noun("keypoints"), noun("answer"), noun("mass")) == ("keypoints", "an answer", "a mass")
    assert task.fits(Relation.takes) and task.fits(frozenset({"dot"})) and not task.fits(frozenset({"prompt"}))


def test_the_region_of_an_answer_is_defined_by_its_task() -> None:
    mask = np.eye(4, dtype=np.bool_)
    image = np.zeros((4, 4, 3), np.uint8)
    shown = SystemInput(image=image)
    system = None  # asked for nothing here
    answer = task_of("mask").border.check(mask, shown, system)  # type: ignore[arg-type]
    assert isinstance(answer, MaskOutput)
    np.testing.assert_array_equal(task_of("mask").drawing.region(answer), mask)
    volume = SystemInput(image=np.zeros((2, 4, 4), np.float32), spec=ImageSpec(dtype="float32", axes="zyx"))
    region = task_of("region").border.check(np.ones((2, 4, 4)), volume, system)  # type: ignore[arg-type]
    assert isinstance(region, RegionOutput) and region.region.all()
    with pytest.raises(BadOutput, match="no classes"):
        task_of("label").border.check([1.0], shown, system)  # type: ignore[arg-type]
    assert task_of("label").output is LabelOutput


# --- what is outlined as expected ---------------------------------------------------------------------------------


@pytest.fixture(params=["corruption_translate", "corruption_rotate"])
def moved(request: pytest.FixtureRequest) -> tuple[PreparedSeed, FollowUp, Mask]:
    """Return a labelled seed with a lesion off its middle, its follow-up, and the lesion's mask there."""
    mask = np.zeros((PANEL, PANEL), np.bool_)
    mask[60:120, 190:250] = True
    image = np.full((PANEL, PANEL, 3), 90, np.uint8)
    image[mask] = (200, 120, 110)
    classes = Classes(names=("none", "polyp"))
    seed = PreparedSeed(
        ref=SeedRef(dataset="d", seed_id="s"),
        image=image,
        mask=mask,
        original_mask=mask,
        frame=np.zeros_like(mask),
        grey=np.ones(mask.shape, np.float32),
        classes=classes,
        labels=("polyp",),
    )
    info = parts("relations")[request.param]
    relation = info.load()(info.load().Settings(**info.defaults))
    follow = relation.follow_up(seed, 5, np.random.default_rng(3))
    moved_mask = move_mask(mask, follow.effect.data["matrix"])
    assert (moved_mask & mask).sum() < 0.85 * mask.sum()
    return seed, follow, moved_mask


def inside(picture: np.ndarray, colour: tuple[int, int, int], where: Mask) -> float:
    """Return the share of a colour's pixels that are on a region's edge."""
    near = cv2.dilate(where.astype(np.uint8), np.ones((7, 7))) - cv2.erode(where.astype(np.uint8), np.ones((7, 7)))
    coloured = np.abs(picture.astype(int) - colour).max(axis=-1) < 60
    assert coloured.any()
    return float(near[coloured].mean())


@pytest.mark.parametrize("kind", ["mask", "label"])
def test_a_strip_outlines_the_moved_lesion_on_the_follow_up(
    moved: tuple[PreparedSeed, FollowUp, Mask], kind: str
) -> None:
    seed, follow, moved_mask = moved
    seed, green = replace(seed, kind=kind), (0, 230, 118)

    def output(mask: Mask) -> Output:
        mask_output = MaskOutput(mask=mask)
        return mask_output if kind == "mask" else LabelOutput(labels=("polyp",), classes=seed.classes, mask=mask_output)

    nowhere = SystemAnswer(output=output(np.zeros_like(moved_mask)))
    case = MadeCase(address=ADDRESS, follow=follow, kind=kind)
    strip = draw_strip(seed, case, nowhere, nowhere, title="", detail="")
    panels = [strip[50 : 50 + PANEL, 6 + n * (PANEL + 6) :][:, :PANEL] for n in range(5 if kind == "mask" else 2)]
    source, followed = panels[-2:]
    assert inside(source, green, seed.mask) == 1.0 and inside(followed, green, moved_mask) == 1.0
    if kind == "mask":
        assert inside(panels[2], green, seed.mask) == 1.0


def test_a_montage_outlines_the_moved_lesion_in_each_row(moved: tuple[PreparedSeed, FollowUp, Mask]) -> None:
    seed, follow, moved_mask = moved
    rows = [(FollowUp(image=seed.image, params={}, scale=0.0), ()), (follow, ())]
    picture = draw_montage(seed, rows, [], title="")
    for row, region in zip((48, 48 + 154), (seed.mask, moved_mask), strict=True):
        small = cv2.resize(region.astype(np.uint8), (150, 150), interpolation=cv2.INTER_NEAREST).astype(np.bool_)
        assert inside(picture[row : row + 150, 64 : 64 + 150], (0, 158, 115), small) == 1.0


class Places(TaskDrawing):
    """Drawing of a task whose expected region is the seed's ``truth`` and moves with the picture."""

    def expected_region(self, seed: PreparedSeed, effect: Effect) -> Mask:
        region = np.zeros(seed.image.shape[:2], np.bool_)
        region[seed.truth] = True
        return moved_mask(region, effect)


def test_the_expected_region_of_a_task_is_drawn_without_own_panels(moved: tuple[PreparedSeed, FollowUp, Mask]) -> None:
    seed, follow, moved_mask = moved
    drawing, seed_ = Places(), replace(seed, kind="dot", mask=None, truth=(slice(60, 120), slice(190, 250)))
    answer = CaseAnswer(output=Dot())
    shown = drawing.panels(Case(seed=seed_, image=follow.image, effect=follow.effect, before=answer, after=answer))
    assert shown.outlines and shown.truth
    np.testing.assert_array_equal(shown.panels[0].truth, seed.mask)
    np.testing.assert_array_equal(shown.panels[1].truth, moved_mask)
    none = drawing.panels(Case(seed=seed_, image=None, reason="no room", before=answer, after=answer))
    assert none.panels[0].truth is not None and none.panels[1].truth is None
    assert TaskDrawing().expected_region(seed_, follow.effect) is None

"""Sequences in the plan: every frame is a case with its own address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from medtest.core.cases import Address, FollowUp, Params, PreparedSeed, SeedRef
from medtest.relations.base import Relation, RelationSettings
from medtest.relations.series import follow_up
from medtest.suite.plan import Plan, Step


class Drift(Relation):
    """Frames that share one draw and have one each."""

    Settings = RelationSettings

    def frames(self) -> int:
        return 4

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        raise AssertionError("a sequence is sampled frame by frame")

    def sample_frame(
        self, seed: PreparedSeed, severity: int, frame: int, rng: np.random.Generator, sequence: np.random.Generator
    ) -> dict[str, Any]:
        return {"step": severity * frame, "own": int(rng.integers(2**31)), "shared": int(sequence.integers(2**31))}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        step = int(str(params["step"]))
        return FollowUp(image=np.roll(seed.image, step, axis=1), params=params, scale=float(step))


class Single(Drift):
    """A follow-up of one image."""

    def frames(self) -> int:
        return 1

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"step": severity}


REF = SeedRef(dataset="d", seed_id="s")


@pytest.fixture
def relations() -> dict[str, Relation]:
    return {
        "drift": Drift(RelationSettings(severities=[2, 1], repeats=2)),
        "single": Single(RelationSettings(severities=[3])),
    }


def test_frames_are_together_and_in_order(relations: dict[str, Relation]) -> None:
    plan = Plan((REF,), relations, 8)
    unit = plan.unit(0, 0)
    assert plan.cases_per_seed == len(unit.cases) == 1 + 2 * 2 * 4 + 1
    drift = [(a.severity, a.repeat, a.frame) for a in unit.cases if a.relation == "drift"]
    assert drift == [(s, r, f) for s in (1, 2) for r in (0, 1) for f in range(4)]
    assert unit.cases[-1] == Address(dataset="d", seed_id="s", relation="single", severity=3)
    assert unit.batches == ((0, 8), (8, 16), (16, 18))
    assert len({str(address) for address in unit.cases}) == len(unit.cases)
    assert plan.shape[1] == Step("drift", 1, 0, 1)
    assert str(unit.cases[2]) == "d/s/drift_s1_f1_r0"


def test_frames_share_one_generator_and_have_their_own(relations: dict[str, Relation]) -> None:
    image = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
    frame = np.zeros((64, 64), np.bool_)
    seed = PreparedSeed(ref=REF, image=image, mask=None, original_mask=None, frame=frame, grey=frame.astype(np.float32))
    cases = [a for a in Plan((REF,), relations, 8).unit(0, 0).cases if (a.relation, a.repeat) == ("drift", 0)]
    frames = [follow_up(relations["drift"], seed, address, 5) for address in cases if address.severity == 2]
    assert [follow.params["step"] for follow in frames] == [0, 2, 4, 6]
    assert len({follow.params["shared"] for follow in frames}) == 1
    assert len({follow.params["own"] for follow in frames}) == 4
    other = follow_up(relations["drift"], seed, cases[0], 5)
    assert other.params["shared"] != frames[0].params["shared"], "another severity is another sequence"
    alone = follow_up(relations["single"], seed, Address(dataset="d", seed_id="s", relation="single", severity=3), 5)
    assert alone.params == {"step": 3}

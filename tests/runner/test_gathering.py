"""``strongest`` keeps the worst image of all attacks of a suite, however much of it is run."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from crafting_parts import LocalNet, NetSystem, crafting_suite
from label_parts import SHADES
from runner_helpers import assert_equal_records, go, records
from runner_parts import plan_of
from torch import Tensor, nn
from torch.nn import functional

from medtest.relations.adversarial.gathering import feeding
from medtest.relations.adversarial.pgd import Pgd
from medtest.relations.adversarial.strongest.relation import Strongest
from medtest.relations.adversarial.uniform_noise import UniformNoise
from medtest.runner.records.crafted import kept
from medtest.suite.digest import run_digest
from medtest.suite.model import Selection, Suite

LEVELS = {1: {"epsilon": 2}, 2: {"epsilon": 4}}


class Twisted(nn.Module):
    """The tests' network behind steps of 8 levels, plus a small slope that leads the other way."""

    def __init__(self, network: nn.Module, random: bool) -> None:
        super().__init__()
        self.network, self.random = network, random

    def forward(self, pixels: Tensor) -> Tensor:
        """Return B×3 logits."""
        steps = torch.round(pixels * 255 / 8) * 8 / 255
        inputs = functional.dropout(steps, 0.2, training=self.random) if self.random else steps - 0.03 * pixels
        logits: Tensor = self.network(inputs)
        return logits


class TwistedNet(LocalNet):
    """A system with this network."""

    random = False

    def load(self) -> nn.Module:
        return Twisted(super().load(), self.random)


class RandomNet(TwistedNet):
    """The same, with answers that do not repeat."""

    random = True


class TwistedAway(NetSystem):
    """The same in separate processes."""

    def load(self) -> nn.Module:
        return Twisted(super().load(), False)


def attacks(system: type[NetSystem] = TwistedNet, *, more: bool = True, **changed: Any) -> Suite:
    suite = crafting_suite(natural=False, severities=(1, 3), system=system, **{"count": 2, **changed})
    relations = [
        plan_of("relations", "strongest", Strongest, levels=LEVELS, severities=[1, 2], steps=3, tries=6, draws=3),
        plan_of("relations", "uniform_noise", UniformNoise, levels=LEVELS, severities=[2]),
    ]
    levels = {1: {"epsilon": 4, "steps": 3, "step": 1}, 2: {"epsilon": 32, "steps": 3, "step": 8}}
    beside = plan_of("relations", "pgd", Pgd, levels=levels, severities=[1, 2])
    return replace(suite, relations=(*relations, *(suite.relations if more else ()), *([beside] if more else [])))


def without_answers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of how follow-ups were made, without the answers of a random network."""
    columns = ["address", "params", "followup_sha256", "linf", "loss_before", "queries", "found_by", "attack_note"]
    return frame[frame["crafted_on"].notna()][columns].reset_index(drop=True)


def test_the_worst_image_of_all_attacks_of_no_larger_scale_is_kept(tmp_path: Path) -> None:
    suite = attacks()
    assert feeding(suite.build_relations(), "strongest") == ("uniform_noise", "push", "pgd")
    outcome = go(suite, tmp_path)
    frame, folder = records(outcome), outcome.systems[0].folder
    network: Any = TwistedNet("net", TwistedNet.Settings()).load().eval()

    def margin(row: Any) -> float:
        pixels = torch.from_numpy(kept(folder, row.followup_sha256).copy()).permute(2, 0, 1)[None].float() / 255
        logits = network(pixels)[0].detach()
        true = SHADES.names.index(row.expected)
        return float(max(logits[k] for k in range(3) if k != true) - logits[true])

    crafted = frame[frame["crafted_on"].notna()]
    for row in crafted[crafted["relation"] == "strongest"].itertuples():
        others = crafted[(crafted["seed_id"] == row.seed_id) & (crafted["relation"] != "strongest")]
        within = others[others["scale"] <= row.scale]
        assert len(within) == (1 if row.scale == 2 else 3)
        for other in within.itertuples():
            assert margin(row) >= margin(other) - 1e-6
    assert crafted[crafted["relation"] != "strongest"]["found_by"].isna().all()
    assert set(crafted[crafted["relation"] == "strongest"]["found_by"]) & {"straight_through", "square", "push"}


@pytest.mark.parametrize("system", [TwistedNet, RandomNet])
def test_records_are_equal_under_only_and_after_what_is_lost(system: type[NetSystem], tmp_path: Path) -> None:
    suite = attacks(system)
    same = without_answers if system is RandomNet else (lambda frame: frame.reset_index(drop=True))
    whole = records(go(suite, tmp_path / "whole"))
    chosen = Selection(relations=frozenset({"strongest"}), severities=frozenset({2}))
    part = records(go(suite, tmp_path / "part", only=chosen))
    assert set(part["relation"]) >= {"strongest"} and "pgd" not in set(part["relation"])
    assert_equal_records(same(whole.merge(part[["address"]], on="address")), same(part))
    assert_equal_records(same(whole), same(records(go(suite, tmp_path / "part"))))
    outcome = go(suite, tmp_path / "cut", limit=1)
    shutil.rmtree(outcome.systems[0].folder / "crafted")
    assert_equal_records(same(whole), same(records(go(suite, tmp_path / "cut"))))


@pytest.mark.slow  # worker processes import torch
def test_records_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    suite = attacks(TwistedAway)
    first, second = (records(go(suite, tmp_path / str(count), workers=count)) for count in (1, 2))
    assert_equal_records(first, second)
    assert (first[first["relation"] == "strongest"]["verdict"] != "ERROR").all()


def test_its_inputs_are_in_the_digest(tmp_path: Path) -> None:
    def entry(suite: Suite) -> Any:
        relations, systems = suite.build_relations(), suite.build_systems()
        digest = run_digest(suite, "net", seeds=suite.build_seeds(None), relations=relations, system=systems["net"])
        return digest.covers["relations"]["strongest"]

    alone, fed = entry(attacks(more=False)), entry(attacks())
    assert set(alone["beside"]) == {"uniform_noise"}
    assert set(fed["beside"]) == {"uniform_noise", "push", "pgd"}
    named = attacks(crafted_on="net", crafter={"net": 3})
    assert entry(named)["beside"]["push"] != fed["beside"]["push"]


def test_strongest_on_a_named_system_gets_no_images_made_on_each() -> None:
    suite = attacks()
    relations = suite.build_relations()
    relations["strongest"].settings = relations["strongest"].settings.model_copy(update={"crafted_on": "net"})
    assert feeding(relations, "strongest") == ("uniform_noise",)
    assert feeding(relations, "pgd") == ()


def test_a_random_network_is_attacked_over_draws(tmp_path: Path) -> None:
    frame = records(go(attacks(RandomNet), tmp_path))
    worst = frame[frame["relation"] == "strongest"]
    assert worst["attack_note"].str.contains("averaged over 3 draws").all()
    assert np.isfinite(worst["queries"]).all()

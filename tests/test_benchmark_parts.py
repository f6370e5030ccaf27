"""Parts shared by benchmarks: sizes, processor time, and figures that cannot be negative."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import _sizes, api, relations
from benchmarks._clock import processor_seconds
from benchmarks._noise_suite import Measured
from medtest.runner.pool import processes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passes", type=int, default=15)
    return parser


def test_small_sizes_are_defaults_that_the_command_line_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    monkeypatch.delenv(_sizes.VARIABLE, raising=False)
    assert _sizes.options(_parser(), passes=1).passes == 15
    monkeypatch.setenv(_sizes.VARIABLE, "small")
    assert _sizes.options(_parser(), passes=1).passes == 1
    monkeypatch.setattr(sys, "argv", ["benchmark", "--passes=3"])
    assert _sizes.options(_parser(), passes=1).passes == 3


def test_a_small_size_names_an_existing_option() -> None:
    with pytest.raises(ValueError, match="no such option: rounds"):
        _sizes.options(_parser(), rounds=1)


def test_a_benchmark_of_a_library_that_is_not_installed_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _sizes.need("no_such_library", "nothing")
    assert ended.value.code == 0
    assert capsys.readouterr().out == "left out: no_such_library is not installed (pip install nothing)\n"


def test_relations_measured_change_a_picture_and_need_nothing_else() -> None:
    names = set(relations.measured_here())
    assert {"blur", "text", "unchanged", "uniform_noise"} <= names
    assert not names & {"ec", "ss", "pgd", "fgsm", "gap", "square", "strongest", "foolbox_attack"}


@pytest.mark.slow
def test_processor_time_of_workers_is_counted_once_their_servers_have_ended() -> None:
    processor_seconds()
    assert not processes._servers


@pytest.mark.parametrize(("short", "long", "shown"), [(1.0, 1.5, "0.50"), (1.5, 1.0, "unknown"), (1.0, 1.0, "unknown")])
def test_no_call_costs_less_than_nothing(short: float, long: float, shown: str) -> None:
    few, many = (Measured(calls=n, seconds=1.0, processor=s) for n, s in ((100, short), (1100, long)))
    assert api._per_call([few], [many, many]).startswith(shown)

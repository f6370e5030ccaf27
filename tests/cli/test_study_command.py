"""``medtest study``: each mistake is one message and costs no link."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "study"))
from study_parts import make_small

from medtest.cli.app import run_app
from medtest.core.errors import MedtestError
from medtest.study.server.serve import listening
from medtest.study.store import StudyStore


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("command")
    return make_small(home, home / "pairs", training="0", catch="0").folder


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.mark.slow
def test_a_taken_port_costs_no_link(study: Path, taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MedtestError, match="--port"):
        run_app(["study", "serve", str(study), "--port", str(taken_port)])
    assert "/a/" not in capsys.readouterr().out
    with StudyStore(study) as store:
        assert not any(has_link for _, has_link in store.annotators())


def test_an_address_of_another_machine(study: Path) -> None:
    with pytest.raises(MedtestError, match="--port"), listening("192.0.2.1", 8765):
        pass


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["links", "{study}", "--for", "9"], "1 to 3"),
        (["report", "{study}", "--leave-out", "7", "--no-mlflow"], "1 to 3"),
        (["report", "{study}/images"], "holds no study"),
        (["serve", "{study}", "--host", "0.0.0.0"], "--url"),  # noqa: S104
        (["serve", "{study}", "--url", "https://["], "https://host"),
        (["make", "--review", "{study}", "suite=polyp_seg"], "with --review"),
        (["make", "--review", "{study}", "anotators=2"], "did you mean: annotators"),
        (["make", "--review", "{study}"], "nothing flagged"),
        (["make", "suite=polyp_seg", "annotators"], "KEY=VALUE"),
        (["make", "suite=polyp_seg", "annotators=0"], "greater than or equal to 1"),
        (["make", "suite=polyp_seg", "anotators=2"], "did you mean: annotators"),
        (["make", "annotators=2"], "suite=NAME"),
    ],
)
def test_mistakes_are_messages(study: Path, tokens: list[str], expected: str) -> None:
    with pytest.raises(MedtestError) as caught:
        run_app(["study", *(token.format(study=study) for token in tokens)])
    assert expected in str(caught.value)
    assert int(caught.value.exit_code) == 2

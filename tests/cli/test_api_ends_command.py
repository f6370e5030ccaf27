"""What a user of a model over an API reads before a call is made, and where the server ends the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from medtest.api.faulty.answers import default_answer
from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import serving
from medtest.cli.run.launch import main

RUN = ("suite=medvqa", "model=openai_compatible", "model_name=simulated", "limit=1", "relations=[unchanged,blur]")
CASES = 18 * 5
"""Eighteen questions; the source, unchanged three times, and one blurred image."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    return tmp_path


def typed(base_url: str, *more: str) -> list[str]:
    return [*RUN, f"base_url={base_url}", "tracking=none", "quiet=true", *more]


def records(home: Path) -> pd.DataFrame:
    (path,) = home.glob("outputs/medvqa/*/*/records.parquet")
    return pd.read_parquet(path)


def test_a_plan_needs_no_key_and_no_leave_to_send_images(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked = ["suite=medvqa", "model=gpt_4o", "limit=1", "relations=[blur]", "judge.use=gpt_4_1"]
    assert main([*asked, "plan=true"]) == 0
    said = capsys.readouterr().out
    assert "gpt_4o: a run needs OPENAI_API_KEY and send_images=true (a plan sends nothing)" in said
    assert "judge: a run needs OPENAI_API_KEY (a plan sends nothing)" in said
    assert "at most 0." in said
    assert "found:" not in said
    # A run says the same as mistakes, before anything is sent.
    assert main(asked) == 2
    told = capsys.readouterr().err
    assert "OPENAI_API_KEY is not set" in told
    assert "send_images=true" in told
    assert not list(home.rglob("records*"))


def test_a_plan_still_says_what_is_wrong_for_a_plan_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "base_url=http://models.example.org/v1", "plan=true"]) == 2
    told = capsys.readouterr().err
    assert "plain http" in told
    assert "fix:     set send_images" not in told


@pytest.mark.slow
def test_where_images_go_is_said_before_the_first_call(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        if not before:
            before.append(capsys.readouterr().out)
        return default_answer(body)

    with serving(answer=answer) as server:
        assert main(typed(server.base_url)) == 0
    assert "asks simulated at 127.0.0.1" in before[0]
    assert "images stay on this machine" in before[0]
    assert "images stay" not in capsys.readouterr().out, "once is enough"


@pytest.mark.slow
def test_an_empty_account_ends_a_run_and_the_same_command_goes_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Faults(credit=30, latency=0.02)) as server:
        assert main(typed(server.base_url)) == 5
        said = capsys.readouterr().out
        assert said.count("the account has no credit") == 1
        assert "Exit code 5" in said
        first = records(home)
        assert not (first.verdict == "ERROR").any()
        assert 0 < len(first) <= server.counts["answered"]
        server.set(Faults())
        assert main(typed(server.base_url)) == 0
        assert server.counts["answered"] == CASES, "nothing that was answered is asked again"
    last = records(home)
    assert len(last) == CASES
    assert not (last.verdict == "ERROR").any()


@pytest.mark.slow
def test_no_server_at_the_address_is_one_message(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        base_url, port = server.base_url, server.port
    assert main(typed(base_url)) == 2
    said = "".join(capsys.readouterr())
    assert said.count("whether the server is running") == 1
    assert "Traceback" not in said
    with serving(port=port):
        assert main(typed(base_url)) == 0
    assert not (records(home).verdict == "ERROR").any()

"""Messages to users of a model over an API: before the first call, and when the server ends the run."""

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


def make_command(base_url: str, *more: str) -> list[str]:
    return [*RUN, f"base_url={base_url}", "tracking=none", "quiet=true", *more]


def records(home: Path) -> pd.DataFrame:
    (path,) = home.glob("outputs/medvqa/*/*/records.parquet")
    return pd.read_parquet(path)


def test_a_plan_needs_no_key_and_no_permission_to_send_images(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    tokens = ["suite=medvqa", "model=gpt_4o", "limit=1", "relations=[blur]", "judge.use=gpt_4_1"]
    assert main([*tokens, "plan=true"]) == 0
    output = capsys.readouterr().out
    assert "gpt_4o: a run needs OPENAI_API_KEY and send_images=true (a plan sends nothing)" in output
    assert "judge: a run needs OPENAI_API_KEY (a plan sends nothing)" in output
    assert "at most 0." in output
    assert "found:" not in output
    # A run says the same as mistakes, before anything is sent.
    assert main(tokens) == 2
    errors = capsys.readouterr().err
    assert "OPENAI_API_KEY is not set" in errors
    assert "send_images=true" in errors
    assert not list(home.rglob("records*"))


def test_a_plan_still_reports_mistakes_that_concern_plans(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "base_url=http://models.example.org/v1", "plan=true"]) == 2
    errors = capsys.readouterr().err
    assert "plain http" in errors
    assert "fix:     set send_images" not in errors


@pytest.mark.slow
def test_the_destination_of_images_is_printed_before_the_first_call(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        if not before:
            before.append(capsys.readouterr().out)
        return default_answer(body)

    with serving(answer=answer) as server:
        assert main(make_command(server.base_url)) == 0
    assert "asks simulated at 127.0.0.1" in before[0]
    assert "images stay on this machine" in before[0]
    assert "images stay" not in capsys.readouterr().out, "once is enough"


@pytest.mark.slow
def test_an_empty_account_ends_a_run_and_the_same_command_goes_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Faults(credit=30, latency=0.02)) as server:
        assert main(make_command(server.base_url)) == 5
        output = capsys.readouterr().out
        assert output.count("the account has no credit") == 1
        assert "Exit code 5" in output
        first = records(home)
        assert not (first.verdict == "ERROR").any()
        assert 0 < len(first) <= server.counts["answered"]
        server.set(Faults())
        assert main(make_command(server.base_url)) == 0
        assert server.counts["answered"] == CASES, "nothing that was answered is asked again"
    last = records(home)
    assert len(last) == CASES
    assert not (last.verdict == "ERROR").any()


@pytest.mark.slow
def test_no_server_at_the_address_is_one_message(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        base_url, port = server.base_url, server.port
    assert main(make_command(base_url)) == 2
    output = "".join(capsys.readouterr())
    assert output.count("whether the server is running") == 1
    assert "Traceback" not in output
    with serving(port=port):
        assert main(make_command(base_url)) == 0
    assert not (records(home).verdict == "ERROR").any()

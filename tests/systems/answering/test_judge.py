"""The judge of unparsed answers as a caller of a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtest.systems.answering.judge import Judge
from medtest.systems.answering.openai_compatible import ApiSettings, OpenAICompatible
from medtest.vqa.reading import Unread

UNREAD = Unread(item="polyps", kind="count", question="How many polyps are in the image?", words="Kaksi.")


def test_a_judge_on_another_machine_needs_no_leave_to_send_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network is needed: a proxy that is not there refuses the connection, once the call has left."""
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    settings = ApiSettings(base_url="https://judge.invalid/v1", model="reader", attempts=1)
    judge = Judge(OpenAICompatible("vllm", settings))
    assert judge.mistakes() == []
    readings = judge.read([UNREAD], tmp_path, tmp_path)
    assert "send_images" not in readings.problem
    assert "the connection failed" in readings.problem
    assert readings.found == {}
    assert readings.calls == 1

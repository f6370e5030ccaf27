"""Processes that store pictures: the same files as without them, no leftovers, and no key passed on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest
from exchanges import BLANK, PIXELS, PNG, SHA256, draw_noise

from medtest.api.calls.request import CallState
from medtest.api.drawn.keepers import Keepers
from medtest.api.drawn.store import Store
from medtest.core.cases import image_sha256
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import PictureFiles, encode


@pytest.mark.slow
def test_a_process_stores_the_same_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_KEY", "canary-key-4711x")
    contents = [PNG, BLANK, PNG[:100], b"no picture", *(encode("images", draw_noise(seed)) for seed in range(2, 6))]
    store = Store(tmp_path / "here")
    keepers = Keepers(tmp_path / "there", size=None, most=1, first=1)
    assert keepers.keep(PNG) is None  # the first are kept without
    outcomes = [keepers.keep(content) for content in contents]
    (child,) = [
        process for process in psutil.Process().children() if "medtest.api.drawn.keeper" in " ".join(process.cmdline())
    ]
    assert "IMAGE_KEY" not in child.environ()
    assert outcomes == [store.keep(content) for content in contents]
    states = [outcome.state for outcome in outcomes if outcome is not None]
    assert states[:4] == ["answered", "content_filter", "malformed", "malformed"]
    for folder in ("here", "there"):
        files = PictureFiles(tmp_path / folder)
        assert image_sha256(files.read("images", SHA256)) == image_sha256(PIXELS)
    files_kept = [
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.png")} for name in ("here", "there")
    ]
    assert files_kept[0] == files_kept[1] and len(files_kept[0]) == 5
    child.kill()  # one that dies is done without
    child.wait(10)
    assert keepers.keep(PNG) is None and keepers.keep(PNG) is None
    keepers.close()
    assert not child.is_running()


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_ends_the_run_and_an_end_of_input_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    keepers = Keepers(tmp_path / "file", size=None, most=1, first=0)
    with pytest.raises(OutputProblem, match="cannot be saved"):
        keepers.keep(PNG)
    (process,) = [
        child for child in psutil.Process().children() if "medtest.api.drawn.keeper" in " ".join(child.cmdline())
    ]
    keepers.close()
    until = time.monotonic() + 10
    while process.is_running() and time.monotonic() < until:
        time.sleep(0.01)
    assert not process.is_running()
    assert os.getpid() != process.pid and CallState.ANSWERED == "answered"

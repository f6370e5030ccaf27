"""Processes that keep pictures: the same files as without them, none left behind, and no key handed on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest
from exchanges import BLANK, PIXELS, PNG, SHA256, drawn

from medtest.api.calls.request import CallState
from medtest.api.drawn.keepers import Keepers
from medtest.api.drawn.store import Store
from medtest.core.cases import image_sha256
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import PictureFiles, encode


@pytest.mark.slow
def test_a_process_keeps_what_this_one_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_KEY", "canary-key-4711x")
    contents = [PNG, BLANK, PNG[:100], b"no picture", *(encode("images", drawn(seed)) for seed in range(2, 6))]
    here = Store(tmp_path / "here")
    keepers = Keepers(tmp_path / "there", size=None, most=1, first=1)
    assert keepers.keep(PNG) is None  # the first are kept without
    found = [keepers.keep(content) for content in contents]
    (child,) = [one for one in psutil.Process().children() if "medtest.api.drawn.keeper" in " ".join(one.cmdline())]
    assert "IMAGE_KEY" not in child.environ()
    assert found == [here.keep(content) for content in contents]
    states = [one.state for one in found if one is not None]
    assert states[:4] == ["answered", "content_filter", "malformed", "malformed"]
    for folder in ("here", "there"):
        files = PictureFiles(tmp_path / folder)
        assert image_sha256(files.read("images", SHA256)) == image_sha256(PIXELS)
    kept = [{path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.png")} for name in ("here", "there")]
    assert kept[0] == kept[1] and len(kept[0]) == 5
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
    (process,) = [one for one in psutil.Process().children() if "medtest.api.drawn.keeper" in " ".join(one.cmdline())]
    keepers.close()
    until = time.monotonic() + 10
    while process.is_running() and time.monotonic() < until:
        time.sleep(0.01)
    assert not process.is_running()
    assert os.getpid() != process.pid and CallState.ANSWERED == "answered"

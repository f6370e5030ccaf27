"""A small suite's pack, packs with changed content, and a quick system."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medtest.cli.results.packs import check_packs, pack, unpack
from medtest.cli.terminal import console
from medtest.core.cases import Image
from medtest.core.errors import ExitCode
from medtest.systems.base import RawAnswer

SMALL = ["suite=polyp_seg", "seeds.phantoms.count=3", "relations=[blur,text,saturation]", "model=pranet"]


def reddish(image: Image) -> RawAnswer:
    """Answer redness: quick, and wrong often enough for tables."""
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.asarray(np.clip((red - green) / 128, 0, 1))


def packed(to: Path, *tokens: str) -> Path:
    """Pack as the command does."""
    pack([*(tokens or SMALL), f"to={to}"], config_dirs=[], console=console())
    return to


def unpacked(file: Path, to: Path) -> Path:
    """Unpack as the command does."""
    unpack([str(file), f"to={to}"], console=console())
    return to


def checked(*tokens: str | Path) -> ExitCode:
    """Check as the command does."""
    named = [str(token) for token in tokens if "=" not in str(token) or isinstance(token, Path)]
    overrides: Sequence[str] = [str(token) for token in tokens if str(token) not in named]
    return check_packs(named, overrides, config_dirs=[], console=console())


def rewritten(file: Path, to: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Write a pack again with changed content, as someone could who knows the format."""
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return to


def resealed(files: dict[str, bytes], **changes: Any) -> None:
    """Bring pack.json up to date with the files beside it."""
    head = json.loads(files.pop("pack.json"))
    head["files"] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in files.items()
    }
    files["pack.json"] = json.dumps({**head, **changes}).encode()

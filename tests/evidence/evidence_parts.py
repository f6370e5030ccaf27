"""A small suite with ties to a technical file, and its runs by a function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import medtest
from medtest.evidence.freezing import freeze
from medtest.session.runs import invocation_of
from medtest.suite.compose import load

HOSTILE = "<img src=x onerror=alert(1)>"
SUITE = f"""\
name: tied
version: "1"
description: "A small suite {HOSTILE}"
intended_use: "Marks polyps {HOSTILE}"
seed: 7
seeds:
  phantoms: {{count: 3}}
relations:
  blur: {{severities: [1, 3], requirement: "SRS-14: blur", hazard: "HAZ-1: missed {HOSTILE}"}}
  contrast: {{severities: [2]}}
systems:
  pranet: {{}}
gates:
- {{relation: blur, max_percent: 100, requirement: "SRS-14: blur", hazard: HAZ-1, acceptance: "at most all {HOSTILE}"}}
- {{relation: overall, max_percent: 0, bound: efr_percent, requirement: SRS-10}}
"""


RED = """
import numpy as np

def red(image):
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.clip((red - green) / 128, 0, 1)
"""


def write_suite(folder: Path, text: str = SUITE) -> Path:
    (folder / "red.py").write_text(RED, encoding="utf-8")
    path = folder / "tied.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def typed(suite: Path, *further: str) -> list[str]:
    return ["model=callable", f"target={suite.parent / 'red.py'}:red", "limit=2", "track=false", "workers=1", *further]


def freeze_plan(suite: Path, home: Path, *further: str) -> tuple[Path, dict[str, Any]]:
    loaded = load(suite, typed(suite, *further), for_run=True)
    return freeze(loaded, invocation_of(loaded, home=home))


def run(suite: Path, home: Path, *further: str) -> Path:
    """Return the folder of a run."""
    result = medtest.run(suite, home=home, overrides=typed(suite, *further))
    return result.outcome.systems[0].folder

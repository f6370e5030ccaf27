"""A small suite, and helpers of the tests of suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medtest.core.errors import UserMistakes
from medtest.suite.compose import load_suite
from medtest.suite.model import Suite

BASE = """\
name: base
version: "1"
seed: 7
seeds:
  phantoms: {count: 3}
relations:
  blur: {severities: [1, 2, 3]}
  contrast: {}
systems: [pranet]
"""


def add(team: Path, name: str, text: str) -> Path:
    path = team / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def ids(plans: Any) -> list[str]:
    return [plan.id for plan in plans]


def settings_of(suite: Suite, relation: str) -> Any:
    return next(plan.settings for plan in suite.relations if plan.id == relation)


def refused(*arguments: Any, **named: Any) -> UserMistakes:
    with pytest.raises(UserMistakes) as caught:
        load_suite(*arguments, **named)
    return caught.value

"""Check of commands that make or show images against suites whose cases are prompts."""

from __future__ import annotations

from medtest.core.errors import Mistake
from medtest.suite.model import Suite


def check_images(suite: Suite, command: str) -> None:
    """Refuse a suite of prompts if images are needed.

    Args:
        suite: The suite.
        command: The command that needs images, as typed: ``medtest sheet``.

    Raises:
        UserMistakes: The suite's cases are prompts.
    """
    if suite.task.prompts:
        raise Mistake(
            where="suite",
            key="seeds",
            found="prompts",
            allowed="seeds that are images",
            fix=f"{command} needs images; use medtest replay for cases with prompts",
        ).as_error()

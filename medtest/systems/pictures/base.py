"""Prompts of image generators."""

from __future__ import annotations

from medtest.core.cases import Prompt
from medtest.core.errors import MedtestError
from medtest.systems.answering.asking import Asking

TASK = "depiction"


def prompt_of(call: Asking) -> Prompt:
    """Return the prompt of a call.

    Raises:
        MedtestError: The call has no prompt but asks about an image.
    """
    if call.prompt is None:
        raise MedtestError("an image generator needs prompts; these seeds are images")
    return call.prompt

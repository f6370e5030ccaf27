"""Base class of image generators: conversion of call outcomes to answers."""

from __future__ import annotations

from typing import ClassVar

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.core.cases import PictureOutput, Prompt
from medtest.core.errors import MedtestError
from medtest.systems.answering.asking import Asked, Asking, AskingSystem

TASK = "depiction"


class DrawingSystem(AskingSystem):
    """System that answers a prompt with a picture.

    Pictures are stored in the run folder under their content hash before their answers are yielded
    (:class:`medtest.api.drawn.kept.KeptPictures`).
    """

    tasks: ClassVar[tuple[str, ...]] = (TASK,)


def prompt_of(call: Asking) -> Prompt:
    """Return the prompt of a call.

    Raises:
        MedtestError: The call has no prompt but asks about an image.
    """
    if call.prompt is None:
        raise MedtestError("a system that draws is asked about an image; it needs seeds with prompts")
    return call.prompt


def depicted(call: Asking, outcome: Outcome) -> Asked:
    """Convert the outcome of a call: a picture by its hash, the reason why there is none, or an ERROR."""
    seconds = outcome.seconds if outcome.source == Source.CALL else None
    if outcome.state == CallState.ERROR:
        return Asked(number=call.number, outputs=(outcome.reason or "no answer",), seconds=seconds)
    output = PictureOutput(
        address=call.addresses[0],
        prompt=prompt_of(call),
        picture=outcome.picture,
        state=str(outcome.state),
        why=outcome.reason,
        revised_prompt=outcome.revised_prompt,
        model=outcome.model,
        prompt_tokens=outcome.prompt_tokens,
        completion_tokens=outcome.completion_tokens,
        cost_usd=outcome.cost_usd,
        seconds=outcome.seconds,
        attempts=outcome.attempts,
    )
    return Asked(number=call.number, outputs=(output,), seconds=seconds)

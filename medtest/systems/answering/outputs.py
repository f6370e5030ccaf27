"""Conversion of call outcomes to one answer per question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.core.cases import AnswerOutput, Ask
from medtest.language.questions.answers.values.together import split
from medtest.language.questions.questions import question_of_ask
from medtest.systems.answering.asking import Asked, Asking
from medtest.systems.answering.shapes import ANSWER, field_names, said

FIRST_NUMBER = 1
"""Number of the first question of a call."""


def asked_of(call: Asking, outcome: Outcome, *, mode: str = "words") -> Asked:
    """Convert the outcome of a call, question by question.

    ``mode`` is the mode of the request (:class:`medtest.core.cases.AnswerOutput`).

    Tokens and cost are shared evenly among the questions of the call. If a call has no answer at all, neither have its
    questions; if a structure does not fit, questions with an identifiable answer keep it and the others are
    ``malformed``.
    """
    seconds = outcome.seconds if outcome.source == Source.CALL else None
    if outcome.state == CallState.ERROR:
        return failed_of(call, outcome)
    words = words_of(call.asks, outcome, together=call.together)
    share = 1.0 / len(call.asks)
    outputs = tuple(
        AnswerOutput(
            address=address,
            text=text,
            state=str(state),
            mode=mode,
            shaped=isinstance(outcome.parsed, Mapping) and state == CallState.ANSWERED,
            model=outcome.model,
            prompt_tokens=_share(outcome.prompt_tokens, share),
            completion_tokens=_share(outcome.completion_tokens, share),
            cost_usd=_share(outcome.cost_usd, share),
            seconds=outcome.seconds,
            attempts=outcome.attempts,
            likely=() if call.together else _likely(outcome),
        )
        for address, (text, state) in zip(call.addresses, words, strict=True)
    )
    return Asked(number=call.number, outputs=outputs, seconds=seconds)


def failed_of(call: Asking, outcome: Outcome) -> Asked:
    """Return the result of a call without an answer: an ERROR for each of its cases, with what the calls cost."""
    return Asked(
        number=call.number,
        outputs=(outcome.reason or "no answer",) * len(call.addresses),
        seconds=outcome.seconds if outcome.source == Source.CALL else None,
        failed_usd=outcome.cost_usd,
        attempts=outcome.attempts,
    )


def words_of(asks: Sequence[Ask], outcome: Outcome, *, together: bool) -> list[tuple[str, CallState]]:
    """Return the words and the state of each question's answer."""
    if outcome.state in (CallState.REFUSAL, CallState.CONTENT_FILTER, CallState.LENGTH):
        return [(outcome.text, outcome.state)] * len(asks)
    parsed = outcome.parsed
    if isinstance(parsed, Mapping):
        names = field_names(asks) if together else [ANSWER]
        return [(said(parsed[name], ask.kind), CallState.ANSWERED) for name, ask in zip(names, asks, strict=True)]
    if not together:
        return [(outcome.text, outcome.state)]
    answers = split(outcome.text, [question_of_ask(ask) for ask in asks], numbered_from=FIRST_NUMBER)
    return [
        (answers[ask.item], CallState.ANSWERED) if ask.item in answers else ("", CallState.MALFORMED) for ask in asks
    ]


def _likely(outcome: Outcome) -> tuple[tuple[str, float], ...]:
    stored = outcome.likely if isinstance(outcome.likely, list) else []
    pairs = [pair for pair in stored if isinstance(pair, list) and len(pair) == 2]
    return tuple((str(token), float(str(logarithm))) for token, logarithm in pairs)


def _share(total: float | None, share: float) -> float | None:
    return None if total is None else total * share

"""Outcomes of requests from the replies to their calls, with cost and tokens divided where one call answers several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from medtest.api.calls.request import CallState, Outcome, Request
from medtest.api.calls.retry import Reply, Tally


def failed(request: Request, key: str, tally: Tally, reason: str, *, priced: bool) -> Outcome:
    """Return the ERROR of a request that is given up, with the cost of its calls if there is a price."""
    return Outcome(
        address=request.address,
        key=key,
        state=CallState.ERROR,
        reason=reason,
        attempts=tally.earlier + tally.sent,
        cost_usd=tally.usd if priced else None,
    )


def answered(request: Request, key: str, state: CallState, tally: Tally, reply: Reply, *, priced: bool) -> Outcome:
    """Return the outcome of a request whose last call was answered."""
    return Outcome(
        address=request.address,
        key=key,
        state=state,
        cost_usd=tally.usd if priced else None,
        seconds=reply.seconds,
        attempts=tally.earlier + tally.sent,
        **_own_answer(reply),
    )


def spares_of(reply: Reply, keys: Sequence[str], cost: float | None) -> list[Outcome]:
    """Return the answers of a call to further repeats, each with its part of the tokens; they count no call.

    Args:
        reply: The reply.
        keys: Content keys of the repeats; answers beyond them are left out.
        cost: Cost of each in US dollars; None if unknown.
    """
    parts = 1 + len(reply.more)
    return [
        Outcome(
            address="",
            key=key,
            state=other.state,
            cost_usd=cost,
            seconds=reply.seconds,
            **{**other.answer(), "model": reply.model, **_tokens(reply, lambda number: number // parts)},
        )
        for key, other in zip(keys, reply.more, strict=False)
        if other.state is not None
    ]


def _own_answer(reply: Reply) -> dict[str, Any]:
    """Return the fields of the answer to the request of a call itself, with the tokens that others leave."""
    others = len(reply.more)
    return {**reply.answer(), **_tokens(reply, lambda number: number - others * (number // (1 + others)))}


def _tokens(reply: Reply, part: Callable[[int], int]) -> dict[str, int | None]:
    numbers = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
    return {name: None if number is None else part(number) for name, number in numbers.items()}

"""Cost of calls and plans, and a budget that stops before its limit.

A call is reserved before it is sent, with its maximum cost, and settled afterwards with its actual cost, so that calls
in flight count. When the next call would exceed a limit, the budget waits for those in flight; if that frees nothing,
the run ends with :class:`BudgetReached` and complete results, and resumes where it stopped once the limit is raised.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.calls.request import Parameters, Request
from medtest.api.tokens import Tokens, picture_tokens, without_snapshot
from medtest.api.wire import WIRES
from medtest.core.errors import ExitCode, MedtestError, Mistake, UserMistakes

__all__ = ["Budget", "BudgetReached", "Price", "Tokens", "estimate", "picture_tokens", "price_for"]


class Price(BaseModel):
    """Price in US dollars per million tokens, and per picture.

    Attributes:
        input: Per million tokens of the question, pictures included.
        output: Per million tokens of the answer.
        as_of: Date of the price, "" if unknown.
        picture: Per generated picture.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    as_of: str = ""
    picture: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    def of(self, prompt_tokens: float, completion_tokens: float, pictures: float = 0) -> float:
        """Return the price in US dollars of tokens and generated pictures."""
        return (self.input * prompt_tokens + self.output * completion_tokens) / 1e6 + self.picture * pictures


def price_for(model: str, table: Mapping[str, Price]) -> Price | None:
    """Return a model's price; a snapshot (``…-2024-08-06``) has the price of its base name unless it has its own."""
    return table.get(model) or table.get(without_snapshot(model))


def estimate(request: Request, parameters: Parameters) -> Tokens:
    """Return the maximum tokens of a request, as counted by its kind of endpoint."""
    return WIRES[parameters.api].tokens(request, parameters)


class LearnedTokens:
    """Maximum tokens of requests, raised where the server counts more than estimated; never lowered below that.

    Args:
        parameters: Model and generation parameters.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._prompt_factor = 1.0
        self._longest = 0

    def expected(self, request: Request) -> Tokens:
        """Return the maximum tokens of a request."""
        tokens = estimate(request, self._parameters)
        prompt = int(tokens.prompt * self._prompt_factor) + 1
        return Tokens(prompt, max(tokens.completion, self._longest * request.count), tokens.pictures)

    def learn(self, request: Request, prompt_tokens: int | None, completion_tokens: int | None) -> None:
        """Take in the numbers that the server counted; None if it counted none."""
        if prompt_tokens:
            estimated = estimate(request, self._parameters).prompt
            self._prompt_factor = max(self._prompt_factor, prompt_tokens / estimated)
        self._longest = max(self._longest, (completion_tokens or 0) // request.count)


class BudgetReached(MedtestError):
    """Error: a budget allows no further call; answers so far are saved.

    Attributes:
        limit: ``max_usd`` or ``max_calls``.
        allowed: Its value.
        spent_usd: Cost so far, over all sessions of the run.
        calls: Billable calls so far, over all sessions of the run.
        next_usd: Maximum cost of the next call.
    """

    exit_code = ExitCode.BUDGET

    def __init__(self, *, limit: str, allowed: float, spent_usd: float, calls: int, next_usd: float) -> None:
        self.limit, self.allowed, self.spent_usd, self.calls, self.next_usd = limit, allowed, spent_usd, calls, next_usd
        after = f"${spent_usd:.4f} in {calls} {'call' if calls == 1 else 'calls'}"
        more = f"; the next may cost ${next_usd:.4f}" if limit == "max_usd" else ""
        super().__init__(
            f"budget.{limit}={allowed:g} is reached after {after}{more}. Answers so far are kept:"
            f" raise budget.{limit} and run the same command again to continue."
        )


@dataclass(slots=True, eq=False)
class Reservation:
    """Maximum cost of one call."""

    usd: float


class Budget:
    """Limits of one run over all its sessions.

    Args:
        max_usd: Limit in US dollars; None for no limit.
        max_calls: Limit of billable calls; None for no limit. Calls that the server answered with an error are not
            billable; calls that were cut off, or in flight when a process died, are.
        price: The model's price; needed for ``max_usd``.
        spent_usd: Spending of earlier sessions (:class:`~medtest.api.store.ledger.LedgerTotals`).
        calls: Billable calls of earlier sessions.
        where: Place named in the messages of mistakes.

    Raises:
        UserMistakes: A limit is not a positive number, or ``max_usd`` has no price.
    """

    def __init__(
        self,
        *,
        max_usd: float | None = None,
        max_calls: int | None = None,
        price: Price | None = None,
        spent_usd: float = 0.0,
        calls: int = 0,
        where: str = "configuration",
    ) -> None:
        mistakes = []
        for name, limit in (("max_usd", max_usd), ("max_calls", max_calls)):
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                mistakes.append(
                    Mistake(where=where, key=f"budget.{name}", found=str(limit), allowed="a number above 0")
                )
        if max_usd is not None and price is None:
            mistakes.append(
                Mistake(
                    where=where,
                    key="budget.max_usd",
                    found="no price of the model",
                    fix="set the model's price (input and output in US dollars per million tokens, picture per"
                    " generated picture), or use max_calls",
                )
            )
        if mistakes:
            raise UserMistakes(mistakes)
        self.max_usd, self.max_calls, self.price = max_usd, max_calls, price
        self.spent_usd, self.calls = spent_usd, calls
        self._reserved: set[Reservation] = set()
        self._reserved_usd = 0.0
        self._changed: asyncio.Event | None = None

    @property
    def in_flight(self) -> int:
        """Calls that are reserved and not settled."""
        return len(self._reserved)

    def expected(self, tokens: Tokens) -> float:
        """Return the maximum cost of a call in US dollars; 0 without a price."""
        return 0.0 if self.price is None else self.price.of(tokens.prompt, tokens.completion, tokens.pictures)

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None, pictures: int = 0) -> float | None:
        """Return the actual cost of a call; None without a price or the counts it depends on."""
        if self.price is None:
            return None
        counted = prompt_tokens is not None or completion_tokens is not None
        if not counted and not (pictures and self.price.picture and not self.price.output):
            return None
        return self.price.of(prompt_tokens or 0, completion_tokens or 0, pictures)

    def _passed(self, usd: float) -> str | None:
        if self.max_calls is not None and self.calls + len(self._reserved) + 1 > self.max_calls:
            return "max_calls"
        if self.max_usd is not None and self.spent_usd + self._reserved_usd + usd > self.max_usd:
            return "max_usd"
        return None

    async def reserve(self, usd: float) -> Reservation:
        """Wait until a call with this maximum cost fits into the limits.

        Raises:
            BudgetReached: It does not fit, and nothing is in flight any more.
        """
        while (limit := self._passed(usd)) is not None:
            if not self._reserved:
                allowed = self.max_calls if limit == "max_calls" else self.max_usd
                raise BudgetReached(
                    limit=limit,
                    allowed=float(allowed or 0),
                    spent_usd=self.spent_usd,
                    calls=self.calls,
                    next_usd=usd,
                )
            if self._changed is None:
                self._changed = asyncio.Event()
            await self._changed.wait()
        return self._reserve(usd)

    def counted(self) -> Reservation:
        """Return the reservation of a call that continues an earlier, already counted one."""
        return self._reserve(0.0)

    def _reserve(self, usd: float) -> Reservation:
        reservation = Reservation(usd)
        self._reserved.add(reservation)
        self._reserved_usd += usd
        return reservation

    def settle(self, reservation: Reservation, usd: float, *, billable: bool) -> None:
        """Replace a reservation by the actual cost of its call; settling twice has no effect."""
        if reservation not in self._reserved:
            return
        self._reserved.discard(reservation)
        # A sum of many small numbers drifts, so reset it when empty.
        self._reserved_usd = self._reserved_usd - reservation.usd if self._reserved else 0.0
        self.spent_usd += usd
        self.calls += int(billable)
        if self._changed is not None:
            self._changed.set()
            self._changed = None

"""Settings of the faulty server, its rate limits, and bodies in the provider's format."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medtest.api.faulty.answers import log_probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults of the server; shares are probabilities per request, drawn from ``seed`` in the order of arrival.

    Attributes:
        latency: Seconds before an answer.
        jitter: Maximum additional seconds, uniformly distributed.
        rate: Allowed requests per second; None for no limit.
        burst: Requests allowed at once under a limit.
        window: Seconds of a fixed window in which ``rate * window`` requests are allowed, instead of a steady refill.
        hidden: Requests really allowed in ``hidden_seconds``, regardless of its headers; None for no such limit.
        hidden_seconds: Length of that window, which restarts with the first request after its end.
        slots: Requests processed at once; None for any number. Others wait in the order of arrival, and requests of
            disconnected clients are processed too, as on many model servers.
        headers: Whether every answer under a limit reports the remaining quota (``x-ratelimit-…-requests``).
        retry_after: ``seconds``, ``date`` or ``none``: form of the Retry-After header of a 429.
        too_many: Share of 429 responses regardless of any limit.
        error: Share of 500.
        reset: Share of connections reset instead of an answer.
        truncated: Share of truncated bodies, half of them with a matching length.
        wrong_type: Share of HTML pages with status 200.
        slow: Share of bodies that drip over ``slow_seconds``.
        slow_seconds: Duration of a dripping body.
        refusal: Share of refusals.
        filtered: Share of content filter stops.
        length: Share of length stops.
        takes_schema: Whether structured output is supported; otherwise 400.
        key: The required bearer key; "" for any.
        credit: Number of answers that the account pays for; None for no limit.
        no_credit_status: Status afterwards: 429 with ``insufficient_quota`` (OpenAI), or 402.
        valid_for: Number of answers after which the key is refused (401, or 403); None for never.
        invalid_status: That status.
        seed: Seed of the draws.
    """

    latency: float = 0.0
    jitter: float = 0.0
    rate: float | None = None
    burst: int = 10
    window: float = 0.0
    hidden: int | None = None
    hidden_seconds: float = 1.0
    slots: int | None = None
    headers: bool = True
    retry_after: str = "seconds"
    too_many: float = 0.0
    error: float = 0.0
    reset: float = 0.0
    truncated: float = 0.0
    wrong_type: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 3.0
    refusal: float = 0.0
    filtered: float = 0.0
    length: float = 0.0
    takes_schema: bool = True
    key: str = ""
    credit: int | None = None
    no_credit_status: int = 429
    valid_for: int | None = None
    invalid_status: int = 401
    seed: int = 0


SHARES = ("too_many", "error", "reset", "truncated", "wrong_type", "slow", "refusal", "filtered", "length")


class Limiter:
    """Limits of the server: a steady refill, or fixed windows, and a hidden window."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.full = float(faults.burst) if not faults.window else max(1.0, (faults.rate or 0) * faults.window)
        self.level = self.full
        self._at = self._hidden_at = -math.inf
        self._hidden = 0

    def admit(self, now: float) -> tuple[bool, dict[str, str], float]:
        """Return whether a request is allowed, the headers, and seconds until the next will be.

        Args:
            now: Seconds of one monotonic clock.
        """
        faults = self.faults
        let_in, wait = self._admit_hidden(now)
        if faults.rate is None:
            return let_in, {}, wait
        if faults.window:
            if now - self._at >= faults.window:
                self.level, self._at = self.full, now
            allowed = self.level >= 1
            self.level -= float(let_in and allowed)
            reset = full_in = self._at + faults.window - now
        else:
            self.level = min(self.full, self.level + max(0.0, now - self._at) * faults.rate)
            self._at = now
            allowed = self.level >= 1
            self.level -= float(let_in and allowed)
            reset, full_in = (self.full - self.level) / faults.rate, max(0.0, 1 - self.level) / faults.rate
        stated = {
            "x-ratelimit-limit-requests": str(int(self.full)),
            "x-ratelimit-remaining-requests": str(int(self.level)),
            "x-ratelimit-reset-requests": f"{math.ceil(reset * 1000)}ms",
        }
        return let_in and allowed, stated if faults.headers else {}, wait if let_in is False else full_in

    def _admit_hidden(self, now: float) -> tuple[bool, float]:
        if self.faults.hidden is None:
            return True, 0.0
        if now - self._hidden_at >= self.faults.hidden_seconds:
            self._hidden, self._hidden_at = 0, now
        self._hidden += 1
        return self._hidden <= self.faults.hidden, self._hidden_at + self.faults.hidden_seconds - now


def completion(
    body: Mapping[str, Any], text: str, fault: str, *, declined: str | None, chat: bool, size: int
) -> dict[str, Any]:
    """Return the body of an answer: chat.completions or responses.

    Args:
        body: The request's body.
        text: The answer's words.
        fault: ``refusal``, ``filtered``, ``length``, or another one without effect here.
        declined: Words of a refusal; None if the answer is not one.
        chat: Whether chat.completions was requested.
        size: Bytes of the request, from which tokens are computed.
    """
    refusal = "I'm sorry, I can't help with that." if fault == "refusal" else declined
    text = "" if refusal or fault == "filtered" else text[: len(text) // 2] if fault == "length" else text
    count = {"question": max(1, size // 400), "answer": max(1, len(text) // 4)}
    model = str(body.get("model"))
    logs = log_probabilities(text, body.get("top_logprobs") or 0)
    if chat:
        finish = {"length": "length", "filtered": "content_filter"}.get(fault, "stop")
        message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
        usage = {
            "prompt_tokens": count["question"],
            "completion_tokens": count["answer"],
            "total_tokens": sum(count.values()),
        }
        choice = {"index": 0, "message": message, "finish_reason": finish}
        if body.get("logprobs") and logs is not None:
            choice["logprobs"] = {"content": logs, "refusal": None}
        kind = {"id": "chatcmpl-simulated", "object": "chat.completion", "created": int(time.time())}
        return {**kind, "model": model, "choices": [choice], "usage": usage}
    part: dict[str, Any] = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": text}
    if "message.output_text.logprobs" in body.get("include", ()) and logs is not None:
        part["logprobs"] = logs
    why = {"length": "max_output_tokens", "filtered": "content_filter"}.get(fault)
    output = {"type": "message", "role": "assistant", "content": [part]}
    usage = {"input_tokens": count["question"], "output_tokens": count["answer"]}
    kind = {"id": "resp_simulated", "object": "response", "status": "incomplete" if why else "completed"}
    details = {"incomplete_details": {"reason": why} if why else None}
    return {**kind, **details, "model": model, "output": [output], "usage": usage}

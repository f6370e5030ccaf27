"""Models behind an OpenAI-compatible server: OpenAI, Gemini, DashScope, OpenRouter, vLLM, Ollama, LM Studio.

The common part of systems over an API is in :mod:`medtest.systems.answering.api_system`; this module converts questions
to requests and outcomes to answers.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from medtest.api.calls.client import Endpoint
from medtest.api.calls.request import Outcome, Parameters, Picture, Request
from medtest.core.plugins import TRUSTED
from medtest.systems.answering.api_system import CACHE, LEDGER, ApiSystem, EndpointSettings
from medtest.systems.answering.asking import Asked, Asking
from medtest.systems.answering.outputs import asked_of
from medtest.systems.answering.prompts import PromptSettings, prompt_of
from medtest.systems.answering.shapes import shape_of, shape_of_all

__all__ = ["CACHE", "LEDGER", "ApiSettings", "OpenAICompatible"]

_KEPT_PICTURES = 16


class ApiSettings(PromptSettings, EndpointSettings):
    """Settings of a model over an API. Suites may not set those that concern address, speed and cost.

    Attributes:
        base_url: ``https://host/v1``; plain http to this machine only.
        key_variable: Name of the environment variable with the key; "" for servers without a key.
        send_images: Whether images may be sent to a host other than this machine.
        model: Server's name of the model; preferably a dated snapshot.
        api: ``chat`` (chat.completions) or ``responses``.
        seed: ``case`` (derived from the suite's seed and the case's address), a number, or null: not sent.
        max_tokens_name: Server's name of ``max_tokens``.
        detail: ``low``, ``high``, ``auto`` or ``original``; null is not sent.
        structured: When answers are requested by schema. ``first``: always, with "cannot tell" and "refused" among the
            values, and plain words are accepted if the server ignores the schema; a folder that was begun under
            ``together``, the previous default, continues under it. ``always`` and ``together`` (all questions in one
            call): without these values, and anything but JSON is malformed. ``never``: plain words only. If a server
            rejects schemas, the same JSON is requested by the prompt.
        extra: Further fields of the request body, e.g. ``{reasoning_effort: low}``.
        prices: Prices by model name.
        max_in_flight: Maximum number of concurrent calls; the smallest value of all systems that share a server and a
            key applies to them together. Fewer calls are sent if more would only queue at the server.
        call_seconds: Time limit of one call.
        total_seconds: Time limit of one question from its first call on, retries and pauses included, but not the wait
            for other calls to end: no call starts after it. A server that asks for a longer pause ends the run.
        attempts: Maximum number of calls per question.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset(
        {"model", "messages", "input", "stream", "n", "max_tokens", "max_completion_tokens", "max_output_tokens"}
        | {"response_format"}
    )

    send_images: bool = Field(default=False, json_schema_extra=TRUSTED)
    api: Literal["chat", "responses"] = "chat"
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    detail: Literal["low", "high", "auto", "original"] | None = "auto"
    structured: Literal["first", "always", "together", "never"] = "first"


class OpenAICompatible(ApiSystem):
    """Model over an API. A subclass may override the server's address (:meth:`endpoint`)."""

    Settings: ClassVar[type[ApiSettings]] = ApiSettings
    settings: ApiSettings
    tells_likely: ClassVar[bool] = True

    def __init__(self, name: str, settings: ApiSettings) -> None:
        super().__init__(name, settings)
        self._pictures: dict[str, Picture] = {}

    def endpoint(self) -> Endpoint:
        """Return the endpoint of requests; called again for every stream of calls."""
        own = self.settings
        return Endpoint(base_url=own.base_url, key_variable=own.key_variable, send_images=own.send_images)

    def parameters(self) -> Parameters:
        """Return all parameters of the model that influence its answers."""
        own = self.settings
        return Parameters(
            model=own.model,
            temperature=own.temperature,
            top_p=own.top_p,
            max_tokens=own.max_tokens,
            max_tokens_name=own.max_tokens_name,
            seed=own.seed if isinstance(own.seed, int) else None,
            detail=own.detail or "",
            api=own.api,
            extra=own.extra,
        )

    def request(self, call: Asking) -> Request:
        """Return the request of a call."""
        own = self.settings
        first = own.structured == "first"
        shape = None
        if first or own.structured == "always" or (own.structured == "together" and call.together):
            shape = shape_of_all(call.asks, outs=first) if call.together else shape_of(call.asks[0], outs=first)
        return Request(
            address=call.label,
            prompt=prompt_of(own, call.asks, together=call.together),
            system=own.system_prompt,
            pictures=(self._picture(call),),
            repeat=call.repeat,
            seed=call.seed if own.seed == "case" else None,
            answer_model=shape,
            words_do=first,
            most_likely=0 if call.together else call.most_likely,
        )

    def _mode(self, call: Asking, outcome: Outcome) -> str:
        """Return the mode in which an answer was requested."""
        if self.settings.structured == "never" or (self.settings.structured == "together" and not call.together):
            return "words"
        return "json" if outcome.plain else "schema"

    def _picture(self, call: Asking) -> Picture:
        """Return the encoded image; all questions of an image share the file."""
        picture = self._pictures.get(call.sha256)
        if picture is None:
            picture = self._pictures[call.sha256] = Picture.of(call.image)
            if len(self._pictures) > _KEPT_PICTURES:
                del self._pictures[next(iter(self._pictures))]
        return picture

    def asked(self, call: Asking, outcome: Outcome) -> Asked:
        """Return the answers to the questions of a call."""
        return asked_of(call, outcome, mode=self._mode(call, outcome))

"""Base class of endpoint kinds: path, body, reading of a reply, tokens, key header, polling.

Everything else (limits, retries, ledger, cache, budget, redaction, the picture store) is common to all endpoints. A new
kind is one subclass of :class:`Wire` and one line in :mod:`medtest.api.wire`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from medtest.api.calls.request import Parameters, Request
from medtest.api.tokens import Tokens
from medtest.api.wire.answers import ReplyContent, decoded, error_of

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """HTTP request below the endpoint's address.

    Attributes:
        path: Path below the endpoint's address, with a leading slash.
        method: ``POST`` or ``GET``.
        body: Sent as JSON; None for none.
        form: Sent as multipart/form-data; None for none.
        headers: Headers in addition to the key's.
    """

    path: str
    method: str = "POST"
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """HTTP response.

    Attributes:
        status: HTTP status.
        headers: Names in lower case.
        content: The complete body.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


FILTERED = ("content_filter", "content_policy", "moderation")
"""Words in codes and messages of servers whose policy forbids an answer."""


class Wire(ABC):
    """Kind of endpoint.

    Attributes:
        draws: Whether it answers with a picture.
        asynchronous: Whether it answers with a task's id, which is polled until the task is done.
        takes_seed: Whether its requests for pictures have a field for a seed.
        takes_several: Whether a call can ask for several answers.
        most_bytes: Longest body of a reply.
        filtered_words: Words in codes and messages of errors that indicate moderation.
        filtered_statuses: HTTP statuses that may indicate moderation.
    """

    draws: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = False
    takes_seed: ClassVar[bool] = True
    takes_several: ClassVar[bool] = False
    most_bytes: ClassVar[int] = 64 * MIB
    filtered_words: ClassVar[tuple[str, ...]] = FILTERED
    filtered_statuses: ClassVar[frozenset[int]] = frozenset({400, 403})

    def key_header(self, key: str) -> tuple[str, str]:
        """Return name and value of the header with the key."""
        return "Authorization", f"Bearer {key}"

    @abstractmethod
    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the HTTP request of a question.

        Args:
            request: The question.
            parameters: The model and its parameters; None values are omitted.
            plain: Whether to request a structured answer by the prompt instead of by schema.
        """

    @abstractmethod
    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the content of a successful reply.

        Raises:
            NotAnAnswer: It is something else.
            ValueError: It is truncated, or does not match its type.
        """

    @abstractmethod
    def tokens(self, request: Request, parameters: Parameters) -> Tokens:
        """Return the maximum tokens of a request, as far as known beforehand."""

    def filtered(self, status: int, code: str, words: str) -> bool:
        """Return True if an error's status, code and words (lower case) indicate moderation, not a wrong request."""
        return status in self.filtered_statuses and any(word in words for word in self.filtered_words)

    def error(self, received: Received) -> tuple[str, str]:
        """Return code and message of an error's body, each "" if missing.

        Raises:
            ValueError: It is not a JSON.
        """
        return error_of(decoded(received.content))

    def polling(self, task: str) -> Sending:
        """Return the request that polls a task.

        Raises:
            ValueError: Invalid task id.
        """
        raise ValueError("this endpoint has no tasks")

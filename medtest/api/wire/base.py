"""What differs between endpoints: path, body, reading of a reply, tokens, the key's header, asking later.

Everything else (limits, retries, ledger, cache, budget, redaction, the store of pictures) is common and knows no
endpoint. A new endpoint is one subclass of :class:`Wire` and one line in :mod:`medtest.api.wire`.
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
    """One HTTP request below the endpoint's address.

    Attributes:
        path: What follows the endpoint's address, with its stroke in front.
        method: ``POST`` or ``GET``.
        body: Sent as JSON; None for none.
        form: Sent as multipart/form-data; None for none.
        headers: Beside the key's.
    """

    path: str
    method: str = "POST"
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What came back.

    Attributes:
        status: HTTP status.
        headers: Names in lower case.
        content: The body, whole.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


FILTERED = ("content_filter", "content_policy", "moderation")
"""Words of codes and messages by which servers say that a policy forbids an answer."""


class Wire(ABC):
    """One kind of endpoint.

    Attributes:
        draws: It answers with a picture.
        asynchronous: It answers with a task's id, which is asked after until the task is done.
        takes_seed: Its requests have a field for a seed.
        most_bytes: Longest body of a reply.
        filtered_statuses: HTTP statuses that may tell of moderation.
    """

    draws: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = False
    takes_seed: ClassVar[bool] = True
    most_bytes: ClassVar[int] = 64 * MIB
    filtered_statuses: ClassVar[frozenset[int]] = frozenset({400, 403})

    def key_header(self, key: str) -> tuple[str, str]:
        """Return name and value of the header that carries the key."""
        return "Authorization", f"Bearer {key}"

    @abstractmethod
    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return what is sent.

        Args:
            request: What is asked.
            parameters: The model and its parameters; what is None is left out.
            plain: Ask for a structured answer in words instead of by schema.
        """

    @abstractmethod
    def read(
        self, received: Received, request: Request, parameters: Parameters, *, plain: bool = False
    ) -> ReplyContent:
        """Return what a reply of success says.

        Raises:
            NotAnAnswer: It is something else.
            ValueError: It is cut short, or not what its type says.
        """

    @abstractmethod
    def tokens(self, request: Request, parameters: Parameters) -> Tokens:
        """Return what a request will need at most, as far as it is known beforehand."""

    def filtered(self, status: int, code: str, words: str) -> bool:
        """Say whether an error's status, code and words (lower case) tell of moderation, and not of a wrong request."""
        return status in self.filtered_statuses and any(word in words for word in FILTERED)

    def error(self, received: Received) -> tuple[str, str]:
        """Return code and message of an error's body, each "" where it has none.

        Raises:
            ValueError: It is no JSON.
        """
        return error_of(decoded(received.content))

    def polling(self, task: str) -> Sending:
        """Return what asks after a task.

        Raises:
            ValueError: It is no task's id.
        """
        raise ValueError("this endpoint has no tasks")

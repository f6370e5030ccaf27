"""chat.completions and responses: endpoints that answer with text."""

from __future__ import annotations

from typing import Any, ClassVar

from medtest.api.calls.request import Parameters, Request
from medtest.api.tokens import ASSUMED_COMPLETION, Tokens, asked_tokens
from medtest.api.wire.answers import ReplyContent, decoded, read_body
from medtest.api.wire.base import Received, Sending, Wire
from medtest.api.wire.body import request_body


class WordsWire(Wire):
    """OpenAI endpoint that answers with text."""

    path: ClassVar[str]
    api: ClassVar[str]

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the body that the openai client would send."""
        body: dict[str, Any] = request_body(request, parameters, plain=plain)
        return Sending(path=self.path, body=body | body.pop("extra_body", {}))

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return state and words."""
        return read_body(
            decoded(received.content),
            api=self.api,
            answer_model=request.answer_model,
            plain=plain or request.words_do,
        )

    def tokens(self, request: Request, parameters: Parameters) -> Tokens:
        """Return the question's tokens, and those of the longest answer."""
        return Tokens(asked_tokens(request, parameters), parameters.max_tokens or ASSUMED_COMPLETION)


class ChatCompletions(WordsWire):
    """``/chat/completions``."""

    path: ClassVar[str] = "/chat/completions"
    api: ClassVar[str] = "chat"


class Responses(WordsWire):
    """``/responses``, which accepts no seed."""

    path: ClassVar[str] = "/responses"
    api: ClassVar[str] = "responses"
    takes_seed: ClassVar[bool] = False

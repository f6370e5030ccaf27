"""Endpoints that answer with text: chat.completions and responses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

from medtest.api.calls.request import CallState, Parameters, Request, schema_of
from medtest.api.tokens import ASSUMED_COMPLETION, Tokens, asked_tokens
from medtest.api.wire.answers import ReplyContent, decoded, read_body
from medtest.api.wire.base import Received, Sending, Wire
from medtest.api.wire.likely import likely_in
from medtest.core.cases import Json


def request_body(request: Request, parameters: Parameters, *, plain: bool = False) -> dict[str, Any]:
    """Return the fields of a request's body, for the openai client.

    Args:
        request: The question.
        parameters: The model and its parameters; None values are omitted.
        plain: Whether to request a structured answer by the prompt instead of by schema.
    """
    chat = parameters.api == "chat"
    prompt = request.prompt
    if plain and request.answer_model is not None:
        schema = json.dumps(schema_of(request.answer_model), ensure_ascii=False, separators=(",", ":"))
        prompt += f"\n\nAnswer with one JSON object and nothing else. Its JSON schema: {schema}"
    content = [*(_picture(p.data_url(), parameters) for p in request.pictures)]
    content.append({"type": "text" if chat else "input_text", "text": prompt})
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    messages.append({"role": "user", "content": content if request.pictures else prompt})
    body: dict[str, Any] = {"model": parameters.model, ("messages" if chat else "input"): messages}
    extra = dict(parameters.extra)
    seed = request.seed if request.seed is not None else parameters.seed
    values: dict[str, Any] = {"temperature": parameters.temperature, "top_p": parameters.top_p}
    if chat:
        values["seed"] = seed
        values[parameters.max_tokens_name] = parameters.max_tokens
    else:
        values["max_output_tokens"] = parameters.max_tokens
        # Servers store responses, pictures included, by default.
        values["store"] = False
    body.update({name: value for name, value in values.items() if value is not None})
    if request.answer_model is not None and not plain:
        shape = {"name": request.answer_model.__name__, "schema": schema_of(request.answer_model), "strict": True}
        if chat:
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        else:
            body["text"] = {"format": {"type": "json_schema", **shape}}
    if request.most_likely:
        body["top_logprobs"] = request.most_likely
        body |= {"logprobs": True} if chat else {"include": ["message.output_text.logprobs"]}
    if extra:
        body["extra_body"] = extra
    return body


def _picture(url: str, parameters: Parameters) -> dict[str, Any]:
    if parameters.api == "responses":
        return {"type": "input_image", "image_url": url, "detail": parameters.detail or "auto"}
    image: dict[str, Any] = {"url": url}
    if parameters.detail:
        image["detail"] = parameters.detail
    return {"type": "image_url", "image_url": image}


class WordsWire(Wire):
    """OpenAI endpoint that answers with text.

    Args:
        api: Its name in the parameters.
        path: Its path.
    """

    def __init__(self, api: str, path: str) -> None:
        self.api, self.path = api, path

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the body that the openai client would send."""
        body: dict[str, Any] = request_body(request, parameters, plain=plain)
        return Sending(path=self.path, body=body | body.pop("extra_body", {}))

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return state and words, and the likely tokens if they were requested."""
        body, words_do = decoded(received.content), plain or request.words_do
        content = read_body(body, api=self.api, answer_model=request.answer_model, plain=words_do)
        if not request.most_likely or content.state != CallState.ANSWERED:
            return content
        return replace(content, likely=cast("Json", likely_in(body, api=self.api, text=content.text)))

    def tokens(self, request: Request, parameters: Parameters) -> Tokens:
        """Return the question's tokens, and those of the longest answer."""
        return Tokens(asked_tokens(request, parameters), parameters.max_tokens or ASSUMED_COMPLETION)

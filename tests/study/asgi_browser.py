"""A test browser that talks ASGI to an application, without a socket."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

PORT = 8765


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class AppBrowser:
    """Talks ASGI to an application."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.cookie = ""
        self.seal = ""

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        named = {"host": f"127.0.0.1:{PORT}", **({"cookie": self.cookie} if self.cookie else {})}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("content-length", str(len(body)))
        sent: list[dict[str, Any]] = []
        path_only, _, query = path.partition("?")

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path_only,
            "raw_path": path_only.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.encode(), v.encode()) for k, v in named.items()],
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 5000),
        }
        asyncio.run(self.app(scope, receive, send))
        head = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        return Reply(sent[0]["status"], head, b"".join(m.get("body", b"") for m in sent[1:]))

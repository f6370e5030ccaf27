"""Pictures and requests over HTTP for tests of the simulated laboratory."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from medtest.api.calls.request import Picture
from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import FaultServer, serving_server
from medtest.simlab.config import MODEL, Config
from medtest.simlab.serve import server_of

KEY = "canary-of-the-laboratory"


def picture(shade: int = 90) -> Picture:
    """Return a reddish picture."""
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:] = (shade + 80, shade, shade - 20)
    return Picture.of(pixels)


def body(text: str, *, shown: Picture | None = None, **more: Any) -> dict[str, Any]:
    """Return the body of a request to chat.completions."""
    content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": (shown or picture()).data_url()}}]
    content.append({"type": "text", "text": text})
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **more}


def call(
    base_url: str, path: str, content: object = None, *, method: str = "", key: str = KEY, raw: bytes | None = None
) -> tuple[int, Any]:
    """Send a request; return status and decoded body."""
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=20)
    try:
        data = raw if raw is not None else None if content is None else json.dumps(content).encode()
        connection.request(
            method or ("GET" if data is None else "POST"), path, data, {"authorization": f"Bearer {key}"}
        )
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@contextmanager
def laboratory(config: Config | None = None, **faults: Any) -> Iterator[FaultServer]:
    """Serve the laboratory in a thread of this process."""
    chosen = config or Config()
    with_key = Config(
        seed=chosen.seed,
        defects=chosen.defects,
        styles=chosen.styles,
        reader=chosen.reader,
        ocr="edges",
        faults=Faults(key=KEY, **faults),
    )
    with serving_server(server_of(with_key)) as server:
        yield server

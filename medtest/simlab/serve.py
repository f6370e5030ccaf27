"""The product behind an OpenAI-compatible loopback server, in its own process that ends with its parent.

``python -m medtest.simlab.serve`` reads one line of JSON from its standard input (a
:class:`~medtest.simlab.config.Config`), prints one line of JSON with its address, and serves until its standard input
ends. The key is passed in that line, so that it appears in no process list.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from medtest.api.faulty.answers import BadRequest
from medtest.api.faulty.server import FaultServer
from medtest.core.files.images import BadFileError, decode_rgb
from medtest.core.recent import Recent
from medtest.simlab.config import DRAWN_DOOR, MODEL, SESSION_DOOR, TRUTH_DOOR, Config
from medtest.simlab.drawing.artist import Artist
from medtest.simlab.drawing.desk import DrawingDesk
from medtest.simlab.product import Picture, Product, Settings
from medtest.simlab.reader import SightReader

MOST_PIXELS = 16_000_000
NO_PICTURE = "I do not see an image. Please attach one."
_DECODED = 32
_PR_SET_PDEATHSIG = 1


class Desk:
    """Request parsing between the server and the product.

    Args:
        product: The product.
        tells: Whether true answers may be registered.
    """

    def __init__(self, product: Product, *, tells: bool) -> None:
        self.product, self.tells = product, tells
        self._pictures: Recent[int, tuple[str, Picture]] = Recent(_DECODED)
        self._lock = threading.Lock()

    def answer(self, body: Mapping[str, Any]) -> str:
        """Answer a request of chat.completions or Responses.

        Raises:
            BadRequest: It is malformed, or its picture cannot be read.
        """
        if body.get("model") != MODEL:
            raise BadRequest(f"The model {str(body.get('model'))[:80]!r} does not exist.", status=404, code="not_found")
        prompt, picture = self._parse(body)
        seed = body.get("seed")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
            raise BadRequest("seed must be an integer.")
        if picture is None:
            return NO_PICTURE
        return self.product.answer(picture, prompt, seed=seed or 0, schema=_schema(body))

    def learn(self, content: bytes) -> object:
        """Register the truth about a picture: ``{"sha256": …, "answers": {question: [answer, …]}}``.

        Raises:
            BadRequest: It is malformed, or registration is not allowed.
        """
        if not self.tells:
            raise BadRequest("This product looks for itself.", status=403, code="forbidden")
        try:
            values = json.loads(content)
            self.product.learn(
                str(values["sha256"]), {str(k): [str(answer) for answer in v] for k, v in values["answers"].items()}
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequest("Wanted: {sha256, answers: {question: [answer]}}.") from error
        return {"learned": len(values["answers"])}

    def _parse(self, body: Mapping[str, Any]) -> tuple[str, Picture | None]:
        """Return the text and the last picture of the user messages."""
        content_of_body = body.get("messages") if "messages" in body else body.get("input")
        messages = (
            [{"role": "user", "content": content_of_body}] if isinstance(content_of_body, str) else content_of_body
        )
        if not isinstance(messages, list) or not messages:
            raise BadRequest("messages must be a list.")
        words: list[str] = []
        picture: Picture | None = None
        for message in messages:
            if not isinstance(message, Mapping) or message.get("role") != "user":
                continue
            content = message.get("content")
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
                if not isinstance(part, Mapping):
                    raise BadRequest("content must be a text or a list of parts.")
                if part.get("type") in ("text", "input_text"):
                    words.append(str(part.get("text") or ""))
                elif part.get("type") in ("image_url", "input_image"):
                    picture = self._picture(part.get("image_url"))
        return "\n".join(words), picture

    def _picture(self, image_url: object) -> Picture:
        url = image_url.get("url") if isinstance(image_url, Mapping) else image_url
        if not isinstance(url, str) or not url.startswith("data:image/") or ";base64," not in url:
            raise BadRequest("image_url must be a data URL in base64.", code="invalid_image_url")
        key = hash(url)
        with self._lock:
            decoded = self._pictures.get(key)
        if decoded is not None and decoded[0] == url:
            return decoded[1]
        try:
            picture = decode_rgb(base64.b64decode(url.split(",", 1)[1], validate=True), max_pixels=MOST_PIXELS)
        except (binascii.Error, BadFileError) as error:
            raise BadRequest(f"The image cannot be read: {error}.", code="invalid_image") from error
        picture.flags.writeable = False
        with self._lock:
            self._pictures[key] = (url, picture)
        return picture


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    response_format = body.get("response_format") or (body.get("text") or {}).get("format")
    if not isinstance(response_format, Mapping):
        return None
    inner = response_format.get("json_schema", response_format)
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


def product_of(config: Config) -> Product:
    """Return the product of a configuration."""
    settings = Settings(
        seed=config.seed, defects=config.defects, **({"styles": config.styles} if config.styles else {})
    )
    return Product(settings, SightReader(ocr=config.ocr))


def server_of(config: Config) -> FaultServer:
    """Return the server of a configuration, not started."""
    desk = Desk(product_of(config), tells=config.reader == "truth")
    drawing = DrawingDesk(Artist(config.seed, config.drawing, clinical=config.clinical))
    doors = {TRUTH_DOOR: desk.learn, SESSION_DOOR: drawing.session}
    if config.tells_drawn:
        doors[DRAWN_DOOR] = drawing.truth
    return FaultServer(
        config.faults,
        answer=desk.answer,
        port=config.port,
        threads=max(1, config.threads),
        model=MODEL,
        doors=doors,
        draws=drawing,
    )


async def _live(config: Config, over: asyncio.Event) -> None:
    server = server_of(config)
    await server.start()
    sys.stdout.write(json.dumps({"base_url": server.base_url, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    try:
        await over.wait()
    finally:
        await server.stop()


def _end_with(parent: int) -> None:
    """Ask Linux to kill this process with its parent; elsewhere the end of standard input serves."""
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    line = sys.stdin.readline()
    if not line.strip():
        return
    config = Config.from_json(line)
    _end_with(config.parent)

    async def live() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()

        def watch() -> None:
            while sys.stdin.read(4096):
                pass
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(over.set)

        threading.Thread(target=watch, name="stdin", daemon=True).start()
        await _live(config, over)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(live())
    # Threads still analysing a picture would delay the exit.
    os._exit(0)


if __name__ == "__main__":
    main()

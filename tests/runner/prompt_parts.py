"""Suites of prompts: a server that paints a stripe for each object of a prompt, and a reader that knows stripes."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from pydantic import Field
from runner_parts import plan_of

from medtest.core.cases import Image, Params, PreparedSeed, Prompt, Seed, SeedRef
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartSettings
from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells
from medtest.readers.pictures.base import PictureContent, PictureReader
from medtest.relations.prompts.base import PromptRelation, prompt_of
from medtest.relations.unchanged import Unchanged
from medtest.seeds.base import SeedSource
from medtest.suite.model import Criterion, OraclePlan, Prepare, Privacy, Suite
from medtest.systems.pictures.services import OpenAIImages
from medtest.tasks.depict.oracle import Scenes

STRIPES = {
    "dog": (200, 30, 30),
    "cat": (30, 200, 30),
    "car": (30, 30, 200),
    "tree": (200, 200, 30),
    "boat": (200, 30, 200),
    "kite": (30, 200, 200),
}
SIDE = 48


def prompt_for(names: Sequence[str], number: int = 0) -> Prompt:
    """Return a prompt that names objects; the number makes it unique."""
    words = " and ".join(f"a {name}" for name in names)
    return Prompt(text=f"{words}, take {number}", pool=Pool(entities=tuple(Entity(name=name) for name in names)))


class PromptSettings(PartSettings):
    """Number of prompts."""

    count: int = Field(default=3, ge=1)


class Prompts(SeedSource):
    """Prompts of two or three objects."""

    Settings: ClassVar[type[PartSettings]] = PromptSettings
    task: ClassVar[str] = "depiction"

    def refs(self) -> Sequence[SeedRef]:
        return [SeedRef(dataset=self.dataset, seed_id=f"p{n:04d}", locator=str(n)) for n in range(self.settings.count)]

    def load(self, ref: SeedRef) -> Seed:
        number, names = int(ref.locator), list(STRIPES)
        chosen = [names[(number + k) % len(names)] for k in range(2 + number % 2)]
        return Seed(ref=ref, kind="depiction", prompt=prompt_for(chosen, number))

    def digest(self) -> str:
        return f"prompts-{self.settings.count}"


class Swap(PromptRelation):
    """Exchanges the first object for another one."""

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        names = [entity.name for entity in prompt_of(seed).pool.entities]
        others = [name for name in STRIPES if name not in names]
        if not others:
            raise NotApplicable("there is no other thing")
        return {"becomes": others[int(rng.integers(len(others)))]}

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        names = [entity.name for entity in prompt.pool.entities]
        return prompt_for([str(params["becomes"]), *names[1:]], int(prompt.text.rsplit(" ", 1)[1]))


class StripeSettings(PartSettings):
    """Faults of the reader.

    Attributes:
        blind: An object that it never sees.
        hangs: An object whose pictures it hangs on.
        slow: Seconds per picture.
        log: File that gets a line per picture.
    """

    blind: str = ""
    hangs: str = ""
    slow: float = 0.0
    log: str = ""


class StripeReader(PictureReader):
    """Reads the stripes of a picture."""

    Settings: ClassVar[type[PartSettings]] = StripeSettings
    at_once: ClassVar[int] = 4

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        return [self._seen(image) for image in images]

    def _seen(self, image: Image) -> Scene:
        names = [name for name, colour in STRIPES.items() if (image == np.array(colour)).all(axis=2).any()]
        if self.settings.log:
            with Path(self.settings.log).open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {'+'.join(names)}\n")
        time.sleep(self.settings.slow)
        if self.settings.hangs in names:
            time.sleep(600)
        entities = [SeenEntity(name=name) for name in names if name != self.settings.blind]
        tells = Tells(classes=frozenset(STRIPES), predicates=frozenset(), attributes=frozenset(), counts=False)
        return Scene(entities=tuple(entities), tells=tells)


class Stripes:
    """The server.

    Attributes:
        asked: The prompts in order of arrival.
        forgets: An object that it never paints.
        refuses: An object that it refuses to paint.
        seconds: Time of each answer.
    """

    def __init__(self, *, forgets: str = "", refuses: str = "", seconds: float = 0.0) -> None:
        self.asked: list[str] = []
        self.forgets, self.refuses, self.seconds = forgets, refuses, seconds
        self._lock = threading.Lock()
        stripes = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, reply = stripes.answer(str(body["prompt"]))
                content = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *words: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, prompt: str) -> tuple[int, Mapping[str, Any]]:
        """Return status and body of the answer to a prompt."""
        with self._lock:
            self.asked.append(prompt)
        time.sleep(self.seconds)
        names = [name for name in STRIPES if name in prompt]
        if self.refuses and self.refuses in names:
            return 400, {"error": {"code": "content_policy_violation", "message": f"we do not draw: {prompt}"}}
        return 200, {"created": 1, "data": [{"b64_json": self._painted([n for n in names if n != self.forgets])}]}

    @staticmethod
    def _painted(names: Sequence[str]) -> str:
        picture = np.full((SIDE, SIDE, 3), 90, np.uint8)
        picture[:8] = np.arange(SIDE, dtype=np.uint8)[None, :, None]  # no picture has only one colour
        for number, name in enumerate(names):
            picture[12 + 8 * number : 18 + 8 * number] = STRIPES[name]
        _, png = cv2.imencode(".png", picture[..., ::-1])
        return base64.b64encode(png.tobytes()).decode()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def stripes(**settings: Any) -> Iterator[Stripes]:
    """Run the server."""
    server = Stripes(**settings)
    thread = threading.Thread(target=server._server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def prompt_suite(
    base_url: str,
    *,
    count: int = 3,
    reader: Mapping[str, Any] | None = None,
    privacy: Privacy | None = None,
    **settings: Any,
) -> Suite:
    """Return a suite that sends prompts to the server and reads its pictures with :class:`StripeReader`.

    Args:
        base_url: URL of the server.
        count: Number of prompts.
        reader: Settings of the reader.
        privacy: Privacy of the suite.
        settings: Settings of the system.
    """
    system_settings = {"base_url": base_url, "key_variable": "", "model": "stripes", "max_in_flight": 4, **settings}
    return Suite(
        name="prompts",
        version="1",
        description="",
        seed=7,
        seeds=(plan_of("seeds", "prompts", Prompts, count=count),),
        relations=(plan_of("relations", "unchanged", Unchanged), plan_of("relations", "swap", Swap)),
        systems=(plan_of("systems", "painter", OpenAIImages, **system_settings),),
        oracle=OraclePlan(
            part=plan_of("oracles", "scenes", Scenes),
            primary=Criterion(score="whole", against="source"),
            scores=("whole", "entities"),
            thresholds=(0.25,),
            against=("source", "truth"),
            reader=plan_of("readers", "stripes", StripeReader, **dict(reader or {})),
        ),
        prepare=Prepare(),
        privacy=privacy or Privacy(),
    )

"""A server that plays hand-written exchanges of a vendor's, and a system that is asked through it.

An exchange, in a file of ``tests/data/services``, says what a request must look like and what is sent back. Texts may
hold ``{BASE}`` (the server's address), ``{PNG}`` (a picture in base64), ``{BLANK}`` (one of a single colour); a reply
may be ``{"file": "PNG"}``, the bytes themselves.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from medtest.core.cases import NO_IMAGE, Address, Image, image_sha256
from medtest.core.files.by_content import encode
from medtest.core.scenes import Prompt
from medtest.systems.answering.api_system import ApiSystem
from medtest.systems.answering.asking import Asked, Asking, AskingSystem, BudgetLimits

DATA = Path(__file__).parents[2] / "data" / "services"


def drawn(seed: int = 0, size: int = 32) -> Image:
    """A small picture of noise."""
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


PIXELS = drawn()
SHA256 = image_sha256(PIXELS)
PNG = encode("images", PIXELS)
BLANK = encode("images", np.full((16, 16, 3), 255, np.uint8))
FILES = {"PNG": PNG, "BLANK": BLANK}


def exchanges(name: str) -> list[dict[str, Any]]:
    """The exchanges of a file, in their order."""
    found: list[dict[str, Any]] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _filled(value: Any, base: str) -> Any:
    if isinstance(value, str):
        for name, content in FILES.items():
            value = value.replace(f"{{{name}}}", base64.b64encode(content).decode())
        return value.replace("{BASE}", base)
    if isinstance(value, list):
        return [_filled(one, base) for one in value]
    if isinstance(value, dict):
        return {key: _filled(one, base) for key, one in value.items()}
    return value


def _lacks(wanted: Any, found: Any, where: str = "body") -> str:
    """Say where a request differs from what it must look like; every field that is named must be so."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return f"{where} is no object"
        for name, one in wanted.items():
            if one is None:
                if name in found:
                    return f"{where}.{name} is sent"
            elif problem := _lacks(one, found.get(name), f"{where}.{name}"):
                return problem
        return ""
    if isinstance(wanted, str) and wanted.startswith("re:"):
        return "" if re.fullmatch(wanted[3:], str(found)) else f"{where} is {found!r}, not like {wanted!r}"
    return "" if wanted == found else f"{where} is {found!r}, not {wanted!r}"


class Vendor:
    """The server: it answers with the exchanges in turn, the last one again and again.

    Attributes:
        base: Its address.
        seen: Method and path of every request.
        wrong: What was wrong with requests.
    """

    def __init__(self, played: Sequence[Mapping[str, Any]]) -> None:
        self.played = list(played)
        self.seen: list[str] = []
        self.wrong: list[str] = []
        self._lock = threading.Lock()
        self._at: dict[str, int] = {}
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", "0")))
                status, headers, body = vendor.reply(self.command, self.path, dict(self.headers), content)
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _answer

            def log_message(self, *said: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_port}"

    def reply(
        self, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer to a request."""
        with self._lock:
            self.seen.append(f"{method} {path}")
            fitting = [one for one in self.played if _fits(one["request"], method, path)]
            if not fitting:
                self.wrong.append(f"nobody asked for {method} {path}")
                return 404, {}, b"{}"
            place = f"{method} {path}"
            at = self._at.get(place, 0)
            self._at[place] = at + 1
        one = _filled(fitting[min(at, len(fitting) - 1)], self.base)
        wanted, lower = one["request"], {name.lower(): value for name, value in headers.items()}
        problem = _lacks(wanted.get("headers", {}), lower, "headers")
        body = _body(lower.get("content-type", ""), content)
        if problem := problem or (_lacks(wanted["body"], body) if "body" in wanted else ""):
            self.wrong.append(problem)
        answer = one["reply"]
        sent = answer.get("body")
        if isinstance(sent, dict) and set(sent) == {"file"}:
            return answer["status"], {"content-type": "image/png", **answer.get("headers", {})}, FILES[sent["file"]]
        text = sent if isinstance(sent, str) else json.dumps(sent)
        return answer["status"], {"content-type": "application/json", **answer.get("headers", {})}, text.encode()

    def start(self) -> None:
        """Answer in a thread of its own."""
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def _fits(request: Mapping[str, Any], method: str, path: str) -> bool:
    return request["method"] == method and re.fullmatch(request["path"], path) is not None


def _body(kind: str, content: bytes) -> Any:
    if kind.startswith("application/json"):
        return json.loads(content)
    if kind.startswith("multipart/form-data"):
        whole = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + content)
        parts = whole.get_payload()
        return {
            str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True).decode()  # type: ignore[union-attr]
            for part in parts
        }
    return content.decode("latin-1")


@contextmanager
def playing(played: Sequence[Mapping[str, Any]]) -> Iterator[Vendor]:
    """Run a vendor, and see at the end that every request was as it must be."""
    vendor = Vendor(played)
    vendor.start()
    try:
        yield vendor
    finally:
        vendor.stop()
    assert vendor.wrong == []


def call(number: int = 0, text: str = "a red dog on a table", *, seed: int = 7) -> Asking:
    """A prompt as the runner hands it out."""
    address = Address(dataset="d", seed_id=f"s{number}")
    prompt = Prompt(text=text)
    return Asking(
        number=number,
        label=f"d/s{number}/source/",
        addresses=(address,),
        image=NO_IMAGE,
        sha256=prompt.sha256,
        asks=(),
        seed=seed,
        prompt=prompt,
    )


@contextmanager
def opened(
    system: AskingSystem, folder: Path, *, cache: str = "use", budget: BudgetLimits | None = None, run: str = "run"
) -> Iterator[AskingSystem]:
    """A system in folders of its own."""
    system.keep_in(folder / run, folder / "shared", budget=budget or BudgetLimits(), cache=cache)
    (folder / run).mkdir(parents=True, exist_ok=True)
    system.open(device="cpu", threads=1)
    try:
        yield system
    finally:
        system.close()


def made(part: type[ApiSystem], vendor: Vendor, *, path: str = "", **settings: Any) -> Any:
    """A vendor's system that asks the server instead of the vendor."""
    given = {"base_url": vendor.base + path, "model": "m", "poll_seconds": 0.02, "attempts": 2, **settings}
    return part(part.__name__.lower(), part.Settings(**given))


def asked(system: AskingSystem, folder: Path, calls: Sequence[Asking] = (), **more: Any) -> list[Asked]:
    """What came of calls, in their order."""
    with opened(system, folder, **more) as one:
        return sorted(one.ask(iter(calls or [call()])), key=lambda found: found.number)


def output(found: Asked) -> Any:
    """The one output of a call."""
    (one,) = found.outputs
    return one

"""A server that plays a vendor's hand-written exchanges, and a system that asks it.

An exchange, in a file of ``tests/data/services``, holds an expected request and its reply. Texts may
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


def draw_noise(seed: int = 0, size: int = 32) -> Image:
    """Return a small picture of noise."""
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


PIXELS = draw_noise()
SHA256 = image_sha256(PIXELS)
PNG = encode("images", PIXELS)
BLANK = encode("images", np.full((16, 16, 3), 255, np.uint8))
FILES = {"PNG": PNG, "BLANK": BLANK}


def exchanges(name: str) -> list[dict[str, Any]]:
    """Return the exchanges of a file, in their order."""
    played: list[dict[str, Any]] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return played


def _fill_in(value: Any, base: str) -> Any:
    if isinstance(value, str):
        for name, content in FILES.items():
            value = value.replace(f"{{{name}}}", base64.b64encode(content).decode())
        return value.replace("{BASE}", base)
    if isinstance(value, list):
        return [_fill_in(item, base) for item in value]
    if isinstance(value, dict):
        return {key: _fill_in(item, base) for key, item in value.items()}
    return value


def _mismatch(expected: Any, actual: Any, where: str = "body") -> str:
    """Return where a request differs from the expected one, else ""; only named fields are compared."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return f"{where} is no object"
        for name, field in expected.items():
            if field is None:
                if name in actual:
                    return f"{where}.{name} is sent"
            elif problem := _mismatch(field, actual.get(name), f"{where}.{name}"):
                return problem
        return ""
    if isinstance(expected, str) and expected.startswith("re:"):
        return "" if re.fullmatch(expected[3:], str(actual)) else f"{where} is {actual!r}, not like {expected!r}"
    return "" if expected == actual else f"{where} is {actual!r}, not {expected!r}"


class Vendor:
    """Server of a vendor: answers with the exchanges in turn, then repeats the last one.

    Attributes:
        base: Its address.
        requests: Method and path of every request.
        wrong: Mistakes in requests.
    """

    def __init__(self, played: Sequence[Mapping[str, Any]]) -> None:
        self.played = list(played)
        self.requests: list[str] = []
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

            def log_message(self, *arguments: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_port}"

    def reply(
        self, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer to a request."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            fitting = [exchange for exchange in self.played if _fits(exchange["request"], method, path)]
            if not fitting:
                self.wrong.append(f"no exchange fits {method} {path}")
                return 404, {}, b"{}"
            place = f"{method} {path}"
            at = self._at.get(place, 0)
            self._at[place] = at + 1
        exchange = _fill_in(fitting[min(at, len(fitting) - 1)], self.base)
        expected, lower = exchange["request"], {name.lower(): value for name, value in headers.items()}
        problem = _mismatch(expected.get("headers", {}), lower, "headers")
        body = _body(lower.get("content-type", ""), content)
        if problem := problem or (_mismatch(expected["body"], body) if "body" in expected else ""):
            self.wrong.append(problem)
        answer = exchange["reply"]
        sent = answer.get("body")
        if isinstance(sent, dict) and set(sent) == {"file"}:
            return answer["status"], {"content-type": "image/png", **answer.get("headers", {})}, FILES[sent["file"]]
        text = sent if isinstance(sent, str) else json.dumps(sent)
        return answer["status"], {"content-type": "application/json", **answer.get("headers", {})}, text.encode()

    def start(self) -> None:
        """Start answering in a thread."""
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
    """Run a vendor; at the end, assert that every request was as expected."""
    vendor = Vendor(played)
    vendor.start()
    try:
        yield vendor
    finally:
        vendor.stop()
    assert vendor.wrong == []


def call(number: int = 0, text: str = "a red dog on a table", *, seed: int = 7) -> Asking:
    """Return a prompt as the runner hands it out."""
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
    """Open a system in its own folders."""
    system.keep_in(folder / run, folder / "shared", budget=budget or BudgetLimits(), cache=cache)
    (folder / run).mkdir(parents=True, exist_ok=True)
    system.open(device="cpu", threads=1)
    try:
        yield system
    finally:
        system.close()


def make_system(part: type[ApiSystem], vendor: Vendor, *, path: str = "", **settings: Any) -> Any:
    """Return a vendor's system that asks the server instead of the vendor."""
    values = {"base_url": vendor.base + path, "model": "m", "poll_seconds": 0.02, "attempts": 2, **settings}
    return part(part.__name__.lower(), part.Settings(**values))


def ask(system: AskingSystem, folder: Path, calls: Sequence[Asking] = (), **more: Any) -> list[Asked]:
    """Return the results of calls, in their order."""
    with opened(system, folder, **more) as open_system:
        return sorted(open_system.ask(iter(calls or [call()])), key=lambda result: result.number)


def output(result: Asked) -> Any:
    """Return the only output of a call."""
    (single,) = result.outputs
    return single

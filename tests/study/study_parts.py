"""Helpers that make small studies and answer them."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.session.runs import invocation_of
from medtest.study.make import MadeStudy, Progress, make_study
from medtest.study.model import Item, NewAnswer
from medtest.study.options import study_options
from medtest.study.questions import Role, StudyKind
from medtest.study.store import StudyStore
from medtest.suite.compose import load

ROOT = Path(__file__).parents[2]


def make_small(
    home: Path, to: Path, overrides: tuple[str, ...] = (), progress: Progress | None = None, **options: str
) -> MadeStudy:
    """Make a study of blur and text on eight phantoms of 96 pixels."""
    from dataclasses import replace

    small = ["relations=[blur,text]", "limit=8", "prepare.size=96", *overrides]
    loaded = load("polyp_seg", small)
    invocation = replace(invocation_of(loaded), home=home)
    chosen = {"per_relation": "4", "annotators": "3", "catch": "0.2", "repeat": "0.25", **options}
    return make_study(loaded.suite, invocation, study_options(chosen), to, progress)


Say = Callable[[int, Item, int], dict[str, Any]]
"""What an annotator says to an item at its nth showing."""


def answer_all(store: StudyStore, say: Say) -> None:
    """Answer every place of every annotator's list."""
    items = {item.id: item for item in store.items()}
    for place in store.places():
        answer = say(place.annotator, items[place.item], place.showing)
        request = f"test-{place.annotator}-{place.phase}-{place.position}"
        store.save(place.annotator, place.phase, place.position, NewAnswer(request=request, **answer))


def right(item: Item) -> dict[str, Any]:
    """Return the expected answer to an item, 5 and 5 without an expectation."""
    if "marks" in item.expected:
        return {"marks": tuple(item.expected["marks"])}
    if item.role is Role.ERASED:
        return {"diagnosis": 1, "realism": 5}
    return {"diagnosis": 5, "realism": 1 if item.role is Role.UNNATURAL else 5}


def kind_of(store: StudyStore) -> StudyKind:
    return store.kind


# --- a served study -----------------------------------------------------------------------------------------------


@dataclass
class Served:
    """A study served by another process."""

    process: subprocess.Popen[str]
    port: int
    links: dict[int, str] = field(default_factory=dict)


def free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(folder: Path, port: int) -> Served:
    """Serve a study with ``medtest study serve`` and return its links once it answers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "medtest", "study", "serve", str(folder), "--port", str(port)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "300", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    served = Served(process=process, port=port)
    assert process.stdout is not None
    for line in process.stdout:
        link = re.search(r"annotator (\d+):\s+(http://\S+)", line)
        if link:
            served.links[int(link[1])] = link[2]
        if "is served at" in line:
            break
    for _ in range(600):
        assert process.poll() is None, process.stdout.read()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return served
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not answer")


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    served = start(folder, free_port())
    try:
        yield served
    finally:
        served.process.kill()
        served.process.wait()


class Client:
    """An annotator without a browser."""

    def __init__(self, port: int, link: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("GET", link.partition(f":{port}")[2])
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.seal = ""
        self.study = self.get("/api/study")
        self.seal = self.study["seal"]

    def raw(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, {"cookie": self.cookie, **named})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def get(self, path: str) -> Any:
        status, body = self.raw("GET", path)
        assert status == 200, body
        return json.loads(body)

    def post(self, content: dict[str, Any]) -> tuple[int, Any]:
        body = json.dumps(content).encode()
        headers = {"content_type": "application/json", "x_study_seal": self.seal}
        status, answer = self.raw("POST", "/api/answer", body, **headers)
        return status, json.loads(answer)

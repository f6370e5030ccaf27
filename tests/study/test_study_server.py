"""A real server: confirmed answers survive SIGKILL, and fifty annotators at once lose nothing."""

from __future__ import annotations

import http.client
import itertools
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from study_parts import Client, make_small, right, serving

from medtest.study.store import StudyStore

GONE = (OSError, http.client.HTTPException, ValueError)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _answer_training(folder: Path) -> None:
    """Answer the training round, so that clients begin with the items."""
    with StudyStore(folder) as store:
        answer_all_training(store)


def answer_all_training(store: StudyStore) -> None:
    items = {item.id: item for item in store.items()}
    from medtest.study.model import NewAnswer

    for place in store.places():
        if place.phase == "training":
            request = f"training-{place.annotator}-{place.position}"
            store.save(
                place.annotator, "training", place.position, NewAnswer(request=request, **right(items[place.item]))
            )


def test_confirmed_answers_survive_sigkill(folder: Path) -> None:
    """Three annotators answer as fast as they can until the server is killed: every confirmed answer is stored."""
    _answer_training(folder)
    confirmed: list[tuple[int, str]] = []
    lock = threading.Lock()
    with serving(folder) as served:
        clients = {number: Client(served.port, link) for number, link in served.links.items()}

        def storm(number: int, client: Client) -> None:
            try:
                for turn in itertools.count():
                    request = f"storm-{number}-{turn:06d}"
                    content = {
                        "phase": "main",
                        "position": 1,
                        "diagnosis": 1 + turn % 5,
                        "realism": 5,
                        "request": request,
                    }
                    status, answer = client.post(content)
                    if status == 200 and answer["saved"]:
                        with lock:
                            confirmed.append((number, request))
            except GONE:
                return

        threads = [threading.Thread(target=storm, args=pair) for pair in clients.items()]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while len(confirmed) < 60 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(served.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(timeout=90)
    assert len(confirmed) >= 60
    with StudyStore(folder) as store:
        stored = {
            (row[0], row[1]) for row in store._connection.execute("SELECT annotator, request FROM answers").fetchall()
        }
        assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert [answer for answer in confirmed if answer not in stored] == []


def test_fifty_annotators_at_once_lose_nothing(tmp_path: Path) -> None:
    study = make_small(tmp_path, tmp_path / "fifty", annotators="50", training="0")
    problems: list[str] = []
    times: list[float] = []
    with serving(study.folder) as served:
        assert len(served.links) == 50

        def work(number: int, link: str) -> None:
            try:
                client = Client(served.port, link)
                total = client.study["phases"]["main"]["total"]
                for position in range(1, total + 1):
                    item = client.get(f"/api/item/main/{position}")
                    status, body = client.raw("GET", item["followup"])
                    assert status == 200
                    assert body.startswith(b"\x89PNG")
                    began = time.monotonic()
                    status, answer = client.post(
                        {
                            "phase": "main",
                            "position": position,
                            "diagnosis": 1 + (number + position) % 5,
                            "realism": 1 + (number * position) % 5,
                            "comment": f"{number}/{position}",
                            "request": f"fifty-{number}-{position}",
                        }
                    )
                    times.append(time.monotonic() - began)
                    assert status == 200, answer
                    assert answer["saved"]
            except (*GONE, AssertionError, KeyError) as error:
                problems.append(f"{number}: {error!r}")

        threads = [threading.Thread(target=work, args=pair) for pair in served.links.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=500)
    assert problems == []
    with StudyStore(study.folder) as store:
        answers = store.answers()
        assert len(answers) == len([p for p in store.places() if p.phase == "main"]) == len(times)
        for answer in answers:
            number, position = answer.annotator, answer.position
            assert (answer.diagnosis, answer.realism) == (1 + (number + position) % 5, 1 + (number * position) % 5)
            assert answer.comment == f"{number}/{position}"


def test_it_continues_after_a_restart_with_the_same_links(folder: Path) -> None:
    _answer_training(folder)
    with serving(folder) as served:
        links = dict(served.links)
        client = Client(served.port, links[1])
        content = {"phase": "main", "position": 1, "diagnosis": 3, "realism": 4, "request": "before-restart"}
        assert client.post(content)[0] == 200
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(60) == 0
        assert served.process.stdout is not None
        assert "Stopped." in served.process.stdout.read()
    with serving(folder) as served:
        assert served.links == {}  # printed once
        again = Client(served.port, links[1].replace(links[1].split("/a/")[0], f"http://127.0.0.1:{served.port}"))
        assert again.study["phases"]["main"]["next"] == 2
        assert again.get("/api/item/main/1")["answer"]["diagnosis"] == 3

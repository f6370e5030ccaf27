"""model=simlab as a system: its server runs from open to close; its answers depend on the question alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from medtest.api.store.ledger import Ledger
from medtest.core.cases import UNCHANGED, Address, AnswerOutput, Ask, image_sha256
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.core.records import is_simulated
from medtest.language.questions.questions import official
from medtest.runner.units.asker import answer_seed
from medtest.systems.answering import api_system
from medtest.systems.answering.asking import Asking, BudgetLimits
from medtest.systems.answering.openai_compatible import LEDGER
from medtest.systems.answering.simlab import Simlab
from medtest.systems.answering.simulated import KEY_VARIABLE

ASKS = tuple(
    Ask(item=question.name, text=question.text, kind=question.kind.value, id=question.id, truth=("Yes",))
    for question in official()
)
CLEAN = {"defects": {}}


def picture(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    pixels = np.zeros((96, 96, 3), np.uint8)
    pixels[8:88, 8:88] = (200, 120 + number % 8, 98)
    return pixels


def make(**settings: Any) -> Simlab:
    info = part("systems", "simlab")
    defaults = {**info.defaults, "call_seconds": 20.0, "max_in_flight": 8, **settings}
    return Simlab("simlab", Simlab.Settings(**defaults))


def calls(pictures: int = 2, asks: Sequence[Ask] = ASKS[:6], repeats: int = 2) -> list[Asking]:
    askings: list[Asking] = []
    for number in range(pictures):
        image = picture(number)
        for ask in asks:
            for repeat in range(-1, repeats):
                address = Address(dataset="set", seed_id=f"case-{number}", item=ask.item)
                if repeat >= 0:
                    address = Address(
                        dataset="set", seed_id=f"case-{number}", item=ask.item, relation=UNCHANGED, repeat=repeat
                    )
                askings.append(
                    Asking(
                        number=len(askings),
                        label=str(address),
                        addresses=(address,),
                        image=image,
                        sha256=image_sha256(image),
                        asks=(ask,),
                        seed=answer_seed(5, address),
                    )
                )
    return askings


@contextmanager
def open_system(folder: Path, *, cache: str = "off", **settings: Any) -> Iterator[Simlab]:
    system = make(**settings)
    for name in ("run", "shared"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    system.keep_in(folder / "run", folder / "shared", budget=BudgetLimits(), cache=cache)
    system.open(device="cpu", threads=1)
    try:
        yield system
    finally:
        system.close()


def answers_of(system: Simlab, askings: Sequence[Asking]) -> list[str]:
    outputs: dict[int, str] = {}
    for result in system.ask(askings):
        output = result.outputs[0]
        assert isinstance(output, AnswerOutput), output
        outputs[result.number] = f"{output.state}: {output.text}"
    return [outputs[number] for number in range(len(askings))]


def pid_of(system: Simlab) -> int:
    assert system._server is not None
    return system._server.pid


def has_ended(pid: int) -> bool:
    for _ in range(200):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_its_server_lives_from_open_to_close_and_shows_no_key(tmp_path: Path) -> None:
    with open_system(tmp_path) as system:
        pid = pid_of(system)
        askings = calls(1, repeats=0)
        assert len(answers_of(system, askings)) == len(askings)
        key = os.environ[KEY_VARIABLE]
        assert key not in " ".join(psutil.Process(pid).cmdline())
        assert key not in str(psutil.Process(pid).environ())
        assert all(key.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert has_ended(pid)


def test_its_name_and_notice_call_it_simulated() -> None:
    system = make()
    assert system.simulated
    assert system.record_name == "simlab-simulated"
    assert is_simulated(system.record_name)
    assert "SIMULATED" in system.notice()
    assert "refusals 0.01" in system.notice()
    assert not system.check()


def test_answers_do_not_depend_on_order_port_or_session(tmp_path: Path) -> None:
    noisy = {"defects": {"nondeterminism": 0.4, "refusals": 0.1}}
    askings = calls()
    with open_system(tmp_path / "one", **noisy) as system:
        first = answers_of(system, askings)
        address = system.endpoint()
    with open_system(tmp_path / "two", **noisy) as system:
        turned = [askings[number] for number in range(len(askings) - 1, -1, -1)]
        second = dict(zip([call.number for call in turned], _in_order(system, turned), strict=True))
        assert system.endpoint().base_url != address.base_url
        assert system.endpoint().provider == address.provider
    assert first == [second[number] for number in range(len(askings))]
    assert len(set(first)) > 3


def _in_order(system: Simlab, askings: Sequence[Asking]) -> list[str]:
    by_number = {result.number: result.outputs[0] for result in system.ask(askings)}
    outputs = [by_number[call.number] for call in askings]
    assert all(isinstance(output, AnswerOutput) for output in outputs)
    return [f"{output.state}: {output.text}" for output in outputs if isinstance(output, AnswerOutput)]


def test_a_second_session_asks_nothing_twice(tmp_path: Path) -> None:
    askings = calls(1)
    with open_system(tmp_path) as system:
        first = answers_of(system, askings[:9])
    with open_system(tmp_path) as system:
        assert answers_of(system, askings)[:9] == first
    with Ledger(tmp_path / "run" / LEDGER) as ledger:
        assert ledger.totals().billable == len(askings)


def test_the_cache_is_shared_by_equal_settings_alone(tmp_path: Path) -> None:
    askings = calls(1, repeats=0)
    shared = tmp_path / "shared"
    for run, settings, sent in (("a", CLEAN, 6), ("b", CLEAN, 0), ("c", {"defects": {"refusals": 1.0}}, 6)):
        system = make(**settings)
        (tmp_path / run).mkdir()
        shared.mkdir(exist_ok=True)
        system.keep_in(tmp_path / run, shared, budget=BudgetLimits(), cache="use")
        system.open(device="cpu", threads=1)
        try:
            answers_of(system, askings)
        finally:
            system.close()
        with Ledger(tmp_path / run / LEDGER) as ledger:
            assert ledger.totals().billable == sent, run


def test_only_settings_that_shape_answers_are_in_the_content_name() -> None:
    name = make().endpoint().provider
    assert name.startswith("simlab:")
    assert make(readers=1, max_in_flight=3).endpoint().provider == name
    for other in (
        {"product_seed": 1}, {"reader": "truth"}, {"styles": ["terse"]}, {"defects": {"refusals": 0.3}},
        {"faults": {"refusal": 0.3}},
    ):  # fmt: skip
        assert make(**other).endpoint().provider != name


def test_with_truth_it_answers_the_expected_value(tmp_path: Path) -> None:
    ask = Ask(item="polyps", text="How many polyps are in the image?", kind="count", id=8, truth=("Three",))
    askings = calls(2, (ask,), repeats=1)
    with open_system(tmp_path, reader="truth", styles=["terse"], **CLEAN) as system:
        assert set(answers_of(system, askings)) == {"answered: Three"}
    with open_system(tmp_path / "pixels", styles=["terse"], **CLEAN) as system:
        assert set(answers_of(system, askings)) == {"answered: 0"}


def test_it_answers_by_schema_with_ways_out_like_a_real_server(tmp_path: Path) -> None:
    ask = Ask(item="polyps", text="How many polyps are in the image?", kind="count", id=8, truth=("Three",))
    settings = {"reader": "truth", "structured": "first"}
    with open_system(tmp_path, **settings, **CLEAN) as system:
        assert set(answers_of(system, calls(2, (ask,), repeats=1))) == {"answered: 3"}
    with open_system(tmp_path / "refusing", **settings, defects={"refusals": 1.0}) as system:
        assert set(answers_of(system, calls(2, (ask,), repeats=1))) == {"answered: I cannot answer this question."}


def test_faults_of_the_server_change_no_answer(tmp_path: Path) -> None:
    askings = calls(2)
    with open_system(tmp_path / "sound", **CLEAN) as system:
        sound = answers_of(system, askings)
    faults = {"too_many": 0.08, "error": 0.05, "reset": 0.04, "truncated": 0.04, "wrong_type": 0.04}
    with open_system(tmp_path / "faulty", faults=faults, attempts=12, **CLEAN) as system:
        assert answers_of(system, askings) == sound
        assert "retried" in system.counters()


def test_all_questions_in_one_call(tmp_path: Path) -> None:
    image = picture(0)
    addresses = tuple(Address(dataset="set", seed_id="case", item=ask.item) for ask in ASKS)
    call = Asking(
        number=0, label="set/case/together", addresses=addresses, image=image, sha256=image_sha256(image), asks=ASKS,
        together=True, seed=3,
    )  # fmt: skip
    for structured in ("together", "never"):
        with open_system(tmp_path / structured, structured=structured, **CLEAN) as system:
            outputs = next(iter(system.ask([call]))).outputs
            texts = {output.address.item: output.text for output in outputs if isinstance(output, AnswerOutput)}
        assert len(texts) == 18
        assert (texts["polyps"], texts["box"].lower(), texts["procedure"]) == ("0", "no", "Colonoscopy")


def test_settings_without_effect_are_one_message() -> None:
    assert [mistake.key for mistake in make(base_url="https://example.org/v1").check()] == ["base_url"]


def test_a_folder_in_use_leaves_no_server_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_system, "_WAIT_SECONDS", 0.1)  # the lock stays held
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with open_system(tmp_path), pytest.raises(MedtestError), open_system(tmp_path):
        pass
    time.sleep(0.2)
    after = {child.pid for child in psutil.Process().children(recursive=True) if child.status() != "zombie"}
    assert after <= before


def test_a_killed_worker_takes_its_server_along(tmp_path: Path) -> None:
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_simlab_system import open_system, pid_of
with open_system(Path({str(tmp_path)!r})) as system:
    print(pid_of(system), flush=True)
    time.sleep(60)
"""
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait(20)
    worker.stdout.close()
    assert has_ended(pid)

"""Options, fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Mapping
from difflib import unified_diff
from pathlib import Path

import line_counter
import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from s3_server import bucket  # noqa: F401 - a fixture

line_counter.start()  # before anything of the package is imported

from medtest.cli.bootstrap import quiet_libraries  # noqa: E402
from medtest.report.tracking.store import configure  # noqa: E402

# Commands and MLflow set variables of the environment. All tests have them from the start: a new variable needs
# another fork server for workers, which imports everything again.
quiet_libraries()
configure()

TESTS = Path(__file__).parent.resolve()
_WORKER_BYTES = 3 * 1024**3
"""Memory of a process that runs tests, with the processes that it starts."""

# The time of an example means nothing on machines that run other things too. Examples are the same in every run, so
# that what passes here passes in CI; `pytest --hypothesis-profile=search` draws new ones, and more of them. A test
# with slow examples sets their number.
timeless = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("medtest", timeless, derandomize=True, max_examples=30)
settings.register_profile("search", timeless, max_examples=500)
settings.load_profile("medtest")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Collect without the garbage collector, and draw no examples from the constants of our modules."""
    gc.disable()
    if settings.get_current_profile_name() == "medtest":
        # reading 1,200 files takes ten seconds, and examples would depend on earlier imports
        providers._get_local_constants = providers.Constants


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return three processes for two processors, since tests wait for a third of their time, if there is memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, min(cores + cores // 2, psutil.virtual_memory().available // _WORKER_BYTES))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with other files if all tests run: the others load what it has compiled."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and [Path(path).resolve() for path in session.config.args] == [TESTS]:
        files = sorted(map(str, TESTS.rglob("test_*.py")))
        first = len(files) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        session.config.args = files[first:] + files[:first]


def pytest_collection_finish() -> None:
    """Leave modules imported to collect the tests out of later garbage collections, and collect more rarely.

    With the usual thresholds, collections take a twentieth of the tests' time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write which lines were run, in processes that ran tests."""
    if not session.config.pluginmanager.hasplugin("dsession"):
        line_counter.write()


Expected = Callable[[Path, Mapping[str, str]], None]
_SHOWN = 60
"""Lines of a difference that are shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--remake``."""
    text = "write the expected files of tests/data again where results changed on purpose; such tests are then skipped"
    parser.addoption("--remake", action="store_true", help=text)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests a quarter of an hour before they count as hanging: machines differ by a factor of three.

    All workers have the same order: first files with a test that may take long, by their own timeouts, then those with
    many tests. A long test that begins last would let the other workers wait.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        longest: dict[Path, float] = {}
        for item in items:
            timeout = item.get_closest_marker("timeout")
            longest[item.path] = max(longest.get(item.path, 0.0), timeout.args[0] if timeout else 0.0)
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (-longest[item.path], -tests[item.path], item.path))
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture
def expected(request: pytest.FixtureRequest) -> Expected:
    """Compare a folder of expected texts with the texts of a test: names and every byte.

    With ``--remake`` the folder is written again and the test is skipped with a message.
    """

    def write(folder: Path, texts: Mapping[str, str]) -> None:
        present = _texts(folder)
        for name in present.keys() - texts.keys():
            (folder / name).unlink()
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode())
        changed = sorted(name for name in present.keys() | texts.keys() if present.get(name) != texts.get(name))
        pytest.skip(f"WRITTEN AGAIN: {folder}: {', '.join(changed) or 'no change'}; explain it in the commit message")

    def compare(folder: Path, texts: Mapping[str, str]) -> None:
        present = _texts(folder)
        assert sorted(texts) == sorted(present), f"{folder}: other files; on purpose? pytest --remake"
        lines: list[str] = []
        for name in sorted(texts):
            lines += unified_diff(
                present[name].split("\n"), texts[name].split("\n"), name, "made now", n=0, lineterm=""
            )
        text = "\n".join(line[:400] for line in lines[:_SHOWN])
        other = [name for name in texts if texts[name] != present[name]]
        assert not other, f"{folder}: other content, on purpose? pytest --remake: {', '.join(other)}\n{text}"

    return write if request.config.getoption("--remake") else compare


def _texts(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in paths}

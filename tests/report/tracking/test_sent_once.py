"""Sending to a team's server: few requests, everything once in spite of kills, and checked passwords."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException
from rich.console import Console

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "report")]
from relay import relay_to
from report_parts import invocation, leave_run, make_suite
from team_server import ROOT, SUITE, team_server

from medtest.cli.team.server import REMEMBERED_SECONDS
from medtest.cli.team.track import track_folders
from medtest.core.errors import ExitCode
from medtest.report.finish import finish
from medtest.report.tracking.server.postgres import binaries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
MOST = 25
"""Requests of a system's run."""


@pytest.fixture(scope="module")
def server():
    with team_server() as started:
        yield started


def test_a_system_is_sent_in_few_requests(server, tmp_path):
    with relay_to(server.port) as relay:
        environment = {
            **os.environ,
            **server.environment,
            "MLFLOW_TRACKING_URI": relay.uri,
            "MEDTEST_HOME": str(tmp_path),
        }
        command = [sys.executable, "-m", "medtest"]
        for words in (["run", f"suite={SUITE}", "model=pranet", "limit=2", "workers=1"],) * 2 + (["track", "outputs"],):
            relay.requests.clear()
            subprocess.run([*command, *words], cwd=ROOT, env=environment, check=True, capture_output=True)
            assert 0 < len(relay.requests) <= MOST, relay.requests
    assert len(relay.requests) <= 4  # nothing was lacking
    above, below = server.runs()
    assert len(below) == 1
    points, files = server.content(below[0])
    assert points["efr"] == 1 and points["efr/blur"] == 5
    assert {"report.html", "records.parquet", "run.json", "suite.yaml", "files.zip", "tables/efr.json"} <= set(files)
    assert sum(name.endswith(".png") for name in files) == 3  # 20 sample strips on sheets
    with server.client() as client:
        tags = client.get_run(below[0].info.run_id).data.tags
    assert (tags["mlflow.loggedImages"], tags["mlflow.parentRunId"]) == ("True", above[0].info.run_id)


def _lets_in(server, name, password):
    with server.client(MLFLOW_TRACKING_USERNAME=name, MLFLOW_TRACKING_PASSWORD=password) as client:
        try:
            client.search_experiments(max_results=1)
        except MlflowException as error:
            assert "401" in str(error)
            return False
        return True


def _admin(server):
    from mlflow.server import get_app_client  # seconds, which collecting the fast tests need not take

    return get_app_client("basic-auth", server.uri)


def _sql(server, text):
    """Change the users' database behind the server's back."""
    words = ["-w", "-h", str(server.folder / "postgres"), "-U", "medtest", "-d", "users", "-Atc", text]
    environment = {**os.environ, "PGPASSFILE": str(server.folder / "pgpass")}
    done = subprocess.run([binaries() / "psql", *words], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_only_a_right_password_is_kept_for_minutes(server):
    names = ("maria", "jonas", "lea")
    with server.client():
        for name in names:
            _admin(server).create_user(name, f"first of {name}")
    for name in names:
        assert _lets_in(server, name, f"first of {name}")
        for _ in range(2):
            assert not _lets_in(server, name, "wrong")
            assert not _lets_in(server, name, f"first of {names[names.index(name) - 1]}")
    with server.client():
        _admin(server).update_user_password("maria", "second of maria")
        _admin(server).delete_user("jonas")
    assert [_lets_in(server, "maria", f"{word} of maria") for word in ("first", "second")] == [False, True]
    assert not _lets_in(server, "jonas", "first of jonas")

    _sql(server, "UPDATE users SET password_hash = 'none' WHERE username = 'lea'")
    assert _lets_in(server, "lea", "first of lea")  # it was not checked again
    assert not _lets_in(server, "lea", "wrong")
    config = (server.folder / "auth.ini").read_text()
    assert f"auth_cache_ttl_seconds = {REMEMBERED_SECONDS}\n" in config and REMEMBERED_SECONDS == 300
    assert "within five minutes" in (ROOT / "docs" / "teams.md").read_text()


_FORGETS = """
import time
from mlflow.server import auth
auth.store.init_db(auth.auth_config.database_uri)
auth.store.create_user("lea", "a long password")
assert auth._authenticate_cached("lea", "a long password")
assert auth._authenticate_cached("lea", "a wrong password") is None
assert not any(b"password" in key[1] for key in auth._USER_AUTH_CACHE), "the password itself was kept"
auth.store.update_user("lea", password="another password")
end = time.monotonic() + 120
while auth._authenticate_cached("lea", "a long password"):
    assert time.monotonic() < end, "it was not forgotten"
    time.sleep(0.2)
assert auth._authenticate_cached("lea", "another password")
"""


def test_a_kept_password_is_checked_again_in_time(tmp_path):
    config = tmp_path / "auth.ini"
    config.write_text(
        f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{tmp_path}/users.db\nadmin_username = admin\n"
        "admin_password = a long password\nauth_cache_ttl_seconds = 2\n"
    )
    environment = {**os.environ, "MLFLOW_AUTH_CONFIG_PATH": str(config), "MLFLOW_FLASK_SERVER_SECRET_KEY": "x"}
    environment |= {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db", "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, "-c", _FORGETS], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


ARRIVES, ANSWERED = "arrives", "is answered"
MOMENTS = {
    "the run above": ("runs/create", 1, ANSWERED),
    "the system's run": ("runs/create", 2, ANSWERED),
    "the report": ("report.html", 1, ARRIVES),
    "the archive": ("files.zip", 1, ANSWERED),
    "its batch, before": ("runs/log-batch", 1, ARRIVES),
    "its batch, after": ("runs/log-batch", 1, ANSWERED),
    "its end": ("runs/update", 1, ARRIVES),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_was_not_sent_when_postgresql_was_killed_is_sent_later_and_once(server, tmp_path, monkeypatch, moment):
    place, number, when = MOMENTS[moment]
    plain = make_suite()
    name = f"killed_{list(MOMENTS).index(moment)}"
    suite = replace(plain, name=name, composed={**plain.composed, "name": name})
    outcome = leave_run(tmp_path, suite, seeds=6)
    for key, value in {**server.environment, "MEDTEST_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    with relay_to(server.port) as relay:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", relay.uri)

        def reached(path):
            return path.endswith(place) and sum(other.endswith(place) for _, other in relay.requests) == number

        relay.arrived = lambda method, path: _kill_postgres(server) if when == ARRIVES and reached(path) else None
        relay.answered = lambda method, path: when == ANSWERED and reached(path) and _kill_postgres(server)
        result = finish(suite, invocation(tmp_path, track=True), outcome)
        _is_whole_on_disk(result, outcome.systems[0].folder)
        before = (outcome.systems[0].folder / "report.html").read_bytes()
        assert server.process.wait(timeout=120) == 2  # it ends with its database, and says so
        assert "PostgreSQL ended" in server.log_file.read_text()
        server.start()
        relay.arrived = relay.answered = lambda method, path: False
        outputs = [_track(tmp_path) for _ in range(2)]
    assert ["1 sent, 0 already" in outputs[0], "0 sent, 1 already" in outputs[1]] == [True, True], outputs
    above, below = server.runs(name)
    assert len(above) == len(below) == 1
    assert {run.info.status for run in above + below} == {"FINISHED"}
    assert below[0].data.tags["mlflow.parentRunId"] == above[0].info.run_id
    points, _ = server.content(below[0])
    assert (points["efr"], points["efr/blur"]) == (1, 5)
    assert set(server.content(above[0])[0].values()) == {1}
    assert (outcome.systems[0].folder / "report.html").read_bytes() == before


def _is_whole_on_disk(result, folder):
    assert result.code is ExitCode.NOT_TRACKED
    (problem,) = result.problems
    assert "complete on disk" in problem
    assert {"records.parquet", "report.html", "tables"} <= {path.name for path in folder.iterdir()}
    subprocess.run(["sha256sum", "--check", "--quiet", "manifest.sha256"], cwd=folder, check=True)


def _track(home):
    console = Console(record=True, quiet=False, file=open(os.devnull, "w"), width=200)  # noqa: SIM115
    track_folders([home / "outputs"], console=console)
    return console.export_text()


def _kill_postgres(server):
    """End PostgreSQL as a machine without memory does; true."""
    number = int((server.folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(number, signal.SIGKILL)
    return True

"""A run of prompts that is killed while it asks, stores and reads: equal records, and few calls are paid twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_parts import prompt_suite, stripes
from runner_helpers import assert_equal_records, go, records, script, wait_for

from medtest.core.records import PICTURES

COUNT, IN_FLIGHT = 12, 4
BODY = """
from prompt_parts import prompt_suite
suite = prompt_suite({base_url!r}, count={count}, reader=dict(log={log!r}, slow=0.05))
bounds = Limits(samples=0, shard_seconds=0.3, send_seconds=0.1)
run_suite(suite, Invocation(home=home, quiet=True, workers=1), limits=bounds)
"""


@pytest.mark.slow
def test_sigkill_at_ten_moments_repeats_only_calls_in_flight(tmp_path: Path) -> None:
    log, home = tmp_path / "log", tmp_path / "parts"
    with stripes(seconds=0.03) as server:
        suite = prompt_suite(server.base_url, count=COUNT, reader={"log": str(tmp_path / "other")})
        whole = records(go(suite, tmp_path / "whole"))
        server.asked.clear()

        def asked() -> int:
            return len(server.asked)

        def stored() -> int:
            return len([path for path in home.rglob("*.png") if PICTURES in path.parts])

        def seen() -> int:
            return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0

        moments = [(asked, 1), (asked, 4), (stored, 2), (seen, 2), (asked, 10), (stored, 6), (seen, 5), (asked, 17)]
        moments += [(stored, 10), (seen, 9)]
        for look, count in moments:
            start = look()
            body = BODY.format(base_url=server.base_url, count=COUNT, log=str(log))
            program, target = script(body, home), max(count, start + 1)
            wait_for(lambda: look() >= target or program.poll() is not None)  # noqa: B023
            program.kill()
            program.communicate()
        last = go(prompt_suite(server.base_url, count=COUNT, reader={"log": str(log), "slow": 0.05}), home)
        paid = asked()
    assert_equal_records(whole, records(last))
    assert paid <= 3 * COUNT + IN_FLIGHT * len(moments)
    stored_pictures = {path.stem for path in (last.systems[0].folder / PICTURES).rglob("*.png")}
    assert stored_pictures == set(whole["picture"])
    assert len(set(server.asked)) == len(set(whole["prompt"]))

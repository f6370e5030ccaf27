"""A drawing system as a separate process, for tests that kill it: ``drawing_child.py FOLDER BASE_URL COUNT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from exchanges import call, opened, output

from medtest.systems.pictures.services import DashScope


def main() -> None:
    """Ask, and print each answer."""
    folder, base_url, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    settings = {"base_url": base_url, "model": "m", "poll_seconds": 0.05, "max_in_flight": 4}
    system = DashScope("wan", DashScope.Settings(**settings, prices={"m": {"picture": 0.5}}))
    with opened(system, folder) as open_system:
        for result in open_system.ask(call(number, f"a dog number {number}") for number in range(count)):
            answer = output(result)
            print(json.dumps([result.number, answer.state, answer.picture, answer.cost_usd]), flush=True)


if __name__ == "__main__":
    main()

"""A campaign in a separate process, for the tests that kill it: ``campaign_child.py FOLDER BASE_URL COUNT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from api_parts import QUICK, campaign, questions


def main() -> None:
    """Send questions; print each outcome and the ledger's totals."""
    folder, base_url, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with campaign(folder, base_url, max_in_flight=8, retries=QUICK) as running:
        print(json.dumps({"lost_before": running.ledger.lost_before}), flush=True)
        for outcome in running.iterate(questions(count)):
            print(json.dumps({"address": outcome.address, "state": outcome.state, "text": outcome.text}), flush=True)
        totals = running.ledger.totals()
        print(json.dumps({"calls": totals.calls, "lost": totals.lost, "under_way": totals.under_way}), flush=True)


if __name__ == "__main__":
    main()

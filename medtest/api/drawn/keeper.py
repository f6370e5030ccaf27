"""Helper process that decodes, hashes and stores pictures, for services that generate faster than one process can.

``python -m medtest.api.drawn.keeper FOLDER SIZE`` reads pictures from standard input, each preceded by its length in
four bytes, and answers each with a line of JSON on standard output. It ends with its input, hence with its parent.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from medtest.api.drawn.store import Store
from medtest.core.errors import OutputProblem


def main() -> None:
    """Store pictures until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when it ends
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    store = Store(folder, size=size or None)
    incoming, outgoing = sys.stdin.buffer, sys.stdout
    while len(head := incoming.read(4)) == 4:
        length = int.from_bytes(head, "big")
        content = incoming.read(length)
        if len(content) != length:
            return
        try:
            stored = store.keep(content)
            answer = {"picture": stored.picture, "state": str(stored.state), "reason": stored.reason}
        except OutputProblem as error:
            answer = {"problem": str(error)}
        outgoing.write(json.dumps(answer) + "\n")
        outgoing.flush()


if __name__ == "__main__":
    main()

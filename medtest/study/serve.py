"""Serves a study with uvicorn until it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.errors import MedtestError
from medtest.study.guard import Site
from medtest.study.store import StudyStore
from medtest.study.web import build_app

_CONCURRENCY = 512
_KEEP_ALIVE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Link:
    """An annotator's link; this is the only time that it can be told.

    Attributes:
        annotator: His number.
        url: The whole link.
    """

    annotator: int
    url: str


def make_links(store: StudyStore, site: Site, annotators: Sequence[int] | None = None) -> list[Link]:
    """Give links to annotators; an earlier link of theirs ends.

    Args:
        store: The open study.
        site: Where it is reached.
        annotators: Whose; None for all that never had one.
    """
    chosen = [n for n, has_link in store.annotators() if not has_link] if annotators is None else annotators
    return [Link(annotator=n, url=f"{site.url}/a/{store.new_token(n)}") for n in chosen]


def serve(store: StudyStore, site: Site, *, host: str, port: int) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        store: The open study.
        site: Where it is reached.
        host: Address to listen on.
        port: Port to listen on.

    Raises:
        MedtestError: The port is taken, or may not be listened on.
    """
    import uvicorn

    config = uvicorn.Config(
        build_app(store, site),
        host=host,
        port=port,
        lifespan="off",
        ws="none",
        log_level="warning",
        access_log=False,  # an entry link holds a token
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONCURRENCY,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16 * 1024,
        http="h11",
    )
    server = uvicorn.Server(config)
    try:
        server.run()
    except SystemExit as stop:  # uvicorn's way to say that it could not start
        raise MedtestError(f"The study could not be served on {host}:{port}; is the port in use?") from stop

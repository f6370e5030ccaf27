"""Serving of a study with uvicorn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from socket import AF_INET, AF_INET6, create_server, socket
from typing import TYPE_CHECKING

from medtest.core.errors import typed_error
from medtest.study.server.guard import Site
from medtest.study.server.web import build_app
from medtest.study.store import StudyStore

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_CONCURRENCY = 512
_KEEP_ALIVE_SECONDS = 30
_BACKLOG = 2048


def make_links(store: StudyStore, site: Site, annotators: Sequence[int] | None = None) -> list[tuple[int, str]]:
    """Create links for annotators, replacing their earlier ones; return number and URL, which cannot be shown again.

    Args:
        store: The open study.
        site: Address of the study.
        annotators: Numbers of the annotators; None for all without a link.
    """
    chosen = [n for n, has_link in store.annotators() if not has_link] if annotators is None else annotators
    tokens = store.new_tokens(chosen)
    return [(n, f"{site.url}/a/{token}") for n, token in zip(chosen, tokens, strict=True)]


@contextmanager
def listening(host: str, port: int) -> Iterator[socket]:
    """Yield a listening socket, opened before links are printed.

    Args:
        host: Address to listen on.
        port: Port to listen on.

    Raises:
        UserMistakes: The port is in use or not permitted, or the address does not belong to this machine.
    """
    try:
        listener = create_server((host, port), family=AF_INET6 if ":" in host else AF_INET, backlog=_BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0].lower()
        wrong = f"{host}:{port} ({reason})"
        fix = f"another --port, e.g. {port + 1 if port < 65535 else 8765}"
        raise typed_error("--port", wrong, "a free port of this machine", fix) from error
    with listener:
        yield listener


def serve(store: StudyStore, site: Site, listener: socket) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        store: The open study.
        site: Address of the study.
        listener: From :func:`listening`.
    """
    serve_app(build_app(store, site), listener)


def serve_app(app: ASGIApp, listener: socket) -> None:
    """Serve an application until Ctrl-C or SIGTERM.

    Args:
        app: The application.
        listener: From :func:`listening`.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
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
    uvicorn.Server(config).run(sockets=[listener])

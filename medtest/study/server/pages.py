"""Shared parts of pages that this machine serves: static files, templates, same-site checks, error responses."""

from __future__ import annotations

import hmac
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from medtest.core.errors import OutputProblem
from medtest.study.server.guard import MAX_BODY, Site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HERE = Path(__file__).parents[1]
STATIC = {
    "study.js": "text/javascript; charset=utf-8",
    "panes.js": "text/javascript; charset=utf-8",
    "answers.js": "text/javascript; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "study.css": "text/css; charset=utf-8",
    "review.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The only static files that are served, with their media types."""
SEAL = "x-study-seal"
"""Header with a token that only the page knows."""


class Refused(Exception):
    """Error response to a request."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


@cache
def _file(name: str) -> bytes:
    return (HERE / "static" / name).read_bytes()


@cache
def template(name: str) -> Any:
    """Return a template that escapes what it shows."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(HERE / "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)


class SitePages:
    """Request handlers that every site of this machine has.

    Args:
        site: Address of the site.
    """

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def handlers(self) -> dict[Any, Any]:
        """Handlers of errors, for Starlette."""
        return {Refused: self.refused, OutputProblem: self.broken, 404: self.unknown}

    def check_same_site(self, request: Request, seal: str) -> None:
        """Check that an answer comes from the site's own page, by its origin and a token known only to that page."""
        origin = request.headers.get("origin")
        fetched = request.headers.get("sec-fetch-site")
        if (origin is not None and origin.lower() not in self._site.origins) or fetched not in (None, "same-origin"):
            raise Refused(403, "Answers are accepted only from the study's own page.")
        if not hmac.compare_digest(request.headers.get(SEAL, "").encode(), seal.encode()):
            raise Refused(403, "Another link was opened in this browser meanwhile; open your own link again.")

    async def body(self, request: Request) -> bytes:
        """Return the body of a request, of limited size."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise Refused(413, "That is more than an answer can hold.")
        return bytes(body)

    def static(self, request: Request) -> Response:
        """Return a static file by name."""
        from starlette.responses import Response

        name = request.path_params["name"]
        if name not in STATIC:
            raise Refused(404, "There is no such page.")
        return Response(_file(name), media_type=STATIC[name])

    def health(self, _: Request) -> Response:
        """Return a health response."""
        from starlette.responses import PlainTextResponse

        return PlainTextResponse("ok")

    def refused(self, request: Request, error: Exception) -> Response:
        """Return an error response, as JSON for the script and as a page for people."""
        from starlette.responses import HTMLResponse, JSONResponse

        status = error.status if isinstance(error, Refused) else 500
        words = error.words if isinstance(error, Refused) else "Something went wrong on the server."
        if urlsplit(str(request.url)).path.startswith(("/api/", "/leave")):
            return JSONResponse({"error": words}, status_code=status)
        return HTMLResponse(template("refused.html.j2").render(status=status, words=words), status_code=status)

    def broken(self, request: Request, _: Exception) -> Response:
        """Return the response to a failure of the disk or the database; nothing was confirmed as saved."""
        return self.refused(request, Refused(503, "The server could not save or read just now; try again."))

    def unknown(self, request: Request, _: Exception) -> Response:
        """Return the response to an unknown address."""
        return self.refused(request, Refused(404, "There is no such page."))

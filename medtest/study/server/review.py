"""Web application in which one person reviews how prompts were read: caption beside pool, accept or correct."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from medtest.core.errors import UserMistakes
from medtest.core.scenes import Entity, Pool, Triple, alphabetical
from medtest.language.captions.reading.result import MEANINGS, PromptReading
from medtest.language.captions.reading.reviewed import (
    MOST_COUNT,
    Review,
    Verdict,
    read_reviews,
    reviewed_reading,
    write_review,
)
from medtest.study.server.guard import Guard, Site
from medtest.study.server.pages import Refused, SitePages, template

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

_MOST = 40
Name = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True, min_length=1, max_length=80)]
Index = Annotated[int, Field(ge=0, lt=_MOST)]


class PostedEntity(BaseModel):
    """Thing of a posted pool."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Name
    count: Annotated[int, Field(ge=1, le=MOST_COUNT)] | None = None
    attributes: Annotated[list[Name], Field(max_length=_MOST)] = []


class PostedReview(BaseModel):
    """Body of a posted review; extra fields are refused. ``withdrawn`` removes an earlier one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    number: Annotated[int, Field(ge=0, le=10_000_000)]
    withdrawn: bool = False
    entities: Annotated[list[PostedEntity], Field(max_length=_MOST)] = []
    triples: Annotated[list[tuple[Index, Name, Index]], Field(max_length=_MOST)] = []
    absent: Annotated[list[Annotated[list[Name], Field(min_length=1, max_length=3)]], Field(max_length=_MOST)] = []

    def reading(self, text: str) -> PromptReading:
        """Return the reading that the form states.

        Raises:
            Refused: It names nothing, or a relation has an end that is no thing of the pool.
        """
        entities = tuple(
            Entity(
                name=_plain(entity.name), count=entity.count, attributes=alphabetical(map(_plain, entity.attributes))
            )
            for entity in self.entities
        )
        if not entities:
            raise Refused(422, "Name at least one thing that the picture shall show.")
        for subject, _, target in self.triples:
            if max(subject, target) >= len(entities) or subject == target:
                raise Refused(422, "A relation joins two different things of the list.")
        triples = tuple(Triple(subject=a, predicate=_plain(name), object=b) for a, name, b in self.triples)
        absent = [[_plain(name) for name in names] for names in self.absent]
        return reviewed_reading(text, Pool(entities=entities, triples=triples), absent)


def _plain(name: str) -> str:
    return " ".join(name.split())


def build_review(
    texts: Sequence[str], read: Callable[[str], PromptReading], path: Path, site: Site, token: str
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        texts: The prompts, without repeats.
        read: Returns the reading of a prompt.
        path: The file of reviews.
        site: Address of the page.
        token: Secret of the link that opens it.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    pages = ReviewPages(texts, read, path, site, token)
    routes = [
        Route("/", pages.page),
        Route("/a/{token}", pages.enter),
        Route("/api/prompt/{number:int}", pages.prompt),
        Route("/api/review", pages.review, methods=["POST"]),
        Route("/static/{name}", pages.static),
        Route("/health", pages.health),
    ]
    return Guard(Starlette(routes=routes, exception_handlers=pages.handlers), site)


class ReviewPages(SitePages):
    """Request handlers of a review; see :func:`build_review`."""

    def __init__(
        self, texts: Sequence[str], read: Callable[[str], PromptReading], path: Path, site: Site, token: str
    ) -> None:
        super().__init__(site)
        self._texts, self._read, self._path = texts, read, path
        self._token, self._seal = token, secrets.token_urlsafe(24)
        self._cookie = f"review_{hashlib.sha256(token.encode()).hexdigest()[:8]}"  # separates two on one machine
        self._reviews = read_reviews(path)

    def _check_entered(self, request: Request) -> None:
        if not secrets.compare_digest(request.cookies.get(self._cookie, "").encode(), self._token.encode()):
            raise Refused(401, "Open the link that medtest prompts review printed.")

    def enter(self, request: Request) -> Response:
        """Move the token of the link from the address bar into a cookie."""
        from starlette.responses import RedirectResponse

        if not secrets.compare_digest(request.path_params["token"].encode(), self._token.encode()):
            raise Refused(403, "This link is not valid; open the one that was printed last.")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax", secure=self._site.secure)
        return answer

    def page(self, request: Request) -> Response:
        """Return the page, whose script fetches everything else."""
        from starlette.responses import HTMLResponse

        self._check_entered(request)
        start = self._next(0)
        shown = template("review.html.j2").render(
            name=self._path.name, total=len(self._texts), start=0 if start is None else start, seal=self._seal
        )
        return HTMLResponse(shown)

    def prompt(self, request: Request) -> Response:
        """Return one prompt, its reading and its review."""
        from starlette.responses import JSONResponse

        self._check_entered(request)
        return JSONResponse(self._content(request.path_params["number"]))

    async def review(self, request: Request) -> Response:
        """Save a review and confirm it once it is on disk."""
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(self._save, request, await self.body(request))

    def _save(self, request: Request, body: bytes) -> Response:
        from starlette.responses import JSONResponse

        self._check_entered(request)
        self.check_same_site(request, self._seal)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "Reviews are JSON.")
        try:
            posted = PostedReview.model_validate_json(body)
        except (ValidationError, ValueError, RecursionError) as error:
            raise Refused(422, f"A thing, relation or number cannot be used: {_problem(error)}.") from error
        text = self._text(posted.number)
        review = None
        if not posted.withdrawn:
            corrected = posted.reading(text)
            verdict: Verdict = "accepted" if _facts(corrected) == _facts(self._read(text)) else "corrected"
            now = datetime.now(UTC).isoformat(timespec="seconds")
            review = Review(verdict=verdict, reading=corrected, at=now)
        try:
            write_review(self._path, text, review)
        except UserMistakes as error:
            raise Refused(409, f"{self._path.name} is not a file of reviews any more.") from error
        self._reviews = read_reviews(self._path)
        return JSONResponse(self._content(posted.number))

    def _text(self, number: int) -> str:
        if not 0 <= number < len(self._texts):
            raise Refused(404, "There is no such prompt.")
        return self._texts[number]

    def _next(self, start: int) -> int | None:
        """Return the first prompt without a review from a place on, then from the beginning; None if all have one."""
        order = (*range(start, len(self._texts)), *range(start))
        return next((number for number in order if self._texts[number] not in self._reviews), None)

    def _content(self, number: int) -> dict[str, Any]:
        text = self._text(number)
        reading, review = self._read(text), self._reviews.get(text)
        return {
            "number": number,
            "total": len(self._texts),
            "reviewed": sum(prompt in self._reviews for prompt in self._texts),
            "next": self._next(number + 1),
            "text": text,
            "confidence": reading.confidence,
            "reasons": [
                {
                    "meaning": MEANINGS[reason],
                    "details": [words for name, words in reading.details if name is reason and words],
                }
                for reason in reading.reasons
            ],
            "read": _facts(reading),
            "verdict": None if review is None else review.verdict,
            "facts": _facts(reading if review is None else review.reading),
        }


def _facts(reading: PromptReading) -> dict[str, Any]:
    pool = reading.pool.as_json()
    return {
        "entities": pool["entities"],
        "triples": [list(triple) for triple in pool["triples"]],
        "absent": [list(names) for names in reading.absent],
    }


def _problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))} {first['msg'].lower()}"
    return json.dumps(str(error)[:80])

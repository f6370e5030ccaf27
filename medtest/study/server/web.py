"""Web application of a study: links, pages, images and answers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtest.core.errors import OutputProblem
from medtest.study.model import MAX_COMMENT, PHASES, Item, NewAnswer, Phase, Place, SavedAnswer
from medtest.study.questions import ARTEFACTS, GUIDELINES, LEVEL_WORDS, QUESTIONS, TITLES, StudyKind, marks_of
from medtest.study.results.ratings import is_expected
from medtest.study.server.guard import Guard, Site
from medtest.study.server.pages import Refused, SitePages, template
from medtest.study.store import StudyStore

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

MAX_POSITION = 10_000_000
_KEY = re.compile(r"[0-9a-f]{32}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
Level = Annotated[int, Field(ge=1, le=5)]


class PostedAnswer(BaseModel):
    """Body of a posted answer; extra fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    phase: Literal["training", "main"]
    position: Annotated[int, Field(ge=1, le=MAX_POSITION)]
    diagnosis: Level | None = None
    realism: Level | None = None
    marks: Annotated[list[str], Field(max_length=len(ARTEFACTS))] | None = None
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    elapsed_ms: Annotated[int, Field(ge=0, le=2**53)] = (
        0  # a page may stay open overnight; the store caps the value at an hour
    )
    request: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")]


def build_app(store: StudyStore, site: Site) -> ASGIApp:
    """Return the ASGI application of one study.

    Args:
        store: The open study.
        site: Address of the study.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    pages = Pages(store, site)
    routes = [
        Route("/", pages.page),
        Route("/a/{token}", pages.enter),
        Route("/leave", pages.leave, methods=["POST"]),
        Route("/api/study", pages.study),
        Route("/api/item/{phase}/{position:int}", pages.item),
        Route("/api/answer", pages.answer, methods=["POST"]),
        Route("/image/{key}", pages.image),
        Route("/static/{name}", pages.static),
        Route("/health", pages.health),
    ]
    return Guard(Starlette(routes=routes, exception_handlers=pages.handlers), site)


class Pages(SitePages):
    """Request handlers. Those that use the database are plain functions, which Starlette runs in threads.

    Args:
        store: The open study.
        site: Address of the study.
    """

    def __init__(self, store: StudyStore, site: Site) -> None:
        super().__init__(site)
        self._store = store
        self._items: dict[int, Item] = {item.id: item for item in store.items()}
        self._cookie = f"study_{store.meta['secret'][:8]}"  # separates two studies on one machine

    # --- annotators -----------------------------------------------------------------------------------------------

    def _who(self, request: Request) -> tuple[int, str]:
        token = request.cookies.get(self._cookie, "")
        annotator = self._store.annotator_of(token) if token else None
        if annotator is None:
            raise Refused(401, "Open the link that you were given; it lets you in and takes you back to your place.")
        return annotator, token

    def enter(self, request: Request) -> Response:
        """Sign an annotator in by a link: the token moves from the address bar into a cookie."""
        from starlette.responses import RedirectResponse

        token = request.path_params["token"]
        if self._store.annotator_of(token) is None:
            raise Refused(403, "This link is not valid, or was replaced by a newer one. Ask the sender for a new link.")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._cookie, token, max_age=90 * 86400, httponly=True, samesite="lax", secure=self._site.secure
        )
        return answer

    def leave(self, request: Request) -> Response:
        """Sign out on this device; the link stays valid."""
        from starlette.responses import JSONResponse

        annotator, token = self._who(request)
        self.check_same_site(request, self._store.seal(annotator, token))
        answer = JSONResponse({"left": True})
        answer.delete_cookie(self._cookie, httponly=True, samesite="lax", secure=self._site.secure)
        return answer

    # --- pages and files ------------------------------------------------------------------------------------------

    def page(self, request: Request) -> Response:
        """Return the page, whose script fetches everything else."""
        from starlette.responses import HTMLResponse

        self._who(request)
        kind = self._store.kind
        return HTMLResponse(
            template("page.html.j2").render(
                kind=kind.value,
                pairs=kind.compares,
                title=TITLES[kind],
                questions=QUESTIONS,
                levels=list(enumerate(LEVEL_WORDS, start=1)),
                marks=marks_of(kind),
                guidelines=GUIDELINES[kind],
                max_comment=MAX_COMMENT,
                phantom=bool(self._store.meta.get("phantom")),
            )
        )

    def image(self, request: Request) -> Response:
        """Return an image of this annotator's list by its opaque id."""
        from starlette.responses import Response

        annotator, _ = self._who(request)
        key = request.path_params["key"]
        path = self._store.picture(annotator, key) if _KEY.fullmatch(key) else None
        if path is None:
            raise Refused(404, "There is no such image.")
        try:
            return Response(path.read_bytes(), media_type="image/png")
        except OSError as error:
            raise OutputProblem(f"an image of the study cannot be read: {error.strerror}") from error

    # --- the study ------------------------------------------------------------------------------------------------

    def study(self, request: Request) -> Response:
        """Return an annotator's progress, and the token for sending answers."""
        from starlette.responses import JSONResponse

        annotator, token = self._who(request)
        return JSONResponse(
            {
                "kind": self._store.kind.value,
                "annotator": annotator,
                "seal": self._store.seal(annotator, token),
                "phases": {phase: self._progress(annotator, phase) for phase in PHASES},
            }
        )

    def _progress(self, annotator: int, phase: Phase) -> dict[str, Any]:
        total, answered = self._store.progress(annotator, phase)
        done = set(answered)
        first_open = next((n for n in range(1, total + 1) if n not in done), total + 1)
        return {"total": total, "answered": len(done), "next": first_open}

    def _reachable(self, annotator: int, phase: Phase, position: int) -> Place:
        """Return a place already reached; going back is allowed, skipping ahead is not."""
        place = self._store.place(annotator, phase, position)
        if place is None:
            raise Refused(404, "There is no such item.")
        if phase == "main":
            training = self._progress(annotator, "training")
            if training["next"] <= training["total"]:
                raise Refused(409, "The training round comes first.")
        if position > self._progress(annotator, phase)["next"]:
            raise Refused(409, "The items before this one come first.")
        return place

    def item(self, request: Request) -> Response:
        """Return one item: its images' ids, the outline and the saved answer, but not its role."""
        from starlette.responses import JSONResponse

        annotator, _ = self._who(request)
        phase, position = request.path_params["phase"], request.path_params["position"]
        if phase not in PHASES or position > MAX_POSITION:
            raise Refused(404, "There is no such item.")
        place = self._reachable(annotator, phase, position)
        item = self._items[place.item]
        answer = self._store.answer(annotator, phase, position)
        ahead = self._store.place(annotator, phase, position + 1)
        content: dict[str, Any] = {
            "phase": phase,
            "position": position,
            "followup": f"/image/{place.followup_key}",
            "width": item.width,
            "height": item.height,
            "outlines": item.outlines,
            "answer": None if answer is None else _shown(answer),
            "ahead": [] if ahead is None else [f"/image/{ahead.source_key}", f"/image/{ahead.followup_key}"],
        }
        if self._store.kind.compares:
            content["source"] = f"/image/{place.source_key}"
        else:
            content["outlines"] = {}
            content["ahead"] = content["ahead"][1:]
        if answer is not None and phase == "training":
            content["feedback"] = feedback(item, answer)
        return JSONResponse(content)

    async def answer(self, request: Request) -> Response:
        """Save an answer and confirm it once it is on disk."""
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(self._save, request, await self.body(request))

    def _save(self, request: Request, body: bytes) -> Response:
        from starlette.responses import JSONResponse

        annotator, token = self._who(request)
        self.check_same_site(request, self._store.seal(annotator, token))
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "Answers are JSON.")
        posted = _posted(body, self._store.kind)
        place = self._reachable(annotator, posted.phase, posted.position)
        checked = NewAnswer(
            diagnosis=posted.diagnosis,
            realism=posted.realism,
            marks=None if posted.marks is None else tuple(sorted(set(posted.marks))),
            comment=_CONTROL.sub("", posted.comment).strip(),
            elapsed_ms=posted.elapsed_ms,
            request=posted.request,
        )
        saved = self._store.save(annotator, posted.phase, posted.position, checked)
        if (saved.phase, saved.position) != (posted.phase, posted.position):
            raise Refused(409, "That request was used for another item.")
        content: dict[str, Any] = {
            "saved": True,
            "at": saved.saved_at,
            "progress": self._progress(annotator, posted.phase),
        }
        if posted.phase == "training":
            content["feedback"] = feedback(self._items[place.item], saved)
        return JSONResponse(content)


def _shown(answer: SavedAnswer) -> dict[str, Any]:
    return {
        "diagnosis": answer.diagnosis,
        "realism": answer.realism,
        "marks": None if answer.marks is None else list(answer.marks),
        "comment": answer.comment,
        "at": answer.saved_at,
    }


def _posted(body: bytes, kind: StudyKind) -> PostedAnswer:
    try:
        posted = PostedAnswer.model_validate(json.loads(body))
    except (ValidationError, ValueError, RecursionError) as error:
        raise Refused(422, "That is no answer to this study.") from error
    pairs = posted.diagnosis is not None and posted.realism is not None and posted.marks is None
    marked = posted.marks is not None and posted.diagnosis is None and posted.realism is None
    if not (pairs if kind.compares else marked):
        raise Refused(422, "Please answer both questions." if kind.compares else "Mark what you see.")
    if posted.marks is not None and not set(posted.marks) <= set(marks_of(kind)):
        raise Refused(422, f"Marks of this study: {', '.join(marks_of(kind))}.")
    if kind.is_blind and len(set(posted.marks or ())) != 1:
        raise Refused(422, "Real or made: one of both.")
    return posted


def feedback(item: Item, answer: SavedAnswer) -> dict[str, Any]:
    """Return the training feedback on an answer: whether it was as expected, and why."""
    return {"right": is_expected(item, answer), "words": str(item.expected.get("words", ""))}

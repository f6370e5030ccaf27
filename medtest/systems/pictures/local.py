"""Pictures generated in this process or stored earlier, saved to the run folder like a service's."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from medtest.api.drawn.kept import KeptPictures
from medtest.api.drawn.store import is_blank
from medtest.api.redact import reason_of
from medtest.core.cases import Image, PictureOutput, image_sha256
from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.records import PICTURES
from medtest.systems.answering.asking import Asked, Asking, AskingSystem, BudgetLimits
from medtest.systems.base import Missing

BLANK = "the picture is of one colour"


class Filtered(Exception):
    """A pipeline's own filter blocked a picture; the message names it."""


class NotDrawn(Exception):
    """No picture was drawn for a case, through no fault of the system: the case is SKIP with this message."""


class LocalDrawing(AskingSystem):
    """System that answers prompts one by one."""

    tasks: ClassVar[tuple[str, ...]] = ("depiction",)
    model: ClassVar[str] = ""
    _folder: Path | None = None
    _store: KeptPictures | None = None
    _drawn = 0

    @property
    def at_once(self) -> int:
        """Most pictures of one prompt that are drawn together."""
        return 1

    @property
    def kept_size(self) -> int | None:
        """Longer side to which pictures are resized before they are stored; None keeps their size."""
        return None

    def keep_in(self, folder: Path, shared: Path, *, budget: BudgetLimits, cache: str) -> None:
        """Set the run folder for pictures. Nothing is cached, because drawing again costs nothing."""
        self._folder = folder

    def open(self, *, device: str, threads: int) -> None:
        """Open the picture store.

        Raises:
            MedtestError: No folder was set.
        """
        if self._folder is None:
            raise MedtestError(f"{self.record_name} has no folder for its pictures")
        self._store = KeptPictures(self._folder / PICTURES, size=self.kept_size, threads=1)

    def draw_together(self, calls: Sequence[Asking]) -> Sequence[Image | Filtered]:
        """Return the pictures of calls with the same prompt, each by its own seed; see :meth:`draw`.

        Only systems with :attr:`at_once` above 1 are asked for several.
        """
        return [self.draw(call) for call in calls]

    @abstractmethod
    def draw(self, call: Asking) -> Image:
        """Return the picture of a prompt.

        Returns:
            uint8 H×W×3 RGB.

        Raises:
            Filtered: A filter blocked it.
            NotDrawn: There is none, and the case is not to be judged.
            Exception: Any other failure, which becomes an ERROR of the case.
        """

    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        """Answer a stream of calls, one by one, or neighbours with the same prompt together.

        Raises:
            OutputProblem: A picture cannot be stored.
        """
        together: list[Asking] = []
        for call in calls:
            if together and (call is None or not self._joins(call, together)):
                yield from self._all(together)
                together = []
            if call is not None and self.at_once == 1:
                yield from self._all([call])
            elif call is not None:
                together.append(call)
        yield from self._all(together)

    def _joins(self, call: Asking, together: Sequence[Asking]) -> bool:
        return len(together) < self.at_once and call.required_prompt.text == together[0].required_prompt.text

    def _all(self, calls: Sequence[Asking]) -> Iterator[Asked]:
        drawn: Sequence[Image | Filtered | None] = [None] * len(calls)
        seconds = 0.0
        if len(calls) > 1:
            began = time.perf_counter()
            with suppress(Exception):  # which of them fails shows when they are drawn one by one
                drawn = self.draw_together(calls)
            seconds = (time.perf_counter() - began) / len(calls)
        for call, picture in zip(calls, drawn, strict=True):
            yield self._asked(call, picture, seconds)
            self._drawn += 1

    def _asked(self, call: Asking, drawn: Image | Filtered | None = None, spent: float = 0.0) -> Asked:
        began = time.perf_counter() - spent
        why, picture = "", ""
        try:
            if isinstance(drawn, Filtered):
                raise drawn
            pixels = self.draw(call) if drawn is None else drawn
            if is_blank(pixels):
                raise Filtered(BLANK)
            picture = self._put(pixels)
        except Filtered as error:
            why = str(error)
        except NotDrawn as error:
            return Asked(number=call.number, outputs=(Missing(str(error)),), seconds=time.perf_counter() - began)
        except OutputProblem:
            raise
        except Exception as error:  # noqa: BLE001 - the system under test may raise anything
            reason = f"{type(error).__name__}: {reason_of(error)}".replace(call.required_prompt.text, "[prompt]")
            return Asked(number=call.number, outputs=(reason,), seconds=time.perf_counter() - began)
        seconds = time.perf_counter() - began
        output = PictureOutput(
            address=call.addresses[0],
            prompt=call.required_prompt,
            picture=picture,
            state="content_filter" if why else "answered",
            why=why,
            model=self.model,
            seconds=seconds,
            attempts=1,
        )
        return Asked(number=call.number, outputs=(output,), seconds=seconds)

    def _put(self, pixels: Image) -> str:
        if self._store is None:
            raise MedtestError(f"{self.record_name} is not open")
        sha256 = image_sha256(pixels)
        self._store.put(sha256, pixels)
        return sha256

    def counters(self) -> str:
        """Return the number of pictures drawn."""
        return f"drawn {self._drawn}"

    def close(self) -> None:
        """Close the picture store."""
        if self._store is not None:
            self._store.close()
            self._store = None

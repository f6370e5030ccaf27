"""A function or an object of the calling program as a system under test, which runs in that program's process."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.core.errors import Mistake
from medtest.core.probes import Need
from medtest.systems.adapters.callable import CallableSettings, CallableSystem
from medtest.systems.base import RawAnswer, System


class ObjectSettings(CallableSettings):
    """Settings of an object in memory.

    Attributes:
        given: The function, or a :class:`~medtest.systems.base.System`; in no file and no digest.
        identity: What it is, in the caller's words (a version, a hash of its weights): results are used again under
            the same words. Without them nothing is.
    """

    given: Any = Field(default=None, exclude=True, repr=False)
    identity: str = Field(default="", exclude=True)


class ObjectSystem(CallableSystem):
    """What the calling program gave :func:`medtest.run`: a function as of :class:`CallableSystem`, or a system.

    It is called in the program's own process, one batch at a time: a call that never returns cannot be stopped, and
    one that takes its process down takes the program with it.
    """

    Settings = ObjectSettings
    in_process: ClassVar[bool] = True
    needs_device: ClassVar[bool] = False

    @classmethod
    def tasks_of(cls, settings: Any) -> tuple[str, ...]:
        """Return the tasks of a system that was given; a function answers as one in a file does."""
        return settings.given.tasks if isinstance(settings.given, System) else cls.tasks

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._system: System | None = settings.given if isinstance(settings.given, System) else None
        if self._system is not None:
            self.classes, self.answer_form = self._system.classes, self._system.answer_form
        self._never = uuid.uuid4().hex

    @property
    def inner(self) -> System:
        """The system that was given, asked for what this one is asked for; itself around a function."""
        if self._system is None:
            return self
        self._system.kind, self._system.squared = self.kind, self.squared
        return self._system

    def offers(self) -> Need:
        """Return what a probe of the system that was given offers; of a function scores."""
        return super().offers() if self._system is None else self.inner.offers()

    def notice(self) -> str:
        """Say where it runs, and whether its results will be used again."""
        again = "" if self.settings.identity else " Nobody says what it is (fingerprint=), so no result is used again."
        return f"{self.record_name} runs in this process: a call that does not return cannot be stopped.{again}"

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with a system that was given; a function is known to be one."""
        return () if self._system is None else self._system.check()

    def fingerprint(self) -> dict[str, Json]:
        """Return the caller's words; without them what no other run has."""
        return {"given": self.settings.identity} if self.settings.identity else {"never again": self._never}

    def open(self, *, device: str, threads: int) -> None:
        """Open a system that was given; a function is ready."""
        if self._system is None:
            self._function = self.settings.given
            return
        self.inner.open(device=device, threads=threads)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return what it makes of each image, unchecked."""
        return super().predict(images, addresses) if self._system is None else self._system.predict(images, addresses)

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return what it makes of each image of a series, unchecked."""
        if self._system is None:
            return super().process(images, specs, addresses)
        return self._system.process(images, specs, addresses)

    def close(self) -> None:
        """Close a system that was given, or let go of the function."""
        if self._system is not None:
            self._system.close()
        super().close()

"""Function or object of the calling program as a system under test, run in that program's process."""

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
        implementation: The function, or a :class:`~medtest.systems.base.System`; in no file and no digest.
        identity: The caller's identification (a version, a hash of its weights): results are reused under the same
            identification, and never without one.
    """

    implementation: Any = Field(default=None, exclude=True, repr=False)
    identity: str = Field(default="", exclude=True)


class ObjectSystem(CallableSystem):
    """Function or system passed to :func:`medtest.run`; functions as in :class:`CallableSystem`.

    It is called in the program's own process, one batch at a time: a call that never returns cannot be stopped, and one
    that crashes its process takes the program with it.
    """

    Settings = ObjectSettings
    settings: ObjectSettings
    in_process: ClassVar[bool] = True
    needs_device: ClassVar[bool] = False

    @classmethod
    def tasks_of(cls, settings: Any) -> tuple[str, ...]:
        """Return the tasks of a given system; a function supports the same tasks as one from a file."""
        return settings.implementation.tasks if isinstance(settings.implementation, System) else cls.tasks

    def __init__(self, name: str, settings: ObjectSettings) -> None:
        super().__init__(name, settings)
        self._system: System | None = settings.implementation if isinstance(settings.implementation, System) else None
        if self._system is not None:
            self.classes, self.answer_form = self._system.classes, self._system.answer_form
        self._never = uuid.uuid4().hex

    @property
    def inner(self) -> System:
        """The given system, with this one's task settings; this one itself for a function."""
        if self._system is None:
            return self
        self._system.kind, self._system.squared = self.kind, self.squared
        return self._system

    def offers(self) -> Need:
        """Return the offer of the given system's probe; scores for a function."""
        return super().offers() if self._system is None else self.inner.offers()

    def notice(self) -> str:
        """Return a notice that it runs in this process, and whether its results will be reused."""
        again = "" if self.settings.identity else " Without fingerprint= its results are not reused."
        return f"{self.record_name} runs in this process: a call that does not return cannot be stopped.{again}"

    def check(self) -> Sequence[Mistake]:
        """Return the mistakes of a given system; none for a function."""
        return () if self._system is None else self._system.check()

    def fingerprint(self) -> dict[str, Json]:
        """Return the caller's identification, or else a value that no other run has."""
        return {"given": self.settings.identity} if self.settings.identity else {"never again": self._never}

    def open(self, *, device: str, threads: int) -> None:
        """Open a given system; a function is ready."""
        if self._system is None:
            self._function = self.settings.implementation
            return
        self.inner.open(device=device, threads=threads)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return the answer to each image, unchecked."""
        return super().predict(images, addresses) if self._system is None else self._system.predict(images, addresses)

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return the answer to each image of a series, unchecked."""
        if self._system is None:
            return super().process(images, specs, addresses)
        return self._system.process(images, specs, addresses)

    def close(self) -> None:
        """Close a given system, or release the function."""
        if self._system is not None:
            self._system.close()
        super().close()

"""Reader that a run's records name and a later call does not: known by its entry alone, it reads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from medtest.core.cases import Json, Output, PreparedSeed
from medtest.core.errors import MedtestError
from medtest.core.plugins import PartSettings
from medtest.readers.base import BatchReader


class RecordedSettings(PartSettings):
    """Settings of the stand-in.

    Attributes:
        entry: Fingerprint of the reader, from the records.
        told: Its entry in ``run.json``: name and card.
    """

    entry: dict[str, Any]
    told: dict[str, Any]


class RecordedReader(BatchReader[Any, Any]):
    """Stand-in for the reader of records, whose paths and addresses only the command line gives."""

    task: ClassVar[str] = "depiction"
    Settings: ClassVar[type[PartSettings]] = RecordedSettings

    def fingerprint(self) -> dict[str, Json]:
        """Return the recorded fingerprint."""
        return dict(self.settings.entry)

    def about(self) -> dict[str, Json]:
        """Return the recorded name and card."""
        return {"name": self.name, **self.settings.told}

    def content(self, answer: Output, seed: PreparedSeed) -> None:
        """Return None: there is nothing that it may read."""
        return

    def recorded(self, row: Mapping[str, Any]) -> None:
        """Return None: there is nothing that it may read."""
        return

    def read(self, contents: Sequence[Any]) -> list[Any]:
        """Raise an error.

        Raises:
            MedtestError: Always.
        """
        raise MedtestError(f"{self.name} read the records of this run; name it to read further ones")

    def texts(self, content: Any, facts: Any) -> dict[str, str | None]:
        """Return no text."""
        return {}

"""What the simulated laboratory is started with; nothing heavy is imported here."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict, dataclass, field

from medtest.api.faults import Faults
from medtest.simlab.defects import Defects

MODEL = "simlab-simulated"
"""The model's name on the server."""
TRUTH_DOOR = "/simlab/truth"
"""Where the true answers to a picture are told, with ``reader: truth``."""


def engine_of(ocr: str) -> str:
    """Return ``rapidocr`` or ``edges``: what ``auto`` means on this machine."""
    if ocr != "auto":
        return ocr
    return "rapidocr" if importlib.util.find_spec("rapidocr_onnxruntime") is not None else "edges"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a server is started with.

    Attributes:
        seed: Of the product's draws.
        defects: What is wrong with it.
        styles: How it puts its answers.
        reader: ``pixels`` (looks), or ``truth`` (says what it is told at :data:`TRUTH_DOOR`, and looks at what it is
            not told).
        ocr: ``rapidocr``, ``edges`` or ``auto``.
        faults: What is wrong with the server.
        port: 0 for a free one.
        threads: Threads that look at pictures.
        parent: Id of the process it dies with; 0 for none.
    """

    seed: int = 0
    defects: Defects = field(default_factory=Defects)
    styles: tuple[str, ...] = ()
    reader: str = "pixels"
    ocr: str = "auto"
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    threads: int = 2
    parent: int = 0

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Config:
        """Return what :meth:`to_json` wrote."""
        found = json.loads(line)
        found["defects"], found["faults"] = Defects(**found["defects"]), Faults(**found["faults"])
        return cls(**{**found, "styles": tuple(found["styles"])})

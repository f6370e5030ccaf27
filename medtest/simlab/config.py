"""What the simulated laboratory is started with; nothing heavy is imported here."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from medtest.api.faulty.faults import Faults
from medtest.simlab.defects import Defects
from medtest.simlab.drawing.defects import DrawingDefects

MODEL = "simlab-simulated"
"""The model's name on the server."""
TRUTH_DOOR = "/simlab/truth"
"""Where the true answers to a picture are told, with ``reader: truth``."""
SESSION_DOOR = "/simlab/session"
"""Where it is told which prompt came before another in a session."""
DRAWN_DOOR = "/simlab/drawn"
"""Where tests are told what a picture shows, with ``tells_drawn``."""


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
        defects: What is wrong with its answers.
        drawing: What is wrong with its pictures.
        styles: How it puts its answers.
        reader: ``pixels`` (looks), or ``truth`` (says what it is told at :data:`TRUTH_DOOR`, and looks at what it is
            not told).
        ocr: ``rapidocr``, ``edges`` or ``auto``.
        faults: What is wrong with the server.
        port: 0 for a free one.
        threads: Threads that look at pictures.
        parent: Id of the process it dies with; 0 for none.
        tells_drawn: Whether :data:`DRAWN_DOOR` is there; no system switches it on.
    """

    seed: int = 0
    defects: Defects = field(default_factory=Defects)
    drawing: DrawingDefects = field(default_factory=DrawingDefects)
    styles: tuple[str, ...] = ()
    reader: str = "pixels"
    ocr: str = "auto"
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    threads: int = 2
    parent: int = 0
    tells_drawn: bool = False

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Config:
        """Return what :meth:`to_json` wrote."""
        found = json.loads(line)
        found["defects"], found["faults"] = Defects(**found["defects"]), Faults(**found["faults"])
        drawing: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in found["drawing"].items()}
        found["drawing"] = DrawingDefects(**drawing)
        return cls(**{**found, "styles": tuple(found["styles"])})

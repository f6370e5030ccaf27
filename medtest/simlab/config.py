"""Configuration of the simulated laboratory; imports nothing heavy."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from medtest.api.faulty.faults import Faults
from medtest.simlab.defects import Defects
from medtest.simlab.drawing.clinical.defects import ClinicalDefects
from medtest.simlab.drawing.defects import DrawingDefects

MODEL = "simlab-simulated"
"""Name of the model on the server."""
TRUTH_DOOR = "/simlab/truth"
"""Endpoint for the true answers to a picture, with ``reader: truth``."""
SESSION_DOOR = "/simlab/session"
"""Endpoint for the order of prompts in a session."""
DRAWN_DOOR = "/simlab/drawn"
"""Endpoint that tells tests what a picture shows, with ``tells_drawn``."""


def engine_of(ocr: str) -> str:
    """Return ``rapidocr`` or ``edges``, resolving ``auto`` for this machine."""
    if ocr != "auto":
        return ocr
    return "rapidocr" if importlib.util.find_spec("rapidocr_onnxruntime") is not None else "edges"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Configuration of a server.

    Attributes:
        seed: Seed of the product's draws.
        defects: Defects of its answers.
        drawing: Defects of its pictures.
        clinical: Defects of its medical pictures.
        styles: Styles of its answers.
        reader: ``pixels`` looks at pictures; ``truth`` uses the answers sent to :data:`TRUTH_DOOR`, and looks
            otherwise.
        ocr: ``rapidocr``, ``edges`` or ``auto``.
        faults: Faults of the server.
        port: Port; 0 for a free one.
        threads: Number of threads that look at pictures.
        parent: Id of the process whose end it follows; 0 for none.
        tells_drawn: Whether :data:`DRAWN_DOOR` is available; no system switches it on.
    """

    seed: int = 0
    defects: Defects = field(default_factory=Defects)
    drawing: DrawingDefects = field(default_factory=DrawingDefects)
    clinical: ClinicalDefects = field(default_factory=ClinicalDefects)
    styles: tuple[str, ...] = ()
    reader: str = "pixels"
    ocr: str = "auto"
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    threads: int = 2
    parent: int = 0
    tells_drawn: bool = False

    def to_json(self) -> str:
        """Return the configuration as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Config:
        """Return the configuration from :meth:`to_json`."""
        values = json.loads(line)
        values["defects"], values["faults"] = Defects(**values["defects"]), Faults(**values["faults"])
        values["drawing"] = DrawingDefects(**_with_tuples(values["drawing"]))
        values["clinical"] = ClinicalDefects(**_with_tuples(values["clinical"]))
        return cls(**{**values, "styles": tuple(values["styles"])})


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Return JSON values with tuples for lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}

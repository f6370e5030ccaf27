"""The simulated laboratory as a system: a product that looks at pixels, behind a real server on loopback."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.calls.request import Request
from medtest.api.faulty.faults import Faults
from medtest.core.cases import Json
from medtest.core.errors import Mistake
from medtest.core.plugins import TRUSTED
from medtest.simlab import REVISION
from medtest.simlab.answering.phrasing import STYLES
from medtest.simlab.config import MODEL, TRUTH_DOOR, Config, engine_of
from medtest.simlab.defects import Defects
from medtest.systems.answering.asking import Asking
from medtest.systems.answering.openai_compatible import ApiSettings, OpenAICompatible, PriceSettings
from medtest.systems.answering.simulated import RATE, FaultSettings, SimulatedServer, kept_faults


class DefectSettings(BaseModel):
    """What is wrong with the product (:class:`medtest.simlab.defects.Defects`): rates from 0 to 1.

    Attributes:
        saturation_flips: Another answer, on saturated pictures.
        blur_not_relevant: "Not relevant", on blurred pictures.
        blood_instruments: One instrument more than there is, on bloody pictures.
        counts_capped: Counts above ``cap`` are given as ``cap``.
        cap: The highest count that a capped answer gives.
        nondeterminism: Another answer, drawn anew for each asking.
        refusals: The product declines to answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    saturation_flips: float = RATE
    blur_not_relevant: float = RATE
    blood_instruments: float = RATE
    counts_capped: float = RATE
    cap: int = Field(default=1, ge=0, le=100)
    nondeterminism: float = RATE
    refusals: float = RATE


class SimlabSettings(ApiSettings):
    """Settings of the simulated laboratory; those of an address, a key and prices have no use here.

    Attributes:
        model: The server's only one.
        structured: As for any model over an API, but in words for single questions by default: styles are of words.
        prices: It costs nothing; another price rehearses a budget.
        product_seed: Seed of the product's draws.
        reader: ``pixels``: it looks. ``truth``: it is told the source image's true answers, whatever a relation made
            of the image, so that only its defects err.
        ocr: How it looks for writing: ``rapidocr`` (extra ``ocr``), ``edges``, or ``auto``: the first where it is
            installed.
        styles: How it puts its answers.
        defects: What is wrong with the product.
        faults: What is wrong with its server.
        readers: Threads that look at pictures.
    """

    model: str = Field(default=MODEL, pattern=f"^{MODEL}$")
    structured: Literal["first", "always", "together", "never"] = "together"
    prices: dict[str, PriceSettings] = Field(
        default={MODEL: PriceSettings(input=0.0, output=0.0)}, json_schema_extra=TRUSTED
    )
    product_seed: int = Field(default=0, ge=0)
    reader: Literal["pixels", "truth"] = "pixels"
    ocr: Literal["auto", "rapidocr", "edges"] = "edges"
    styles: list[Literal["terse", "sentence", "hedged", "chatty", "markdown", "json"]] = Field(
        default=["terse", "sentence", "hedged", "chatty", "markdown", "json"], min_length=1
    )
    defects: DefectSettings = DefectSettings()
    faults: FaultSettings = FaultSettings()
    readers: int = Field(default=2, ge=1, le=64, json_schema_extra=TRUSTED)


class Simlab(SimulatedServer, OpenAICompatible):
    """A simulated product behind a real server, which lives from :meth:`open` to :meth:`close` and no longer."""

    Settings: ClassVar[type[ApiSettings]] = SimlabSettings
    settings: SimlabSettings
    unused: ClassVar[tuple[str, ...]] = (*SimulatedServer.unused, "send_images")
    revision: ClassVar[int] = REVISION

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._told: set[tuple[str, tuple[str, ...]]] = set()

    # --------------------------------------------------------------------------------------------- before anything runs

    def notice(self) -> str:
        """Say that nothing of this stands for a product."""
        wrong = {name: rate for name, rate in self.settings.defects.model_dump().items() if name != "cap" and rate}
        errs = ", ".join(f"{name} {rate:g}" for name, rate in wrong.items()) or "no defects"
        sees = "looks at pixels" if self.settings.reader == "pixels" else "is told the true answers"
        return (
            f"SIMULATED: {self.record_name} is a program of medtest's on this machine that {sees} ({errs}); "
            "its figures say nothing about any real product."
        )

    def check(self) -> Sequence[Mistake]:
        """Return settings that have no use here, and an OCR that is not installed."""
        found = list(super().check())
        if self.settings.ocr == "rapidocr" and engine_of("auto") != "rapidocr":
            fix = "pip install 'medtest[ocr]', or ocr: edges"
            found.append(Mistake(where=self.name, key="ocr", found="rapidocr, which is not installed", fix=fix))
        return found

    def fingerprint(self) -> dict[str, Json]:
        """Return what determines its answers beyond its settings: the product's revision and how it reads letters."""
        return {"product": REVISION, "ocr": engine_of(self.settings.ocr)}

    def content(self) -> str:
        """Return a digest of the settings that shape answers."""
        config = asdict(self.config())
        kept = {name: config[name] for name in ("seed", "defects", "styles", "reader", "ocr", "faults")}
        kept["faults"] = kept_faults(kept["faults"])
        text = json.dumps({**kept, "product": REVISION}, sort_keys=True)
        return f"simlab:{hashlib.sha256(text.encode()).hexdigest()}"

    def config(self) -> Config:
        """Return what the server is started with, without its key."""
        own = self.settings
        return Config(
            seed=own.product_seed,
            defects=Defects(**own.defects.model_dump()),
            styles=tuple(style for style in STYLES if style in own.styles),
            reader=own.reader,
            ocr=engine_of(own.ocr),
            faults=Faults(**own.faults.model_dump()),
            threads=own.readers,
        )

    # ------------------------------------------------------------------------------------------------------- the run

    def request(self, call: Asking) -> Request:
        """Return the request of a call; with ``reader: truth`` the product is told the answers before."""
        if self.settings.reader == "truth" and self._server is not None:
            self._tell(call)
        return super().request(call)

    def _tell(self, call: Asking) -> None:
        texts = tuple(ask.text for ask in call.asks)
        if (call.sha256, texts) in self._told:
            return
        self._told.add((call.sha256, texts))
        answers = {ask.text: list(ask.truth) for ask in call.asks if ask.truth}
        self.put(TRUTH_DOOR, {"sha256": self._picture(call).sha256, "answers": answers})

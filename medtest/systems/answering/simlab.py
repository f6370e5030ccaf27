"""Simulated laboratory as a system: a product that looks at pixels, behind a real server on loopback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.budget import Price
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
from medtest.systems.answering.openai_compatible import ApiSettings, OpenAICompatible
from medtest.systems.answering.simulated import RATE, FaultSettings, SimulatedServer


class DefectSettings(BaseModel):
    """Defects of the product (:class:`medtest.simlab.defects.Defects`): rates from 0 to 1.

    Attributes:
        saturation_flips: A different answer on saturated pictures.
        blur_not_relevant: "Not relevant" on blurred pictures.
        blood_instruments: One instrument too many on bloody pictures.
        counts_capped: Counts above ``cap`` are reported as ``cap``.
        cap: Highest count in a capped answer.
        nondeterminism: A different answer, drawn independently for each call.
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
    """Settings of the simulated laboratory; those of an address, a key and prices have no effect.

    Attributes:
        model: The server's only model.
        structured: As for any model over an API, but plain words for single questions by default, because styles
            concern words.
        prices: Free of charge; set another price to rehearse a budget.
        product_seed: Seed of the product's random draws.
        reader: ``pixels``: it looks at the image. ``truth``: it receives the source image's true answers, regardless of
            what a relation did to the image, so that only its defects cause errors.
        ocr: Text detection: ``rapidocr`` (extra ``ocr``), ``edges``, or ``auto``: the first if installed.
        styles: Styles of its answers.
        defects: Defects of the product.
        faults: Faults of its server.
        readers: Threads that look at pictures.
    """

    model: str = Field(default=MODEL, pattern=f"^{MODEL}$")
    structured: Literal["first", "always", "together", "never"] = "together"
    prices: Mapping[str, Price] = Field(default={MODEL: Price(input=0.0, output=0.0)}, json_schema_extra=TRUSTED)
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
    """Simulated product behind a real server, which runs from :meth:`open` to :meth:`close`."""

    Settings: ClassVar[type[ApiSettings]] = SimlabSettings
    settings: SimlabSettings
    unused: ClassVar[tuple[str, ...]] = (*SimulatedServer.unused, "send_images")
    answer_keys: ClassVar[tuple[str, ...]] = ("seed", "defects", "styles", "reader", "ocr")
    revision: ClassVar[int] = REVISION

    def __init__(self, name: str, settings: SimlabSettings) -> None:
        super().__init__(name, settings)
        self._told: set[tuple[str, tuple[str, ...]]] = set()

    # --------------------------------------------------------------------------------------------- before the run

    def notice(self) -> str:
        """Return a notice that results say nothing about a real product."""
        wrong = {name: rate for name, rate in self.settings.defects.model_dump().items() if name != "cap" and rate}
        action = "looks at pixels" if self.settings.reader == "pixels" else "receives the true answers"
        return self.simulation_notice(action, (f"{name} {rate:g}" for name, rate in wrong.items()))

    def check(self) -> Sequence[Mistake]:
        """Return settings without effect, and a missing OCR."""
        mistakes = list(super().check())
        if self.settings.ocr == "rapidocr" and engine_of("auto") != "rapidocr":
            fix = "pip install 'medtest[ocr]', or ocr: edges"
            mistakes.append(Mistake(where=self.name, key="ocr", found="rapidocr, which is not installed", fix=fix))
        return mistakes

    def fingerprint(self) -> dict[str, Json]:
        """Return everything beyond the settings that determines its answers: the product's revision and its OCR."""
        return {"product": REVISION, "ocr": engine_of(self.settings.ocr)}

    def config(self) -> Config:
        """Return the server's configuration, without its key."""
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
        """Return the request of a call; with ``reader: truth`` the product receives the answers first."""
        if self.settings.reader == "truth" and self._server is not None:
            self._send_truth(call)
        return super().request(call)

    def _send_truth(self, call: Asking) -> None:
        texts = tuple(ask.text for ask in call.asks)
        if (call.sha256, texts) in self._told:
            return
        self._told.add((call.sha256, texts))
        answers = {ask.text: list(ask.truth) for ask in call.asks if ask.truth}
        self.put(TRUTH_DOOR, {"sha256": self._picture(call).sha256, "answers": answers})

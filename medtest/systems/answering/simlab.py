"""The simulated laboratory as a system: a product that looks at pixels, behind a real server on loopback."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.client import Endpoint
from medtest.api.faults import Faults
from medtest.api.request import Request
from medtest.cases import Json
from medtest.errors import MedtestError, Mistake
from medtest.plugins import TRUSTED
from medtest.simlab import REVISION
from medtest.simlab.config import MODEL, TRUTH_DOOR, Config, engine_of
from medtest.simlab.defects import Defects
from medtest.simlab.phrasing import STYLES
from medtest.simlab.process import Running, start
from medtest.systems.answering.openai_compatible import ApiSettings, OpenAICompatible, PriceSettings
from medtest.systems.asking import Asking

KEY_VARIABLE = "MEDTEST_SIMLAB_KEY"  # the name of a variable
"""Variable of the worker's own process in which the server's key stands; drawn anew whenever it is not set."""

_Rate = Field(default=0.0, ge=0.0, le=1.0)
_UNUSED = ("base_url", "key_variable", "send_images", "extra")


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

    saturation_flips: float = _Rate
    blur_not_relevant: float = _Rate
    blood_instruments: float = _Rate
    counts_capped: float = _Rate
    cap: int = Field(default=1, ge=0, le=100)
    nondeterminism: float = _Rate
    refusals: float = _Rate


class FaultSettings(BaseModel):
    """What is wrong with the server (:class:`medtest.api.faults.Faults`): seconds, and shares from 0 to 1.

    Attributes:
        latency: Seconds before an answer.
        jitter: Further seconds at most.
        rate: Requests a second that it allows; null for no limit.
        burst: Requests that it allows at once under a limit.
        headers: Whether answers under a limit say what is left.
        retry_after: What a 429 says about coming back.
        too_many: Share of 429 without any limit.
        error: Share of 500.
        reset: Share of connections that are reset.
        truncated: Share of bodies that are cut short.
        wrong_type: Share of HTML pages with status 200.
        slow: Share of bodies that drip over ``slow_seconds``.
        slow_seconds: Duration of a dripping body.
        refusal: Share of refusals in the provider's field.
        filtered: Share of stops by a content filter.
        length: Share of stops for length.
        takes_schema: Whether structured output is supported.
        seed: Of these draws, which go by the order of arrival.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    latency: float = Field(default=0.0, ge=0.0, le=600.0)
    jitter: float = Field(default=0.0, ge=0.0, le=600.0)
    rate: float | None = Field(default=None, gt=0.0, le=100_000.0)
    burst: int = Field(default=10, ge=1, le=100_000)
    headers: bool = True
    retry_after: Literal["seconds", "date", "none"] = "seconds"
    too_many: float = _Rate
    error: float = _Rate
    reset: float = _Rate
    truncated: float = _Rate
    wrong_type: float = _Rate
    slow: float = _Rate
    slow_seconds: float = Field(default=3.0, ge=0.0, le=600.0)
    refusal: float = _Rate
    filtered: float = _Rate
    length: float = _Rate
    takes_schema: bool = True
    seed: int = Field(default=0, ge=0)


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


class Simlab(OpenAICompatible):
    """A simulated product behind a real server, which lives from :meth:`open` to :meth:`close` and no longer."""

    digest_name: ClassVar[str] = "medtest.systems.answering.simlab:Simlab"
    Settings: ClassVar[type[ApiSettings]] = SimlabSettings
    settings: SimlabSettings
    simulated: ClassVar[bool] = True
    revision: ClassVar[int] = REVISION

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._server: Running | None = None
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
        found = [
            Mistake(where=self.name, key=key, found="a value", allowed="nothing: the server is medtest's own")
            for key in _UNUSED
            if getattr(self.settings, key)
        ]
        if self.settings.ocr == "rapidocr" and engine_of("auto") != "rapidocr":
            fix = "pip install 'medtest[ocr]', or ocr: edges"
            found.append(Mistake(where=self.name, key="ocr", found="rapidocr, which is not installed", fix=fix))
        return found

    def endpoint(self) -> Endpoint:
        """Return where the server listens; in content keys its settings stand for its address."""
        url = "http://127.0.0.1:0/v1" if self._server is None else self._server.base_url
        return Endpoint(base_url=url, key_variable="" if self._server is None else KEY_VARIABLE, name=self._content())

    def fingerprint(self) -> dict[str, Json]:
        """Return what determines its answers beyond its settings: the product's revision and how it reads letters."""
        return {"product": REVISION, "ocr": engine_of(self.settings.ocr)}

    def _content(self) -> str:
        config = asdict(self.config())
        kept = {name: config[name] for name in ("seed", "defects", "styles", "reader", "ocr", "faults")}
        for name in ("key", "hidden", "hidden_seconds", "slots"):  # a product's server has no such settings
            kept["faults"].pop(name)
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

    def open(self, *, device: str, threads: int) -> None:
        """Start the server, then open ledger and cache.

        Raises:
            MedtestError: The server did not start.
            FolderInUse: Another process holds the ledger.
            OutputProblem: Ledger or cache cannot be used.
        """
        key = os.environ.setdefault(KEY_VARIABLE, secrets.token_urlsafe(24))
        config = self.config()
        faults = Faults(**{**asdict(config.faults), "key": key})
        self._server = start(Config(**{**asdict(config), "defects": config.defects, "faults": faults}))
        try:
            super().open(device=device, threads=threads)
        except BaseException:
            self.close()
            raise

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
        self._put(TRUTH_DOOR, {"sha256": self._picture(call).sha256, "answers": answers})

    def _put(self, path: str, content: object) -> None:
        if self._server is None:
            return
        address = urlsplit(self._server.base_url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
        try:
            headers = {"authorization": f"Bearer {os.environ[KEY_VARIABLE]}", "content-type": "application/json"}
            connection.request("PUT", path, json.dumps(content), headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise MedtestError(f"{self.record_name} was not told the truth (HTTP {answer.status})")

    def close(self) -> None:
        """Close ledger and cache, and stop the server."""
        try:
            super().close()
        finally:
            if self._server is not None:
                self._server.stop()
                self._server = None

"""Base class of image generation services, for any kind of endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from medtest.api.budget import Price
from medtest.api.calls.client import Endpoint
from medtest.api.calls.request import CallState, Outcome, Parameters, Request, Source
from medtest.api.drawn.keepers import Keepers
from medtest.api.drawn.kept import KeptPictures
from medtest.api.store.cache import CacheMode
from medtest.api.wire import WIRES
from medtest.core.cases import Json, PictureOutput
from medtest.core.plugins import TRUSTED
from medtest.core.records import PICTURES
from medtest.systems.answering.api_system import ApiSystem, EndpointSettings
from medtest.systems.answering.asking import Asked, Asking
from medtest.systems.answering.outputs import failed_of


class PicturePrice(Price):
    """Price in US dollars per picture, and per million tokens for services that charge those."""

    input: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class DrawingSettings(EndpointSettings):
    """Settings of an image generation service.

    Attributes:
        send_prompts: Whether prompts may be sent to a host other than this machine.
        kept_size: Longer side in pixels to which pictures are resized before they are stored and read (the paper: 512);
            null keeps their size.
        picture_tokens: Most tokens of a picture, if the service charges tokens: a budget in dollars reserves as many
            for each call.
        poll_seconds: First pause between two polls of a task, for asynchronous services; each further pause is half as
            long again, up to five times the first.
        pictures_per_call: Most pictures of one prompt that a call asks for, if its kind of endpoint offers that and
            repeats of the prompt are open; with a seed each picture has its own call.
        prices: Prices by model name.
    """

    send_prompts: bool = Field(default=False, json_schema_extra=TRUSTED)
    kept_size: int | None = Field(default=None, ge=16, le=4096)
    picture_tokens: int | None = Field(default=None, ge=1, le=1_000_000, json_schema_extra=TRUSTED)
    poll_seconds: float = Field(default=3.0, ge=0.01, le=60.0, json_schema_extra=TRUSTED)
    pictures_per_call: int = Field(default=4, ge=1, le=10, json_schema_extra=TRUSTED)
    prices: Mapping[str, PicturePrice] = Field(default={}, json_schema_extra=TRUSTED)
    call_seconds: float = Field(default=300.0, gt=0, le=3600, json_schema_extra=TRUSTED)
    max_in_flight: int = Field(default=16, ge=1, le=1024, json_schema_extra=TRUSTED)


class DrawingService(ApiSystem):
    """Image generation service.

    Pictures are stored in the run folder under their content hash before their answers are yielded
    (:class:`medtest.api.drawn.kept.KeptPictures`).

    Attributes:
        api: Kind of endpoint (:mod:`medtest.api.wire`).
        option_names: Settings that are fields of the request.
        threads: Number of threads that decode and write pictures.
    """

    Settings: ClassVar[type[DrawingSettings]] = DrawingSettings
    settings: DrawingSettings
    tasks: ClassVar[tuple[str, ...]] = ("depiction",)
    sends: ClassVar[str] = "prompts"
    api: ClassVar[str]
    option_names: ClassVar[tuple[str, ...]] = ()
    threads: ClassVar[int] = 4

    # ------------------------------------------------------------------------------------------ for subclasses

    def options(self) -> dict[str, Json]:
        """Return additional fields of the request; those that are None are omitted."""
        return {name: getattr(self.settings, name) for name in self.option_names}

    def wire_name(self) -> str:
        """Return the name of the kind of endpoint."""
        return self.api

    def rewrites(self) -> str:
        """Return a notice if the service may rewrite prompts, "" if it does not."""
        return ""

    # ------------------------------------------------------------------------------------------------------- common

    def endpoint(self) -> Endpoint:
        """Return the endpoint that receives prompts."""
        own = self.settings
        return Endpoint(base_url=own.base_url, key_variable=own.key_variable, send_prompts=own.send_prompts)

    def notice(self) -> str:
        """Return a notice of model and host, missing seeds and prompt rewriting."""
        remarks = [super().notice().removesuffix(".")]
        if not self._takes_seed():
            remarks.append("it accepts no seed, so every call draws another picture")
        if rewriting := self.rewrites():
            remarks.append(rewriting)
        return "; ".join(remarks) + "."

    def _takes_seed(self) -> bool:
        return WIRES[self.wire_name()].takes_seed and self.settings.seed is not None

    def parameters(self) -> Parameters:
        """Return all parameters of the model that influence its pictures."""
        own = self.settings
        options = {name: value for name, value in self.options().items() if value is not None}
        if own.kept_size is not None:
            options["kept_size"] = own.kept_size
        return Parameters(
            model=own.model,
            temperature=None,
            max_tokens=own.picture_tokens,
            seed=own.seed if isinstance(own.seed, int) else None,
            detail="",
            api=self.wire_name(),
            extra=own.extra,
            options=options,
        )

    def words(self, call: Asking) -> str:
        """Return the text to send as the prompt."""
        return call.required_prompt.text

    def request(self, call: Asking) -> Request:
        """Return the request of a call."""
        own, wire = self.settings, WIRES[self.wire_name()]
        seed = call.seed if own.seed == "case" and wire.takes_seed else None
        several = wire.takes_several and not self._takes_seed()
        return Request(
            address=call.label,
            prompt=self.words(call),
            repeat=call.repeat,
            seed=seed,
            repeats=call.repeats if several else (),
            most_together=own.pictures_per_call if several else 1,
        )

    def drawn(self, folder: Path, shared: Path) -> KeptPictures:
        """Return the picture store: in the run folder, and next to the cache if it is used."""
        beside = None if self._cache_mode == CacheMode.OFF else shared / PICTURES
        size = self.settings.kept_size
        helpers = Keepers(folder / PICTURES, size=size, most=self.threads)
        return KeptPictures(folder / PICTURES, beside, size=size, threads=self.threads, helpers=helpers)

    def asked(self, call: Asking, outcome: Outcome) -> Asked:
        """Convert the outcome of a call: a picture by its hash, the reason why there is none, or an ERROR."""
        seconds = outcome.seconds if outcome.source == Source.CALL else None
        if outcome.state == CallState.ERROR:
            return failed_of(call, outcome)
        output = PictureOutput(
            address=call.addresses[0],
            prompt=call.required_prompt,
            picture=outcome.picture,
            state=str(outcome.state),
            why=outcome.reason,
            revised_prompt=outcome.revised_prompt,
            model=outcome.model,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            cost_usd=outcome.cost_usd,
            seconds=outcome.seconds,
            attempts=outcome.attempts,
        )
        return Asked(number=call.number, outputs=(output,), seconds=seconds)

"""The simulated laboratory as a system that draws: its pictures come over HTTP, from a real server on loopback."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.calls.request import Request
from medtest.api.faulty.faults import Faults
from medtest.core.cases import Json
from medtest.core.plugins import TRUSTED
from medtest.simlab.config import MODEL, SESSION_DOOR, Config
from medtest.simlab.drawing import REVISION
from medtest.simlab.drawing.defects import DrawingDefects
from medtest.systems.answering.asking import Asking
from medtest.systems.answering.simulated import RATE, FaultSettings, SimulatedServer, kept_faults
from medtest.systems.pictures.openai_images import OpenAIImages, OpenAIImagesSettings
from medtest.systems.pictures.service import PicturePrices

_Defect = Literal[
    "entities_dropped",
    "sides_swapped",
    "colours_leaked",
    "counts_capped",
    "unknown_default",
    "removed_kept",
    "added_ignored",
    "prompts_rewritten",
    "refusals",
    "one_picture",
    "blank_pictures",
    "clutter_dropped",
]
_Refusal = Literal["policy", "empty_list", "empty_base64"]


class DrawingDefectSettings(BaseModel):
    """What is wrong with the product (:class:`medtest.simlab.drawing.defects.DrawingDefects`): rates from 0 to 1.

    Attributes:
        entities_dropped: What is named after the first ``most_entities`` things is not drawn.
        most_entities: How many are.
        sides_swapped: Left for right, above for under, in front for behind.
        colours_leaked: Everything has the colour that is named first.
        counts_capped: Of more than ``cap`` things of a kind ``cap`` are drawn.
        cap: How many are.
        unknown_default: For a noun other than a drawing's plain name a ball is drawn.
        removed_kept: What the session's earlier prompt asked for and this one does not is drawn as well.
        added_ignored: The later named thing of the relation that is said last is not drawn.
        prompts_rewritten: A flower is asked for besides.
        refusals: Nothing is drawn.
        one_picture: One picture answers everything.
        blank_pictures: The picture is white.
        clutter_dropped: The last thing is not drawn, at this rate for each thing beyond the first.
        anew: Those that are drawn anew at each asking; the others are steady.
        refused_as: How it refuses: ``policy``, a 400; ``empty_list``, no picture; ``empty_base64``, an empty one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    entities_dropped: float = RATE
    most_entities: int = Field(default=2, ge=0, le=100)
    sides_swapped: float = RATE
    colours_leaked: float = RATE
    counts_capped: float = RATE
    cap: int = Field(default=1, ge=0, le=100)
    unknown_default: float = RATE
    removed_kept: float = RATE
    added_ignored: float = RATE
    prompts_rewritten: float = RATE
    refusals: float = RATE
    one_picture: float = RATE
    blank_pictures: float = RATE
    clutter_dropped: float = RATE
    anew: list[_Defect] = []
    refused_as: list[_Refusal] = Field(default=["policy", "empty_list", "empty_base64"], min_length=1)

    def drawn(self) -> DrawingDefects:
        """Return them as the product takes them."""
        found = self.model_dump()
        return DrawingDefects(**{**found, "anew": tuple(sorted(self.anew)), "refused_as": tuple(self.refused_as)})


class SimlabImagesSettings(OpenAIImagesSettings):
    """Settings of the simulated laboratory that draws; those of an address and a key have no use here.

    Attributes:
        model: The server's only one.
        seed: ``case``: each asking has its own, by its address; null: it draws anew from 0.
        size: 128x128 to 1024x1024.
        response_format: ``b64_json``, or ``url``: the picture lies at an address of the server's.
        prices: It costs nothing; another price rehearses a budget.
        product_seed: Seed of the product's draws.
        defects: What is wrong with the product.
        faults: What is wrong with its server.
        painters: Threads that draw.
    """

    model: str = Field(default=MODEL, pattern=f"^{MODEL}$")
    base_url: str = ""
    key_variable: str = ""
    seed: Literal["case"] | int | None = "case"
    size: Literal["128x128", "256x256", "384x384", "512x512", "768x768", "1024x1024"] = "512x512"
    response_format: Literal["b64_json", "url"] = "b64_json"
    prices: dict[str, PicturePrices] = Field(default={MODEL: PicturePrices()}, json_schema_extra=TRUSTED)
    product_seed: int = Field(default=0, ge=0)
    defects: DrawingDefectSettings = DrawingDefectSettings()
    faults: FaultSettings = FaultSettings()
    painters: int = Field(default=2, ge=1, le=64, json_schema_extra=TRUSTED)


class SimlabImages(SimulatedServer, OpenAIImages):
    """A simulated product that draws, behind a real server that lives from :meth:`open` to :meth:`close`."""

    tasks: ClassVar[tuple[str, ...]] = OpenAIImages.tasks
    Settings: ClassVar[type[SimlabImagesSettings]] = SimlabImagesSettings
    unused: ClassVar[tuple[str, ...]] = (*SimulatedServer.unused, "send_prompts")
    revision: ClassVar[int] = REVISION

    def notice(self) -> str:
        """Say that nothing of this stands for a product."""
        defects = self.settings.defects
        rates = {name: rate for name, rate in defects.model_dump().items() if isinstance(rate, float) and rate}
        each = ", ".join(f"{name} {rate:g}{' anew' * (name in defects.anew)}" for name, rate in rates.items())
        return (
            f"SIMULATED: {self.record_name} is a program of medtest's on this machine that draws "
            f"({each or 'no defects'}); its figures say nothing about any real product."
        )

    def fingerprint(self) -> dict[str, Json]:
        """Return what determines its pictures beyond its settings: the product's revision."""
        return {"product": REVISION}

    def content(self) -> str:
        """Return a digest of the settings that shape pictures."""
        config = asdict(self.config())
        kept = {"seed": config["seed"], "drawing": config["drawing"], "faults": kept_faults(config["faults"])}
        text = json.dumps({**kept, "product": REVISION}, sort_keys=True)
        return f"simlab:{hashlib.sha256(text.encode()).hexdigest()}"

    def config(self) -> Config:
        """Return what the server is started with, without its key."""
        own = self.settings
        return Config(
            seed=own.product_seed,
            drawing=own.defects.drawn(),
            faults=Faults(**own.faults.model_dump()),
            threads=own.painters,
        )

    def request(self, call: Asking) -> Request:
        """Return the request of a call; where the product keeps what came before, it is told what that was."""
        request: Request = super().request(call)
        before: Any = call.source_prompt
        if self.settings.defects.removed_kept and before is not None and before.text != request.prompt:
            self.put(SESSION_DOOR, {"prompt": request.prompt, "seed": request.seed or 0, "earlier": before.text})
        return request

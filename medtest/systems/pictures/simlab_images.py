"""Simulated laboratory as an image generator, served over HTTP by a real server on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.calls.request import Request
from medtest.api.faulty.faults import Faults
from medtest.core.cases import Json
from medtest.core.plugins import TRUSTED
from medtest.simlab.config import MODEL, SESSION_DOOR, Config
from medtest.simlab.drawing import REVISION
from medtest.simlab.drawing.defects import DrawingDefects
from medtest.systems.answering.asking import Asking
from medtest.systems.answering.simulated import RATE, FaultSettings, SimulatedServer
from medtest.systems.pictures.service import PicturePrice
from medtest.systems.pictures.services import OpenAIImages, OpenAIImagesSettings

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
Refusal: TypeAlias = Literal["policy", "empty_list", "empty_base64"]
"""Form of a refusal."""
DefectsT = TypeVar("DefectsT")


def product_defects(kind: type[DefectsT], settings: BaseModel) -> DefectsT:
    """Convert settings of defects to the product's own type."""
    values = settings.model_dump()
    return kind(**{**values, "anew": tuple(sorted(values["anew"])), "refused_as": tuple(values["refused_as"])})


class DrawingDefectSettings(BaseModel):
    """Defects of the product (:class:`medtest.simlab.drawing.defects.DrawingDefects`): rates from 0 to 1.

    Attributes:
        entities_dropped: Only the first ``most_entities`` named things are drawn.
        most_entities: Number of things drawn.
        sides_swapped: Left for right, above for under, in front for behind.
        colours_leaked: Everything has the first named colour.
        counts_capped: At most ``cap`` things of a kind are drawn.
        cap: Number of things drawn.
        unknown_default: A ball is drawn for any noun other than a drawing's plain name.
        removed_kept: Things of the session's earlier prompt that this one omits are drawn as well.
        added_ignored: The later named thing of the last relation is not drawn.
        prompts_rewritten: A flower is added.
        refusals: Nothing is drawn.
        one_picture: One picture answers everything.
        blank_pictures: The picture is white.
        clutter_dropped: The last thing is not drawn, at this rate for each thing beyond the first.
        anew: Defects that are drawn independently for each call; the others are constant per prompt.
        refused_as: Form of refusals: ``policy``, a 400; ``empty_list``, no picture; ``empty_base64``, an empty one.
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
    refused_as: list[Refusal] = Field(default=["policy", "empty_list", "empty_base64"], min_length=1)

    def drawn(self) -> DrawingDefects:
        """Return the defects as the product's own type."""
        return product_defects(DrawingDefects, self)


class SimlabImagesSettings(OpenAIImagesSettings):
    """Settings of the simulated image generator; those of an address and a key have no effect.

    Attributes:
        model: The server's only model.
        seed: ``case``: each call has its own, derived from its address; null: the server draws from 0.
        size: 128x128 to 1024x1024.
        response_format: ``b64_json``, or ``url``: the picture is served at a URL of the server.
        prices: Free of charge; set another price to rehearse a budget.
        product_seed: Seed of the product's random draws.
        defects: Defects of the product.
        faults: Faults of its server.
        painters: Drawing threads.
    """

    model: str = Field(default=MODEL, pattern=f"^{MODEL}$")
    base_url: str = ""
    key_variable: str = ""
    seed: Literal["case"] | int | None = "case"
    size: Literal["128x128", "256x256", "384x384", "512x512", "768x768", "1024x1024"] = "512x512"
    response_format: Literal["b64_json", "url"] = "b64_json"
    prices: Mapping[str, PicturePrice] = Field(default={MODEL: PicturePrice()}, json_schema_extra=TRUSTED)
    product_seed: int = Field(default=0, ge=0)
    defects: DrawingDefectSettings = DrawingDefectSettings()
    faults: FaultSettings = FaultSettings()
    painters: int = Field(default=2, ge=1, le=64, json_schema_extra=TRUSTED)


class SimlabImages(SimulatedServer, OpenAIImages):
    """Simulated image generator behind a real server, which runs from :meth:`open` to :meth:`close`.

    Attributes:
        remembers: Whether the product may keep what a session's earlier prompt asked for.
    """

    remembers: ClassVar[bool] = True

    tasks: ClassVar[tuple[str, ...]] = OpenAIImages.tasks
    Settings: ClassVar[type[SimlabImagesSettings]] = SimlabImagesSettings
    settings: SimlabImagesSettings
    unused: ClassVar[tuple[str, ...]] = (*SimulatedServer.unused, "send_prompts")
    answer_keys: ClassVar[tuple[str, ...]] = ("seed", "drawing")
    revision: ClassVar[int] = REVISION

    def notice(self) -> str:
        """Return a notice that results say nothing about a real product."""
        defects = self.settings.defects
        rates = {name: rate for name, rate in defects.model_dump().items() if isinstance(rate, float) and rate}
        each = (f"{name} {rate:g}{' per call' * (name in defects.anew)}" for name, rate in rates.items())
        return self.simulation_notice("draws", each)

    def fingerprint(self) -> dict[str, Json]:
        """Return everything beyond the settings that determines its pictures: the product's revision."""
        return {"product": self.revision}

    def config(self) -> Config:
        """Return the server's configuration, without its key."""
        own = self.settings
        faults = Faults(**own.faults.model_dump())
        return self.with_defects(Config(seed=own.product_seed, faults=faults, threads=own.painters))

    def with_defects(self, config: Config) -> Config:
        """Return a server's configuration with the defects of this system's product."""
        return replace(config, drawing=self.settings.defects.drawn())

    def request(self, call: Asking) -> Request:
        """Return the request of a call; announces the earlier prompt if the product keeps session state."""
        request: Request = super().request(call)
        before: Any = call.source_prompt
        if (
            self.remembers
            and self.settings.defects.removed_kept
            and before is not None
            and before.text != request.prompt
        ):
            self.put(SESSION_DOOR, {"prompt": request.prompt, "seed": request.seed or 0, "earlier": before.text})
        return request

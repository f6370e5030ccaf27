"""Base class of corruptions: their two forms, sequence variants, pixel unit and video compression.

A corruption has one implementation, ``changed``, which turns stored parameters into pixels, and two sources of
parameters:

- ``form: levels``: severities 1–5 from YAML, ImageNet-C's constants if it has the type.
- ``form: sequence``: frames from 0; the severity is the difficulty d.
  ``variant: paper``: frame 0 is the clean image, the parameter of frame i is i · d · step away from identity.
  ``variant: released``: ImageNet-P's formulas and first frame, cut to ten frames, like the data set "Robust-Benchmark".
  ``variant: imagenet_p``: the same at full length. In both, d only multiplies the step.

Constants in pixels refer to images with a shorter side of 224 and scale with it, unless ``raw``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import Effect, FollowUp, Image, Params, PreparedSeed
from medtest.core.plugins import PartSettings, wrong_at
from medtest.relations.base import Relation
from medtest.relations.corruptions.video import through_video
from medtest.relations.levels import L, LeveledSettings, noise_seed, number

FRAMES = 10
"""Frames of a sequence of the released data; for ImageNet-P see :attr:`Corruption.full_frames`."""
SIDE = 224
"""Shorter side of images to which the published constants refer."""
_DIFFICULTIES = (1, 2, 3, 4, 5)
S = TypeVar("S", bound=PartSettings)


class CorruptionSettings(LeveledSettings[L], Generic[L, S]):
    """Settings shared by all corruptions, with their levels and the constants of their sequences.

    Attributes:
        sequence: Constants of sequences.
        form: ``levels`` or ``sequence``; see the module.
        variant: Variant of sequences: ``paper``, ``released`` or ``imagenet_p``.
        frames: Frames of a sequence; None takes the variant's own number, 10 or ImageNet-P's 31 (translate: 41).
        raw: Do not scale constants in pixels with the image size.
        video: Compress each sequence with lossy H.264, like the released data (needs the extra ``video``).
    """

    sequence: S
    form: Literal["levels", "sequence"] = "levels"
    variant: Literal["paper", "released", "imagenet_p"] = "paper"
    frames: int | None = Field(default=None, ge=2, le=60)
    raw: bool = False
    video: bool = False

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if self.form == "sequence":
            wrong = [severity for severity in self.severities if severity not in _DIFFICULTIES]
            if wrong:
                raise wrong_at("severities", f"difficulties of a sequence: 1 to 5; not {wrong[0]}")
        if self.video and self.form != "sequence":
            raise wrong_at("video", "false, unless form is sequence: a video is made of frames")
        if self.video and find_spec("imageio_ffmpeg") is None:
            raise wrong_at("video", "false, for imageio-ffmpeg is not installed (pip install 'medtest[video]')")
        return self


class Sweep(PartSettings):
    """Constants of a sequence whose single parameter grows in equal steps.

    Attributes:
        start: Parameter of the first frame in the variants ``released`` and ``imagenet_p``.
        step: Growth of the parameter per frame at difficulty 1.
    """

    start: float
    step: float = Field(gt=0.0)


@dataclass(frozen=True, kw_only=True)
class FrameAt:
    """Requested frame of a sequence.

    Attributes:
        index: Index from 0.
        difficulty: 1–5.
        paper: Whether parameters start at identity (variant ``paper``), else at ImageNet-P's first frame.
        unit: Size of a published pixel in pixels of the image.
        shared: Seed shared by all frames of the sequence.
    """

    index: int
    difficulty: int
    paper: bool
    unit: float
    shared: int

    @property
    def steps(self) -> int:
        """Steps of difficulty 1 since the first frame: index times difficulty."""
        return self.index * self.difficulty

    def swept(self, sweep: Sweep, *, identity: float) -> float:
        """Return the parameter of this frame, counted from identity or from the published start."""
        return (identity if self.paper else sweep.start) + sweep.step * self.steps

    def generator(self) -> np.random.Generator:
        """Return a generator with the same start for all frames of the sequence."""
        return np.random.Generator(np.random.PCG64(self.shared))


class Corruption(Relation):
    """Base class of the corruptions. ``apply`` returns the seed's own image for a clean frame.

    Attributes:
        begins_clean: Whether ImageNet-P's sequences begin with the clean image.
        full_frames: Frames of ImageNet-P's sequences.
        grain: Whether videos use x264's ``tune grain`` (noise).
    """

    touches_frame: ClassVar[bool] = True
    begins_clean: ClassVar[bool] = False
    full_frames: ClassVar[int] = 31
    grain: ClassVar[bool] = False

    def frames(self) -> int:
        """Return the number of frames of a sequence; 1 in form ``levels``."""
        settings: CorruptionSettings[Any, Any] = self.settings
        if settings.form == "levels":
            return 1
        if settings.frames is not None:
            return settings.frames
        return self.full_frames if settings.variant == "imagenet_p" else FRAMES

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the parameters of a level; in form ``sequence`` those of the last frame."""
        if self.settings.form == "sequence":
            return self.sample_frame(seed, severity, self.frames() - 1, rng, rng)
        level: Any = self.settings.levels[severity]
        return {**self.at_level(level, self._unit(seed), rng), "scale": float(level.scale)}

    def sample_frame(
        self, seed: PreparedSeed, severity: int, frame: int, rng: np.random.Generator, sequence: np.random.Generator
    ) -> dict[str, Any]:
        """Draw the parameters of one frame; in a video those of all frames, which compression makes dependent."""
        if self.settings.form == "levels":
            return self.sample(seed, severity, rng)
        shared = noise_seed(sequence)
        if not self.settings.video:
            return self._at(seed, severity, frame, shared, rng)
        own = [np.random.Generator(np.random.PCG64(noise_seed(sequence))) for _ in range(self.frames())]
        film = [self._at(seed, severity, index, shared, rng) for index, rng in enumerate(own)]
        return {"frame": frame, "video": film, "scale": film[frame]["scale"]}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Make the follow-up; a clean frame is ``seed.image`` itself."""
        if "video" in params:
            film, frame = cast(list[Params], params["video"]), int(number(params, "frame"))
            shown = film[frame]
            pictures = through_video(seed, film, lambda: [self._picture(seed, each) for each in film], grain=self.grain)
            image = pictures[frame].copy()
        else:
            shown, image = params, self._picture(seed, params)
        effect = Effect() if shown.get("clean") else self.effect(seed, shown)
        return FollowUp(image=image, params=params, scale=number(params, "scale"), effect=effect)

    @abstractmethod
    def at_level(self, level: Any, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of a level, JSON values, without ``scale``.

        Args:
            level: An instance of the type's level.
            unit: Size of a published pixel in pixels of the image.
            rng: The case's random generator.
        """

    @abstractmethod
    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of a frame that is not clean, as JSON values including ``scale``."""

    @abstractmethod
    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Turn the parameters into a new picture, uint8 H×W×3; draws nothing."""

    def effect(self, seed: PreparedSeed, params: Params) -> Effect:
        """Return the effect on the expected answer: none, unless the picture is warped."""
        return Effect()

    def _unit(self, seed: PreparedSeed) -> float:
        return 1.0 if self.settings.raw else min(seed.height, seed.width) / SIDE

    def _at(
        self, seed: PreparedSeed, severity: int, frame: int, shared: int, rng: np.random.Generator
    ) -> dict[str, Any]:
        paper = self.settings.variant == "paper"
        if frame == 0 and (paper or self.begins_clean):
            return {"frame": 0, "clean": True, "scale": 0.0}
        at = FrameAt(index=frame, difficulty=severity, paper=paper, unit=self._unit(seed), shared=shared)
        return {"frame": frame, **self.at_frame(at, rng)}

    def _picture(self, seed: PreparedSeed, params: Params) -> Image:
        return seed.image if params.get("clean") else self.changed(seed, params)

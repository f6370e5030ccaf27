"""Background subtraction: OpenCV's two mixture models, which segment motion in a film."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, ImageSpec
from medtest.core.errors import BadOutput
from medtest.systems.base import Segmenter, SystemSettings
from medtest.systems.restoration.base import to_levels


class SubtractorSettings(SystemSettings):
    """Settings common to both models.

    Attributes:
        history: Number of frames in the background model.
        warmup: Number of first frames for learning the model, with an empty answer.
        opening: Side of the square of the morphological opening that removes specks, in pixels; 1 keeps them.
    """

    history: int = Field(default=60, ge=1, le=100_000)
    warmup: int = Field(default=10, ge=0, le=100_000)
    opening: int = Field(default=3, ge=1, le=31)


class Subtractor(Segmenter):
    """Background model that processes a film once, frame by frame, as 8-bit grey or RGB."""

    settings: SubtractorSettings

    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Segment motion.

        Raises:
            BadOutput: The image is not a film.
        """
        if not spec.axes.startswith("t"):
            raise BadOutput(f"it answers films; this image has the axes {spec.axes}")
        model = self.model()
        kernel = np.ones((self.settings.opening, self.settings.opening), np.uint8)
        mask = np.zeros(spec.spatial(volume.shape), np.bool_)
        for number, frame in enumerate(volume):
            levels = np.clip(np.rint(to_levels(frame, spec)), 0, 255).astype(np.uint8)
            moving = np.asarray(model.apply(levels), np.uint8)
            if number >= self.settings.warmup:
                mask[number] = cv2.morphologyEx(moving, cv2.MORPH_OPEN, kernel) > 127
        return mask

    @abstractmethod
    def model(self) -> Any:
        """Return a new model with ``apply(frame) -> uint8 H×W`` (255 moving, 127 shadow, 0 background)."""


class Mog2Settings(SubtractorSettings):
    """Settings of MOG2.

    Attributes:
        threshold: Squared Mahalanobis distance above which a pixel is foreground (OpenCV's ``varThreshold``).
    """

    threshold: float = Field(default=16.0, gt=0)


class Mog2(Subtractor):
    """Adaptive mixture of Gaussians: Z. Zivkovic, ICPR 2004; Z. Zivkovic and F. van der Heijden, 2006 (OpenCV's)."""

    Settings: ClassVar[type[SystemSettings]] = Mog2Settings
    settings: Mog2Settings

    def model(self) -> Any:
        """Return OpenCV's model."""
        return cv2.createBackgroundSubtractorMOG2(self.settings.history, self.settings.threshold, False)


class KnnSettings(SubtractorSettings):
    """Settings of KNN.

    Attributes:
        threshold: Squared distance in grey levels within which a sample is a neighbour (OpenCV's ``dist2Threshold``).
    """

    threshold: float = Field(default=400.0, gt=0)


class Knn(Subtractor):
    """K nearest neighbours: Z. Zivkovic and F. van der Heijden, Pattern Recognition Letters 27(7), 2006 (OpenCV's)."""

    Settings: ClassVar[type[SystemSettings]] = KnnSettings
    settings: KnnSettings

    def model(self) -> Any:
        """Return OpenCV's model."""
        return cv2.createBackgroundSubtractorKNN(self.settings.history, self.settings.threshold, False)

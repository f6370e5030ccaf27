"""Settings of image folders."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field, field_validator

from medtest.core.files.images import MAX_PIXELS, MOST_PIXELS
from medtest.core.plugins import TRUSTED, PartSettings
from medtest.seeds.folders.label_values import LabelValues
from medtest.seeds.folders.layout import Layout
from medtest.seeds.volumes.frames import Which
from medtest.seeds.volumes.nifti_file import Axis


def inside(value: str) -> str:
    """Return a path below the data folder unchanged; raise ValueError for any other path."""
    path = PurePosixPath(value.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in value or "\0" in value or value.startswith("~"):
        raise ValueError("must be a path below the data folder, without '..'")
    return value


class FolderSettings(PartSettings):
    """Settings shared by all sources that read a folder of images.

    Attributes:
        images: Folder of images below the root, if it is not found by name.
        masks: Folder of masks below the root, named like their images.
        label_values: Values that mark the lesion in masks of several levels, classes or colours; see
            :class:`ImageMaskFoldersSettings`.
        on_bad_seed: ``stop`` with one report, or ``skip`` bad files and count them.
        max_pixels: Largest picture, frame or slice to decode.
        metadata: CSV below the root that names patient or video (clusters) and strata.
    """

    images: str = ""
    masks: str = ""
    label_values: LabelValues = Field(default=[])
    on_bad_seed: Literal["stop", "skip"] = "stop"
    max_pixels: int = Field(default=MAX_PIXELS, ge=1, le=MOST_PIXELS)
    metadata: str = ""

    _below = field_validator("images", "masks", "metadata")(inside)


class ImageMaskFoldersSettings(FolderSettings):
    """Settings of folders of images and masks; see ``docs`` on bringing data.

    Attributes:
        layout: ``auto``; ``images_masks`` (images/ and masks/); ``original_ground_truth`` (Original/ and Ground
            Truth/); ``sets`` (folders of such pairs, each a data set, also below TestDataset/); ``images`` (pictures
            in the folder itself, masks beside them as <name>_mask if there are any); ``known`` (the archives of
            known data sets, anywhere below the folder, under their usual names).
        sets: Ids of the data sets to take; all when empty.
        labels: ``required``, or ``none`` to test without masks.
        missing_sets: ``stop`` if one of ``sets`` is missing, or ``skip`` it with a notice.
        negatives: Whether an empty mask (no lesion) is allowed; images without lesion of a file with several are left
            out unless it is.
        axis: Plane in which NIfTI volumes are cut: ``axial``, ``coronal`` or ``sagittal``.
        slices: Slices of a volume and frames of a DICOM file to use: ``all``, the ``middle`` one, or the one
            with the ``largest`` lesion.
        every: Only each n-th slice or frame.
        window: Centre and width at which grey DICOM and NIfTI images are shown; the file's own if empty.
        label_values: Values that mark the lesion in masks other than black and white: grey levels, palette indices,
            colours (``[255, 0, 0]``, ``"#ff0000"``), values of a NIfTI volume of labels. When empty, every value but 0
            of a volume is, and pictures of several levels or colours are refused.
        avoid: Folder of rough masks that objects and text keep off, for images without masks; never predictions of a
            system under test.
    """

    layout: Layout = "auto"
    missing_sets: Literal["stop", "skip"] = "stop"
    sets: list[str] = []
    labels: Literal["required", "none"] = "required"
    negatives: bool = False
    axis: Axis = "axial"
    slices: Which = "all"
    every: int = Field(default=1, ge=1)
    window: list[float] = []
    label_values: LabelValues = []
    avoid: str = Field(default="", json_schema_extra=TRUSTED)

    @field_validator("window")
    @classmethod
    def _centre_and_width(cls, value: list[float]) -> list[float]:
        if value and (len(value) != 2 or not value[1] >= 1):
            raise ValueError("must be [centre, width] with a width of at least 1, or empty")
        return value

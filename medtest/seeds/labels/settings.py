"""Settings of folders of labelled images."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from medtest.core.plugins import wrong_at
from medtest.seeds.folders.settings import FolderSettings, inside

LabelLayout: TypeAlias = Literal[
    "auto",
    "class_folders",
    "table",
    "cad_cap",
    "kid",
    "kvasir_capsule",
    "isic",
    "messidor",
    "chestxray14",
    "medmnist",
]

Split: TypeAlias = Literal["auto", "all", "train", "val", "test"]


class LabelFolderSettings(FolderSettings):
    """Settings of labelled images; see ``docs/label-data.md``.

    Attributes:
        layout: ``auto``; ``class_folders`` (a folder for each class); ``table`` (images and a CSV of labels); or the
            layout of a public set, which ``auto`` recognises by its names.
        labels: ``required``, or ``none`` to test without labels: every picture is a seed, and answers are compared
            with the system's own answer to the unchanged image.
        classes: Names of the classes in the order of their scores; [] for the data set's own.
        multi: Whether several classes may apply at once; null follows the data set.
        mapping: Class of the suite by the data set's name, "" to leave it out; extends the mapping of
            the layout. Case and punctuation of the data set's names are ignored.
        split: Part of a set that has parts; ``auto`` is the test part if there is one, else everything.
        per_class: Maximum number of images of each class, evenly spread over the natural order of names; 0 for all.
        table: CSV of labels below the root.
        image_column: Column that names the image; "" finds it.
        label_column: Column of labels; "" finds it, or takes columns of 0 and 1.
        separator: Separator of several labels in one column.
    """

    layout: LabelLayout = "auto"
    labels: Literal["required", "none"] = "required"
    classes: list[str] = []
    multi: bool | None = None
    mapping: dict[str, str] = {}
    split: Split = "auto"
    per_class: int = Field(default=0, ge=0)
    table: str = ""
    image_column: str = ""
    label_column: str = ""
    separator: str = Field(default="|", min_length=1, max_length=3)

    _table_below = field_validator("table")(inside)

    @field_validator("classes")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value) or any(not name.strip() or "|" in name for name in value):
            raise ValueError("must be distinct names without '|'")
        if len(value) == 1:
            raise ValueError("must hold at least two names, or none")
        return value

    @model_validator(mode="after")
    def _check_class_names(self) -> LabelFolderSettings:
        if self.labels == "none" and not self.classes:
            raise wrong_at("classes", "the classes' names: without labels the data do not say them")
        return self

"""Layouts of labelled images: one reader per layout, which reads tables but opens no image."""

from __future__ import annotations

from medtest.seeds.labels.layouts.chestxray14 import read_chestxray14
from medtest.seeds.labels.layouts.class_folders import STYLES, read_class_folders
from medtest.seeds.labels.layouts.common import Reader
from medtest.seeds.labels.layouts.isic import read_isic
from medtest.seeds.labels.layouts.medmnist import read_medmnist
from medtest.seeds.labels.layouts.messidor import read_messidor
from medtest.seeds.labels.layouts.tables import read_label_table

READERS: dict[str, Reader] = {
    **dict.fromkeys(STYLES, read_class_folders),
    "table": read_label_table,
    "isic": read_isic,
    "messidor": read_messidor,
    "chestxray14": read_chestxray14,
    "medmnist": read_medmnist,
}
"""Readers by the layout's name."""

"""Tiny labelled images in every supported layout, for tests; the pixels of a picture encode its number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from layout_files import mask, picture

from medtest.seeds.labels.folder import LabelFolder, LabelFolderSettings

KVASIR_FOLDERS = {
    "Normal_clean_mucosa": 4,
    "Angiectasia": 2,
    "Blood - fresh": 1,
    "Erosion": 1,
    "Ulcer": 2,
    "Ileocecal valve": 3,
    "Polyp": 1,
}
VIDEOS = ("04a78ef00c5245e0", "0728084c8da942d9")
FINDINGS = [
    *("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax"),
    *("Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"),
]


def source(root: Path | None, **settings: Any) -> LabelFolder:
    """Return the seeds of a folder of labelled images."""
    return LabelFolder(dataset="mine", settings=LabelFolderSettings(**settings), root=root, suite_seed=1)


def labels_of(seeds: LabelFolder) -> dict[str, tuple[str, ...] | None]:
    return {ref.seed_id: seeds.load(ref).labels for ref in seeds.refs()}


def class_folders(root: Path, counts: dict[str, int], suffix: str = ".png") -> None:
    number = 0
    for name, count in counts.items():
        for index in range(count):
            picture(root / name / f"{index}{suffix}", number)
            number += 1


def kvasir_capsule(root: Path) -> None:
    number = 0
    for name, count in KVASIR_FOLDERS.items():
        for index in range(count):
            picture(root / "labelled_images" / name / f"{VIDEOS[index % 2]}_{100 * index}.png", number)
            number += 1


def kid(root: Path, *, beside: bool = False) -> None:
    for name, count in {"normal-small-bowel": 3, "normal-colon": 2, "vascular": 2, "inflammatory": 2}.items():
        for index in range(count):
            picture(root / name / f"{name}{index:03d}.png", index)
            if not name.startswith("normal"):
                folder = name if beside else f"{name}-annotations"
                mask(root / folder / f"{name}{index:03d}m.png", index)


def cad_cap(root: Path) -> None:
    for name, count in {"normal": 3, "vascularlesions": 2, "inflammatory": 2}.items():
        for index in range(count):
            picture(root / name / f"{name}_{index}.png", index)
            if name != "normal":
                mask(root / name / f"{name}_{index}_a.png", index)


def isic_2016(root: Path) -> None:
    for part, labels in {"Training": ("benign", "malignant", "benign"), "Test": ("1.0", "0.0")}.items():
        lines = []
        for index, label in enumerate(labels):
            name = f"ISIC_{index + (100 if part == 'Test' else 0):07d}"
            picture(root / f"ISBI2016_ISIC_Part3_{part}_Data" / f"{name}.png", index)
            mask(root / f"ISBI2016_ISIC_Part1_{part}_GroundTruth" / f"{name}_Segmentation.png", index)
            lines.append(f"{name},{label}")
        (root / f"ISBI2016_ISIC_Part3_{part}_GroundTruth.csv").write_text("\n".join(lines))


def isic_2017(root: Path) -> None:
    parts = {
        "Training": ["1.0,0.0", "0.0,1.0", "0.0,0.0"],
        "Validation": ["0.0,0.0"],
        "Test_v2": ["1.0,0.0", "0.0,1.0"],
    }
    first = 0
    for part, labels in parts.items():
        lines = ["image_id,melanoma,seborrheic_keratosis"]
        for index, label in enumerate(labels):
            name = f"ISIC_{first + index:07d}"
            # The archives hold a folder of their own name, and superpixels beside the images.
            folder = root / f"ISIC-2017_{part}_Data" / f"ISIC-2017_{part}_Data"
            picture(folder / f"{name}.png", index)
            picture(folder / f"{name}_superpixels.png", 99)
            mask(root / f"ISIC-2017_{part}_Part1_GroundTruth" / f"{name}_segmentation.png", index)
            lines.append(f"{name},{label}")
        (root / f"ISIC-2017_{part}_Part3_GroundTruth.csv").write_text("\n".join(lines))
        first += 100


def messidor(root: Path) -> None:
    """Write two bases with tables as CSV; grades 0, 1, 2, 3, 0."""
    grades = iter("01230")
    for base, count in (("Base11", 3), ("Base12", 2)):
        lines = ["Image name,Ophthalmologic department,Retinopathy grade,Risk of macular edema"]
        for index in range(count):
            name = f"20051020_{base[-2:]}{index:03d}_0100_PP.tif"
            picture(root / base / name, index)
            lines.append(f"{name},Service Ophtalmologie Lariboisière,{next(grades)},0")
        (root / f"Annotation_{base}.csv").write_text("\n".join(lines), encoding="utf-8")


ENTRIES = {
    "00000001_000.png": "Cardiomegaly",
    "00000001_001.png": "Cardiomegaly|Emphysema",
    "00000002_000.png": "No Finding",
    "00000003_000.png": "Hernia",
    "00000004_000.png": "Pleural_Thickening|Mass",
}


def chestxray14(root: Path, *, missing: tuple[str, ...] = ()) -> None:
    lines = ["Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position"]
    for number, (name, findings) in enumerate(ENTRIES.items()):
        if name not in missing:
            picture(root / f"images_{number % 2 + 1:03d}" / "images" / name, number)
        lines.append(f"{name},{findings},0,{int(name[:8])},57,M,{'PA' if number % 2 else 'AP'}")
    (root / "Data_Entry_2017.csv").write_text("\n".join(lines))
    names = list(ENTRIES)
    (root / "train_val_list.txt").write_text("\n".join(names[:3]))
    (root / "test_list.txt").write_text("\n".join(names[3:]) + "\n")


def chexnet_lists(root: Path) -> None:
    rows = []
    for number, (name, findings) in enumerate(ENTRIES.items()):
        picture(root / "images" / name, number)
        flags = " ".join(str(int(finding in findings.split("|"))) for finding in FINDINGS)
        rows.append(f"{name} {flags}")
    for part, chosen in (("train", rows[:2]), ("val", rows[2:3]), ("test", rows[3:])):
        (root / "labels").mkdir(parents=True, exist_ok=True)
        (root / "labels" / f"{part}_list.txt").write_text("\n".join(chosen) + "\n")


def npz(path: Path, *, multi: bool = False, size: int = 28, colour: bool = False, packed: bool = True, **more) -> dict:
    """Write a MedMNIST file, and return its arrays."""
    rng = np.random.default_rng(3)
    arrays = {}
    for part, count in (("train", 7), ("val", 3), ("test", 5)):
        shape = (count, size, size, 3) if colour else (count, size, size)
        arrays[f"{part}_images"] = rng.integers(0, 256, shape, dtype=np.uint8)
        labels = rng.integers(0, 2, (count, 14 if multi else 1), dtype=np.uint8)
        arrays[f"{part}_labels"] = labels
    arrays |= more
    path.parent.mkdir(parents=True, exist_ok=True)
    (np.savez_compressed if packed else np.savez)(path, **arrays)
    return arrays


def table(root: Path, rows: list[str], *, name: str = "labels.csv", images: int = 4, folder: str = "images") -> None:
    """Write a table and images called a0, a1, …."""
    for number in range(images):
        picture(root / folder / f"a{number}.png", number)
    (root / name).write_text("\n".join(rows), encoding="utf-8")

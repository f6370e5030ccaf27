"""Tiny images with questions in every supported layout; the pixels of a picture encode its number."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from layout_files import picture

TEXT = "Is there text?"
COLOUR = "What color is the abnormality?"
COUNT = "How many instrumnets are in the image?"
MASK = "Where exactly in the image is the polyp located?"
CLEF_IDS = ("cl8k2u1pm0001", "cl8k2u1pm0002", "cl8k2u1pm0010")


def clef(root: Path, ids: tuple[str, ...] = CLEF_IDS) -> None:
    """Write the contest's development set: gt.json, images/, masks/."""
    entries = []
    for number, name in enumerate(ids):
        picture(root / "images" / f"{name}.png", number)
        picture(root / "masks" / f"{name}_mask.png", number)
        labels = [
            {"Question": COLOUR, "AnswerType": "multi", "Answer": ["Red", "Pink"] if number else ["Not relevant"]},
            {"Question": COUNT, "AnswerType": "single", "Answer": [str(number)]},
            {"Question": MASK, "AnswerType": "segmentation", "Answer": [f"{name}_mask.png"]},
        ]
        entries.append({"ImageID": name, "Labels": labels})
    write(root / "gt.json", json.dumps(entries))


def kvasir_vqa(root: Path) -> None:
    """Write Kvasir-VQA: metadata.csv with one answer per row, and images/ in JPEG."""
    rows = [["source", "question", "answer", "img_id"]]
    for number, name in enumerate(("clb0kv1", "clb0kv2")):
        picture(root / "images" / f"{name}.jpg", number)
        rows += [["polyps", f"{TEXT[:-1]}", "yes" if number else "no", name]]
        rows += [["polyps", f"{COLOUR} If more than one separate with ;", text, name] for text in ("pink", "red")]
    table(root / "metadata.csv", rows)


def vqa_rad(root: Path) -> None:
    """Write VQA-RAD: a JSON of open and closed questions, and a folder of images."""
    entries = []
    for number in range(3):
        picture(root / "VQA_RAD Image Folder" / f"synpic{number}.jpg", number)
        closed = {"question": "Is the heart enlarged?", "answer": "Yes" if number else "no", "answer_type": "CLOSED"}
        entries.append({"image_name": f"synpic{number}.jpg", **closed})
    opened = {"question": "Which organ is shown?", "answer": "Liver", "answer_type": "OPEN"}
    entries.append({"image_name": "synpic1.jpg", **opened})
    write(root / "VQA_RAD Dataset Public.json", json.dumps(entries))


def plain_csv(root: Path) -> None:
    """Write an own table, with images beside it in folders."""
    for number, name in enumerate(("a/one.png", "b/one.png", "two.png")):
        picture(root / name, number)
    rows = [
        ["image", "question", "answer"],
        ["a/one.png", TEXT, "yes"],
        ["b/one", TEXT, ""],
        ["two.png", COLOUR, "red"],
    ]
    table(root / "questions.csv", rows)


def images_alone(root: Path) -> None:
    """Write three images and nothing else."""
    for number in range(3):
        picture(root / f"image{number}.png", number)


def table(path: Path, rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")

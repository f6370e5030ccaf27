"""``data=s3://…`` is a folder like any other: equal records, on this machine and on nodes that fetch it themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from s3_server import Bucket

import medtest
from medtest.core.errors import UserMistakes
from medtest.core.records import UNEQUAL_COLUMNS
from medtest.phantoms.colon import make_colon

SUITE = "polyp_seg_folder"


def bright(image: np.ndarray) -> np.ndarray:
    """Call bright pixels a polyp."""
    return image.max(axis=2) > 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = tmp_path / "pairs"
    for number in range(2):
        colon = make_colon(np.random.default_rng(number), size=(96, 96), polyps=1)
        for name, pixels in {"images": colon.image, "masks": colon.mask.astype(np.uint8) * 255}.items():
            (pairs / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(pairs / name / f"{number}.png")
    return pairs


def _records(data: Path | str, home: Path, *overrides: str) -> pd.DataFrame:
    options = ["track=false", "privacy.images=none", "prepare.size=96", "workers=1", *overrides]
    result = medtest.run(SUITE, bright, relations=["contrast"], data=data, home=home, overrides=options)
    return result.records.drop(columns=list(UNEQUAL_COLUMNS), errors="ignore")


def test_records_are_those_of_the_folder(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    for path in folder.rglob("*.png"):
        bucket.put(f"colon/{path.relative_to(folder).as_posix()}", path.read_bytes())
    local = _records(folder, tmp_path / "local")
    assert len(local) > 2
    pd.testing.assert_frame_equal(_records("s3://hospital/colon", tmp_path / "far"), local)
    fetched = list((tmp_path / "far" / "outputs" / ".data").glob("*/images/*.png"))
    assert len(fetched) == 2


@pytest.mark.parametrize("url", ["memory://seeds", "ftp://host/seeds", "s3://KEY:SECRET@bucket/seeds"])
def test_a_url_that_is_not_read_is_one_mistake(url: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(UserMistakes, match="data") as error:
        medtest.run(SUITE, bright, data=url, home=tmp_path)
    assert "SECRET" not in str(error.value)

"""The object library: bundled objects, other folders, and messages about mistakes in them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image as Pillow

from medtest.core.errors import UserMistakes
from medtest.core.files.paths import package_folder
from medtest.relations.objects.library import KINDS, SOLID, BoundedCache, ObjectLibrary, load_library

BUNDLED = package_folder() / "relations" / "objects" / "bundled"
SCRIPT = Path(__file__).parents[2] / "scripts" / "draw_objects.py"


def copied(target: Path) -> Path:
    """Copy a library of one object, a PNG, for a test to damage."""
    place = target / "blood"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(BUNDLED / "blood" / "drip.json", place / "drip.json")
    with Pillow.open(BUNDLED / "blood" / "drip.webp") as picture:
        picture.save(place / "drip.png")
    return target


def test_pictures_are_png_or_lossless_webp(tmp_path: Path) -> None:
    folder = copied(tmp_path / "own")
    drawn = load_library().picture("blood", "drip")
    assert np.array_equal(ObjectLibrary(folder, "own").picture("blood", "drip"), drawn)
    assert load_library()._files["blood", "drip"].suffix == ".webp"
    Pillow.fromarray(drawn).save(folder / "blood" / "drip.webp", quality=80)
    with pytest.raises(UserMistakes, match="not a lossless WebP"):
        ObjectLibrary(folder, "own")
    Pillow.fromarray(np.ascontiguousarray(drawn[..., :3])).save(folder / "blood" / "drip.webp", lossless=True)
    with pytest.raises(UserMistakes, match="8-bit RGBA"):
        ObjectLibrary(folder, "own")


def test_the_bundled_library_has_twelve_of_each_kind_or_more() -> None:
    library = load_library()
    for kind in KINDS:
        assert len(library.kind(kind)) >= 12
        for info in library.kind(kind):
            assert info.licence == "CC0-1.0"
            assert "draw_objects.py" in info.source
            assert not info.partial
            picture = library.picture(kind, info.name)
            assert 80 <= max(picture.shape[:2]) <= 384
            assert np.count_nonzero(picture[..., 3] >= SOLID) == info.pixels
            assert not picture[picture[..., 3] == 0].any()
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*")) < 3_000_000


def test_bundled_facts_are_those_of_the_pictures() -> None:
    library = load_library()
    for kind in KINDS:
        for info in library.kind(kind):
            picture = library.picture(kind, info.name)
            colours = picture[..., :3][picture[..., 3] >= SOLID]
            luma = cv2.cvtColor(colours[:, None], cv2.COLOR_RGB2GRAY).astype(float) / 255
            assert info.mean_brightness == pytest.approx(luma.mean(), abs=0.005)
            assert info.contrast == pytest.approx(luma.std(), abs=0.005)
            assert info.mean_colour == pytest.approx(colours.mean(axis=0), abs=0.06)


def test_bundled_objects_do_not_touch_the_edge_of_their_picture() -> None:
    """A shape that its canvas cuts straight would look pasted; instruments end at the cut of their shaft."""
    library = load_library()
    for kind in ("feces", "blood"):
        for info in library.kind(kind):
            alpha = library.picture(kind, info.name)[..., 3]
            rim = np.concatenate([alpha[0], alpha[-1], alpha[:, 0], alpha[:, -1]])
            assert (rim >= SOLID).mean() < 0.03, info.name


def test_feces_are_yellow_brown_and_blood_is_red() -> None:
    library = load_library()
    for info in library.kind("feces"):
        red, green, blue = info.mean_colour
        assert red > green > blue
        assert 1.15 < red / green < 1.8
    for info in library.kind("blood"):
        red, green, blue = info.mean_colour
        assert red > 2.5 * max(green, blue)


def test_the_script_draws_the_bundled_library(tmp_path: Path) -> None:
    """Drawn again with the same versions it is the same; another OpenCV may round differently."""
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import draw_objects as d; import cv2; "
        "from pathlib import Path\n"
        "for name in ('clip_deployed', 'cap_edge'):\n"
        "    picture, meta = d.draw_instrument(name, d.INSTRUMENTS[name])\n"
        "    cv2.imwrite(str(Path(sys.argv[2]) / (name + '.png')), cv2.cvtColor(picture, cv2.COLOR_RGBA2BGRA))\n"
        "    Path(sys.argv[2], name + '.json').write_text(json.dumps(meta))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(SCRIPT.parent), str(tmp_path)], check=True, timeout=120)
    library = load_library()
    for name in ("clip_deployed", "cap_edge"):
        drawn = cv2.cvtColor(cv2.imread(str(tmp_path / f"{name}.png"), cv2.IMREAD_UNCHANGED), cv2.COLOR_BGRA2RGBA)
        bundled = library.picture("instrument", name)
        assert drawn.shape == bundled.shape
        assert np.abs(drawn.astype(int) - bundled).mean() < 0.5
        assert json.loads((tmp_path / f"{name}.json").read_text())["cut"] == [
            list(point) for point in library.info("instrument", name).cut
        ]


def test_a_library_is_read_once_and_again_when_a_file_changes(tmp_path: Path) -> None:
    folder = copied(tmp_path / "own")
    first = load_library("own", str(folder))
    assert load_library("own", str(folder)) is first
    facts = json.loads((folder / "blood" / "drip.json").read_text())
    (folder / "blood" / "drip.json").write_text(json.dumps(facts | {"source": "another"}))
    second = load_library("own", str(folder))
    assert second is not first
    assert second.digest != first.digest


def test_the_digest_does_not_depend_on_the_place_of_the_library(tmp_path: Path) -> None:
    assert ObjectLibrary(copied(tmp_path / "a"), "a").digest == ObjectLibrary(copied(tmp_path / "b"), "b").digest


def test_an_id_is_looked_for_under_objects_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(tmp_path / "objects" / "mine")
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    assert [info.name for info in load_library("mine").kind("blood")] == ["drip"]
    with pytest.raises(UserMistakes, match="no such folder"):
        load_library("other")


def edit(change: dict[str, object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / "blood" / "drip.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))

    return spoil


def picture(image: np.ndarray) -> Callable[[Path], None]:  # type: ignore[type-arg]
    return lambda folder: (cv2.imwrite(str(folder / "blood" / "drip.png"), image), None)[1]


def link_out(folder: Path) -> None:
    target = folder.parent / "secret.png"
    shutil.move(folder / "blood" / "drip.png", target)
    (folder / "blood" / "drip.png").symlink_to(target)


def second_name(folder: Path) -> None:
    for suffix in (".png", ".json"):
        shutil.copyfile(folder / "blood" / f"drip{suffix}", folder / "blood" / f"again{suffix}")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "blood" / "drip.png").unlink(), "drip.png is missing"),
        (lambda folder: (folder / "blood" / "drip.png").write_text("no picture"), "is not a PNG"),
        (picture(np.zeros((40, 40, 3), np.uint8)), "not an 8-bit RGBA"),
        (picture(np.zeros((4, 4, 4), np.uint8)), "sides of 8 to 2048"),
        (picture(np.zeros((9, 2100, 4), np.uint8)), "sides of 8 to 2048"),
        (link_out, "leads out of the library"),
        (second_name, "a second blood 'drip'"),
        (lambda folder: (folder / "blood" / "drip.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "blood" / "drip.json").write_text("[1]"), "not JSON with keys and values"),
        (lambda folder: (folder / "blood" / "drip.json").write_text("[" * 60_000), "not JSON"),
        (lambda folder: (folder / "blood" / "drip.json").write_text(" " * 70_000), "70000 bytes"),
        (lambda folder: (folder / "blood" / "drip.json").unlink(), "0 objects"),
        (edit({"colour": 3}), r"colour[\s\S]*unknown key[\s\S]*did you mean: mean_colour|colour[\s\S]*unknown key"),
        (edit({"kind": "polyp"}), "kind"),
        (edit({"area": 0}), "area"),
        (edit({"angle": float("inf")}), "angle|not JSON"),
        (edit({"centre": [9, 9]}), "centre outside"),
        (edit({"name": "../x"}), "name"),
        (edit({"source": ""}), "source"),
        (edit({"cut": [[0.1, 0.2, 0.3]]}), "cut"),
    ],
)
def test_mistakes_in_a_library_are_reported(tmp_path: Path, spoil: Callable[[Path], None], message: str) -> None:
    folder = copied(tmp_path / "own")
    spoil(folder)
    with pytest.raises(UserMistakes, match=message) as raised:
        ObjectLibrary(folder, "own")
    assert str(tmp_path) not in str(raised.value)


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    folder = copied(tmp_path / "own")
    edit({"area": -1})(folder)
    (folder / "blood" / "none.json").write_text("{}")
    with pytest.raises(UserMistakes) as raised:
        ObjectLibrary(folder, "own")
    assert len(raised.value.mistakes) == 2


def test_a_picture_that_is_not_what_its_json_says_is_refused(tmp_path: Path) -> None:
    folder = copied(tmp_path / "own")
    facts = json.loads((folder / "blood" / "drip.json").read_text())
    edit({"pixels": facts["pixels"] * 2})(folder)
    library = ObjectLibrary(folder, "own")
    with pytest.raises(UserMistakes, match="its JSON says"):
        library.picture("blood", "drip")


def test_a_damaged_picture_is_refused_when_it_is_used(tmp_path: Path) -> None:
    folder = copied(tmp_path / "own")
    path = folder / "blood" / "drip.png"
    path.write_bytes(path.read_bytes()[:60])
    library = ObjectLibrary(folder, "own")
    with pytest.raises(UserMistakes, match=r"cannot be decoded|its JSON says"):
        library.picture("blood", "drip")


def test_an_unknown_object_is_named_with_the_nearest() -> None:
    with pytest.raises(UserMistakes, match="did you mean: drip"):
        load_library().info("blood", "dripp")


def test_the_cache_stays_within_its_bytes_and_keeps_what_was_used_last() -> None:
    created: list[int] = []

    def make(number: int) -> Callable[[], bytes]:
        def really() -> bytes:
            created.append(number)
            return bytes(10)

        return really

    cache: BoundedCache[bytes] = BoundedCache(30, len)
    for number in (1, 2, 3):
        cache.get(number, make(number))
    cache.get(1, make(1))
    cache.get(4, make(4))  # 2 has not been used for longest
    assert cache.used == 30
    cache.get(1, make(1))
    cache.get(2, make(2))
    assert created == [1, 2, 3, 4, 2]

"""Typical first mistakes on the command line: exit code 2, a fix, no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from medtest.cli.run.launch import main
from medtest.core.files.masks import decode_mask, lesion_values
from medtest.suite import run_options
from medtest.suite.commandline.short_keys import cuda_devices

SUITE = 'name: mine\nversion: "1"\nseed: 1\nseeds: {folder: {source: image_mask_folders}}\nrelations: {blur: {}}\n'
SQUARES = ((slice(4, 24), slice(4, 24)), (slice(40, 60), slice(30, 60)))
"""Rows and columns of two things in a mask."""


@pytest.fixture
def type_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Return a function that types a command with a suite of the user's folder and returns the output."""
    (tmp_path / "mine.yaml").write_text(SUITE + "systems: [pranet]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)

    def type_(*words: str, suite: str = "suite=mine.yaml") -> str:
        assert main([*suite.split(), *words], command="python run.py") == 2
        shown = capsys.readouterr()
        text = shown.out + shown.err
        assert "Traceback" not in text
        assert not Path("outputs").exists()
        return text

    return type_


def _pictures(root: Path, **masks: np.ndarray) -> Path:
    for name, mask in masks.items():
        for folder, content in (("images", np.full((*mask.shape[:2], 3), 90, np.uint8)), ("masks", mask)):
            (root / folder).mkdir(parents=True, exist_ok=True)
            assert cv2.imwrite(str(root / folder / f"{name}.png"), content)
    return root


def _mask(first: object, second: object = 0, *, channels: int = 0) -> np.ndarray:
    mask = np.zeros((80, 90, channels) if channels else (80, 90), np.uint8)
    for place, value in zip(SQUARES, (first, second), strict=True):
        mask[place] = value
    return mask


@pytest.mark.parametrize(
    ("words", "key", "whole"),
    [
        (("model=[pranet,", "ssformer]"), "model", "model=[pranet,ssformer]"),
        (("model=pranet,", "ssformer"), "model", "model=pranet,ssformer"),
        (("relations={blur:", "{severities:", "[1,", "2]}}"), "relations", "relations={blur:{severities:[1,2]}}"),
        (("limit", "=", "3"), "limit", "limit=3"),
        (("limit=", "3"), "limit", "limit=3"),
        (("limit", "=3"), "limit", "limit=3"),
    ],
)
def test_words_that_the_shell_split_are_put_together(
    type_command, words: tuple[str, ...], key: str, whole: str
) -> None:
    text = type_command(*words, "plan=true")
    assert text.startswith(f"1 mistake:\ncommand line: {key}\n")
    assert f"found:   {' '.join(words)}, which the shell splits at spaces" in text
    assert re.search(rf"fix:     remove the spaces?: {re.escape(whole)}(,|\n)", text)


def test_a_suite_with_spaces_around_its_sign(type_command) -> None:
    text = type_command("plan=true", suite="suite = polyp_seg")
    assert text.startswith("1 mistake:\ncommand line: suite\n")
    assert "remove the spaces: suite=polyp_seg\n" in text


def test_a_key_that_the_shell_split_is_not_shown(type_command) -> None:
    assert "sk-secret" not in type_command("systems.pranet.api_key", "=", "sk-secret")


def test_words_that_only_look_split_have_the_usual_message(type_command) -> None:
    assert "found:   ssformer" in type_command("model=pranet", "ssformer")
    assert "[a" in type_command("model=[a", "limit=3")


def test_a_key_of_the_oracle_has_a_nearest_name(type_command) -> None:
    text = type_command("oracles.primry.threshold=0.3", suite="suite=polyp_seg")
    assert "command line: oracles.primry\n" in text
    assert "did you mean: primary" in text
    assert "no keys here" not in text


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (("suite=polyp_sge",), "polyp_seg"),
        (("suite=polyp_seg", "model=pranett"), "pranet"),
        (("suite=polyp_seg", "relations.blurr.severities=[1]"), "blur"),
        (("suite=polyp_seg", "privacy.images=non"), "none"),
        (("suite=polyp_seg", "oracles.primary.score=dise"), "dice"),
        (("suite=polyp_seg", "devise=cpu"), "device"),
        (("suite=polyp_seg", "device=CPU"), "cpu"),
    ],
)
def test_the_nearest_name_comes_before_the_allowed_ones(type_command, words: tuple[str, ...], nearest: str) -> None:
    text = type_command(*words[1:], suite=words[0])
    assert f"did you mean: {nearest}\n" in text
    assert text.index("did you mean:") < text.index("allowed:")


@pytest.mark.parametrize("plan", ["plan=true", "plan=false"])
@pytest.mark.parametrize("count", ["0", "-1", "1000000"])
def test_impossible_numbers_of_workers(type_command, count: str, plan: str) -> None:
    text = type_command(f"workers={count}", plan, suite="suite=polyp_seg")
    assert text.startswith("1 mistake:\ncommand line: workers\n")
    assert f"found:   {count}\n" in text
    assert ("at least 1" if int(count) < 1 else "at most 512") in text


@pytest.mark.parametrize("plan", ["plan=true", "plan=false"])
@pytest.mark.parametrize("device", ["cuda:99", "gpu:99", "tpu"])
def test_a_missing_device(type_command, device: str, plan: str) -> None:
    devices = ", ".join(["auto", "cpu", *(f"cuda:{number}" for number in range(cuda_devices()))])
    text = type_command(f"device={device}", plan, suite="suite=polyp_seg")
    assert text.startswith("1 mistake:\ncommand line: device\n")
    assert f"allowed: {devices}\n" in text


@pytest.mark.parametrize("folder", ["images", "masks"])
def test_one_of_two_folders_is_given(type_command, folder: str) -> None:
    root = _pictures(Path("mine").absolute(), a=_mask(255), b=_mask(0, 255))
    assert f"fix:     type the folder that holds images and masks: data={root}\n" in type_command(
        f"data={root / folder}"
    )


def test_a_file_is_given(type_command) -> None:
    root = _pictures(Path("mine").absolute(), a=_mask(255))
    text = type_command(f"data={root / 'images' / 'a.png'}", "plan=true")
    assert "  found:   a file: /" in text
    assert f"fix:     type the folder: data={root}\n" in text
    Path("set.zip").write_bytes(b"")
    assert "unpack it" in type_command("data=set.zip")


def test_a_missing_folder_is_given(type_command) -> None:
    _pictures(Path("Kvasir-SEG"), a=_mask(255))
    assert "did you mean: Kvasir-SEG\n" in type_command("data=kvasir_seg")


@pytest.mark.parametrize(("most", "nearest"), [(3, "Kvasir-SEG"), (2, None)])
def test_a_similar_name_is_looked_for_among_so_many_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int, nearest: str | None
) -> None:
    monkeypatch.setattr(run_options, "_MOST_SIBLINGS", most)
    for name in ("Kvasir-SEG", "CVC", "ETIS"):
        (tmp_path / name).mkdir()
    nearest_found = run_options._similar_folder(tmp_path / "kvasir_seg")
    assert nearest_found == (None if nearest is None else str(tmp_path / nearest))


@pytest.mark.parametrize(
    ("mask", "value"),
    [
        (_mask(1, 2), "[1,2]"),
        (_mask(100, 255), "[100,255]"),
        (_mask(60, 61), "[60,61]"),
        (_mask((0, 0, 255), (0, 255, 0), channels=3), "[[0,255,0],[255,0,0]]"),
    ],
)
def test_values_of_lesions_are_named_by_their_whole_key_and_work(type_command, mask: np.ndarray, value: str) -> None:
    root = _pictures(Path("mine"), a=mask)
    text = type_command(f"data={root}", "plan=true")
    assert f"seeds.folder.label_values={value} " in text.replace("\n", " ")
    code = main(
        ["suite=mine.yaml", f"data={root}", f"seeds.folder.label_values={value}", "plan=true"], command="python run.py"
    )
    assert code == 0


def test_no_value_is_suggested_that_would_select_everything_or_nothing() -> None:
    full = cv2.imencode(".png", np.full((9, 9), 3, np.uint8))[1].tobytes()
    assert lesion_values(full) == ()
    steps = cv2.imencode(".png", np.repeat(np.arange(0, 240, 20, dtype=np.uint8), 80).reshape(40, 24))[1].tobytes()
    assert lesion_values(steps) == ()
    two = cv2.imencode(".png", _mask(1, 2))[1].tobytes()
    assert np.array_equal(decode_mask(two, values=lesion_values(two)).mask, _mask(1, 2) > 0)

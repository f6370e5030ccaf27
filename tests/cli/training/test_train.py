from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from medtest.cli.training.commands import app
from medtest.cli.training.tokens import from_scratch, parse_scratch
from medtest.core.errors import UserMistakes
from medtest.training.classification.options import ClassificationOptions
from medtest.training.evaluate import folder_images, phantom_images
from medtest.training.settings.options import SegmentationOptions


def _folder(root: Path, count: int = 6) -> Path:
    for name in ("images", "masks"):
        (root / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for index in range(count):
        mask = np.zeros((120, 160), np.uint8)
        cv2.circle(mask, (80, 60), 20 + index, 255, -1)
        image = np.repeat((mask // 2)[..., None], 3, 2) + rng.integers(0, 60, (120, 160, 3)).astype(np.uint8)
        cv2.imwrite(str(root / "images" / f"{index}.png"), image)
        cv2.imwrite(str(root / "masks" / f"{index}.png"), mask)
    return root


def _run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_one_command_trains_every_kind_of_network(tmp_path: Path) -> None:
    data = _folder(tmp_path / "my data [1]=x")
    tokens = ["model=pranet", f"data={data}", "held_out=2", "batch=2", "size=64", "sizes=[64,96]", "steps=2"]
    tokens += ["validate_every=1", "mlflow=false", "threads=1", f"out={tmp_path / 'out'}"]
    first = _run(*tokens)
    assert "step 2/2" in first and "validation Dice real" in first and "best mean Dice in validation" in first
    weights = (tmp_path / "out" / "pranet.safetensors").read_bytes()
    assert "step 1/2" not in _run("network", *tokens)  # the same training: finished
    assert "step 1/2" in _run(*tokens, "fresh=true")
    assert (tmp_path / "out" / "pranet.safetensors").read_bytes() == weights


def test_the_network_decides_the_kind_of_options(tmp_path: Path) -> None:
    options, out, fresh = parse_scratch(
        [
            "model=attnmel",
            "suite=wce",
            "data=~/d",
            "from=scratch",
            "recipe.optimizer.rate=1e-4",
            "recipe=agdn",
            "steps=7",
        ]
    )
    assert isinstance(options, ClassificationOptions) and not fresh
    assert (options.suite, options.recipe, options.changes()) == ("wce", "agdn", {"optimizer.rate": 1e-4, "steps": 7})
    assert out.parts[-3:] == ("outputs", "training", "attnmel")
    options, out, fresh = parse_scratch(
        ["model=sanet", "data=a", "data=b", "sizes=[64,96]", "from=w", f"out={tmp_path}", "fresh=true"], threads=2
    )
    assert isinstance(options, SegmentationOptions) and fresh and out == tmp_path
    assert (options.data, options.sizes, options.start_from) == ([Path("a"), Path("b")], [64, 96], Path("w"))
    assert options.threads == 2
    assert [
        from_scratch(["model=x", *tokens]) for tokens in (["from=w"], ["suite=s"], ["suite=s", "from=scratch"])
    ] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["phantoms=3"], "a network (pranet, attnmel"),
        (["model=pranett", "phantoms=3"], "did you mean: pranet"),
        (["model=pranet", "phantom=3"], "did you mean: phantoms"),
        (["model=pranet", "size=100"], "multiple of 32"),
        (["model=pranet", "recipe.average=0.9"], "recipe.average=0.9"),
        (["model=attnmel", "auxiliary=1"], "allowed: KEY=VALUE"),
    ],
)
def test_mistyped_options_are_mistakes(tokens: list[str], expected: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        parse_scratch(tokens)
    assert expected in str(caught.value)


def test_wrong_options_are_all_listed(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes) as caught:
        parse_scratch(["model=pranet", f"out={tmp_path}", "size=100", "rate=-1"])
    assert [mistake.key for mistake in caught.value.mistakes] == ["size", "rate"]
    with pytest.raises(UserMistakes, match="mistake") as caught:
        CliRunner().invoke(app, ["evaluate"], catch_exceptions=False)
    assert "--phantoms" in str(caught.value)


def test_a_system_is_scored_on_folders_and_phantoms(tmp_path: Path) -> None:
    output = _run("evaluate", "--model", "pranet", "--data", str(_folder(tmp_path / "set")), "--phantoms", "2")
    assert "pranet-compact on set: Dice" in output
    assert "n=6" in output
    assert "pranet-compact on phantoms: Dice" in output


def test_scored_images_are_prepared_like_in_suites(tmp_path: Path) -> None:
    from medtest.phantoms.colon import colon_rng, make_colon

    (pair,) = phantom_images(1, seed=5)
    phantom = make_colon(colon_rng(5, "evaluation", 0))
    assert pair[1].shape == (512, 512, 3)
    assert pair[2].dtype == np.bool_
    assert pair[2].mean() == pytest.approx(phantom.mask.mean(), abs=0.002)
    _, image, mask = folder_images(_folder(tmp_path / "set"))[0]
    assert image.shape == (512, 512, 3)
    assert mask.mean() == pytest.approx(np.pi * 20**2 / (120 * 160), rel=0.05)

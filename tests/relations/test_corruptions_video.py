"""The lossy video pass: real ffmpeg if imageio-ffmpeg is installed, else one message."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
from corruption_parts import built, frame_of, frame_params, seed_of, sequence_of, smooth_picture

from medtest.core.errors import MedtestError
from medtest.relations.corruptions.video import encode_and_decode

installed = find_spec("imageio_ffmpeg") is not None
needs_ffmpeg = pytest.mark.skipif(not installed, reason="the extra video is not installed")


@pytest.mark.skipif(installed, reason="imageio-ffmpeg is installed")
def test_without_the_extra_there_is_one_message() -> None:
    with pytest.raises(ValueError, match=r"pip install 'medtest\[video\]'"):
        sequence_of("rotate", video=True)
    with pytest.raises(MedtestError, match=r"pip install 'medtest\[video\]'"):
        encode_and_decode([smooth_picture(16, 16)], grain=False)


def test_a_level_is_no_video() -> None:
    with pytest.raises(ValueError, match="unless form is sequence"):
        built("rotate", video=True)


@pytest.mark.slow
@needs_ffmpeg
@pytest.mark.parametrize("name", ["rotate", "gaussian_noise"])
@pytest.mark.parametrize("shape", [(64, 96), (97, 131)])
def test_frames_carry_the_noise_of_the_codec(name: str, shape: tuple[int, int]) -> None:
    image = smooth_picture(*shape)
    lossy, clean = sequence_of(name, video=True), sequence_of(name)
    seed = seed_of(image)
    for index in (0, 9, 4):
        follow = frame_of(lossy, seed, index)
        film = follow.params["video"]
        plain = clean.apply(seed, film[index])
        error = np.abs(follow.image.astype(int) - plain.image)
        assert follow.image.shape == image.shape
        assert 0 < error.mean() < 6
        assert follow.scale == plain.scale
        assert follow.effect == plain.effect
        stored = json.loads(json.dumps(follow.params, allow_nan=False))
        assert lossy.apply(seed_of(image), stored).image.tobytes() == follow.image.tobytes()


@needs_ffmpeg
def test_noise_of_every_frame_has_its_own_seed() -> None:
    film = frame_params(sequence_of("speckle_noise", video=True), seed_of(smooth_picture(32, 32)), 3)["video"]
    assert film == frame_params(sequence_of("speckle_noise", video=True), seed_of(smooth_picture(32, 32)), 7)["video"]
    assert len({each["noise_seed"] for each in film[1:]}) == 9

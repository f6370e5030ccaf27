"""Lossy video compression of sequences, as in the released data (option ``video``).

Every sequence was stored as H.264 (x264, preset veryslow; rate factor 20, or the default 23 with ``tune grain`` for
noise) and decoded again, so that all frames, including the clean one, carry the codec's noise. ffmpeg comes with the
package imageio-ffmpeg. RGB pictures are encoded in full colour resolution (yuv444p), which is ffmpeg's choice for them.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.errors import MedtestError
from medtest.core.recent import last_of


def through_video(
    seed: PreparedSeed, film: Sequence[Params], make: Callable[[], list[Image]], *, grain: bool
) -> list[Image]:
    """Return the frames of a sequence after compression; the last sequence of a seed is cached.

    Args:
        seed: Holds the cache, so that a sequence is encoded once.
        film: Parameters of all frames, which identify the sequence.
        make: Makes the frames, uint8 H×W×3.
        grain: Encode like the noise types.

    Raises:
        MedtestError: ffmpeg gave back another number of frames.
    """
    key = hashlib.sha256(json.dumps([list(map(dict, film)), grain], sort_keys=True).encode()).hexdigest()
    return last_of(seed, "corruptions.video", key, lambda: encode_and_decode(make(), grain=grain))


def encode_and_decode(pictures: Sequence[Image], *, grain: bool) -> list[Image]:
    """Pass uint8 H×W×3 pictures of one size through H.264; deterministic, because x264 runs on one thread.

    Raises:
        MedtestError: imageio-ffmpeg is not installed, or ffmpeg gave back another number of frames.
    """
    try:
        ffmpeg: Any = importlib.import_module("imageio_ffmpeg")
    except ImportError as error:
        raise MedtestError("video: imageio-ffmpeg is not installed (pip install 'medtest[video]')") from error
    height, width = pictures[0].shape[:2]
    quality = ["-tune", "grain"] if grain else ["-crf", "20"]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "frames.mp4")
        writer = ffmpeg.write_frames(
            path,
            (width, height),
            fps=1,
            codec="libx264",
            pix_fmt_out="yuv444p",
            quality=None,
            macro_block_size=1,
            ffmpeg_log_level="error",
            output_params=["-preset", "veryslow", "-threads", "1", *quality],
        )
        writer.send(None)
        for picture in pictures:
            writer.send(np.ascontiguousarray(picture))
        writer.close()
        frames = list(_decoded(ffmpeg, path, (height, width)))
    if len(frames) != len(pictures):
        raise MedtestError(f"video: ffmpeg gave {len(frames)} frames back for {len(pictures)}")
    return frames


def _decoded(ffmpeg: Any, path: str, shape: tuple[int, int]) -> Iterator[Image]:
    reader = ffmpeg.read_frames(path, pix_fmt="rgb24", input_params=["-threads", "1"])
    next(reader)  # the first item describes the file
    for data in reader:
        yield np.frombuffer(data, np.uint8).reshape(*shape, 3)

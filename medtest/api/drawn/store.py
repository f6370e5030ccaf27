"""Generated picture: decoded within limits, named by its pixels, written to a folder."""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np

from medtest.api.calls.request import CallState
from medtest.api.wire.drawing import CODED
from medtest.core.cases import Image, image_sha256
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import PictureFiles, encode, without_metadata
from medtest.core.files.images import BadFileError, decode_rgb

MOST_PIXELS = 40_000_000
"""Largest generated picture that is decoded."""
KIND: Final = "images"


@dataclass(frozen=True, slots=True)
class KeptPicture:
    """Result of storing a file sent by a service.

    Attributes:
        picture: SHA-256 of its pixels; "" if not stored.
        state: ANSWERED; MALFORMED if it is not a picture, CONTENT_FILTER if it has one colour.
        reason: Reason why it is not stored.
    """

    picture: str = ""
    state: CallState = CallState.ANSWERED
    reason: str = ""


def file_of(content: bytes) -> bytes:
    """Return the file of a picture, decoding base64 (:data:`medtest.api.wire.drawing.CODED`).

    Raises:
        BadFileError: It is not base64.
    """
    if not content.startswith(CODED):
        return content
    packed = content[len(CODED) :]
    try:
        return binascii.a2b_base64(packed, strict_mode=True)
    except binascii.Error:
        pass
    packed = b"".join(packed.split())  # line ends and padding
    try:
        return binascii.a2b_base64(packed + b"=" * (-len(packed) % 4), strict_mode=True)
    except binascii.Error:
        raise BadFileError("is not base64") from None


def pixels_of(content: bytes, size: int | None = None) -> Image:
    """Return a service's picture as uint8 RGB H×W×3.

    Args:
        content: The file, in any format of :mod:`medtest.core.files.images`.
        size: Longer side to which it is resized; None keeps its size.

    Raises:
        BadFileError: It is not a readable picture of at most :data:`MOST_PIXELS`.
    """
    pixels = decode_rgb(content, max_pixels=MOST_PIXELS)
    longer = max(pixels.shape[:2])
    if size is None or longer == size:
        return pixels
    height, width = (max(1, round(side * size / longer)) for side in pixels.shape[:2])
    way = cv2.INTER_AREA if longer > size else cv2.INTER_CUBIC
    resized: Image = cv2.resize(pixels, (width, height), interpolation=way)
    return resized


def is_blank(pixels: Image) -> bool:
    """Return True if a picture has one colour, as some services send instead of a refusal."""
    first = pixels[:1, :1]
    return bool(np.array_equal(pixels[0], np.broadcast_to(first[0], pixels[0].shape)) and (pixels == first).all())


class Store:
    """Pictures of one folder, each synced to disk before it gets its name.

    Args:
        folder: The folder.
        size: Longer side to which pictures are resized before they are stored; None keeps their size.
    """

    def __init__(self, folder: Path, *, size: int | None = None) -> None:
        self.files, self.size = PictureFiles(folder, durable=True), size

    def keep(self, content: bytes) -> KeptPicture:
        """Store a file sent by a service.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        try:
            content = file_of(content)
            pixels = pixels_of(content, self.size)
        except BadFileError as error:
            return KeptPicture(state=CallState.MALFORMED, reason=f"what came {error}")
        if is_blank(pixels):
            return KeptPicture(state=CallState.CONTENT_FILTER, reason="the picture is of one colour")
        sha256 = image_sha256(pixels)
        self.put(sha256, pixels, content)
        return KeptPicture(sha256)

    def put(self, sha256: str, pixels: Image, content: bytes = b"") -> None:
        """Store a picture.

        Args:
            sha256: Its name.
            pixels: uint8 H×W×3.
            content: The file from which they were read, which is stored without its metadata if it has the same format;
                otherwise the pixels are encoded.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        plain = None if self.size is not None else without_metadata(content)
        try:
            self.files.put_bytes(KIND, sha256, encode(KIND, pixels) if plain is None else plain)
        except OSError as error:
            raise OutputProblem(
                f"the generated picture cannot be saved in {self.files.folder} ({error.strerror}): free space, and run"
                " the same command again to continue"
            ) from None

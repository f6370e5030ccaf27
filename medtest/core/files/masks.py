"""Conversion of pictures to masks: rules for which pixels are lesion, and which pictures need a user setting.

- Black and white, with or without JPEG noise and soft edges: above 127 is lesion.
- Lossless pictures of two levels, 0 and any other: the other is lesion. Label maps are such pictures.
- Palettes other than grey ramps hold class numbers: 0 is background, 255 is void (as in PASCAL VOC), and a single class
  is lesion. The same holds for one colour on black.
- Black and white with additional levels, such as the levels 11 to 13 in CVC-ClinicDB's masks: where 0 and white hold 95
  % of the pixels, levels 9 to 32 and 223 to 254 are noise within 3 pixels (more where a side is over 288) of white, of
  the picture's border or of another such level. An isolated region of one level is a class, as are levels 1 to 8, which
  number classes.
- Several levels, classes or colours are refused unless ``label_values`` names those that are lesion.
- A picture without values above 127 whose few non-black pixels are scattered one by one is empty: they are noise.

A level, class or colour counts if it is coherent, that is, if a quarter of its pixels are the corner of a 2×2 square
inside it. Edges of soft masks and noise are not coherent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from medtest.core.cases import Image, Mask
from medtest.core.files.images import (
    LOSSY,
    MAX_PIXELS,
    BadFileError,
    opened_picture,
    read_bytes,
    rgb_of,
    to_eight_bits,
    upright,
)
from medtest.core.files.mask_levels import (
    BLACK,
    CURE,
    EVERY,
    FEW,
    MOST_SHOWN,
    SHARE_FEW,
    in_words,
    is_drawn,
    level_counts,
    noise_beside,
    plateaus,
)
from medtest.core.files.mask_levels import holds_together as _holds_together

LabelValue: TypeAlias = "int | tuple[int, int, int]"
"""A grey level, a palette index, or a colour as RGB."""

MAX_LABEL = 20
"""Largest value of a picture that may hold noise or labels 0…N and nothing else."""

VOID = 255
"""Palette index of unlabelled pixels."""

_MOST_LEVELS = 256
"""Dark pictures with more levels than this hold measurements (depths, probabilities), whose levels are not examined."""

_COLOURED = 40
"""Channels further apart than this make a colour; colours closer than this are equal."""

_TINT = 8
"""Palette entries whose channels are no further apart are grey."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionMask:
    """Decoded mask.

    Attributes:
        mask: bool H×W, upright.
        brightest: The brightest 8-bit value.
        specks: True if the mask was taken for empty although single pixels are not black.
        near: Share of the pixels, 0 to 1, treated as noise on black or white that may look like a class.
        revised: True if medtest read a different mask from this file before it examined levels.
    """

    mask: Mask
    brightest: int
    specks: bool = False
    near: float = 0.0
    revised: bool = False


def decode_mask(content: bytes, *, max_pixels: int = MAX_PIXELS, values: Sequence[LabelValue] = ()) -> LesionMask:
    """Decode a file's bytes to a mask.

    Args:
        content: A picture.
        max_pixels: Limit on its pixels, checked before decoding.
        values: Levels, palette indices and colours that are lesion; if empty, the rules above decide.

    Raises:
        BadFileError: It is not a readable picture within the limit, or no rule identifies the lesion.
    """
    with opened_picture(content, max_pixels) as picture:
        lossless = picture.format not in LOSSY
        picture = upright(picture)
        if picture.mode == "1":
            mask = np.array(picture, dtype=np.bool_)
            if values:
                mask = np.isin(mask, [bool(value) for value in values if isinstance(value, int)])
            return LesionMask(mask=mask, brightest=255 * int(mask.any()))
        raw, rgb = _pixels(picture)
        light = _brightness(raw, rgb)
        former = _bright_mask(raw, light, palette=picture.mode == "P", lossless=lossless)
        grey = _is_grey(_used_colours(raw, picture), _TINT) if picture.mode == "P" and raw is not None else rgb is None
        if picture.mode == "P" and raw is not None and (values or not grey):
            reading = _Read(_mask_from_palette(raw, _palette(picture), values))
        elif rgb is not None and not grey and not _is_grey(rgb):
            reading = _Read(_mask_from_colours(rgb, values))
        else:
            levels = light if raw is None or picture.mode == "P" else raw
            reading = _mask_from_levels(levels, light, values, lossless=lossless)
    mask = reading.mask
    return LesionMask(
        mask=np.ascontiguousarray(mask),
        brightest=int(light.max()),
        specks=reading.specks,
        near=reading.near,
        revised=not np.array_equal(mask, former),
    )


def read_mask(path: Path, *, max_pixels: int = MAX_PIXELS, values: Sequence[LabelValue] = ()) -> Mask:
    """Read a mask file as bool H×W; arguments and errors as in :func:`decode_mask`."""
    content = read_bytes(path, max_pixels=max_pixels)
    return decode_mask(content, max_pixels=max_pixels, values=values).mask


def read_bright(path: Path, *, max_pixels: int = MAX_PIXELS) -> Mask:
    """Read the pixels above 127, or the non-zero labels of a picture of labels up to ``MAX_LABEL``, as bool H×W.

    For ground truths with special levels, e.g. changedetection.net, where 170 is also moving.

    Raises:
        BadFileError: It is not a readable picture within the limit.
    """
    with opened_picture(read_bytes(path, max_pixels=max_pixels), max_pixels) as picture:
        lossless = picture.format not in LOSSY
        picture = upright(picture)
        raw, rgb = _pixels(picture)
        return np.ascontiguousarray(
            _bright_mask(raw, _brightness(raw, rgb), palette=picture.mode == "P", lossless=lossless)
        )


def _pixels(picture: Pillow.Image) -> tuple[NDArray[np.generic] | None, Image | None]:
    """Return a picture's raw numbers if it has one per pixel, and its colours unless it is plain grey."""
    wide = picture.mode.startswith(("I", "F"))
    raw = np.asarray(picture) if wide or picture.mode in ("1", "L", "P") else None
    plain = wide or picture.mode == "1" or (picture.mode == "L" and "transparency" not in picture.info)
    return raw, None if plain else rgb_of(picture)


def _brightness(raw: NDArray[np.generic] | None, rgb: Image | None) -> NDArray[np.uint8]:
    """Return the brightness of each pixel: 8-bit values of grey pictures, luminance of others."""
    if rgb is not None:
        return cast("NDArray[np.uint8]", cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))
    if raw is None:
        raise BadFileError("holds neither grey levels nor colours")
    if raw.dtype == np.bool_:
        return np.where(raw, np.uint8(255), np.uint8(0))
    return np.ascontiguousarray(raw) if raw.dtype == np.uint8 else to_eight_bits(raw)


def _bright_mask(raw: NDArray[np.generic] | None, light: NDArray[np.uint8], *, palette: bool, lossless: bool) -> Mask:
    """Return the mask without examining levels: labels up to ``MAX_LABEL``, else pixels above 127."""
    if raw is not None and lossless and raw.dtype.kind != "f" and (not palette or int(light.max()) <= 127):
        numbers = raw.astype(np.int64)
        if int(numbers.min()) >= 0 and int(numbers.max()) <= MAX_LABEL:
            return numbers > 0
    return light > 127


# ------------------------------------------------------------------------------------------------------- grey levels


class _Read(NamedTuple):
    """Mask, a flag for pictures with nothing but noise, and the share of pixels that are noise on black or white."""

    mask: Mask
    specks: bool = False
    near: float = 0.0


def _mask_from_levels(
    levels: NDArray[np.generic], light: NDArray[np.uint8], values: Sequence[LabelValue], *, lossless: bool
) -> _Read:
    """Return the mask of a grey picture."""
    if values:
        chosen = [value if isinstance(value, int) else round(sum(value) / 3) for value in values]
        return _Read(_nearest_to_values(levels, light, chosen, lossless=lossless))
    if int(light.max()) > 127:
        return _Read(light > 127, near=noise_beside(light, level_counts(light), lossless=lossless))
    numbers, counts = np.unique(levels, return_counts=True)
    if not numbers.any():
        return _Read(np.zeros(light.shape, np.bool_))
    if len(numbers) > _MOST_LEVELS:
        raise BadFileError(f"holds nothing above 127 (brightest value {_brightest(numbers)}); {CURE}")
    coherent = [n for n, count in zip(numbers, counts, strict=True) if n != 0 and _holds_together(levels == n, count)]
    if not coherent:
        if int(light.max()) > MAX_LABEL or (lossless and float(numbers.max()) > MAX_LABEL):
            raise BadFileError(f"holds nothing above 127 (brightest value {_brightest(numbers)}); {CURE}")
        return _Read(np.zeros(light.shape, np.bool_), specks=True)
    if not lossless:
        # JPEG noise has no coherent black region; label maps saved as JPEG do.
        if int(light.max()) <= MAX_LABEL and not _holds_together(levels == 0, int((levels == 0).sum())):
            return _Read(np.zeros(light.shape, np.bool_), specks=True)
        raise BadFileError(f"holds nothing above 127 (brightest value {_brightest(numbers)}); {CURE}")
    if len(coherent) == 1 and (float(numbers.max()) <= MAX_LABEL or len(numbers) == 2):
        return _Read(np.asarray(levels != 0))
    if len(coherent) == 1:
        raise BadFileError(f"holds nothing above 127 (brightest value {_brightest(numbers)}); {CURE}")
    by_level = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    level_shares = {level: by_level[level] for level in (0, *(n.item() for n in coherent)) if level in by_level}
    raise BadFileError(f"holds several levels ({in_words(level_shares)}); {CURE}")


def _brightest(numbers: NDArray[np.generic]) -> str:
    return f"{float(numbers.max()):g}"


def _nearest_to_values(
    levels: NDArray[np.generic], light: NDArray[np.uint8], values: Sequence[int], *, lossless: bool
) -> Mask:
    """Return pixels with one of the values; with noise around levels, pixels closer to them than to other levels."""
    numbers = np.unique(levels)
    if len(numbers) <= FEW and lossless:
        return np.asarray(np.isin(levels, values))
    counts = level_counts(light)
    counted = plateaus(light, counts, few=lossless and is_drawn(counts))
    other_levels = [level for level in counted if min(abs(level - v) for v in values) > BLACK]
    value_distance = np.min([np.abs(EVERY - value) for value in values], axis=0)
    other_distance = (
        np.min([np.abs(EVERY - level) for level in other_levels], axis=0) if other_levels else np.full(256, 256)
    )
    return np.asarray((value_distance < other_distance)[light])


# ------------------------------------------------------------------------------------------------ palettes and colours


def _palette(picture: Pillow.Image) -> NDArray[np.uint8]:
    """Return a palette as uint8 256×3; missing entries are black."""
    colours = np.array(picture.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return np.vstack([colours, np.zeros((256 - len(colours), 3), np.uint8)])


def _used_colours(indices: NDArray[np.generic], picture: Pillow.Image) -> Image:
    """Return the palette colours that occur, uint8 1×N×3."""
    return np.asarray(_palette(picture)[np.unique(indices)][None])


def _mask_from_palette(indices: NDArray[np.generic], palette: NDArray[np.uint8], values: Sequence[LabelValue]) -> Mask:
    """Return the mask of a picture with a palette of classes."""
    if values:
        numbers = {value for value in values if isinstance(value, int)}
        colours = [value for value in values if not isinstance(value, int)]
        numbers |= {n for n in range(256) if any((palette[n] == colour).all() for colour in colours)}
        return np.asarray(np.isin(indices, sorted(numbers)))
    counts = np.bincount(indices.ravel(), minlength=256)
    present = [int(n) for n in np.flatnonzero(counts) if n not in (0, VOID)]
    if counts[0] > 0 and int(palette[0].max()) > 127:
        raise BadFileError(
            f"has a palette whose background is not black ({_format_entries([0, *present], palette)}); {CURE}"
        )
    if not present and counts[VOID]:
        raise BadFileError(f"holds index {VOID} alone, which palettes have for void; {CURE}")
    if len(present) > 1:
        raise BadFileError(f"holds several classes ({_format_entries(present, palette)}); {CURE}")
    return np.asarray(indices == present[0] if present else np.zeros(indices.shape, np.bool_))


def _format_entries(indices: Sequence[int], palette: NDArray[np.uint8]) -> str:
    entries = [f"{n}: {_format_colour(palette[n])}" for n in indices[:MOST_SHOWN]]
    return ", ".join(entries) + (f" and {len(indices) - MOST_SHOWN} more" * (len(indices) > MOST_SHOWN))


def _format_colour(channels: Sequence[int] | NDArray[np.generic]) -> str:
    return "#" + "".join(f"{int(channel):02x}" for channel in channels)


def _is_grey(rgb: Image, spread: int = _COLOURED) -> bool:
    """Return True if hardly any pixel has channels further apart than ``spread``; JPEG tints grey."""
    red, green, blue = cv2.split(rgb)
    top = cv2.max(cv2.max(red, green), blue)
    coloured = (top - cv2.min(cv2.min(red, green), blue)) > spread
    lit = int(np.count_nonzero(top > BLACK))
    return int(np.count_nonzero(coloured)) <= SHARE_FEW * max(1, lit)


def _mask_from_colours(rgb: Image, values: Sequence[LabelValue]) -> Mask:
    """Return the mask of a coloured picture: its only colour on black, or pixels closest to the named colours."""
    lesions = [(value, value, value) if isinstance(value, int) else value for value in values]
    centres = _colours(rgb)
    if not lesions:
        lit = {colour: count for colour, count in centres.items() if max(colour) > _COLOURED}
        if len(lit) != 1:
            names = ", ".join(f"{_format_colour(c)}" for c in list(lit)[:MOST_SHOWN]) or "none that holds together"
            raise BadFileError(f"holds several colours ({names}); {CURE}")
        lesions = list(lit)
    backgrounds = [c for c in ((0, 0, 0), *centres) if min(_channel_difference(c, w) for w in lesions) > _COLOURED]
    lesion_distance = np.min([_distance(rgb, colour) for colour in lesions], axis=0)
    other_distance = (
        np.min([_distance(rgb, colour) for colour in backgrounds], axis=0)
        if backgrounds
        else np.full(lesion_distance.shape, 1e9)
    )
    return np.asarray(lesion_distance < other_distance)


def _colours(rgb: Image) -> dict[tuple[int, int, int], int]:
    """Return coherent colours with their pixel counts, most frequent first; similar colours are merged."""
    packed, numbers, counts = _packed(rgb)
    if len(numbers) > FEW:
        # JPEG makes hundreds of similar colours, which are merged before counting.
        packed, numbers, counts = _packed(rgb >> 4)
    lit = max(1, int(np.count_nonzero(rgb.max(axis=2) > _COLOURED)))
    merged: dict[tuple[int, int, int], int] = {}
    for place in np.argsort(-counts, kind="stable"):
        count = int(counts[place])
        if count < SHARE_FEW * lit:
            break
        part = packed == numbers[place]
        red, green, blue = (round(float(channel)) for channel in rgb[part].mean(axis=0))
        similar = next((other for other in merged if _channel_difference((red, green, blue), other) <= _COLOURED), None)
        if similar is not None:
            merged[similar] += count
        elif _holds_together(part, count):
            merged[red, green, blue] = count
    return merged


def _packed(rgb: Image) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.intp]]:
    """Return each pixel's colour as one number, the numbers that occur, and their counts."""
    packed = rgb.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    numbers, counts = np.unique(packed, return_counts=True)
    return packed, numbers, counts


def _channel_difference(first: Sequence[int], second: Sequence[int]) -> int:
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def _distance(rgb: Image, colour: Sequence[int]) -> NDArray[np.int32]:
    """Return the squared distance of each pixel's colour to a colour, int32 H×W."""
    difference = rgb.astype(np.int32) - np.array(colour, np.int32)
    return np.asarray((difference * difference).sum(axis=2))


# ---------------------------------------------------------------------------------------------- suggested label values


_MOST_VALUES = 6
_LEAST_SHARE = 0.005
"""Least share of the foreground for a value to be suggested."""


def lesion_values(content: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[LabelValue, ...]:
    """Suggest values for a mask that no rule can read: every level, class or colour other than background.

    Args:
        content: A picture.
        max_pixels: Limit on its pixels, checked before decoding.

    Returns:
        ``values`` with which :func:`decode_mask` returns a part of the picture, neither nothing nor all; empty if there
        are none or more than six.

    Raises:
        BadFileError: It is not a readable picture within the limit.
    """
    with opened_picture(content, max_pixels) as picture:
        picture = upright(picture)
        raw, rgb = _pixels(picture)
        if rgb is not None and picture.mode != "P" and not _is_grey(rgb):
            values: tuple[LabelValue, ...] = tuple(colour for colour in _colours(rgb) if max(colour) > _COLOURED)
        else:
            levels = _brightness(raw, rgb) if raw is None else raw
            numbers, counts = np.unique(levels, return_counts=True)
            least = _LEAST_SHARE * max(1, int(counts[numbers != 0].sum()))
            values = tuple(
                int(number)
                for number, count in zip(numbers, counts, strict=True)
                if number > 0 and number == int(number) and count >= least and (picture.mode, number) != ("P", VOID)
            )
    if not values or len(values) > _MOST_VALUES:
        return ()
    share = float(decode_mask(content, max_pixels=max_pixels, values=values).mask.mean())
    return values if 0 < share < 1 else ()

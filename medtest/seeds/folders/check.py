"""Check of every file of a folder before a run: readable, matching sizes, valid masks."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from medtest.core.files.images import BadFileError, check_decodes, is_turned, read_bytes
from medtest.core.files.masks import LesionMask, decode_mask, lesion_values
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.formats import kind_of
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.folders.traits import LARGE, Trait
from medtest.seeds.volumes.check import Checked, Named, check_headers, check_volume
from medtest.seeds.volumes.frames import FrameReading

THREADS = 4
"""Number of decoding threads, which release Python's lock; each holds one file."""

_ASKED = "label_values=[…] says which are lesion"
"""End of a mask reader's reason that a setting resolves."""

CHUNK = 256
"""Pairs handed to the threads at once, so that large folders are streamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Requirements of a folder's settings.

    Attributes:
        reading: Reading options, including the bound on pixels.
        negatives: Whether empty masks are allowed.
        avoid_root: Folder of rough masks, or None.
    """

    reading: FrameReading
    negatives: bool
    avoid_root: Path | None = None

    @property
    def max_pixels(self) -> int:
        """Largest number of pixels of a picture."""
        return self.reading.max_pixels


Look: TypeAlias = "tuple[tuple[int, int] | None, bool]"
"""Height and width of an image, None if unreadable, and whether its file has a rotation flag."""


class Looks:
    """Cache of file checks for one command; after a time limit only headers are read.

    Args:
        seconds: Time limit, counted from the first file.

    Attributes:
        read: Number of files read completely.
        headers: Number of files of which only headers were read.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.read = self.headers = 0
        self._end: float | None = None
        self._kept: dict[tuple[Path, Path | None, Path | None, Rules], Checked] = {}

    def look(self, root: Path, pair: Pair, rules: Rules) -> Checked:
        """Return the check of a pair, cached; thread-safe."""
        avoid = None if pair.avoid is None else Path(pair.avoid)
        key = (root / pair.image, None if pair.mask is None else root / pair.mask, avoid, rules)
        if key not in self._kept:
            now = time.monotonic()
            self._end = now + self.seconds if self._end is None else self._end
            late = now >= self._end
            named = _with_names(root, pair, rules)
            self._kept[key] = check_headers(named, rules.reading) if late else check_pair(root, pair, rules)
            count = sum(file is not None for file in named)
            self.headers += count * late
            self.read += count * (not late)
        return self._kept[key]


LOOKS: ContextVar[Looks | None] = ContextVar("LOOKS", default=None)
"""Active cache of checks; None if every check reads the whole file."""


@contextmanager
def kept_looks(seconds: float) -> Iterator[Looks]:
    """Cache file checks within the block; nested blocks share the outer cache."""
    active = LOOKS.get()
    looks = Looks(seconds) if active is None else active
    token = LOOKS.set(looks)
    try:
        yield looks
    finally:
        LOOKS.reset(token)


def check_pairs(root: Path, pairs: Sequence[Pair], rules: Rules) -> Iterator[Checked]:
    """Check the files of images in order, streaming; rough masks are below ``rules.avoid_root``."""
    looks = LOOKS.get()
    look = check_pair if looks is None else looks.look
    threads = min(THREADS, os.cpu_count() or 1)
    if len(pairs) < 4 or threads == 1:
        yield from (look(root, pair, rules) for pair in pairs)
        return
    waiting = iter(pairs)
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="check") as pool:
        while chunk := list(islice(waiting, CHUNK)):
            yield from pool.map(lambda pair: look(root, pair, rules), chunk)


def _with_names(root: Path, pair: Pair, rules: Rules) -> tuple[Named, Named | None, Named | None]:
    """Return image, mask and rough mask, each with its name for messages."""
    image = (shown(pair.image), root / pair.image)
    mask = (shown(pair.mask), root / pair.mask) if pair.mask is not None else None
    rough = None
    if pair.avoid is not None and rules.avoid_root is not None:
        rough = (f"avoid: {shown(pair.avoid)}", rules.avoid_root / pair.avoid)
    return image, mask, rough


def check_pair(root: Path, pair: Pair, rules: Rules) -> Checked:
    """Check one image, its mask and its rough mask."""
    image, mask, rough = _with_names(root, pair, rules)
    if any(named is not None and kind_of(named[1].name) != "picture" for named in (image, mask, rough)):
        checked = check_volume((image, mask, rough), rules.reading, negatives=rules.negatives)
        named = tuple(
            replace(problem, reason=_with_setting_key(problem.reason, b"", rules)) for problem in checked.problems
        )
        return replace(checked, problems=named)
    problems: list[SeedProblem] = []
    traits: list[Trait] = []
    look, image_digest = _image(image, rules, problems)
    mask_digest = rough_digest = ""
    if mask is not None:
        mask_digest, read = _mask(mask, look, rules, problems, traits)
        if read is not None:
            _check_lesion(mask[0], read, rules, problems, traits)
    if rough is not None:
        rough_digest, _ = _mask(rough, look, rules, problems, [])
    digests = (image_digest, mask_digest, rough_digest)
    return Checked(digests=digests, problems=tuple(problems), traits=tuple(traits), size=look[0])


def _image(named: Named, rules: Rules, problems: list[SeedProblem]) -> tuple[Look, str]:
    name, path = named
    try:
        content = read_bytes(path, max_pixels=rules.max_pixels)
        size = check_decodes(content, max_pixels=rules.max_pixels)
        return (size, is_turned(content, max_pixels=rules.max_pixels)), hashlib.sha256(content).hexdigest()
    except BadFileError as error:
        problems.append(SeedProblem(file=name, reason=str(error)))
        return (None, False), ""


def _mask(
    named: Named, look: Look, rules: Rules, problems: list[SeedProblem], traits: list[Trait]
) -> tuple[str, LesionMask | None]:
    """Return a mask's digest and its content.

    The digest is marked if earlier versions of medtest read another mask from the same bytes. The content is None, and
    a problem is added, if the mask cannot be read or its size differs from the image's.
    """
    name, path = named
    size, image_turned = look
    content = b""
    try:
        content = read_bytes(path, max_pixels=rules.max_pixels)
        read = decode_mask(content, max_pixels=rules.max_pixels, values=rules.reading.label_values)
        turned = is_turned(content, max_pixels=rules.max_pixels)
    except BadFileError as error:
        problems.append(SeedProblem(file=name, reason=_with_setting_key(str(error), content, rules)))
        return "", None
    digest = hashlib.sha256(content).hexdigest() + "+levels" * read.revised
    if size is not None and read.mask.shape != size:
        height, width = read.mask.shape
        reason = f"is {width}×{height}, but its image is {size[1]}×{size[0]}"
        if turned != image_turned:
            reason += f" (only the {'mask' if turned else 'image'}'s file says that it is to be turned)"
        problems.append(SeedProblem(file=name, reason=reason))
        return digest, None
    if size is not None and turned != image_turned:
        traits.append("turned")
    return digest, read


def _with_setting_key(reason: str, content: bytes, rules: Rules) -> str:
    """Replace the setting in a reason by its full key, with a value that works for this file."""
    if _ASKED not in reason:
        return reason
    values = lesion_values(content, max_pixels=rules.max_pixels) if content else ()
    if not values:
        return reason.replace("label_values=", f"{rules.reading.label_key}=")
    written = ",".join(str(value) if isinstance(value, int) else str(list(value)).replace(" ", "") for value in values)
    which = "takes it as lesion" if len(values) == 1 else "takes all of them as lesion; name fewer to take fewer"
    return reason.replace(_ASKED, f"{rules.reading.label_key}=[{written}] {which}")


def _check_lesion(name: str, read: LesionMask, rules: Rules, problems: list[SeedProblem], traits: list[Trait]) -> None:
    """Check that a mask marks a lesion but not everything, and collect its oddities."""
    if read.mask.all():
        problems.append(SeedProblem(file=name, reason="is white all over"))
    elif not read.mask.any() and not rules.negatives:
        condition = "no value of label_values; " if rules.reading.label_values else ""
        reason = (
            f"is empty ({condition}brightest value {read.brightest}; lesion is above 127); negatives: true allows it"
        )
        problems.append(SeedProblem(file=name, reason=reason))
    if read.mask.mean() > LARGE:
        traits.append("large")
    if read.specks:
        traits.append("specks")
    if read.near:
        traits.append("near")

"""Header correction for colour TIFFs declared as grey, such as CVC-ClinicDB's 612.

Their PhotometricInterpretation is 1 (black is zero), which allows one sample per pixel, although they hold three.
Pillow refuses them and OpenCV reads only the first sample. Tags are those of TIFF 6.0 and BigTIFF.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

BITS, PHOTOMETRIC, SAMPLES, EXTRA = 258, 262, 277, 338
_GREY, _RGB = 1, 2
_SHORT = 3
_KINDS = {0: "white-is-zero", 1: "grey", 2: "RGB", 3: "palette", 5: "CMYK", 6: "YCbCr", 8: "CIELab"}
_MOST_ENTRIES = 4096


@dataclass(frozen=True, slots=True)
class _Form:
    """Field widths of TIFF or BigTIFF: packing of the number of entries, an entry and an offset."""

    order: str
    count: str
    entry: str
    offset: str

    def size(self, form: str) -> int:
        return struct.calcsize(self.order + form)

    @property
    def inline(self) -> int:
        """Number of bytes of a value stored inside its entry."""
        return self.size(self.offset)


_FORMS = {
    b"II*\0": (_Form("<", "H", "HHI", "I"), 4),
    b"MM\0*": (_Form(">", "H", "HHI", "I"), 4),
    b"II+\0": (_Form("<", "Q", "HHQ", "Q"), 8),
    b"MM\0+": (_Form(">", "Q", "HHQ", "Q"), 8),
}
"""Forms by the first four bytes, each with the position of the first directory's offset."""


def is_tiff(content: bytes) -> bool:
    """Return True if a file begins like a TIFF."""
    return content[:4] in _FORMS


def declared_rgb(content: bytes) -> bytes:
    """Return a file's bytes; correct the first directory of a TIFF with three or more samples that claims to be grey.

    Its samples are then red, green and blue; the first two further samples described by ExtraSamples are removed from
    that list. Any other file, or one with a damaged directory, is returned unchanged.
    """
    if not is_tiff(content):
        return content
    try:
        return _corrected(content)
    except struct.error:
        return content  # truncated inside its directory; decoders report it


def described(content: bytes) -> str:
    """Describe a TIFF's pixels; "" if its directory does not specify them or it is not a TIFF."""
    if not is_tiff(content):
        return ""
    try:
        form, _, entries = _directory(content)
        by_tag = {_tag(form, entry): entry for entry in entries}
        samples = _short(form, by_tag[SAMPLES]) if SAMPLES in by_tag else 1
        bits = _shorts(form, content, by_tag[BITS])[0] if BITS in by_tag else 1
        kind = _KINDS.get(_short(form, by_tag[PHOTOMETRIC]), "unknown") if PHOTOMETRIC in by_tag else "no"
    except (struct.error, IndexError):
        return ""
    return f"{samples} sample{'' if samples == 1 else 's'} of {bits} bits a pixel and {kind} colours"


def _directory(content: bytes) -> tuple[_Form, int, list[bytes]]:
    """Return a TIFF's form, the position of its first directory, and the entries of that directory."""
    form, place = _FORMS[content[:4]]
    (start,) = struct.unpack_from(form.order + form.offset, content, place)
    (count,) = struct.unpack_from(form.order + form.count, content, start)
    if count > _MOST_ENTRIES:
        raise struct.error
    first, width = start + form.size(form.count), form.size(form.entry) + form.inline
    return form, start, [content[first + n * width : first + (n + 1) * width] for n in range(count)]


def _corrected(content: bytes) -> bytes:
    form, start, entries = _directory(content)
    by_tag = {_tag(form, entry): n for n, entry in enumerate(entries)}
    if PHOTOMETRIC not in by_tag or SAMPLES not in by_tag:
        return content
    photometric, samples = (_short(form, entries[by_tag[tag]]) for tag in (PHOTOMETRIC, SAMPLES))
    if photometric != _GREY or samples < 3:
        return content
    entries[by_tag[PHOTOMETRIC]] = _entry(form, PHOTOMETRIC, [_RGB])
    if EXTRA in by_tag:
        further = _shorts(form, content, entries[by_tag[EXTRA]])[2:]
        if 2 * len(further) > form.inline:
            return content
        entries[by_tag[EXTRA]] = _entry(form, EXTRA, further) if further else b""
    width = form.size(form.entry) + form.inline
    end = start + form.size(form.count) + len(entries) * width
    following = content[end : end + form.inline]
    remaining = [entry for entry in entries if entry]
    directory = struct.pack(form.order + form.count, len(remaining)) + b"".join(remaining) + following
    directory += b"\0" * (width * (len(entries) - len(remaining)))
    return content[:start] + directory + content[start + len(directory) :]


def _tag(form: _Form, entry: bytes) -> int:
    tag: int = struct.unpack_from(form.order + "H", entry)[0]
    return tag


def _short(form: _Form, entry: bytes) -> int:
    value: int = struct.unpack_from(form.order + "H", entry, form.size(form.entry))[0]
    return value


def _shorts(form: _Form, content: bytes, entry: bytes) -> list[int]:
    _, _, count = struct.unpack_from(form.order + form.entry, entry)
    if count > _MOST_ENTRIES:
        raise struct.error
    value_start = form.size(form.entry)
    if 2 * count <= form.inline:
        return list(struct.unpack_from(f"{form.order}{count}H", entry, value_start))
    (offset,) = struct.unpack_from(form.order + form.offset, entry, value_start)
    return list(struct.unpack_from(f"{form.order}{count}H", content, offset))


def _entry(form: _Form, tag: int, values: list[int]) -> bytes:
    packed = struct.pack(f"{form.order}{len(values)}H", *values).ljust(form.inline, b"\0")
    return struct.pack(form.order + form.entry, tag, _SHORT, len(values)) + packed

"""Pack weights that ship: ``python scripts/pack_weights.py FOLDER [NAME …]`` writes them to medtest/weights.

FOLDER holds the files of trainings, in half precision. A tensor with rows of at least nine numbers becomes signed
integers with a step for each row; the rest stays in half precision. A network that was trained further is stored as
differences to the network it started from, which need fewer bits. `BITS` holds the number of bits with which the scores
on a network's card stay within 0.001; a network that is not named there stays in half precision. The cards' SHA-256 and
sizes are replaced; their figures are measured with the commands that the cards name.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from medtest.core.files import file_sha256
from medtest.core.files.paths import package_folder
from medtest.core.files.tensors import HEADER, LOW, PACKED, STEP, STREAM, facts_of, read_tensors, replacing

BITS = {
    "pranet-compact": 8,
    "sanet-compact": 8,
    "ssformer-compact": 8,
    "tganet-compact": 8,
    "attnmel-compact": 8,
    "attnmel-compact-standard": 6,
    "attnmel-compact-mpadvt": 6,
    "attnmel-compact-maadvt": 7,
    "chexnet-compact": 8,
    "chexnet-compact-standard": 7,
    "chexnet-compact-mpadvt": 6,
    "chexnet_sides-compact": 8,
    "capsule_findings-compact": 8,
    "inceptionv3_dr-compact": 9,
    "inceptionv3_dr-compact-standard": 7,
    "inceptionv3_dr-compact-mpadvt": 8,
    "bundled-scenes": 8,
    "gap-attnmel-compact": 8,
    "gap-chexnet-compact": 8,
    "gap-inceptionv3_dr-compact": 8,
}
"""Bits a weight of each packed network, 2 to 16."""
STREAMED = frozenset(
    {
        "attnmel-compact-standard",
        "attnmel-compact-mpadvt",
        "attnmel-compact-maadvt",
        "inceptionv3_dr-compact-standard",
        "inceptionv3_dr-compact-mpadvt",
    }
)
"""Networks whose integers are one XZ stream: at least 50 kB less in a wheel."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 4, "lp": 0, "pb": 0}]
SHORTEST_ROW = 9
SMALLEST_STEP = 2.0**-24
"""The smallest positive number in half precision."""


def balanced(levels: Tensor, exact: Tensor) -> Tensor:
    """Round some levels the other way, so that the error of the sum over the last axis is at most half a level.

    Inputs of a layer have means above zero and vary little between neighbours, so that the error of a sum counts most
    (Guo et al., "SQuant", ICLR 2022). The levels nearest to the other integer change.
    """
    error = exact - levels
    total = error.sum(-1, keepdim=True)
    rank = (error * total.sign()).argsort(-1, descending=True).argsort(-1)
    return levels + total.sign() * (rank < total.abs().round())


def packed_tensor(value: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the upper eight bits of a tensor's integers, int8, rows of the lower bits (:data:`LOW`), and the steps."""
    most = 2 ** (bits - 1) - 1
    rows = value.reshape(len(value), -1)
    exact = rows.abs().amax(1) / most
    steps = exact.to(torch.float16)
    larger = torch.nextafter(steps, torch.tensor(torch.inf, dtype=torch.float16))
    steps = torch.where(steps.float() < exact, larger, steps).clamp_min(SMALLEST_STEP)
    exact = (value.flatten(2) if value.ndim > 2 else rows) / steps.float().reshape(-1, *[1] * (min(value.ndim, 3) - 1))
    levels = balanced(exact.round(), exact) if value.ndim > 2 else exact.round()
    levels = balanced(levels.flatten(1), exact.flatten(1)).clamp(-most, most).reshape(value.shape)
    lower_bits = max(bits - 8, 0)
    upper = torch.floor(levels / 2.0**lower_bits)
    lower = (levels - upper * 2.0**lower_bits).flatten().to(torch.int64).numpy()
    digits = (lower >> np.arange(lower_bits)[:, None] & 1).astype(np.uint8)
    return upper.to(torch.int8), torch.from_numpy(np.packbits(digits, axis=1)), steps


def streamed(tensors: dict[str, Tensor], packing: dict[str, Any]) -> dict[str, Tensor]:
    """Return tensors with all packed integers in one XZ stream, and note their shapes in ``packing``."""
    names = sorted(name for name in tensors if STEP + name in tensors)
    packing["shapes"] = {name: list(tensors[name].shape) for name in names}
    content = b"".join(tensors[name].contiguous().numpy().tobytes() for name in names)
    stream = np.frombuffer(lzma.compress(content, lzma.FORMAT_XZ, filters=_FILTERS), np.uint8)
    return {name: value for name, value in tensors.items() if name not in names} | {
        STREAM: torch.from_numpy(stream.copy())
    }


def pack(source: Path, target: Path, bits: int) -> None:
    """Write a packed copy of a file."""
    facts = facts_of(source)
    packing: dict[str, Any] = {"bits": bits}
    base: dict[str, Tensor] = {}
    if facts.get("defence"):
        start = target.with_name(f"{target.stem.rpartition('-')[0]}.safetensors")
        facts["defence"]["from_sha256"] = file_sha256(start)
        packing |= {"base": start.name, "base_sha256": file_sha256(start)}
        base = read_tensors(start)
    tensors: dict[str, Tensor] = {}
    for name, value in load_file(source).items():
        if not value.is_floating_point() or value.ndim < 2 or value[0].numel() < SHORTEST_ROW:
            tensors[name] = value
            continue
        upper, lower, steps = packed_tensor(value.float() - base.get(name, 0.0), bits)
        tensors |= {name: upper, STEP + name: steps} | ({LOW + name: lower} if bits > 8 else {})
    if target.stem in STREAMED:
        tensors = streamed(tensors, packing)
    header = {HEADER: json.dumps({**facts, PACKED: packing}, sort_keys=True)}
    with replacing(target) as file:
        file.write(save({name: value.contiguous() for name, value in tensors.items()}, metadata=header))


def renew_card(file: Path, hashes: dict[str, str]) -> None:
    """Replace hashes and the size of a file in its card."""
    card = file.with_suffix(".md")
    text = card.read_text(encoding="utf-8")
    for former, current in hashes.items():
        text = text.replace(former, current)
    bits, size = facts_of(file)[PACKED]["bits"], file.stat().st_size / 1e6
    stored = f"{bits} bits a weight on disk ({size:.2f} MB)"
    card.write_text(re.sub(r"(half precision|\d+ bits a weight) on disk \([^)]*\)", stored, text), encoding="utf-8")


def main() -> int:
    """Pack the networks that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(BITS))
    parsed = parser.parse_args()
    unknown = sorted(set(parsed.names) - set(BITS))
    if unknown:
        parser.error(f"{', '.join(unknown)}: BITS names {', '.join(BITS)}")
    weights = package_folder() / "weights"
    hashes: dict[str, str] = {}
    for name in sorted(parsed.names, key=list(BITS).index):
        source, target = parsed.folder / f"{name}.safetensors", weights / f"{name}.safetensors"
        former = file_sha256(target)
        pack(source, target, BITS[name])
        hashes[former] = file_sha256(target)
        renew_card(target, hashes)
        print(f"{name}: {source.stat().st_size / 1e6:.2f} MB to {target.stat().st_size / 1e6:.2f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

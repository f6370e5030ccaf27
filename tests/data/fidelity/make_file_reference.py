"""Writes file_reference.json: what torch-fidelity 0.4.0 makes of two folders of files, decoding and resizing included.

    pip install torch-fidelity==0.4.0 --no-deps
    python tests/data/fidelity/make_file_reference.py

Inception-v3's weights are drawn from a seed: the published ones are 91 MB. Pictures are PNG (colour, grey, palette)
and JPEG (with and without subsampled colours), smaller and larger than 299, and none of them square.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

COUNT = 12
OPTIONS = {"isc_splits": 2, "kid_subsets": 10, "kid_subset_size": 8}
_KINDS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("png", "RGB", {}),
    ("jpg", "RGB", {"quality": 90}),
    ("png", "L", {}),
    ("jpg", "RGB", {"quality": 60, "subsampling": 0}),
    ("png", "P", {}),
    ("jpeg", "L", {"quality": 80}),
)


def write_weights(path: Path) -> None:
    """Write a state_dict of Inception-v3 (2015-12-05) with weights drawn from a seed."""
    import torch

    from medtest.readers.embeddings.inception import _network

    rng = np.random.default_rng(1)
    state = _network().state_dict()
    for name, tensor in state.items():
        if tensor.ndim >= 2:  # He et al. 2015: activations keep their scale through all layers
            drawn = rng.standard_normal(tensor.shape, np.float32) * np.sqrt(2 / tensor[0].numel(), dtype=np.float32)
        elif name.endswith("running_var"):
            drawn = rng.uniform(0.5, 1.5, tensor.shape).astype(np.float32)
        elif name.endswith(("bn.bias", "running_mean")):
            drawn = 0.2 * rng.standard_normal(tensor.shape, np.float32)
        else:
            continue
        state[name] = torch.from_numpy(drawn)
    torch.save(state, path)


def write_pictures(folder: Path) -> tuple[Path, Path]:
    """Write both sets of pictures and return their folders; one has finer patterns and other colours."""
    for number, (grain, tint) in enumerate(((9, (1.0, 0.8, 0.6)), (14, (0.6, 0.9, 1.0)))):
        place = folder / f"set {number}"
        place.mkdir(parents=True)
        rng = np.random.default_rng([2, number])
        for index in range(COUNT):
            height, width = (int(side) for side in rng.integers(40, 520, 2))
            coarse = rng.integers(0, 256, (grain, grain, 3)).astype(np.float32) * np.array(tint, np.float32)
            pixels = cv2.resize(coarse.astype(np.uint8), (width, height), interpolation=cv2.INTER_LINEAR)
            ending, mode, options = _KINDS[index % len(_KINDS)]
            Image.fromarray(pixels).convert(mode).save(place / f"{index:02}.{ending}", **options)
    return folder / "set 0", folder / "set 1"


def reference(folder: Path) -> dict[str, float]:
    """Return the figures of torch-fidelity."""
    import torch_fidelity

    first, second = write_pictures(folder)
    write_weights(folder / "inception.pth")
    figures = torch_fidelity.calculate_metrics(
        input1=str(first),
        input2=str(second),
        cuda=False,
        isc=True,
        fid=True,
        kid=True,
        batch_size=1,  # sizes differ
        cache=False,
        verbose=False,
        feature_extractor_weights_path=str(folder / "inception.pth"),
        **OPTIONS,
    )
    return {name: float(value) for name, value in figures.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(reference(Path(place)), indent=1) + "\n"
    Path(__file__).with_name("file_reference.json").write_text(text, encoding="utf-8")

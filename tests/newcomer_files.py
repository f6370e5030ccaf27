"""Data, networks and algorithms of the newcomer who types the commands of README and docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_artefacts(folder: Path) -> None:
    """Write real artefacts with their masks."""
    sys.path.insert(0, str(ROOT / "tests" / "realism"))
    from realism_parts import write_real

    write_real(folder)


def write_labelled(folder: Path) -> None:
    """Write class folders of capsule endoscopy, and dermoscopy with a table of labels."""
    from PIL import Image

    from medtest.phantoms import capsule, skin

    rows = ["image,diagnosis"]
    for index in range(6):
        for make, name in ((capsule.make, "capsule"), (skin.make, "skin")):
            phantom = make(index, 1, size=128)
            below = folder / name / (phantom.labels[0] if name == "capsule" else "images")
            below.mkdir(parents=True, exist_ok=True)
            Image.fromarray(phantom.image).save(below / f"{index}.png")
            if name == "skin":
                rows.append(f"{index}.png,{phantom.labels[0]}")
    (folder / "skin" / "labels.csv").write_text("\n".join(rows), encoding="utf-8")


def write_questions(folder: Path) -> None:
    """Write three pictures with their questions as the contest does."""
    import json

    from PIL import Image

    from medtest.language.questions.questions import official
    from medtest.phantoms import questions

    entries = []
    (folder / "images").mkdir(parents=True)
    for index in range(3):
        scene = questions.make(index, 1, size=160)
        Image.fromarray(scene.image).save(folder / "images" / f"case{index}.png")
        labels = [{"Question": question.text, "Answer": list(scene.answers[question.name])} for question in official()]
        entries.append({"ImageID": f"case{index}", "Labels": labels})
    (folder / "gt.json").write_text(json.dumps(entries), encoding="utf-8")


def write_checkpoints(folder: Path) -> None:
    """Write untrained published networks under the names their authors give them."""
    import argparse

    import numpy as np
    import torch

    from medtest.systems import build_network

    torch.manual_seed(0)
    sanet = build_network("sanet").state_dict()
    torch.save(sanet, folder / "model-128")
    torch.save({"state_dict": sanet, "args": argparse.Namespace(lr=0.4)}, folder / "old.pth")
    torch.save(build_network("tganet").state_dict(), folder / "checkpoint.pth")
    np.save(folder / "words.npy", np.random.default_rng(0).standard_normal((5, 300)).astype(np.float32))


def write_filters(folder: Path) -> None:
    """Write the algorithms and the numbers of the page on robustness."""
    folder.mkdir()
    text = (ROOT / "docs" / "your-algorithm.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        (folder / block.split("\n")[0].removeprefix("# ")).write_text(block, encoding="utf-8")
    numbers = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)[0]
    (folder / "curves.dat").write_text(numbers, encoding="utf-8")


def write_networks(folder: Path) -> None:
    """Write a user's network as TorchScript and ONNX, its class, and published checkpoints."""
    import torch

    folder.mkdir()
    write_checkpoints(folder)
    text = (ROOT / "docs" / "bring-your-network.md").read_text(encoding="utf-8")
    (folder / "my_net.py").write_text(
        re.findall(r"```python\n(# my_net.py.*?)```", text, flags=re.DOTALL)[0], encoding="utf-8"
    )
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 1)).eval()
    example = torch.zeros(1, 3, 64, 64)
    torch.jit.trace(network, example).save(str(folder / "net.pt"))
    torch.onnx.export(
        network,
        (example,),
        str(folder / "net.onnx"),
        input_names=["image"],
        output_names=["map"],
        dynamic_axes={"image": {0: "n", 2: "h", 3: "w"}, "map": {0: "n", 2: "h", 3: "w"}},
        dynamo=False,
    )


def write_photographs(home: Path) -> None:
    """Write two labelled photographs, and a detector that finds one thing in any of them."""
    import json

    import numpy as np
    from PIL import Image

    sys.path.insert(0, str(ROOT / "tests" / "readers" / "pictures"))
    from picture_graphs import save_graph

    (home / "data" / "photos" / "images").mkdir(parents=True)
    labels = []
    for name, objects in (("a", [{"class": "dog", "box_xywh": [0, 0, 60, 60]}]), ("b", [])):
        Image.new("RGB", (80, 64)).save(home / "data" / "photos" / "images" / f"{name}.png")
        labels.append({"file": f"{name}.png", "width": 80, "height": 64, "objects": objects})
    (home / "data" / "photos" / "annotations.json").write_text(json.dumps(labels), encoding="utf-8")
    cells = np.zeros((1, 84, 85), np.float32)
    cells[0, 10, [4, 5 + 16]] = 1.0
    save_graph(home / "nets" / "detector.onnx", {"output": cells})


def write_families(folder: Path) -> None:
    """Write tiny networks in the formats of transformers, segmentation_models_pytorch and MONAI."""
    import torch

    sys.path.insert(0, str(ROOT / "tests" / "systems"))
    from tiny_networks import segformer, unet, write_bundle

    segformer(folder / "segformer")
    write_bundle(folder / "bundle")
    torch.save(unet(folder / "unet").state_dict(), folder / "unet.pth")

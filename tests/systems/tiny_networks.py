"""Tiny real networks, saved in the formats of other libraries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

NETWORK = {
    "_target_": "UNet",
    "spatial_dims": 2,
    "in_channels": 3,
    "out_channels": 2,
    "channels": [4, 8, 8],
    "strides": [2, 2],
}
BEFORE = [
    {
        "_target_": "LoadImaged",
        "keys": "@image_key",
        "reader": "PILReader",
        "converter": "$lambda im: im.convert('RGB')",
    },
    {"_target_": "EnsureChannelFirstd", "keys": "@image_key"},
    {"_target_": "Resized", "keys": "@image_key", "spatial_size": [96, 64]},
    {"_target_": "Flipd", "keys": "@image_key", "spatial_axis": 0},
    {"_target_": "ScaleIntensityd", "keys": "@image_key"},
]
AFTER = [
    {"_target_": "Activationsd", "keys": "pred", "softmax": True},
    {
        "_target_": "Invertd",
        "keys": "pred",
        "transform": "@preprocessing",
        "orig_keys": "image",
        "nearest_interp": False,
    },
    {"_target_": "AsDiscreted", "keys": "pred", "argmax": True},
]


def write_bundle(folder: Path, *, weights: bool = True, **changed: Any) -> dict[str, Any]:
    """Write a bundle as MONAI's Model Zoo has them, with a small network drawn at random; return its configuration."""
    import torch
    from monai.networks.nets import UNet

    config: dict[str, Any] = {
        "imports": ["$import os"],
        "bundle_root": ".",
        "image_key": "image",
        "device": "$torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')",
        "network_def": NETWORK,
        "network": "$@network_def.to(@device)",
        "preprocessing": {"_target_": "Compose", "transforms": BEFORE},
        "inferer": {"_target_": "SlidingWindowInferer", "roi_size": [64, 64], "sw_batch_size": 2, "device": "@device"},
        "postprocessing": {"_target_": "Compose", "transforms": AFTER},
        **changed,
    }
    (folder / "configs").mkdir(parents=True, exist_ok=True)
    (folder / "models").mkdir(exist_ok=True)
    (folder / "configs" / "inference.json").write_text(json.dumps(config), encoding="utf-8")
    if weights:
        torch.manual_seed(0)
        network = UNet(2, 3, 2, [4, 8, 8], [2, 2])
        torch.save({"model": network.state_dict()}, folder / "models" / "model.pt")
    return config


def segformer(folder: Path, labels: int = 2, *, names: dict[int, str] | None = None, processor: bool = True) -> Any:
    import torch
    from transformers import SegformerConfig, SegformerForSemanticSegmentation, SegformerImageProcessor

    torch.manual_seed(0)
    config = SegformerConfig(
        num_labels=labels,
        hidden_sizes=[8, 8, 8, 8],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 1, 1],
        decoder_hidden_size=8,
    )
    if names:
        config.id2label = names
    network = SegformerForSemanticSegmentation(config).eval()
    with torch.no_grad():  # random weights hardly tell classes apart: make them
        network.decode_head.classifier.weight.mul_(40)
    network.save_pretrained(folder)
    if processor:
        SegformerImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return network


def unet(folder: Path, classes: int = 1, **more: Any) -> Any:
    smp: Any = pytest.importorskip("segmentation_models_pytorch")
    import torch

    torch.manual_seed(0)
    network = smp.Unet("mobilenet_v2", encoder_weights=None, classes=classes, **more).eval()
    network.save_pretrained(folder)
    return network


def mask2former(folder: Path, labels: int) -> tuple[Any, Any]:
    """Write a query network of transformers; return it and its image processor."""
    import torch
    from transformers import (
        Mask2FormerConfig,
        Mask2FormerForUniversalSegmentation,
        Mask2FormerImageProcessor,
        SwinConfig,
    )

    torch.manual_seed(1)
    backbone = SwinConfig(
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=4,
        out_features=[f"stage{i}" for i in (1, 2, 3, 4)],
    )
    config = Mask2FormerConfig(
        backbone_config=backbone,
        num_labels=labels,
        hidden_dim=32,
        feature_size=32,
        mask_feature_size=32,
        dim_feedforward=16,
        encoder_feedforward_dim=16,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=2,
        num_queries=8,
    )
    network = Mask2FormerForUniversalSegmentation(config).eval()
    with torch.no_grad():
        network.class_predictor.weight.mul_(30)
    network.save_pretrained(folder)
    processor = Mask2FormerImageProcessor(size={"height": 64, "width": 64}, num_labels=labels)
    processor.save_pretrained(folder)
    return network, processor


def vit(folder: Path, names: Sequence[str], **configured: Any) -> Any:
    import torch
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(5)
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=8,
        **{"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}, **configured},
    )
    network = ViTForImageClassification(config).eval()
    network.save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.4, 0.5, 0.6]).save_pretrained(folder)
    return network


TIMM = "test_resnet.r160_in1k"
"""A network of half a million parameters that timm keeps for tests."""


def timm_folder(folder: Path, *, names: list[str] | None = None, **configured: Any) -> Any:
    import torch

    timm = pytest.importorskip("timm", reason="timm is not installed (an extra)")
    torch.manual_seed(4)
    network = timm.create_model(TIMM, pretrained=False, num_classes=3).eval()
    timm.models.save_for_hf(
        network,
        str(folder),
        model_config={"label_names": names} if names else {},
        safe_serialization=True,
        data_config=configured or None,
    )
    return network

"""Tiny random detectors of transformers, as ``save_pretrained`` writes them."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "a", "dog", "cat", "fire", "hydrant", "table", "red")


def save_detr(folder: Path) -> Path:
    import torch
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessor, ResNetConfig

    torch.manual_seed(0)
    trunk = ResNetConfig(
        embedding_size=8, hidden_sizes=[8] * 4, depths=[1] * 4, out_features=["stage4"], layer_type="basic"
    )
    config = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=trunk,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=6,
        id2label={0: "N/A", 1: "dog", 2: "bicycle"},
        label2id={"N/A": 0, "dog": 1, "bicycle": 2},
    )
    DetrForObjectDetection(config).save_pretrained(folder)
    DetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 96}).save_pretrained(folder)
    return folder


def save_rt_detr(folder: Path) -> Path:
    import torch
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrImageProcessor, RTDetrResNetConfig

    torch.manual_seed(0)
    stages = ["stage2", "stage3", "stage4"]
    trunk = RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1] * 4, out_features=stages, layer_type="basic"
    )
    config = RTDetrConfig(
        backbone_config=trunk,
        encoder_hidden_dim=16,
        encoder_in_channels=[16] * 3,
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        d_model=16,
        num_queries=10,
        decoder_in_channels=[16] * 3,
        decoder_ffn_dim=16,
        decoder_layers=1,
        decoder_attention_heads=2,
        num_denoising=0,
        anchor_image_size=None,
        id2label={0: "dog", 1: "bicycle"},
        label2id={"dog": 0, "bicycle": 1},
    )
    RTDetrForObjectDetection(config).save_pretrained(folder)
    RTDetrImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


def save_owlv2(folder: Path) -> Path:
    import torch
    from transformers import CLIPTokenizer, Owlv2Config, Owlv2ForObjectDetection, Owlv2ImageProcessor, Owlv2Processor

    torch.manual_seed(0)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "start").mkdir(parents=True)
    files = folder / "start" / "vocab.json", folder / "start" / "merges.txt"
    files[0].write_text(json.dumps({token: index for index, token in enumerate(vocabulary)}))
    files[1].write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(vocab=str(files[0]), merges=str(files[1]), model_max_length=32)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    words = {**small, "vocab_size": len(tokenizer), "max_position_embeddings": 32, "pad_token_id": 53}
    config = Owlv2Config(
        text_config={**words, "bos_token_id": 52, "eos_token_id": 53},
        vision_config={**small, "image_size": 64, "patch_size": 16},
        projection_dim=16,
    )
    Owlv2ForObjectDetection(config).save_pretrained(folder)
    Owlv2Processor(Owlv2ImageProcessor(size={"height": 64, "width": 64}), tokenizer).save_pretrained(folder)
    return folder


def save_grounding_dino(folder: Path) -> Path:
    import torch
    from transformers import (
        BertConfig,
        BertTokenizer,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        SwinConfig,
    )

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = BertTokenizer(vocab=str(folder / "vocab.txt"))
    trunk = SwinConfig(
        image_size=64,
        window_size=4,
        embed_dim=8,
        depths=[1] * 4,
        num_heads=[1] * 4,
        out_features=["stage2", "stage3", "stage4"],
    )
    words = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=len(tokenizer)
    )
    config = GroundingDinoConfig(
        backbone_config=trunk.to_dict(),
        text_config=words.to_dict(),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=10,
        max_text_len=16,
    )
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    pictures = GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    GroundingDinoProcessor(pictures, tokenizer).save_pretrained(folder)
    return folder

"""A tiny, randomly initialised vision-language model of the LLaVA family, saved as usual."""

from __future__ import annotations

import string
from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
SIDE, PATCH = 32, 8


def save_talker(
    folder: Path, *, template: str | None = TEMPLATE, seed: int = 3, words: tuple[str, ...] = (), louder: float = 1.0
) -> Path:
    """Write a checkpoint whose answers are gibberish that depends on the image, the question and the seed.

    Args:
        folder: Folder of the checkpoint.
        template: Chat template.
        seed: Seed of the weights.
        words: Words that are tokens, besides single signs.
        louder: Factor of the last layer's weights for these words.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

    special = ["<pad>", "<s>", "</s>", "<unk>", "<image>"]
    letters = string.ascii_letters + string.digits + string.punctuation + " \n"
    vocabulary = {token: number for number, token in enumerate([*special, *letters, *words])}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=special[3]))
    raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    raw.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        extra_special_tokens={"image_token": "<image>"},
        **{f"{name}_token": token for name, token in zip(("pad", "bos", "eos", "unk"), special, strict=False)},
    )
    torch.manual_seed(seed)
    wide = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=CLIPVisionConfig(**wide, image_size=SIDE, patch_size=PATCH, projection_dim=32),
            text_config=LlamaConfig(
                **wide,
                vocab_size=len(vocabulary),
                max_position_embeddings=2048,
                initializer_range=0.4,
                bos_token_id=1,
                eos_token_id=2,
                pad_token_id=0,
            ),
            image_token_index=vocabulary["<image>"],
            image_seq_length=(SIDE // PATCH) ** 2,
        )
    )
    model.generation_config.eos_token_id = 2
    model.generation_config.pad_token_id = 0
    with torch.no_grad():
        model.get_output_embeddings().weight[len(vocabulary) - len(words) :] *= louder
    model.save_pretrained(folder, safe_serialization=True)
    images = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    ).save_pretrained(folder)
    return folder

"""Networks of pictures: the bundled one, Inception from a file, CLIP from a folder; the latter are never fetched."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from depicted_records import needs_weights, picture

from medtest.core.errors import MedtestError
from medtest.readers.embeddings.bundled import BundledEmbedding
from medtest.readers.embeddings.choice import embedder_of
from medtest.readers.embeddings.clip import Clip
from medtest.readers.embeddings.inception import CLASSES, FEATURES, Inception, _network, resized
from medtest.results.fidelity.measures.inception_score import negative_log_likelihood

ROOT = Path(__file__).parents[3]
SCRIPT = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "fit_temperature.py")))


@needs_weights
def test_rows_of_the_bundled_network_do_not_depend_on_the_batch() -> None:
    network = BundledEmbedding()
    network.open(device="cpu", threads=1)
    images = [picture(n) for n in range(5)] + [picture(9, size=200)]
    together = network.embed(images)
    alone = [network.embed([image]) for image in images]
    np.testing.assert_allclose(
        together.features, np.concatenate([embedded.features for embedded in alone]), rtol=1e-3, atol=1e-4
    )
    assert len(together.scores) == 6
    assert network.figures.frechet == "FD-embed" and network.figures.score == "IS-embed"
    assert network.figures.kernel == "KD-embed" and not network.figures.precision


@pytest.mark.slow
@needs_weights
def test_the_temperature_is_that_of_the_weights_that_ship() -> None:
    network = BundledEmbedding()
    assert network.temperature is not None, "run scripts/fit_temperature.py: the weights are others"
    network.open(device="cpu", threads=1)
    scores, labels = SCRIPT.scores_of(network, 120, seed=9)  # none of those for the fit
    at = [negative_log_likelihood(scores, labels, factor * network.temperature) for factor in (0.5, 1.0, 2.0)]
    assert at[1] == min(at)


def test_an_unknown_network_is_refused() -> None:
    with pytest.raises(ValueError, match="not a network"):
        embedder_of({"net": "vgg"})


def test_pictures_are_resized_as_tensorflow_1_did() -> None:
    # a ramp from 0: place n of 299 is at n · 598 / 299 = 2 n of the source, and nothing is smoothed
    ramp = np.repeat((np.arange(598) % 256).astype(np.uint8)[None, :, None], 598, axis=0).repeat(3, axis=2)
    result = resized(ramp)
    assert result.shape == (1, 3, 299, 299)
    assert result[0, 0, 7].tolist() == [(2 * n) % 256 for n in range(299)]
    half = np.zeros((2, 2, 3), np.uint8)
    half[:, 1] = 200
    row = resized(half)[0, 0, 0].tolist()
    assert row[:2] == pytest.approx([0.0, 200 * 2 / 299], abs=1e-4)
    assert row[150:] == [200.0] * 149  # beyond the last pixel's corner there is only itself


@pytest.mark.slow
def test_inception_equals_torch_fidelity_with_the_same_weights(tmp_path: Path) -> None:
    import torch

    extractor = pytest.importorskip("torch_fidelity.feature_extractor_inceptionv3")
    torch.manual_seed(0)
    network = _network()
    for layer in network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr, operator]
            layer.running_mean.normal_(0, 0.1)  # type: ignore[union-attr, operator]
    torch.save(network.state_dict(), tmp_path / "inception.pth")
    reference = extractor.FeatureExtractorInceptionV3(
        "inception-v3-compat", ["2048", "logits_unbiased"], str(tmp_path / "inception.pth")
    )
    inception = Inception(str(tmp_path / "inception.pth"))
    inception.open(device="cpu", threads=1)
    for size in (64, 331):
        image = picture(3, size=size)
        embedded = inception.embed([image])
        features, scores = reference(torch.from_numpy(image.transpose(2, 0, 1).copy())[None])
        np.testing.assert_allclose(embedded.features, features.numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(embedded.scores, scores.numpy(), rtol=1e-4, atol=1e-6)
        assert (embedded.features.shape[1], embedded.scores.shape[1]) == (FEATURES, CLASSES)
    assert inception.figures.frechet == "FID" and inception.figures.kernel == "KID" and inception.figures.score == "IS"


def test_a_file_of_another_network_is_reported(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "other.pth"
    torch.save({"fc.weight": torch.zeros(3, 4)}, path)
    with pytest.raises(MedtestError, match="Inception-v3"):
        Inception(str(path)).open(device="cpu", threads=1)
    assert Inception(str(tmp_path / "missing.pth")).check()
    assert not Inception(str(path)).check()


def test_torchscript_that_is_no_inception_is_reported(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "script.pt"
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))  # type: ignore[no-untyped-call]
    with pytest.raises(MedtestError, match="TorchScript"):
        Inception(str(path)).open(device="cpu", threads=1)


def tiny_clip(folder: Path) -> Path:
    """Write a CLIP model of random weights with a tokenizer of letters; return its folder."""
    import transformers
    from torch import manual_seed

    manual_seed(0)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    words = [*letters, *[f"{letter}</w>" for letter in letters], "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(words)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"bos_token_id": len(words) - 2, "eos_token_id": len(words) - 1, "pad_token_id": len(words) - 1}
    config = transformers.CLIPConfig(
        text_config={**shape, **ends, "vocab_size": len(words), "max_position_embeddings": 24},
        vision_config={**shape, "image_size": 32, "patch_size": 8},
        projection_dim=8,
    )
    tokenizer = transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    images = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPProcessor(images, tokenizer).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_clip_puts_pictures_and_words_in_one_space_and_cuts_long_captions(tmp_path: Path) -> None:
    folder = tiny_clip(tmp_path / "clip")
    clip = Clip(str(folder))
    assert clip.check() == []
    clip.open(device="cpu", threads=1)
    pictures = clip.embed([picture(1), picture(2, size=90)])
    texts = clip.embed_texts(["a dog", "a dog on a bench beside a tree with a kite and a car" * 3])
    assert pictures.features.shape == texts.features.shape == (2, 8)
    assert not np.allclose(texts.features[0], texts.features[1])
    assert clip.figures.precision == "RP"
    before = clip.fingerprint()
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n", encoding="utf-8")
    assert clip.fingerprint() != before


def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    assert "no config.json" in str(Clip(str(tmp_path)).check()[0].found)
    assert Clip(str(tmp_path / "missing")).check()

"""A semantic segmentation network of Hugging Face transformers in a local folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medtest.cases import Image, Json
from medtest.errors import BadOutput, MedtestError, Mistake
from medtest.systems.adapters.lesion import NetworkSettings, checked_scores
from medtest.systems.adapters.tensors import GraphSettings, encode
from medtest.systems.adapters.torch_network import TorchNetwork
from medtest.systems.adapters.weights import pointer_mistakes
from medtest.systems.files import file_sha256, folder_mistakes, user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Looked for in this order, as transformers does."""
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
QUERIES: dict[str, tuple[int, int] | None] = {"mask2former": (384, 384), "maskformer": None}
"""Families that give masks and a class for each query, and the size at which transformers brings the two together."""
MOST_BYTES = 8 << 20


class HuggingFaceSettings(NetworkSettings):
    """Settings of a network of transformers; see :class:`medtest.systems.adapters.lesion.NetworkSettings`.

    ``size``, ``mean`` and ``std`` replace what the folder's image processor says.
    """


class HuggingFace(TorchNetwork):
    """SegFormer, UPerNet, BEiT, DPT, MobileViT, Mask2Former, MaskFormer and kin, as ``save_pretrained`` wrote them.

    What the hub would do is left out: nothing is downloaded, and no code of the folder runs. Images go through the
    folder's own image processor (a centre crop is replaced by resizing to its size, since what is cut off would have no
    answer); without one they are normalised as ImageNet's, at ``size`` or their own. As in the processors'
    ``post_process_semantic_segmentation``, scores are resized to the image (bilinear, no corners aligned) before
    classes are compared, so that with several classes a pixel is lesion exactly where transformers says so.

    Of the query networks (Mask2Former, MaskFormer) a class's score is the sum over queries of class probability times
    mask probability; the lesion's probability is its score's share beside the strongest rival's, or with one class the
    score itself, at most 1.
    """

    Settings: ClassVar[type[HuggingFaceSettings]] = HuggingFaceSettings

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._processor: Any = None
        self._family = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_processor": None}

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with the folder."""
        where, typed = self.name, self.settings.path
        found = folder_mistakes(typed, where=where, key="path")
        if found:
            if typed.count("/") == 1 and not typed.startswith((".", "~", "/")):
                fix = (
                    f"medtest downloads nothing; fetch it yourself: hf download {typed} --local-dir DIR, then path=DIR"
                )
                found.append(Mistake(where=where, key="path", found=f"{typed} looks like a name on the hub", fix=fix))
            return found
        folder = user_path(typed)
        allowed = "a folder that save_pretrained wrote: config.json and model.safetensors"
        try:
            config = _config(folder)
        except MedtestError as error:
            return [Mistake(where=where, key="path", found=str(error), allowed=allowed)]
        if "auto_map" in config:
            what = "a network whose code lies in its own folder (auto_map in config.json), which medtest does not run"
            return [Mistake(where=where, key="path", found=what, fix="model=callable runs code of yours")]
        files = _weights(folder)
        if not files:
            return [Mistake(where=where, key="path", found=f"{folder.name} holds no weights", allowed=allowed)]
        missing = [path.name for path in files if not path.is_file()]
        if missing:
            return [
                Mistake(where=where, key="path", found=f"{missing[0]} is missing", allowed="every file of the index")
            ]
        return [mistake for path in files for mistake in pointer_mistakes(path, where=where, key="path")]

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights, of the network's description and of its image processor's."""
        folder = user_path(self.settings.path)
        files = ["config.json", *PROCESSORS]
        print_: dict[str, Json] = {
            name.removesuffix(".json") + "_sha256": file_sha256(folder / name)
            for name in files
            if (folder / name).is_file()
        }
        print_["weights_sha256"] = [file_sha256(path) for path in _weights(folder)]
        return print_

    def notice(self) -> str:
        """Return that there is no image processor, if there is none."""
        folder = user_path(self.settings.path)
        if not folder.is_dir() or any((folder / name).is_file() for name in PROCESSORS):
            return ""
        return (
            f"{self.name}: no {PROCESSORS[0]} in the folder; images are normalised as ImageNet's, at "
            f"{'their own size' if self.settings.size is None else 'the size you gave'}."
        )

    def load(self, device: str) -> nn.Module:
        """Return the network; see :class:`medtest.systems.adapters.torch_network.TorchNetwork`.

        Raises:
            MedtestError: transformers cannot make a segmentation network of the folder, or weights are missing.
        """
        folder = user_path(self.settings.path)
        with _offline():
            self._processor = self._image_processor(folder)
            network: nn.Module = self._load_network(folder)
        config: Any = network.config
        names = {int(index): str(name) for index, name in dict(config.id2label).items()}
        self.has_classes([names.get(index, f"class {index}") for index in range(len(names))])
        if self._family in QUERIES and self.settings.activation not in ("auto", "none"):
            raise MedtestError(f"{self.name}: {self._family} has an activation of its own; leave activation at auto")
        return network

    def _load_network(self, folder: Path) -> Any:
        import transformers
        from transformers.models.auto.modeling_auto import MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES

        common: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._family = str(_config(folder)["model_type"])
            config = None
            if self._family in (*MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES, *QUERIES):
                config = transformers.AutoConfig.from_pretrained(folder, **common)
            _leave_backbones_empty(config)
            if self._family in MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES:
                maker: Any = transformers.AutoModelForSemanticSegmentation
            elif self._family in QUERIES:
                maker = transformers.AutoModelForUniversalSegmentation
            else:
                known = sorted([*MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES, *QUERIES])
                raise MedtestError(
                    f"{folder.name}: {self._family} is no network for semantic segmentation; these are: "
                    + ", ".join(known)
                )
            network: Any
            network, report = maker.from_pretrained(
                folder, config=config, output_loading_info=True, weights_only=True, **common
            )
        except MedtestError:
            raise
        except Exception as error:  # noqa: BLE001 - transformers raises whatever a stranger's folder leads it to
            raise MedtestError(
                f"{folder.name}: transformers cannot make a network of this folder: {type(error).__name__}: "
                f"{str(error).strip()[:400]}"
            ) from error
        absent = sorted(str(one) for one in [*report["missing_keys"], *report["mismatched_keys"]])
        if absent:
            raise MedtestError(
                f"{folder.name}: {len(absent)} weights of {type(network).__name__} are not in the folder or have "
                f"another shape ({', '.join(absent[:6])}{', …' if len(absent) > 6 else ''}); they would be drawn at "
                "random. Is this a backbone that was never trained to segment?"
            )
        return network

    def _image_processor(self, folder: Path) -> Any:
        """Return the folder's image processor with the user's settings in it, or None where there is none."""
        if not any((folder / name).is_file() for name in PROCESSORS):
            return None
        import transformers

        try:
            maker: Any = transformers.AutoImageProcessor
            return maker.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # noqa: BLE001 - as for the network
            raise MedtestError(
                f"{folder.name}: its image processor cannot be made: {type(error).__name__}: {str(error).strip()[:300]}"
            ) from error

    def _changes(self) -> dict[str, Any]:
        """Return what the processor is told beside its own settings."""
        wanted, processor = self.settings, self._processor
        changes: dict[str, Any] = {}
        if wanted.size is not None:
            changes |= {"do_resize": True, "size": {"height": wanted.size[0], "width": wanted.size[1]}}
        elif getattr(processor, "do_center_crop", False):
            changes |= {"do_resize": True, "size": dict(processor.crop_size)}
        if getattr(processor, "do_center_crop", False):
            changes["do_center_crop"] = False
        if wanted.mean is not None or wanted.std is not None:
            changes["do_normalize"] = True
            changes |= {"image_mean": wanted.mean} if wanted.mean is not None else {}
            changes |= {"image_std": wanted.std} if wanted.std is not None else {}
        return changes

    def _encoded(self, images: Sequence[Image]) -> dict[str, Tensor]:
        import torch

        if self._processor is None:
            given = {key: getattr(self.settings, key) for key in ("mean", "std") if getattr(self.settings, key)}
            size = None if self.settings.size is None else (self.settings.size[0], self.settings.size[1])
            return {"pixel_values": torch.from_numpy(encode(images, GraphSettings(**given), size))}
        made = self._processor(
            images=list(images), return_tensors="pt", input_data_format="channels_last", **self._changes()
        )
        return {key: made[key] for key in ("pixel_values", "pixel_mask") if key in made}

    def scores(self, network: nn.Module, images: Sequence[Image]) -> Iterator[Tensor]:
        """Yield each image's scores at the image's size."""
        from torch.nn.functional import interpolate

        inputs = {key: value.to(self._device) for key, value in self._encoded(images).items()}
        given = network(**inputs)
        found = _of_queries(given, QUERIES[self._family]) if self._family in QUERIES else getattr(given, "logits", None)
        found = checked_scores(found, len(images), None)
        height, width = inputs["pixel_values"].shape[-2:]
        for index, image in enumerate(images):
            one = found[index : index + 1]
            rows, columns = _unpadded(inputs.get("pixel_mask"), index, (height, width))
            if (rows, columns) != (height, width):
                one = interpolate(one, size=(height, width), mode="bilinear", align_corners=False)[..., :rows, :columns]
            yield interpolate(one, size=image.shape[:2], mode="bilinear", align_corners=False)

    def to_probability(self, scores: Tensor) -> Tensor:
        """Return the lesion's probability; scores of query networks are no logits."""
        if self._family not in QUERIES:
            return super().to_probability(scores)
        lesion = scores[:, list(self._classes)].amax(dim=1)
        others = [index for index in range(scores.shape[1]) if index not in self._classes]
        if not others or self.settings.activation == "none":
            return lesion.clamp(0, 1)
        rival = scores[:, others].amax(dim=1)
        return lesion / (lesion + rival).clamp_min(1e-12)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MedtestError("config.json is too large to be one")
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MedtestError(f"{folder.name} has no config.json") from error
    except (OSError, ValueError, RecursionError) as error:
        raise MedtestError(f"config.json cannot be read: {str(error)[:200]}") from error
    if not isinstance(found, dict) or not isinstance(found.get("model_type"), str):
        raise MedtestError("config.json names no model_type: it is not one of transformers")
    return found


def _weights(folder: Path) -> list[Path]:
    """Return the files that hold the weights, an index's shards in its place."""
    name = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    if name is None:
        return []
    if not name.endswith(".index.json"):
        return [folder / name]
    try:
        if (folder / name).stat().st_size > MOST_BYTES:
            return []
        shards = json.loads((folder / name).read_text(encoding="utf-8"))["weight_map"].values()
        return [folder / Path(str(shard)).name for shard in sorted(set(shards))]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return []


@contextmanager
def _offline() -> Iterator[None]:
    """Keep transformers, and timm below it, from the hub and from drawing progress bars."""
    import transformers
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    log: Any = transformers.utils.logging
    log.disable_progress_bar()
    verbosity = log.get_verbosity()
    log.set_verbosity_error()
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        log.set_verbosity(verbosity)


def _leave_backbones_empty(config: Any) -> None:
    """Say that no backbone fetches weights of its own: all weights come from the folder."""
    if getattr(config, "use_pretrained_backbone", False):
        config.use_pretrained_backbone = False
    inner = getattr(config, "backbone_config", None)
    if inner is not None:
        _leave_backbones_empty(inner)


def _of_queries(given: Any, size: tuple[int, int] | None) -> Tensor:
    """Return classes' scores B×C×h×w from queries' classes and masks (Cheng et al., MaskFormer, section 3.4)."""
    import torch
    from torch.nn.functional import interpolate

    masks, classes = given.masks_queries_logits, given.class_queries_logits
    if masks is None or classes is None:
        raise BadOutput("gave no masks or no classes of queries")
    if size is not None:
        masks = interpolate(masks, size=size, mode="bilinear", align_corners=False)
    return torch.einsum("bqc,bqhw->bchw", classes.softmax(dim=-1)[..., :-1], masks.sigmoid())


def _unpadded(mask: Tensor | None, index: int, size: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns of an image that the processor did not add below and to the right."""
    if mask is None:
        return size
    real = np.asarray(mask[index].cpu()) > 0
    return int(real.any(axis=1).sum()), int(real.any(axis=0).sum())

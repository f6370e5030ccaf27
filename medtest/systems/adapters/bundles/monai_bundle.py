"""MONAI bundle as a system under test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import cv2
import numpy as np
from pydantic import Field

from medtest.core.cases import Address, Image, Json
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.bundles.bundle_config import NotPlain
from medtest.systems.adapters.bundles.bundle_files import CONFIGS, METADATA, MOST_WEIGHTS, BundleFiles
from medtest.systems.adapters.bundles.bundle_parts import make_inferer, make_network, make_transform
from medtest.systems.adapters.bundles.bundle_plan import BundlePlan, Wanted, plan_bundle
from medtest.systems.adapters.libraries.lesion import NetworkSettings, checked_scores
from medtest.systems.adapters.libraries.torch_network import TorchNetwork
from medtest.systems.adapters.libraries.weights import fill, pointer_mistakes
from medtest.systems.adapters.tensors import GraphSettings, encode
from medtest.systems.adapters.torchscript import load_script
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.archives import check_archive
from medtest.systems.checkpoints.checkpoint import load_strictly, read_weights
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.pytorch.pixels import grey, logits_of, resized, resized_map

if TYPE_CHECKING:
    from torch import Tensor, nn

WHITE = 255.0
PLAIN = {"mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]}


class MonaiSettings(NetworkSettings):
    """Settings of a MONAI bundle.

    ``size``, ``mean`` and ``std`` belong to medtest's own preprocessing; setting one of them selects it.

    Attributes:
        trust: Allow the bundle to run code: expressions in its configuration, classes of any kind, its ``scripts/``, a
            TorchScript archive. As dangerous as installing a program.
        preprocessing: ``auto``: the bundle's transforms if all are allowed, otherwise medtest's own; ``bundle``: the
            bundle's or a mistake; ``default``: medtest's own (pixels divided by 255, then ``mean`` and ``std``, 0 and 1
            by default, at ``size`` or the image's own).
    """

    trust: bool = Field(default=False, json_schema_extra=TRUSTED)
    preprocessing: Literal["auto", "bundle", "default"] = "auto"


class MonaiBundle(TorchNetwork):
    """MONAI bundle (folder or zip) for two-dimensional segmentation.

    It reads ``configs/inference.json`` (or .yaml), ``configs/metadata.json`` and ``models/model.pt``. A configuration
    can run code in many ways, so without ``trust`` it is read as data: no ``$`` expression is evaluated, networks are
    classes of ``monai.networks`` and ``torch.nn``, transforms those of
    :data:`medtest.systems.adapters.bundles.bundle_parts.TRANSFORMS`, weights are loaded strictly with ``weights_only``,
    and nothing is downloaded.

    If the preprocessing loads pictures with ``LoadImage``, the network sees them as MONAI's readers return them, with
    columns as the first axis. Geometric changes of the preprocessing (resizing, padding, flips) are inverted on the
    lesion's probability, as ``Invertd`` does. Of the postprocessing, activation, argmax and threshold are applied; the
    rest (largest component and others) is skipped and named before the run.
    """

    Settings: ClassVar[type[MonaiSettings]] = MonaiSettings
    settings: MonaiSettings
    library = ("monai", "monai")
    _plan: BundlePlan | None = None
    _before: Any = None
    _inferer: Any = None

    def _planned(self) -> BundlePlan:
        choice: Wanted = self.settings.preprocessing
        own = any(getattr(self.settings, key) is not None for key in ("size", "mean", "std"))
        if own and choice == "auto":
            choice = "default"
        return plan_bundle(self._files(), system=self.name, trust=self.settings.trust, preprocessing=choice)

    def _files(self) -> BundleFiles:
        return BundleFiles(user_path(self.settings.path))

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the bundle, without importing MONAI."""
        mistakes, where = self.library_mistakes(), self.name
        path = user_path(self.settings.path)
        if not self.settings.path or not path.is_dir():
            wrong = file_mistakes(self.settings.path, where=where, key="path", suffixes=(".zip",))
            if wrong:
                return [*mistakes, *wrong]
        try:
            plan = self._planned()
        except MedtestError as error:
            return [
                *mistakes,
                Mistake(where=where, key="path", found=str(error), allowed="a MONAI bundle, folder or zip"),
            ]
        return [*mistakes, *(pointer_mistakes(path / plan.weights, where=where, key="path") if path.is_dir() else [])]

    def notice(self) -> str:
        """Return a notice of replaced or skipped parts of the bundle."""
        try:
            plan = self._planned()
        except MedtestError:
            return ""
        remarks = []
        if plan.before.transforms is None:
            remarks.append(f"medtest's own preprocessing instead of the bundle's ({plan.before.reason})")
        if plan.inferer_reason:
            remarks.append(f"one plain forward pass instead of the bundle's inferer ({plan.inferer_reason})")
        if plan.after.left_out:
            remarks.append(f"not applied afterwards: {', '.join(plan.after.left_out)}")
        if self.settings.trust:
            remarks.append("the bundle may run code (trust=true)")
        return f"{self.name}: {'; '.join(remarks)}." if remarks else ""

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of weights and configuration, and the parts of the bundle in use."""
        files, plan = self._files(), self._planned()
        printed: dict[str, Json] = {
            "weights_sha256": files.sha256(plan.weights),
            "config_sha256": files.sha256(files.first(CONFIGS) or CONFIGS[0]),
            "preprocessing": "default" if plan.before.transforms is None else "bundle",
            "trust": bool(self.settings.trust),
        }
        metadata = files.first(METADATA)
        return printed | ({"metadata_sha256": files.sha256(metadata)} if metadata else {})

    def load(self) -> nn.Module:
        """Return the network; see :class:`medtest.systems.adapters.libraries.torch_network.TorchNetwork`.

        Raises:
            MedtestError: The bundle cannot be run.
        """
        import monai  # noqa: F401 - a missing library is reported first

        plan, files = self._planned(), self._files()
        self._plan = plan
        parser = _trusted_parser(plan, files) if self.settings.trust else None
        try:
            network = self._load_network(plan, files, parser)
            self._before = self._load_transforms(plan, parser)
            self._inferer = None if plan.inferer is None else make_inferer(plan.inferer)
        except NotPlain as error:
            raise MedtestError(f"{files.path.name}: {error}") from error
        if plan.names is not None:
            self.has_classes(plan.names)
        self._threshold = self._threshold if plan.after.threshold is None else plan.after.threshold
        return network

    def _load_network(self, plan: BundlePlan, files: BundleFiles, parser: Any) -> nn.Module:
        with files.opened(plan.weights, MOST_WEIGHTS) as file:
            if not plan.network_key:
                return _script(file, plan.weights)
            path = files.path / plan.weights
            safetensors = plan.weights.endswith(".safetensors") and not files.is_zip
            state = read_weights(path if safetensors else file, name=plan.weights)
        if plan.network is not None:
            name = str(plan.network["_target_"]).rpartition(".")[2]
            return fill(lambda: make_network(plan.network, plan.network_key), state, name=name, file=plan.weights)
        network = _parsed(parser, plan.network_key)
        return load_strictly(network, state, name=type(network).__name__, file=plan.weights)

    def _load_transforms(self, plan: BundlePlan, parser: Any) -> Any:
        if plan.before.transforms is None:
            return None
        from monai import transforms

        parts = [
            _parsed(parser, f"preprocessing::transforms::{transform['_place_']}")
            if "_place_" in transform
            else make_transform(transform, plan.before.key)
            for transform in plan.before.transforms
        ]
        return transforms.Compose(parts)

    def has_classes(self, names: Sequence[str]) -> None:
        """Set the class names; the bundle's postprocessing defines the activation."""
        super().has_classes(names)
        if self._plan is None or self.settings.activation != "auto":
            return
        after = self._plan.after
        if after.argmax and len(names) > 2:
            self._activation = "winner"
        elif after.activation and not (after.activation == "softmax" and len(names) == 1):
            self._activation = after.activation

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one map per image; see :class:`medtest.systems.adapters.libraries.torch_network.TorchNetwork`."""
        if self._before is None:
            return super().predict(images, addresses)
        with torch.inference_mode():
            return [self._answer_one(image) for image in images]

    def _answer_one(self, image: Image) -> Any:
        """Answer one image through the bundle's own transforms and their inverse."""
        plan = self._opened_plan
        pixels = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if plan.channels == 1 else image
        ready, back = self._through(torch.from_numpy(np.ascontiguousarray(pixels, np.float32)), plan)
        outputs = self.forward(ready)
        probability = back(torch.as_tensor(self.probability(checked_scores(self.scores(outputs), 1, None))))
        return np.ascontiguousarray(np.clip(np.asarray(probability, np.float32), 0, 1))

    @property
    def _opened_plan(self) -> BundlePlan:
        if self._plan is None:
            raise MedtestError(f"{self.name} is not open")
        return self._plan

    def _through(self, pixels: Tensor, plan: BundlePlan) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return one image after the bundle's own transforms, 1×C×h×w, and the inverse of a map 1×h×w to H×W.

        Args:
            pixels: Float H×W×3, or H×W for a network of grey images, 0 to 255.
            plan: The bundle's plan.
        """
        from monai.data.meta_tensor import MetaTensor

        key = plan.before.key
        data = self._before({key: self._loaded(pixels, plan)})
        ready = torch.as_tensor(data[key])
        if ready.ndim != 3 or ready.shape[0] != plan.channels:
            raise BadOutput(
                f"the bundle's preprocessing gave shape {tuple(ready.shape)}; {plan.channels} channels and two axes "
                "are expected"
            )

        def back(lesion: Tensor) -> Tensor:
            if lesion.shape[-2:] == ready.shape[-2:] and isinstance(data[key], MetaTensor):
                transformed = MetaTensor(lesion, meta=data[key].meta, applied_operations=data[key].applied_operations)
                lesion = torch.as_tensor(self._before.inverse({key: transformed})[key]).as_subclass(torch.Tensor)
            return lesion[0].T if plan.before.swapped else lesion[0]

        return ready[None].float().as_subclass(torch.Tensor), back

    def _loaded(self, pixels: Tensor, plan: BundlePlan) -> Any:
        """Return pixels as from MONAI's LoadImage: float32, columns first, with the position of their channels."""
        from monai.data.meta_tensor import MetaTensor

        pixels = pixels.swapaxes(0, 1).contiguous() if plan.before.swapped else pixels
        where: Any = -1 if pixels.ndim == 3 else "no_channel"
        meta = {"original_channel_dim": where, "spatial_shape": np.asarray(pixels.shape[:2])}
        return MetaTensor(pixels, affine=torch.eye(4), meta=meta)

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits of the lesion's probability, through the bundle's own transforms and their inverse, if any.

        The inverse fills missing areas as certainly no lesion: it is applied to probabilities, and logits are computed
        from them.
        """
        if self._before is None:
            return super().lesion_logits(pixels, shape)
        plan, logits = self._opened_plan, []
        for image in pixels * WHITE:
            ready, back = self._through(image[0] if plan.channels == 1 else image.permute(1, 2, 0), plan)
            probability = self.map_logits(checked_scores(self.scores(self.forward(ready)), 1, None)).sigmoid()
            logits.append(resized_map(logits_of(back(probability), multi=True)[None], shape))
        return torch.cat(logits)

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels resized by medtest's own preprocessing, with three equal channels for grey networks."""
        pixels = grey(pixels) if self._plan is not None and self._plan.channels == 1 else pixels
        size = None if self._before is not None else self.settings.size
        return pixels if size is None else resized(pixels, (size[0], size[1]), "area")

    def normalised(self, pixels: Tensor) -> Tensor:
        """Return pixels normalised by medtest's own preprocessing."""
        normalised: Tensor = super().normalised(pixels)
        return normalised[:, :1] if self._plan is not None and self._plan.channels == 1 else normalised

    def _normalisation(self) -> dict[str, Any]:
        return {key: getattr(self.settings, key) or PLAIN[key] for key in PLAIN}

    @property
    def input_kind(self) -> InputKind:
        """Input format of medtest's own preprocessing, if it replaces the bundle's."""
        return super().input_kind if self._before is not None else InputKind.of(**self._normalisation())

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return images after medtest's own preprocessing, B×C×h×w."""
        size = None if self.settings.size is None else (self.settings.size[0], self.settings.size[1])
        if self._plan is not None and self._plan.channels == 1:
            grey = [np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2) for image in images]
            return torch.from_numpy(encode(grey, GraphSettings(**self._normalisation()), size)[:, :1].copy())
        return torch.from_numpy(encode(images, GraphSettings(**self._normalisation()), size))

    def forward(self, inputs: Tensor) -> Any:
        """Return the network's output, through the bundle's inferer if it has one."""
        if self._inferer is None:
            return super().forward(inputs)
        return self._inferer(inputs.to(self._device), self.network)

    def scores(self, outputs: Any) -> Tensor:
        """Return the classes' scores: the first of several outputs, or the one named ``pred``."""
        answer = outputs
        if isinstance(answer, Mapping):
            answer = answer.get("pred", next(iter(answer.values()), None))
        if isinstance(answer, list | tuple):
            answer = answer[0] if answer else None
        return super().scores(answer.as_subclass(torch.Tensor) if isinstance(answer, torch.Tensor) else answer)


def _script(file: Any, name: str) -> nn.Module:
    check_archive(file, name)
    try:
        return load_script(file)
    except (RuntimeError, ValueError, OSError) as error:
        raise MedtestError(f"{name}: not a TorchScript archive: {str(error).splitlines()[0][:200]}") from error


def _trusted_parser(plan: BundlePlan, files: BundleFiles) -> Any:
    """Return MONAI's own parser of the configuration, which runs any requested code."""
    from monai import bundle

    if not files.is_zip and str(files.path) not in sys.path:
        sys.path.append(str(files.path))  # for the bundle's scripts/
    parser: Any = bundle.ConfigParser(config=dict(plan.config))
    parser["bundle_root"] = str(files.path)
    return parser


def _parsed(parser: Any, key: str) -> Any:
    try:
        return parser.get_parsed_content(key, instantiate=True)
    except Exception as error:
        raise MedtestError(f"the bundle's {key} cannot be made: {type(error).__name__}: {str(error)[:300]}") from error

"""Initial network of a training, and the format in which its weights are written for suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import MedtestError, UserMistakes, nearest_name, typed_error
from medtest.core.files.tensors import replacing
from medtest.core.plugins import part, parts
from medtest.systems.checkpoints.weights import WeightsInfo, is_ours, load_network, save_weights
from medtest.systems.files import cached_sha256, file_mistakes, user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.training.settings.recipe import Recipe

COMPACT = "compact"
"""Name of the bundled network for ``from=``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StartingPoint:
    """Network for further training.

    Attributes:
        family: ``pranet``, ``sanet``, ``tganet`` or ``ssformer``.
        name: Network of the family ("pranet-compact", "ssformer_l").
        network: The network with its weights, in evaluation mode.
        size: Input side in pixels.
        threshold: Probability above which a pixel is lesion.
        sha256: SHA-256 of the weights file.
        checkpoint: Value of the system's ``checkpoint`` setting before training; None for the bundled network.
        info: Description in a compact network's file; None for published ones.
        labels: TGANet's word vectors, float32 [5, D], if its weights do not include them; otherwise None.
    """

    family: str
    name: str
    network: nn.Module
    size: int
    threshold: float
    sha256: str
    checkpoint: str | None
    info: WeightsInfo | None
    labels: Tensor | None = None


def families() -> tuple[str, ...]:
    """Return the names of trainable networks: those with a system of their family's name."""
    from medtest.systems.pytorch import networks

    return tuple(name for name in networks.COMPACT if name in parts("systems"))


def check_family(model: str, *, others: Sequence[str] = ()) -> None:
    """Raise an error if a name is not a trainable network.

    Args:
        model: The name typed by the user.
        others: Further allowed names.

    Raises:
        UserMistakes: Unknown name.
    """
    names = (*families(), *others)
    if model not in names:
        raise typed_error("model", repr(model), ", ".join(names), nearest=nearest_name(model, names))


def open_start(model: str, source: str, *, settings: Mapping[str, Any] | None = None) -> StartingPoint:
    """Return the initial network of a training.

    Args:
        model: Name of the network, as for ``model=``.
        source: ``compact`` for the bundled one, or the path of weights: a .safetensors file of medtest's, a published
            checkpoint, or the folder of an earlier further training.
        settings: Further settings of the system (``label_vectors`` of TGANet).

    Raises:
        UserMistakes: There is no such network or file.
        MedtestError: The weights do not fit.
    """
    check_family(model)
    kind = part("systems", model).load()
    if source == COMPACT:
        path = Path(kind(model, kind.Settings()).compact_weights)
        if not path.is_file():
            raise MedtestError(f"{model}-compact is not in this package: add from=CHECKPOINT")
        network, info = load_network(path)
        return _compact(model, network, info, path, checkpoint=None)
    path = _weights_file(source)
    if is_ours(path):
        network, info = load_network(path)
        if info.network.get("family") != model:
            raise MedtestError(f"{path.name}: these are weights of {info.network.get('family')}, not of {model}")
        return _compact(model, network, info, path, checkpoint=str(path))
    return _published(model, kind, path, dict(settings or {}))


def _compact(model: str, network: nn.Module, info: WeightsInfo, path: Path, *, checkpoint: str | None) -> StartingPoint:
    return StartingPoint(
        family=model,
        name=f"{model}-compact",
        network=network,
        size=info.size,
        threshold=info.threshold,
        sha256=cached_sha256(path),
        checkpoint=checkpoint,
        info=info,
    )


def _published(model: str, kind: Any, path: Path, settings: dict[str, Any]) -> StartingPoint:
    from medtest.systems.checkpoints.checkpoint import load_published

    name, network = load_published(path, tuple(kind.published))
    labels = None
    if model == "tganet":
        labels = _word_vectors(kind, path, settings)
    return StartingPoint(
        family=model,
        name=name,
        network=network,
        size=int(kind.published_size),
        threshold=0.5,
        sha256=cached_sha256(path),
        checkpoint=str(path),
        info=None,
        labels=labels,
    )


def _word_vectors(kind: Any, path: Path, settings: dict[str, Any]) -> Tensor:
    """Return the word vectors that the system loads for a published checkpoint."""
    system = kind("tganet", kind.Settings(checkpoint=str(path), **settings))
    mistakes = system.check()
    if mistakes:
        raise UserMistakes(mistakes)
    system.open(device="cpu", threads=1)
    vectors: Tensor = system.labels.detach().clone().float()
    system.close()
    return vectors


def _weights_file(source: str) -> Path:
    path = user_path(source)
    if path.is_dir():
        files = sorted(path.glob("*.safetensors"))
        if len(files) != 1:
            problem = f"{path.name}, a folder with {len(files)} .safetensors files"
            raise typed_error("from", problem, "a folder with one, or a file")
        return files[0]
    mistakes = file_mistakes(source, where="command line", key="from")
    if mistakes:
        raise UserMistakes(
            [replace(mistake, fix=mistake.fix or "from=compact takes the bundled one") for mistake in mistakes]
        )
    return path


def trained_as(start: StartingPoint, recipe: Recipe) -> StartingPoint:
    """Return a starting point with the recipe's defence and side in its description.

    Raises:
        UserMistakes: The recipe has another side, and the weights' format cannot record it.
    """
    size, defence = getattr(recipe, "size", None), getattr(recipe, "defence", None)
    if start.info is None:
        if size is not None and defence is not None:
            raise typed_error(
                "recipe.size", str(size), f"null: a published checkpoint does not say its side, which is {start.size}"
            )
        return start
    info = start.info
    if defence is not None:
        facts = {"name": defence.name, "variant": defence.variant, "from_sha256": start.sha256}
        info = replace(info, defence=facts)
        if size is not None:
            info = replace(info, size=size, resized=True)
    return replace(start, info=info)


def write_weights(path: Path, start: StartingPoint, state: Mapping[str, Tensor], *, note: str) -> None:
    """Write trained weights in their original format, atomically.

    A compact network keeps medtest's format (half precision, its description in the header); a published one is written
    under its official names in float32, so that readers of the original checkpoint can read it too.

    Args:
        path: A .safetensors file.
        start: The initial network.
        state: The weights.
        note: Note for readers of the file.
    """
    from safetensors.torch import save

    path.parent.mkdir(parents=True, exist_ok=True)
    if start.info is not None:
        save_weights(path, state, replace(start.info, note=note))
        return
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    with replacing(path) as file:
        file.write(save(tensors, metadata={"note": note}))

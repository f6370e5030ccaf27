"""Probes leave a network unchanged; an invalid answer is an error."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from library_parts import system_of
from probe_parts import CASES, HERE, REPEATED, official, opened, picture, pixels_of, probed

from medtest.core.errors import BadOutput
from medtest.core.probes import Need
from medtest.phantoms.classes import CHEST, DERMOSCOPY
from medtest.systems.pytorch.probe import probe_gap, probe_of
from medtest.systems.pytorch.torch_system import TorchSystem


def _state(network: nn.Module) -> Iterator[Any]:
    for name, value in [*network.named_parameters(), *network.named_buffers()]:
        yield name, value.detach().clone(), value.requires_grad, id(value), value.grad
    for name, module in network.named_modules():
        hooks = [len(getattr(module, key, ())) for key in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")]
        yield name, module.training, hooks
    yield torch.get_rng_state(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    yield [repr(part) for part in np.random.get_state()], random.getstate()  # noqa: NPY002


def _are_equal(before: Sequence[Any], after: Sequence[Any]) -> bool:
    if isinstance(before, torch.Tensor):
        return torch.equal(before, after)  # type: ignore[arg-type]
    if isinstance(before, tuple | list):
        return len(before) == len(after) and all(_are_equal(a, b) for a, b in zip(before, after, strict=True))
    return bool(before == after)


def _ask_and_attack(probe: Any, pixels: torch.Tensor) -> None:
    logits = probe.logits(pixels.requires_grad_())
    torch.nn.functional.softplus(logits).sum().backward()
    assert pixels.grad is not None


@pytest.mark.parametrize(
    ("name", "attached"),
    [
        *(pytest.param(name, True, marks=pytest.mark.slow if name in REPEATED else ()) for name in CASES),
        *((name, False) for name in ("attnmel", "segformer")),
    ],
)
def test_nothing_of_a_system_changes(name: str, attached: bool, tmp_path: Path) -> None:
    case = CASES[name]
    system: Any = opened(case, tmp_path)
    network = system.network
    for index, module in enumerate(network.modules()):  # a mixed mode, half of the modules in training
        module.training = index % 2 == 1
    system.predict([picture(case.side, case.side)], [HERE])  # transformers adds hooks of its own at the first call
    weights = list(network.parameters())
    for weight in weights[::2]:
        weight.requires_grad_(True).grad = torch.full_like(weight, 0.5)
    probe = probed(system, case)
    before = list(_state(network))
    pixels = pixels_of(picture(case.side, case.side))
    pixels_before = pixels.clone()
    if attached:
        with probe.attached():
            _ask_and_attack(probe, pixels)
            _ask_and_attack(probe, pixels.detach().clone())
    else:
        _ask_and_attack(probe, pixels)
    assert _are_equal(before, list(_state(network)))
    assert torch.equal(pixels.detach(), pixels_before)


class _Restless(nn.Module):
    """Draws numbers, counts its calls, raises now and then and adds to its pixels in place."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1))
        self.register_buffer("calls", torch.zeros(1))
        self.failing = False
        self.restless = False
        self.gives = lambda scores: scores

    def forward(self, pixels: torch.Tensor) -> Any:
        self.calls += 1  # type: ignore[operator]
        self.calls = self.calls * 1
        torch.rand(3), np.random.rand(), random.random()  # noqa: NPY002
        if self.restless:
            with torch.no_grad():
                self.body[0].weight.add_(1e-3)
        scores = self.body(pixels.add_(0)).flatten(1)
        if self.failing:
            raise RuntimeError("out of everything")
        return self.gives(scores)


class _Plain(TorchSystem):
    tasks = ("label",)
    answer_form = "logits"
    factory: Any = staticmethod(_Restless)

    def load(self) -> nn.Module:
        return self.factory()  # type: ignore[no-any-return]

    def fingerprint(self) -> dict[str, Any]:
        return {}

    def inputs(self, images: Sequence[Any]) -> Any:
        return pixels_of(*images)

    def normalised(self, pixels: torch.Tensor) -> Any:
        return pixels

    def scores(self, outputs: Any) -> Any:
        return outputs

    def answers(self, outputs: Any, images: Sequence[Any]) -> Any:
        return list(np.asarray(outputs))


def _open_plain(network: Any = _Restless) -> tuple[Any, Any]:
    system = _Plain("plain", _Plain.Settings())
    system.factory = network
    system.open(device="cpu", threads=1)
    return system, probe_of(system, classes=DERMOSCOPY)


def test_a_third_party_network_offers_gradients_if_it_defines_how() -> None:
    class Maps(_Plain):
        tasks = ("mask",)

    class Logits(Maps):
        def lesion_logits(self, pixels: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
            return pixels[:, 0] * 4 - 2

    offers = [kind("plain", kind.Settings()).offers() for kind in (_Plain, Maps, Logits)]
    assert offers == [Need.GRADIENTS, Need.SCORES, Need.GRADIENTS]


@pytest.mark.parametrize("attached", [False, True])
def test_a_network_that_counts_draws_and_raises_is_put_back(attached: bool) -> None:
    system, probe = _open_plain()
    system.network.failing = True
    before = list(_state(system.network))
    pixels = pixels_of(picture(32, 32))
    pixels_before = pixels.clone()
    with pytest.raises(RuntimeError, match="out of everything"):
        if attached:
            with probe.attached():
                probe.logits(pixels)
        else:
            probe.logits(pixels)
    assert _are_equal(before, list(_state(system.network))), "after an exception"
    system.network.failing = False
    _ask_and_attack(probe, pixels.clone())
    assert _are_equal(before, list(_state(system.network)))
    assert torch.equal(pixels, pixels_before)
    first, second = (probe.logits(pixels) for _ in range(2))
    assert torch.equal(first, second), "dropout stays off"


def test_a_network_that_changes_its_weights_is_an_error() -> None:
    system, probe = _open_plain()
    system.network.restless = True
    with pytest.raises(BadOutput, match="changes its own weights"):
        probe.logits(pixels_of(picture(32, 32)))


class _Secret(nn.Module):
    """Keeps tensors made in inference mode: as a weight, a buffer, an attribute, and hidden in a closure."""

    def __init__(self) -> None:
        super().__init__()
        with torch.inference_mode():
            torch.manual_seed(1)
            self.body = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True))
            self.share = torch.rand(1, 2, 1, 1)
            hidden = torch.rand(1, 2, 1, 1)
        self.hidden = lambda: hidden

    def forward(self, pixels: torch.Tensor) -> Any:
        return (self.body(pixels) * self.share * self.hidden()).mean(dim=(2, 3))


def test_weights_loaded_in_inference_mode_pass_gradients() -> None:
    system, probe = _open_plain(_Secret)
    images = [picture(32, 32)]
    pixels = pixels_of(*images).requires_grad_()
    before = {name: id(value) for name, value in [*system.network.named_parameters(), *system.network.named_buffers()]}
    (gradient,) = torch.autograd.grad(probe.logits(pixels)[0, 0], pixels)
    assert gradient.abs().sum() > 0
    (answer,) = official(system, images, DERMOSCOPY)
    assert probe_gap(probe, images[0], answer) < 1e-6
    after = {name: id(value) for name, value in [*system.network.named_parameters(), *system.network.named_buffers()]}
    assert before == after and system.network.share.is_inference()


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (lambda scores: scores * float("nan"), "gave NaN"),
        (lambda scores: scores / 0, "infinite|NaN"),
        (lambda scores: scores[:, :1], r"scores of shape \(1, 1\) where 1×2"),
        (lambda scores: scores.detach(), "no gradient reaches the pixels"),
        (lambda scores: [1, 2], "list|dtype|tensor"),
    ],
)
def test_an_invalid_answer_is_an_error(gives: Any, message: str) -> None:
    system, probe = _open_plain()
    system.network.gives = gives
    with pytest.raises(BadOutput, match=message):
        probe.logits(pixels_of(picture(32, 32)).requires_grad_())


def test_a_probe_takes_pixels_of_one_form() -> None:
    _, probe = _open_plain()
    with pytest.raises(ValueError, match="B×3×H×W"):
        probe.logits(torch.zeros(1, 32, 32, 3))
    with pytest.raises(ValueError, match="uint8"):
        probe.logits(torch.zeros(1, 3, 32, 32, dtype=torch.uint8))


def test_every_call_of_the_network_is_announced() -> None:
    system = CASES["chexnet ten crops"].make(Path())
    system.open(device="cpu", threads=1)
    calls: list[int] = []
    probe = probe_of(system, classes=CHEST, began=lambda: calls.append(1), digest="abc")
    with torch.no_grad():
        probe.logits(pixels_of(picture(240, 240), picture(240, 240, 4)))
    assert len(calls) == 2, "one image of ten crops is a batch"
    assert probe.digest == "abc"


# --- TorchScript ----------------------------------------------------------------------------------------------------


class _Normed(nn.Module):
    """Batch norm and dropout; its counter is a buffer that a script replaces by another tensor at each call."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros(1))
        with torch.no_grad():
            self.body[1].running_mean.uniform_(-0.2, 0.2)
            self.head.weight.mul_(5)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        self.calls = self.calls + 1
        return self.head(self.body(pixels).mean(dim=(2, 3)))  # type: ignore[no-any-return]


def _make_script(kind: str) -> Any:
    network = _Normed()
    if kind == "scripted":
        return torch.jit.script(network)
    if kind == "scripted in training":
        return torch.jit.script(network.train())
    return torch.jit.trace(network.eval(), torch.zeros(1, 3, 32, 32))  # type: ignore[no-untyped-call]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["scripted", "scripted in training", "traced"])
@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_torchscript_network_with_batch_norm_is_attacked_and_left_as_it_was(
    kind: str, place: str, tmp_path: Path
) -> None:
    images = [picture(32, 32)]
    if place == "memory":
        system, probe = _open_plain(lambda: _make_script(kind))
    else:
        path = tmp_path / "net.pt"
        _make_script(kind).save(str(path))
        plain = {"gives": "logits", "mean": [0.0] * 3, "std": [1.0] * 3}
        system = system_of("torchscript", "label", path=str(path), classes=list(DERMOSCOPY.names), **plain)
        system.open(device="cpu", threads=1)
        probe = probe_of(system, classes=DERMOSCOPY)
    network = system.network
    if kind == "scripted in training":
        network.train()
    for weight in list(network.parameters())[::2]:
        weight.requires_grad_(False)
    before = list(_state(network))
    pixels = pixels_of(*images)
    with probe.attached():
        _ask_and_attack(probe, pixels.clone())
        _ask_and_attack(probe, pixels.clone())
    _ask_and_attack(probe, pixels.clone())
    assert _are_equal(before, list(_state(network)))
    (gradient,) = torch.autograd.grad(probe.logits(pixels.requires_grad_())[0, 0], pixels)
    assert gradient.abs().sum() > 0
    eager = _Normed().eval()
    with torch.no_grad():
        assert torch.allclose(probe.logits(pixels), eager(pixels), atol=1e-6)

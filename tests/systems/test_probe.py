"""Probes: logits are those of predict, gradients are true, and nothing of a system is touched."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, logit, logsumexp, softmax
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from library_parts import NAMES, system_of
from probe_parts import CASES, HERE, THREE, Case, official, opened, picture, pixels_of, probabilities, probed, script

from medtest.cases import Classes
from medtest.classes import CHEST, DERMOSCOPY
from medtest.errors import BadOutput, MedtestError
from medtest.plugins import parts
from medtest.probes import Need, Probe
from medtest.systems.probe import GradientProbe, ScoreProbe, output_gap, probe_gap, probe_of
from medtest.systems.torch_system import TorchSystem


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_probabilities_are_those_of_predict_where_nothing_is_resized(case: Case, tmp_path: Path) -> None:
    system = opened(case, tmp_path)
    assert system.offers() is Need.GRADIENTS
    probe: Probe = probed(system, case)
    assert probe.gives is Need.GRADIENTS and probe.name == system.record_name
    images = [picture(case.side, case.side, seed) for seed in (3, 4)]
    pixels = pixels_of(*images).requires_grad_()
    logits = probe.logits(pixels)
    wanted = (2, case.side, case.side) if case.classes is None else (2, len(case.classes.names))
    assert tuple(logits.shape) == wanted and logits.dtype == torch.float32
    for image, answer in zip(images, official(system, images, case.classes), strict=True):
        assert probe_gap(probe, image, answer).largest < 1e-4
    (gradient,) = torch.autograd.grad(logits.sum(), pixels)
    assert torch.isfinite(gradient).all() and gradient.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name, one in CASES.items() if one.resized])
def test_resized_images_come_close_to_predict(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert case.resized is not None
    system = opened(case, tmp_path)
    probe = probed(system, case)
    image = picture(*case.resized)
    (answer,) = official(system, [image], case.classes)
    gap = probe_gap(probe, image, answer)
    assert gap.mean <= gap.largest < case.gap
    other = probe_gap(probe, picture(*case.resized, 77), answer)
    assert other.largest > 3 * gap.largest, "another image has another answer: closeness says something"


def test_a_map_of_zeros_and_ones_is_compared_by_its_decisions() -> None:
    system = system_of("ssformer", "mask", protocol="official")
    system.open(device="cpu", threads=1)
    image = picture(224, 224)
    (answer,) = official(system, [image], None)
    assert set(np.unique(answer.probability)) <= {0.0, 1.0}  # type: ignore[attr-defined]
    assert probe_gap(probe_of(system), image, answer).largest < 1e-4


# --- gradients ------------------------------------------------------------------------------------------------------

DOUBLE = ("attnmel", "inceptionv3_dr", "chexnet ten crops", "agdn", "dsinet", "torchvision merged", "vit several")
MAPS = ("pranet", "sanet official", "tganet", "ssformer", "smp softmax", "monai transforms", "torchscript")


HEAVY = {"inceptionv3_dr", "chexnet ten crops", "agdn", "dsinet", "sanet official", "tganet", "ssformer"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in (*DOUBLE, *MAPS)]
)
def test_gradients_are_those_of_finite_differences(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    system: Any = opened(case, tmp_path)
    exact = name not in ("agdn", "monai transforms", "vit several")  # in which something is float32 whatever it gets
    if exact:
        system.network.double()
    probe = probed(system, case)
    pixels = pixels_of(picture(case.side, case.side)).to(torch.float64 if exact else torch.float32)
    noise = torch.rand(pixels.shape, generator=torch.Generator().manual_seed(3)).to(pixels)
    pixels = (pixels * 0.9 + 0.05 + 0.01 * noise).requires_grad_()  # flat areas are corners of a max pool
    shape = probe.logits(pixels.detach()).shape
    weights = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(pixels)
    (gradient,) = torch.autograd.grad((probe.logits(pixels) * weights).sum(), pixels)
    torch.manual_seed(2)
    direction = gradient / gradient.norm() + 0.3 * torch.nn.functional.normalize(
        torch.randn_like(pixels).flatten(), dim=0
    ).view_as(pixels)
    step = 1e-7 if exact else 1e-2
    with torch.no_grad():
        high, low = ((probe.logits(pixels + sign * step * direction) * weights).double().sum() for sign in (1, -1))
    measured, told = float(high - low) / (2 * step), float((gradient * direction).sum())
    assert measured == pytest.approx(told, rel=1e-3 if exact else 5e-2)


# --- no trace -------------------------------------------------------------------------------------------------------


def _state(network: nn.Module) -> Iterator[Any]:
    for name, value in [*network.named_parameters(), *network.named_buffers()]:
        yield name, value.detach().clone(), value.requires_grad, id(value), value.grad
    for name, module in network.named_modules():
        hooks = [len(getattr(module, key, ())) for key in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")]
        yield name, module.training, hooks
    yield torch.get_rng_state(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    yield [repr(one) for one in np.random.get_state()], random.getstate()  # noqa: NPY002


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)  # type: ignore[arg-type]
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _asked_and_attacked(probe: Any, pixels: torch.Tensor) -> None:
    logits = probe.logits(pixels.requires_grad_())
    torch.nn.functional.softplus(logits).sum().backward()
    assert pixels.grad is not None


@pytest.mark.parametrize(
    ("name", "attached"), [*((name, True) for name in CASES), *((name, False) for name in ("attnmel", "segformer"))]
)
def test_nothing_of_a_system_changes(name: str, attached: bool, tmp_path: Path) -> None:
    case = CASES[name]
    system: Any = opened(case, tmp_path)
    network = system.network
    for index, module in enumerate(network.modules()):  # somebody's mode, half of it in training
        module.training = index % 2 == 1
    system.predict([picture(case.side, case.side)], [HERE])  # transformers adds hooks of its own at the first call
    weights = list(network.parameters())
    for weight in weights[::2]:
        weight.requires_grad_(True).grad = torch.full_like(weight, 0.5)
    probe = probed(system, case)
    before = list(_state(network))
    pixels = pixels_of(picture(case.side, case.side))
    kept = pixels.clone()
    if attached:
        with probe.attached():
            _asked_and_attacked(probe, pixels)
            _asked_and_attacked(probe, pixels.detach().clone())
    else:
        _asked_and_attacked(probe, pixels)
    assert _same(before, list(_state(network)))
    assert torch.equal(pixels.detach(), kept)


class _Restless(nn.Module):
    """Draws numbers, counts its calls, raises now and then and adds to its pixels in place."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1))
        self.register_buffer("calls", torch.zeros(1))
        self.failing = False
        self.restless = False
        self.gives = lambda scores: scores

    def forward(self, given: torch.Tensor) -> Any:
        self.calls += 1  # type: ignore[operator]
        self.calls = self.calls * 1
        torch.rand(3), np.random.rand(), random.random()  # noqa: NPY002, S311
        if self.restless:
            with torch.no_grad():
                self.body[0].weight.add_(1e-3)
        scores = self.body(given.add_(0)).flatten(1)
        if self.failing:
            raise RuntimeError("out of everything")
        return self.gives(scores)


class _Plain(TorchSystem):
    tasks = ("label",)
    answer_form = "logits"
    made: Any = staticmethod(_Restless)

    def load(self) -> nn.Module:
        return self.made()  # type: ignore[no-any-return]

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


def _plain(made: Any = _Restless) -> tuple[Any, Any]:
    system = _Plain("plain", _Plain.Settings())
    system.made = made
    system.open(device="cpu", threads=1)
    return system, probe_of(system, classes=DERMOSCOPY)


def test_a_strangers_network_offers_gradients_of_what_it_says_how_to_make() -> None:
    class Maps(_Plain):
        tasks = ("mask",)

    class Logits(Maps):
        def lesion_logits(self, pixels: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
            return pixels[:, 0] * 4 - 2

    found = [kind("plain", kind.Settings()).offers() for kind in (_Plain, Maps, Logits)]
    assert found == [Need.GRADIENTS, Need.SCORES, Need.GRADIENTS]


@pytest.mark.parametrize("attached", [False, True])
def test_a_network_that_counts_draws_and_raises_is_put_back(attached: bool) -> None:
    system, probe = _plain()
    system.network.failing = True
    before = list(_state(system.network))
    pixels = pixels_of(picture(32, 32))
    kept = pixels.clone()
    with pytest.raises(RuntimeError, match="out of everything"):
        if attached:
            with probe.attached():
                probe.logits(pixels)
        else:
            probe.logits(pixels)
    assert _same(before, list(_state(system.network))), "after an exception"
    system.network.failing = False
    _asked_and_attacked(probe, pixels.clone())
    assert _same(before, list(_state(system.network)))
    assert torch.equal(pixels, kept)
    first, second = (probe.logits(pixels) for _ in range(2))
    assert torch.equal(first, second), "dropout stays off"


def test_a_network_that_changes_its_weights_is_told() -> None:
    system, probe = _plain()
    system.network.restless = True
    with pytest.raises(BadOutput, match="changes its own weights"):
        probe.logits(pixels_of(picture(32, 32)))


class _Secret(nn.Module):
    """Keeps tensors made in inference mode: as a weight, a buffer, an attribute, and where nobody finds them."""

    def __init__(self) -> None:
        super().__init__()
        with torch.inference_mode():
            torch.manual_seed(1)
            self.body = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True))
            self.share = torch.rand(1, 2, 1, 1)
            hidden = torch.rand(1, 2, 1, 1)
        self.hidden = lambda: hidden

    def forward(self, given: torch.Tensor) -> Any:
        return (self.body(given) * self.share * self.hidden()).mean(dim=(2, 3))


def test_weights_loaded_in_inference_mode_pass_gradients() -> None:
    system, probe = _plain(_Secret)
    images = [picture(32, 32)]
    pixels = pixels_of(*images).requires_grad_()
    kept = {name: id(value) for name, value in [*system.network.named_parameters(), *system.network.named_buffers()]}
    (gradient,) = torch.autograd.grad(probe.logits(pixels)[0, 0], pixels)
    assert gradient.abs().sum() > 0
    (answer,) = official(system, images, DERMOSCOPY)
    assert probe_gap(probe, images[0], answer).largest < 1e-6
    after = {name: id(value) for name, value in [*system.network.named_parameters(), *system.network.named_buffers()]}
    assert kept == after and system.network.share.is_inference()


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda scores: scores * float("nan"), "gave NaN"),
        (lambda scores: scores / 0, "infinite|NaN"),
        (lambda scores: scores[:, :1], r"scores of shape \(1, 1\) where 1×2"),  # noqa: RUF001
        (lambda scores: scores.detach(), "no gradient reaches the pixels"),
        (lambda scores: [1, 2], "list|dtype|tensor"),
    ],
)
def test_what_is_no_answer_is_told(gives: Any, said: str) -> None:
    system, probe = _plain()
    system.network.gives = gives
    with pytest.raises(BadOutput, match=said):
        probe.logits(pixels_of(picture(32, 32)).requires_grad_())


def test_a_probe_takes_pixels_of_one_form() -> None:
    _, probe = _plain()
    with pytest.raises(ValueError, match="B×3×H×W"):  # noqa: RUF001
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


# --- classes --------------------------------------------------------------------------------------------------------


def test_merged_classes_have_the_logarithm_of_the_sum_of_powers(tmp_path: Path) -> None:
    plain = opened(CASES["torchvision"], tmp_path)
    pixels = pixels_of(picture(64, 64), picture(64, 64, 4))
    own = probe_of(plain, classes=Classes(names=tuple(NAMES))).logits(pixels).detach().double().numpy()
    turned = probed(plain, CASES["torchvision"]).logits(pixels).detach().double().numpy()
    assert np.allclose(turned, own[:, ::-1]), "the seeds' order"
    merged = probed(opened(CASES["torchvision merged"], tmp_path), CASES["torchvision merged"]).logits(pixels)
    wanted = np.stack([logsumexp(own[:, 1:], axis=1), own[:, 0]], axis=1)
    assert np.allclose(merged.detach().numpy(), wanted, atol=1e-5)
    shares = softmax(own, axis=1)
    assert np.allclose(softmax(wanted, axis=1)[:, 0], shares[:, 1] + shares[:, 2])


def test_classes_that_do_not_fit_are_refused() -> None:
    system = system_of("attnmel")
    system.open(device="cpu", threads=1)
    with pytest.raises(MedtestError, match="of the seeds' several may be true"):
        probe_of(system, classes=CHEST)
    with pytest.raises(MedtestError, match="needs the seeds' classes"):
        probe_of(system)


@pytest.mark.parametrize("name", ["chexnet", "chexnet ten crops"])
def test_chexnets_logits_are_true_beyond_its_sigmoid(name: str) -> None:
    case = CASES[name]
    system: Any = case.make(Path())
    system.squared = case.squared
    system.open(device="cpu", threads=1)
    probe = probed(system, case)
    pixels = pixels_of(picture(case.side, case.side))
    (raw,) = system.predict([picture(case.side, case.side)], [HERE])
    exact = np.asarray(raw, np.float64)
    told = (exact > 1e-3) & (exact < 1 - 1e-3)  # where the sigmoid of float32 can be undone
    assert told.sum() >= 10
    assert np.allclose(probe.logits(pixels).detach().numpy()[0][told], logit(exact[told]), atol=1e-4)
    with torch.no_grad():
        system.network.densenet121.classifier[0].weight.mul_(400)
    asked = pixels.clone().requires_grad_()
    logits = probe.logits(asked)
    (raw,) = system.predict([picture(case.side, case.side)], [HERE])
    assert set(np.unique(np.asarray(raw))) <= {0.0, 1.0} or name == "chexnet ten crops"
    assert torch.isfinite(logits).all() and logits.abs().max() > 90, "no sigmoid of float32 tells these apart"
    assert np.allclose(expit(logits.detach().double().numpy()[0]), np.asarray(raw), atol=1e-5)
    (gradient,) = torch.autograd.grad(logits.sum(), asked)
    assert gradient.abs().max() > 0


def test_ten_crops_are_averaged_as_predict_averages_them() -> None:
    """The mean of probabilities is not the sigmoid of the mean of logits."""
    case = CASES["chexnet ten crops"]
    system: Any = case.make(Path())
    system.open(device="cpu", threads=1)
    with torch.no_grad():
        system.network.densenet121.classifier[0].weight.mul_(8)
    image = picture(256, 256, 9)
    (answer,) = official(system, [image], CHEST)
    probe = probed(system, case)
    assert probe_gap(probe, image, answer).largest < 1e-4
    with torch.no_grad():
        from medtest.systems.pixels import ten_crops

        crops = system.network.logits(system.normalised(ten_crops(pixels_of(image), 224)))
    plain = expit(crops.double().numpy().mean(axis=0))
    assert np.abs(plain - answer.probabilities).max() > 1e-3  # type: ignore[attr-defined]


# --- others ---------------------------------------------------------------------------------------------------------

FUNCTIONS = """
import numpy as np

def logits(image):
    red, green, blue = image.reshape(-1, 3).mean(axis=0) / 10
    return {"nevus": green, "melanoma": red, "keratosis": blue}

def shares(image):
    powers = np.exp(np.array(list(logits(image).values())) / 10)
    return powers / powers.sum()

def name(image):
    return "nevus"

def lesion(image):
    return image[..., 0] > 127

def soft(image):
    np.random.seed(1)
    return image[::2, ::2, 0] / 255
"""


def _function(folder: Path, name: str, kind: str, **settings: Any) -> Any:
    path = folder / "mine.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return system_of("callable", kind, target=f"{path}:{name}", **settings)


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("logits", "label", {"gives": "logits"}),
        ("shares", "label", {"classes": ["nevus", "melanoma", "keratosis"]}),
        ("lesion", "mask", {}),
        ("soft", "mask", {}),
    ],
)
def test_functions_give_scores_of_eight_bit_pixels(name: str, kind: str, settings: Any, tmp_path: Path) -> None:
    system = _function(tmp_path, name, kind, **settings)
    assert system.offers() is Need.SCORES
    system.open(device="cpu", threads=1)
    classes = THREE if kind == "label" else None
    probe = probe_of(system, classes=classes)
    assert isinstance(probe, ScoreProbe) and probe.gives is Need.SCORES
    image = picture(32, 40)
    before = repr(np.random.get_state())  # noqa: NPY002
    pixels = (pixels_of(image) + 0.4 / 255).requires_grad_()
    logits = probe.logits(pixels)
    assert not logits.requires_grad and torch.isfinite(logits).all()
    assert before == repr(np.random.get_state())  # noqa: NPY002
    (answer,) = official(system, [image], classes)
    assert probe_gap(probe, image, answer).largest < 1e-6
    assert output_gap(answer, answer).largest == 0
    (other,) = official(system, [255 - image], classes)
    assert output_gap(answer, other).largest > 0.01


def test_a_function_that_names_classes_has_no_scores(tmp_path: Path) -> None:
    system = _function(tmp_path, "name", "label", gives="classes", classes=NAMES)
    assert system.offers() is Need.NOTHING
    system.open(device="cpu", threads=1)
    with pytest.raises(MedtestError, match="neither scores nor gradients"):
        probe_of(system, classes=THREE)
    (one, two) = official(system, [picture(8, 8), picture(9, 9)], THREE)
    assert output_gap(one, two).largest == 0


def test_an_onnx_graph_gives_scores(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    nodes = [helper.make_node("GlobalAveragePool", ["image"], ["mean"]), helper.make_node("Flatten", ["mean"], ["out"])]
    there = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 3, 32, 32])]
    graph = helper.make_graph(nodes, "g", there, [helper.make_tensor_value_info("out", TensorProto.FLOAT, [2, 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    system = system_of("onnx", path=str(tmp_path / "net.onnx"), classes=NAMES)
    assert system.offers() is Need.SCORES
    system.open(device="cpu", threads=1)
    probe = probe_of(system, classes=THREE)
    images = [picture(32, 32, seed) for seed in range(3)]
    for image, answer in zip(images, official(system, images, THREE), strict=True):
        assert probe_gap(probe, image, answer).largest < 1e-6
    pixels = pixels_of(*images).requires_grad_()
    assert not probe.logits(pixels).requires_grad


def test_what_each_system_offers() -> None:
    """Networks of torch give gradients, what else runs scores; finished answers, APIs and series give nothing."""
    offers = {(system.name, system.kind): system.offers() for system in _all_systems()}
    gradients = {name for (name, _), need in offers.items() if need is Need.GRADIENTS}
    assert gradients == {
        *("agdn", "attnmel", "chexnet", "dsinet", "inceptionv3_dr"),
        *("pranet", "sanet", "ssformer", "ssformer_l", "ssformer_s", "tganet"),
        *("huggingface", "monai", "smp", "timm", "torchscript", "torchvision"),
        *("resnet50", "resnet101", "resnet152", "vgg19"),
    }
    assert {name for (name, _), need in offers.items() if need is Need.SCORES} == {"callable", "onnx"}
    assert all(need is Need.NOTHING for (_, kind), need in offers.items() if kind not in ("label", "mask"))
    assert offers["predictions", "mask"] is offers["predictions", "label"] is Need.NOTHING
    decided = system_of("torchscript", "mask", gives="classes")
    assert decided.offers() is Need.SCORES


def _all_systems() -> Iterator[Any]:
    for name, info in parts("systems").items():
        kind = info.load()
        for task in kind.tasks:
            system: Any = kind(name, kind.Settings.model_construct(**info.defaults))
            system.kind = task
            yield system


def test_a_system_in_memory_offers_what_it_is(tmp_path: Path) -> None:
    from medtest.systems.adapters.in_memory import ObjectSystem

    def held(given: Any, kind: str) -> Any:
        system = ObjectSystem("held", ObjectSystem.Settings(given=given))
        system.kind, system.squared = kind, True
        return system

    assert held(lambda image: image[..., 0], "mask").offers() is Need.SCORES
    assert held(system_of("predictions", "mask"), "mask").offers() is Need.NOTHING
    system = held(system_of("attnmel"), "label")
    assert system.offers() is Need.GRADIENTS
    system.open(device="cpu", threads=1)
    probe = probe_of(system, classes=DERMOSCOPY)
    assert isinstance(probe, GradientProbe) and probe.name == system.record_name
    (answer,) = official(system, [picture(224, 224)], DERMOSCOPY)
    assert probe_gap(probe, picture(224, 224), answer).largest < 1e-6


def test_a_network_that_ends_in_a_softmax_has_its_logits_found_back(tmp_path: Path) -> None:
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3), nn.Softmax(dim=1))
    with torch.no_grad():
        network[2].weight.mul_(40)
    system = script(tmp_path, network, 32, kind="label", gives="probability", classes=NAMES)
    system.open(device="cpu", threads=1)
    probe = probe_of(system, classes=Classes(names=tuple(NAMES)))
    assert np.allclose(probabilities(probe, pixels_of(picture(32, 32))).sum(), 1, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["attnmel", "chexnet ten crops", "pranet", "segformer", "monai transforms"])
def test_on_a_gpu_probes_are_what_they_are_on_a_processor(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    system, there = case.make(tmp_path), case.make(tmp_path)
    for one, device in ((system, "cpu"), (there, "cuda:0")):
        one.squared = case.squared
        one.open(device=device, threads=1)
    image = picture(case.side, case.side)
    pixels = pixels_of(image)
    state = torch.cuda.get_rng_state("cuda:0")
    probe = probed(there, case)
    assert probe.device == "cuda:0"
    asked = pixels.to(probe.device).requires_grad_()
    logits = probe.logits(asked)
    (gradient,) = torch.autograd.grad(logits.sum(), asked)
    assert torch.equal(state, torch.cuda.get_rng_state("cuda:0")) and gradient.abs().sum() > 0
    assert torch.allclose(logits.detach().cpu(), probed(system, case).logits(pixels).detach(), atol=5e-2, rtol=1e-2)
    (answer,) = official(there, [image], case.classes)
    assert probe_gap(probe, image, answer).largest < 2e-3

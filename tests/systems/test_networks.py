from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from medtest.core.errors import MedtestError
from medtest.systems import build_network
from medtest.systems.pytorch import networks

sys.path.insert(0, str(Path(__file__).parent))
import parity_rule
from parity_parts import assert_as_recorded, assert_published_size, golden_state

ROOT = Path(__file__).parents[2]
PARAMETERS = {
    "pranet": 32_547_319,
    "sanet": 23_899_497,
    "tganet": 19_837_423,
    "ssformer_s": 29_572_545,
    "ssformer_l": 66_218_945,
}
KEYS = {"pranet": 922, "sanet": 545, "tganet": 569, "ssformer_s": 366, "ssformer_l": 866}
INPUT = {"tganet": 256}


@pytest.mark.parametrize("name", PARAMETERS)
def test_published_networks_have_the_published_number_of_parameters_and_keys(name: str) -> None:
    assert_published_size(name, parameters=PARAMETERS[name], tensors=KEYS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMETERS)
def test_published_networks_answer_as_recorded(name: str, tmp_path: Path) -> None:
    """Weights go through a checkpoint file under their official names, so names, shapes and arithmetic are tested."""
    torch.save(golden_state(name), tmp_path / "official.pth")
    network = build_network(name, tmp_path / "official.pth")
    side = INPUT.get(name, 352)
    inputs = [torch.from_numpy(parity_rule.image(1, 3, side, side))]
    if name == "tganet":
        inputs.append(torch.from_numpy(parity_rule.words()))
    with torch.inference_mode():
        outputs = network(*inputs)
    assert_as_recorded(name, outputs)


@pytest.mark.parametrize("family", networks.SEGMENTATION)
def test_compact_networks_are_small_and_give_maps_of_the_published_form(family: str) -> None:
    network = networks.make(networks.COMPACT[family])
    assert sum(p.numel() for p in network.parameters()) <= 4_000_000
    with torch.inference_mode():
        outputs = network(torch.zeros(2, 3, 96, 128))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    maps = [output for output in outputs if output.ndim == 4]
    side = (12, 16) if family == "sanet" else (96, 128)
    assert all(output.shape == (2, 1, *side) for output in maps)
    assert len(maps) == (4 if family == "pranet" else 1)
    assert [tuple(o.shape) for o in outputs if o.ndim == 2] == ([(2, 2), (2, 3)] if family == "tganet" else [])


@pytest.mark.parametrize("family", networks.SEGMENTATION)
def test_the_page_on_published_networks_agrees_with_the_cards(family: str) -> None:
    page = (ROOT / "docs" / "published-networks.md").read_text(encoding="utf-8")
    card = (ROOT / "medtest" / "weights" / f"{family}-compact.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {family}-compact |"))
    parameters = sum(p.numel() for p in networks.make(networks.COMPACT[family]).parameters())
    figures = next(line for line in card.splitlines() if line.startswith("| test (real pairs) | 50 |"))
    dice, between = figures.split("|")[3:5]
    assert row == f"| {family}-compact | {parameters:,} | {dice.strip()} ({between.strip()}) |"


@pytest.mark.parametrize(
    "config",
    [
        family_configs
        for family in networks.SEGMENTATION.values()
        for family_configs in (*family.published.values(), family.compact)
    ],
)
def test_a_description_rebuilds_its_network(config: networks.NetworkConfig) -> None:
    import json

    assert networks.from_description(json.loads(json.dumps(networks.describe(config)))) == config


def test_the_published_tganet_needs_its_word_vectors() -> None:
    with pytest.raises(MedtestError, match="labels"):
        build_network("tganet")(torch.zeros(1, 3, 64, 64))


def test_the_stages_of_the_published_tganet_match_torchvisions_resnet() -> None:
    """An independent implementation: the same weights under torchvision's names give the same features."""
    from torchvision.models import resnet50

    torch.manual_seed(2)
    reference = resnet50().eval()
    own = networks.published("tganet")
    for part, layer in (("layer1.1", reference.layer1), ("layer2", reference.layer2), ("layer3", reference.layer3)):
        own.get_submodule(part).load_state_dict(layer.state_dict())
    own.get_submodule("layer0.0").load_state_dict(reference.conv1.state_dict())
    own.get_submodule("layer0.1").load_state_dict(reference.bn1.state_dict())
    x = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        expected = reference.layer3(
            reference.layer2(reference.layer1(reference.maxpool(reference.relu(reference.bn1(reference.conv1(x))))))
        )
        got = own.layer3(own.layer2(own.layer1(own.layer0(x))))
    assert torch.allclose(got, expected, atol=1e-5)


def test_unknown_descriptions_are_refused() -> None:
    with pytest.raises(MedtestError, match="did you mean pranet"):
        build_network("pranett")
    with pytest.raises(MedtestError, match="unknown family"):
        networks.from_description({"family": "os.system"})
    with pytest.raises(MedtestError, match="unknown settings"):
        networks.from_description({"family": "pranet", "depth": 3})


def test_a_res2net_block_chains_its_splits_but_not_in_the_first_block_of_a_stage() -> None:
    from medtest.systems.segmentation.networks.res2net import Res2NetBlock

    def reach(first: bool) -> int:
        """Number of splits of the middle that depend on the first split, when each middle convolution is identity."""
        block = Res2NetBlock(16, 4, stride=1, first=first, base_width=64, scale=4).eval()
        outputs: list[torch.Tensor] = []
        for bn in block.bns:
            bn.register_forward_hook(lambda _m, _i, out: outputs.append(out.detach().clone()))
        torch.nn.init.zeros_(block.conv1.weight)
        block.conv1.weight.data[:4, :4, 0, 0] = torch.eye(4)  # only the first split is fed
        for conv in block.convs:
            torch.nn.init.dirac_(conv.weight)
        block(torch.ones(1, 16, 5, 5))
        return sum(bool(out.abs().max() > 0) for out in outputs)

    assert reach(first=False) == 3
    assert reach(first=True) == 1

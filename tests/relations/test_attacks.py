"""Attacks as relations: budgets in whole levels, losses against independent code, reach, targets, notes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from attack_parts import ONE, SEVERAL, SmallProbe, crafted, logits_of, relation, seed_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from medtest.core.errors import NotApplicable
from medtest.core.probes import CraftCase, Need
from medtest.relations.adversarial.auto_pgd import checkpoints
from medtest.relations.adversarial.goal import MaskGoal, OneLabel, SeveralLabels
from medtest.relations.adversarial.saving import pixels_of, saved
from medtest.testing import check_relation

ATTACKS = ["fgsm", "pgd", "square", "strongest", "foolbox_attack"]
SMALL: dict[str, dict[str, Any]] = {
    "square": {"tries": 40},
    "strongest": {"steps": 6, "tries": 20},
    "foolbox_attack": {"options": {"steps": 8, "rel_stepsize": 0.25}},
}


def attack(name: str, **more: Any) -> Any:
    if name == "foolbox_attack":
        pytest.importorskip("foolbox")
    return relation(name, **{**SMALL.get(name, {}), **more})


@pytest.mark.parametrize("name", ATTACKS)
def test_saved_images_are_within_epsilon_and_reach(name: str) -> None:
    probe = SmallProbe(ONE)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(3)]
    for severity in (1, 4):
        method = attack(name)
        for seed, follow in zip(seeds, crafted(method, probe, seeds, severity), strict=True):
            away = follow.image.astype(int) - seed.image.astype(int)
            assert np.abs(away).max() <= follow.scale == method.settings.levels[severity].epsilon
            assert (away[seed.frame] == 0).all()
            assert follow.crafting is not None and follow.crafting.reference == "truth"
            assert follow.crafting.queries and follow.crafting.queries > 1


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_find_what_noise_does_not(name: str) -> None:
    probe = SmallProbe(ONE)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(6)]
    follow_ups = crafted(attack(name), probe, seeds, 5)
    noise = relation("uniform_noise")
    shown = [noise.apply(s, noise.sample(s, 5, np.random.default_rng(1))).image for s in seeds]
    truth = torch.tensor([ONE.names.index(seed.labels[0]) for seed in seeds])
    attacked = functional.cross_entropy(logits_of(probe, [follow_up.image for follow_up in follow_ups]), truth)
    assert attacked > functional.cross_entropy(logits_of(probe, shown), truth) + 0.05


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), epsilon=st.floats(0, 40), norm=st.sampled_from(["linf", "l2"]))
def test_rounding_stays_within_the_budget(seed: int, epsilon: float, norm: str) -> None:
    rng = np.random.default_rng(seed)
    source = rng.integers(0, 256, (7, 9, 3)).astype(np.uint8)
    away = rng.normal(0, 1, source.shape)
    away *= epsilon / (np.abs(away).max() if norm == "linf" else np.linalg.norm(away))
    pixels = torch.from_numpy((source + away).clip(0, 255) / 255).permute(2, 0, 1)[None].float()
    image = saved(pixels, source, epsilon, norm=norm)
    change = image.astype(int) - source
    assert (np.abs(change).max() if norm == "linf" else np.linalg.norm(change)) <= epsilon + 1e-6
    assert np.abs(change).max() <= np.ceil(np.abs(away).max()) + 1
    if epsilon < 0.5:
        assert np.array_equal(image, source)


def test_no_epsilon_gives_the_bytes_of_the_source() -> None:
    source = np.random.default_rng(0).integers(0, 256, (5, 5, 3)).astype(np.uint8)
    assert np.array_equal(saved(pixels_of(source) + 0.4, source, 0.0), source)
    assert np.array_equal(saved(pixels_of(source) + 0.4, source, 0.9), source)
    assert np.array_equal(saved(pixels_of(source), source, 3.0, norm="l2"), source)


def test_losses_are_those_of_torch_and_of_the_definition() -> None:
    torch.manual_seed(0)
    logits = torch.randn(4, 3)
    truth = torch.tensor([0, 2, 1, 1])
    single = OneLabel(truth=truth, targeted=False, references=("truth",) * 4, classes=ONE)
    expected = [-logits[i].log_softmax(0)[t] for i, t in enumerate(truth)]
    assert torch.allclose(single.losses("cross_entropy", logits), torch.stack(expected))
    margins = [max(logits[i][j] for j in range(3) if j != t) - logits[i][t] for i, t in enumerate(truth)]
    assert torch.allclose(single.losses("margin", logits), torch.stack(margins))
    assert single.reached(logits).tolist() == [float(m > 0) for m in margins]
    bce = functional.binary_cross_entropy_with_logits
    findings, scores = (torch.rand(4, 4) > 0.5).float(), torch.randn(4, 4)
    several = SeveralLabels(truth=findings, targeted=False, references=("truth",) * 4, classes=SEVERAL)
    by_hand = torch.stack([bce(s, f) for s, f in zip(scores, findings, strict=True)])
    assert torch.allclose(several.losses("cross_entropy", scores), by_hand)
    flipped = torch.stack([bce(s, 1 - f) for s, f in zip(scores, findings, strict=True)])
    assert torch.allclose(several.losses("margin", scores), -flipped)
    assert several.reached(scores).tolist() == pytest.approx(
        ((scores > 0).float() != findings).float().mean(1).tolist()
    )
    masks, maps = (torch.rand(2, 6, 6) > 0.6).float(), torch.randn(2, 6, 6)
    lesion = MaskGoal(truth=masks, targeted=False, references=("truth",) * 2, classes=None)
    dice = [2 * ((m > 0) & (t > 0)).sum() / ((m > 0).sum() + t.sum()) for m, t in zip(maps, masks, strict=True)]
    assert lesion.reached(maps).tolist() == pytest.approx([1 - float(d) for d in dice])
    pixels = torch.stack([bce(m, t) for m, t in zip(maps, masks, strict=True)])
    assert torch.allclose(lesion.losses("cross_entropy", maps), pixels)


def test_pgd_on_several_labels_and_masks_equals_independent_code() -> None:
    for classes in (SEVERAL, None):
        probe = SmallProbe(classes)
        seed = seed_of(classes, number=3, labels=("mass", "hernia") if classes else "own", probe=probe)
        levels = {3: {"epsilon": 6, "steps": 5, "step": 2}}
        pgd = relation(
            "pgd",
            random_start=False,
            severities=[3],
            levels={
                **relation("pgd").settings.model_dump()["levels"],
                **levels,
                4: {"epsilon": 8, "steps": 1, "step": 1},
            },
        )
        (follow,) = crafted(pgd, probe, [seed], 3)
        source = pixels_of(seed.image)
        truth = torch.tensor([[1.0, 0.0, 1.0, 0.0]]) if classes else torch.from_numpy(seed.mask)[None].float()
        now = source.clone()
        for _ in range(5):
            now = now.detach().requires_grad_()
            functional.binary_cross_entropy_with_logits(probe.logits(now), truth).backward()
            moved = now + 2 / 255 * now.grad.sign() * torch.from_numpy(~seed.frame)
            now = torch.max(torch.min(moved, source + 6 / 255), source - 6 / 255).clamp(0, 1)
        expected = (now[0].detach() * 255).round().byte().permute(1, 2, 0).numpy()
        assert np.array_equal(follow.image, expected)


def test_an_unlabelled_seed_is_attacked_away_from_the_answer() -> None:
    probe = SmallProbe(ONE)
    labelled = seed_of(ONE, number=1, probe=probe)
    plain = seed_of(ONE, number=1, labels=None)
    (from_truth,), (from_answer,) = (crafted(relation("pgd"), probe, [seed], 2) for seed in (labelled, plain))
    assert np.array_equal(from_truth.image, from_answer.image)
    assert from_truth.crafting and from_answer.crafting
    assert (from_truth.crafting.reference, from_answer.crafting.reference) == ("truth", "answer")


def test_a_target_is_led_towards() -> None:
    probe = SmallProbe(ONE)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(5)]
    follows = crafted(relation("pgd", target=["melanoma"]), probe, seeds, 5)
    before, after = (
        logits_of(probe, images).softmax(1)[:, 2] for images in ([s.image for s in seeds], [f.image for f in follows])
    )
    assert (after > before).all()
    assert {f.crafting.reference for f in follows if f.crafting} == {"target"}
    drawn = {
        relation("pgd", target=["random"]).sample(seeds[0], 2, np.random.default_rng(n))["target"][0] for n in range(20)
    }
    assert drawn == set(ONE.names) - set(seeds[0].labels)


@pytest.mark.parametrize(("where", "inside"), [("lesion", True), ("off_lesion", False)])
def test_it_changes_where_it_may(where: str, inside: bool) -> None:
    probe = SmallProbe(None)
    seed = seed_of(None, probe=probe)
    (follow,) = crafted(relation("pgd", where=where), probe, [seed], 3)
    changed = (follow.image != seed.image).any(axis=2)
    assert changed[seed.mask].any() == inside
    assert changed[~seed.mask].any() != inside
    bare = seed_of(ONE, labels=("odd",))
    object.__setattr__(bare, "mask", None)
    with pytest.raises(NotApplicable, match="outline of a lesion"):
        relation("pgd", where=where).sample(bare, 3, np.random.default_rng(0))


def test_the_smallest_epsilon_is_the_one_at_which_the_answer_flips() -> None:
    probe = SmallProbe(ONE)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(4)]
    fgsm = relation("fgsm", minimal=True)
    follow_ups = crafted(fgsm, probe, seeds, 5)
    for seed, follow in zip(seeds, follow_ups, strict=True):
        smallest = None
        for epsilon in range(1, 17):
            case = CraftCase(seed=seed, params={**follow.params, "epsilon": float(epsilon)})
            (alone,) = relation("fgsm").craft([case], probe)
            label = ONE.names[int(logits_of(probe, [alone.image]).argmax())]
            if label != seed.labels[0]:
                smallest = float(epsilon)
                break
        assert follow.crafting is not None
        assert follow.crafting.smallest_epsilon == smallest


@pytest.mark.parametrize(("step", "share"), [(30, 0.5), (1, 0.25)])
def test_the_step_shrinks_with_epsilon_and_stays_a_quarter_of_it(
    monkeypatch: pytest.MonkeyPatch, step: int, share: float
) -> None:
    levels = {1: {"epsilon": 60, "steps": 4, "step": step}}
    pgd = relation("pgd", minimal=True, severities=[1], levels=levels)
    steps: dict[float, float] = {}
    search = type(pgd).search

    def recorded(self: Any, batch: Any, probe: Any) -> Any:
        steps.update({case.params["epsilon"]: case.params["step"] for case in batch.cases})
        return search(self, batch, probe)

    monkeypatch.setattr(type(pgd), "search", recorded)
    probe = SmallProbe(ONE)
    crafted(pgd, probe, [seed_of(ONE, probe=probe)], 1)
    assert len(steps) > 2
    assert steps == {epsilon: pytest.approx(share * epsilon) for epsilon in steps}


def test_nothing_is_random_but_the_case_s_own_noise() -> None:
    probe = SmallProbe(ONE)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(2)]
    for name in ATTACKS:
        method = attack(name)
        first = crafted(method, probe, seeds, 2)
        torch.manual_seed(99)
        np.random.seed(5)  # noqa: NPY002
        second = crafted(method, probe, seeds, 2)
        assert all(np.array_equal(a.image, b.image) for a, b in zip(first, second, strict=True)), name


def test_zero_gradients_of_a_shattering_network_are_reported() -> None:
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x * 8).round() / 8

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 0

    torch.manual_seed(0)
    weight = torch.randn(3, 3, 24, 24)
    shattered = SmallProbe(ONE, lambda x: torch.einsum("bchw,kchw->bk", Rounded.apply(x), weight))
    saturated = SmallProbe(ONE, lambda x: 200 * torch.tanh(torch.einsum("bchw,kchw->bk", x, weight) * 100))
    for probe in (shattered, saturated):
        (follow,) = crafted(relation("pgd"), probe, [seed_of(ONE, number=1, probe=probe)], 2)
        assert follow.crafting is not None
        assert follow.crafting.zero_gradient is not None and follow.crafting.zero_gradient > 0.9
    (fine,) = crafted(relation("pgd"), SmallProbe(ONE), [seed_of(ONE, probe=SmallProbe(ONE))], 2)
    assert fine.crafting is not None and fine.crafting.zero_gradient is not None and fine.crafting.zero_gradient < 0.01


def test_the_released_variant_has_the_smaller_budget_of_normalised_values() -> None:
    probe = SmallProbe(ONE)
    seed = seed_of(ONE, probe=probe)
    pgd = relation("pgd", variant="released", std=[0.25, 0.5, 0.125], mean=[0.5, 0.5, 0.5])
    (follow,) = crafted(pgd, probe, [seed], 5)
    away = np.abs(follow.image.astype(int) - seed.image)[~seed.frame]
    assert away[:, 0].max() == 3 and away[:, 1].max() == 5 and away[:, 2].max() == 1  # 10 levels times std, rounded


def test_scores_are_enough_for_square_and_for_some_of_foolbox() -> None:
    assert relation("square").needs is Need.SCORES
    assert relation("pgd").needs is relation("strongest").needs is Need.GRADIENTS
    assert relation("foolbox_attack", attack="HopSkipJumpAttack").needs is Need.SCORES
    assert relation("foolbox_attack").needs is Need.GRADIENTS


def test_an_unknown_foolbox_attack_is_one_mistake() -> None:
    pytest.importorskip("foolbox")
    (mistake,) = relation("foolbox_attack", attack="LinfDeepFoolAttak").missing_on("", "net")
    assert mistake.nearest == "LinfDeepFoolAttack" and "L2DeepFoolAttack" in mistake.allowed
    assert not relation("foolbox_attack").missing_on("", "net")


def test_checkpoints_are_those_of_the_paper() -> None:
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]


def test_the_strongest_is_no_weaker_than_its_parts() -> None:
    probe = SmallProbe(ONE, seed=3)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(6)]
    truth = [seed.labels[0] for seed in seeds]

    def right(name: str, **more: Any) -> int:
        images = [follow.image for follow in crafted(relation(name, **more), probe, seeds, 3)]
        return sum(
            ONE.names[int(row)] == label for row, label in zip(logits_of(probe, images).argmax(1), truth, strict=True)
        )

    strongest = right("strongest", steps=15, tries=60)
    assert strongest <= min(
        right("fgsm"),
        right("square", tries=60, severities=[2], levels={**relation("square").settings.model_dump()["levels"]}),
    )


def test_of_several_labels_the_smallest_epsilon_is_where_any_decision_turns() -> None:
    probe = SmallProbe(SEVERAL)
    seeds = [seed_of(SEVERAL, number=n, probe=probe) for n in range(3)]
    truthless = [seed_of(SEVERAL, number=n, labels=("mass", "nodule", "hernia", "oedema")) for n in range(3)]
    for given_seeds in (seeds, truthless):
        minimal = crafted(relation("fgsm", minimal=True), probe, given_seeds, 5)
        full = crafted(relation("fgsm"), probe, given_seeds, 5)
        for seed, follow, once in zip(given_seeds, minimal, full, strict=True):
            before = logits_of(probe, [seed.image]) > 0
            turned = None
            for epsilon in range(1, 17):
                case = CraftCase(seed=seed, params={**follow.params, "epsilon": float(epsilon)})
                (alone,) = relation("fgsm").craft([case], probe)
                if bool(((logits_of(probe, [alone.image]) > 0) != before).any()):
                    turned = float(epsilon)
                    break
            assert follow.crafting is not None and once.crafting is not None
            assert follow.crafting.smallest_epsilon == turned
            assert np.array_equal(follow.image, once.image)
            assert (follow.crafting.queries or 0) > (once.crafting.queries or 0)  # the bisection needs queries too


def test_parameters_tell_how_far_an_attack_searches() -> None:
    seed, rng = seed_of(ONE, labels=("odd",)), np.random.default_rng(0)
    pgd = relation("pgd", iterate="best", restarts=3).sample(seed, 2, rng)
    assert (pgd["best"], pgd["restarts"], pgd["steps"], pgd["step"], pgd["norm"]) == (True, 3, 4, 1.0, "linf")
    fgsm = relation("fgsm").sample(seed, 2, rng)
    assert (fgsm["steps"], fgsm["step"]) == (1, fgsm["epsilon"])
    assert relation("strongest", steps=7).sample(seed, 2, rng)["steps"] == 7
    assert relation("square", tries=9).sample(seed, 2, rng)["tries"] == 9


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("classes", [ONE, SEVERAL, None], ids=["one", "several", "mask"])
def test_bundled_attacks_pass_the_public_check(name: str, classes: Any) -> None:
    if name == "foolbox_attack" and classes is not ONE:
        pytest.skip("foolbox knows one label alone")
    probe = SmallProbe(classes)
    seed = seed_of(classes, number=2, probe=probe)
    levels = {level: {"epsilon": level} for level in range(1, 6)}
    if name == "pgd":
        levels = {level: {"epsilon": level, "steps": 2, "step": 1} for level in range(1, 6)}
    small = {"square": {"tries": 6}, "strongest": {"steps": 2, "tries": 3}}.get(name, {})
    follow_ups = check_relation(relation(name, severities=[1, 4], levels=levels, **small), seed, probe=probe)
    assert len(follow_ups) == 4
    assert any(not np.array_equal(follow_up.image, seed.image) for follow_up in follow_ups)


def test_broken_promises_of_other_attacks_are_named() -> None:
    probe = SmallProbe(ONE)
    seed = seed_of(ONE, probe=probe)
    with pytest.raises(AssertionError, match="give a probe"):
        check_relation(relation("fgsm"), seed)
    scores = SmallProbe(ONE)
    scores.gives = Need.SCORES
    with pytest.raises(AssertionError, match="needs gradients, the probe gives scores"):
        check_relation(relation("fgsm"), seed, probe=scores)

    fgsm = relation("fgsm", severities=[1])
    craft = fgsm.craft

    def careless(cases: Any, any_probe: Any) -> Any:
        return [replace(follow_up, crafting=None) for follow_up in craft(cases, any_probe)]

    fgsm.craft = careless
    with pytest.raises(AssertionError, match="crafting does not say how"):
        check_relation(fgsm, seed, probe=probe)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2, 8])
def test_square_succeeds_as_often_as_torchattacks_s(epsilon: int) -> None:
    torchattacks = pytest.importorskip("torchattacks")
    torch.manual_seed(0)
    weight = functional.avg_pool2d(torch.randn(3, 3, 24, 24), 5, stride=1, padding=2)
    probe = SmallProbe(ONE, lambda x: torch.einsum("bchw,kchw->bk", torch.tanh(2 * (x - 0.5) * (x > 0)), weight))
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(32)]
    truth = torch.tensor([ONE.names.index(seed.labels[0]) for seed in seeds])
    square = relation("square", severities=[1], levels={1: {"epsilon": epsilon}}, tries=100, where="everywhere")
    own_wrong = logits_of(probe, [follow_up.image for follow_up in crafted(square, probe, seeds, 1)]).argmax(1) != truth

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.device_of = torch.nn.Parameter(torch.zeros(1))  # torchattacks reads the device of parameters

        def forward(self, pixels: Any) -> Any:
            return probe.logits(pixels)

    images = torch.cat([pixels_of(seed.image) for seed in seeds])
    attack = torchattacks.Square(
        Module().eval(), norm="Linf", eps=epsilon / 255, n_queries=100, p_init=0.8, loss="margin", seed=1
    )
    with torch.no_grad():
        their_wrong = probe.logits(attack(images, truth)).argmax(1) != truth
    assert 10 < int(their_wrong.sum()) < 32
    assert abs(int(own_wrong.sum()) - int(their_wrong.sum())) <= 6

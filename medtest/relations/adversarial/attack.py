"""Base class of built-in attacks: settings, reachable pixels, search, and saved follow-ups."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Crafting, FollowUp, Image, Mask, PreparedSeed
from medtest.core.deferred import torch
from medtest.core.errors import NotApplicable
from medtest.core.probes import CraftCase, Need, Probe
from medtest.core.tasks.base import task_of
from medtest.relations.adversarial.saving import pixels_of, saved
from medtest.relations.base import CraftedRelation, CraftedSettings
from medtest.relations.calibration.searching.bisection import bracket, next_value, whole_between
from medtest.relations.levels import Level, LeveledSettings, noise_seed, number

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.relations.adversarial.goal import Goal
    from medtest.relations.adversarial.projected_gradient import Attacked

Where: TypeAlias = Literal["field", "everywhere", "off_lesion", "lesion"]
LEVELS = 255.0
_ASIDE = 4
"""Queries beside the search: the source twice, the result before and after rounding."""
_LEAST_STEP = 0.25
"""Least step as a share of ε when searching the smallest ε, so that a few steps cross the ball."""


class EpsilonLevel(Level):
    """One severity.

    Attributes:
        epsilon: ε, the bound of the change, in levels of 255.
    """

    epsilon: float = Field(ge=0.0, le=1e6)

    @property
    def scale(self) -> float:
        """ε in levels of 255."""
        return self.epsilon


L = TypeVar("L", bound=EpsilonLevel)


class AttackSettings(CraftedSettings, LeveledSettings[L], Generic[L]):
    """Settings shared by all attacks.

    Attributes:
        where: Pixels that may change: ``field`` (all but the black frame), ``everywhere``, ``off_lesion`` or
            ``lesion`` (of the field; a seed without a mask is SKIP).
        target: Target labels; ``["random"]`` draws a wrong class; empty for an untargeted attack.
        minimal: Search the smallest ε, in whole levels up to the severity's, at which the attack flips the answer: an
            upper bound of the true minimum.
    """

    where: Where = "field"
    target: list[str] = Field(default=[], max_length=100)
    minimal: bool = False


@dataclass(frozen=True, kw_only=True)
class AttackBatch:
    """Batch of images attacked together.

    Attributes:
        cases: The cases to craft.
        images: float32 B×3×H×W in [0, 1].
        within: bool B×1×H×W, pixels that may change.
        epsilon: float32 B, ε in [0, 1] units.
        goal: Goal of the attack.
        clean: Logits of the source images.
        random: Whether answers do not repeat; the batch then holds one image.
    """

    cases: tuple[CraftCase, ...]
    images: Tensor
    within: Tensor
    epsilon: Tensor
    goal: Goal
    clean: Tensor
    random: bool = False

    def part(self, rows: Tensor) -> AttackBatch:
        """Return the batch restricted to some images."""
        return replace(
            self,
            cases=tuple(self.cases[int(row)] for row in rows),
            images=self.images[rows],
            within=self.within[rows],
            epsilon=self.epsilon[rows],
            goal=self.goal.part(rows),
            clean=self.clean[rows],
        )


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Result of a search.

    Attributes:
        images: float32 B×3×H×W in [0, 1], not rounded.
        queries: Number of queries by image.
        zero_gradient: Share of gradients that were exactly 0, by image (None without gradients); empty for searches
            by scores.
        found_by: Name of the attack that made each image; empty for a single attack.
        notes: Note on the search of each image, or ""; empty without notes.
    """

    images: Tensor
    queries: Sequence[int]
    zero_gradient: Sequence[float | None] = ()
    found_by: Sequence[str] = ()
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, attacked: Attacked) -> SearchResult:
        """Return the result of a gradient-based search."""
        zeros = attacked.zero_gradient.tolist()
        return cls(images=attacked.images, queries=attacked.queries.tolist(), zero_gradient=zeros)


class Attack(CraftedRelation, Generic[L]):
    """Search for a wrongly answered image within ε of the source; the result is rounded and saved."""

    revision: ClassVar[int] = 2
    group: ClassVar[str] = "adversarial"
    takes: ClassVar[frozenset[str]] = frozenset({"label", "mask"})
    scale_unit: ClassVar[str] = "ε in levels of 255"
    effects: ClassVar[frozenset[str]] = frozenset()

    settings: AttackSettings[L]

    @property
    def needs(self) -> Need:
        """Requirement on the system: gradients, unless a subclass overrides it."""
        return Need.GRADIENTS

    @property
    def norm(self) -> str:
        """Norm of the ε ball: ``linf`` or ``l2``."""
        return str(getattr(self.settings, "norm", "linf"))

    @property
    def loss(self) -> str:
        """Name of the reported loss: the one maximised, or a substitute."""
        return str(getattr(self.settings, "loss", "margin"))

    def unfit_for(self, task: str) -> tuple[str, str] | None:
        """Return the setting that does not fit a task: Dice needs masks, a target needs labels."""
        labels = task_of(task).labels
        if labels and self.loss == "dice":
            return "loss", "cross_entropy or margin, where labels are answered"
        if not labels and self.settings.target:
            return "target", "nothing, where masks are answered"
        return None

    def named_classes(self) -> list[tuple[str, str]]:
        """Return the target, unless it is drawn at random."""
        return [("target", name) for name in self.settings.target if self.settings.target != ["random"]]

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level, a noise seed and the target.

        Raises:
            NotApplicable: ``where`` needs a lesion outline and the seed has none; or a random
                target is requested and there is no other class.
        """
        reach(seed, self.settings.where)
        level = self.settings.levels[severity]
        params: dict[str, Any] = {
            **level.model_dump(),
            "norm": self.norm,
            "loss": self.loss,
            "where": self.settings.where,
            "noise_seed": noise_seed(rng),
        }
        target = self._target(seed, rng)
        return {**params, "target": target} if target else params

    def _target(self, seed: PreparedSeed, rng: np.random.Generator) -> list[str]:
        target = self.settings.target
        if not target or seed.classes is None:
            return []
        names = seed.classes.names
        if target == ["random"]:
            others = [name for name in names if seed.labels is None or name not in seed.labels]
            if not others:
                raise NotApplicable("every class is true of this seed, so there is no target class")
            return [others[int(rng.integers(len(others)))]]
        strangers = [name for name in target if name not in names]
        if strangers:
            raise NotApplicable(f"{', '.join(strangers)} is not a class of these seeds ({', '.join(names)})")
        return list(target)

    @abstractmethod
    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Search for adversarial images; called with gradient recording off.

        Raises:
            Exception: Any error of the network.
        """

    def craft(self, cases: Sequence[CraftCase], probe: Probe) -> Sequence[FollowUp | Exception]:
        """Attack images of one size together; see :class:`~medtest.relations.base.CraftedRelation`.

        Raises:
            Exception: Any error of the network.
        """
        from medtest.relations.adversarial.strongest.draws import same_answers, seeded

        with torch.no_grad():
            with seeded(int(number(cases[0].params, "noise_seed")), probe.device):
                batch = self.batch(cases, probe)
                again = probe.logits(batch.images)
            if same_answers(batch.clean, again):
                return self._crafted(batch, probe)
            follow_ups: list[FollowUp] = []
            for case in cases:  # each case alone and under its own seed, so that results do not depend on the batch
                with seeded(int(number(case.params, "noise_seed")), probe.device):
                    follow_ups += self._crafted(replace(self.batch([case], probe), random=True), probe)
            return follow_ups

    def _crafted(self, batch: AttackBatch, probe: Probe) -> list[FollowUp]:
        cases = batch.cases
        result = self.search(batch, probe)
        shown, final = self._as_saved(cases, result.images, probe)
        exact, after = probe.logits(result.images), probe.logits(final)
        smallest, more = self._smallest(batch, probe) if self.settings.minimal else ([None] * len(cases), None)
        loss: Any = self.loss
        before_loss, after_loss = (batch.goal.losses(loss, z).tolist() for z in (batch.clean, after))
        labels = batch.goal.labels(exact)
        return [
            FollowUp(
                image=shown[row],
                params=case.params,
                scale=number(case.params, "epsilon"),
                crafting=Crafting(
                    loss_before=before_loss[row],
                    loss_after=after_loss[row],
                    zero_gradient=result.zero_gradient[row] if result.zero_gradient else None,
                    float_label=labels[row],
                    queries=result.queries[row] + _ASIDE + (more[row] if more else 0),
                    reference=batch.goal.references[row],
                    smallest_epsilon=smallest[row],
                    found_by=(result.found_by[row] or None) if result.found_by else None,
                    note=result.notes[row] if result.notes else "",
                ),
            )
            for row, case in enumerate(cases)
        ]

    def batch(self, cases: Sequence[CraftCase], probe: Probe) -> AttackBatch:
        """Return cases as tensors, with the system's logits of the sources."""
        from medtest.relations.adversarial.goal import goal_of

        images = torch.cat([pixels_of(case.seed.image, probe.device) for case in cases])
        where = [reach(case.seed, str(case.params["where"])) for case in cases]
        clean = probe.logits(images)
        return AttackBatch(
            cases=tuple(cases),
            images=images,
            within=torch.from_numpy(np.stack(where)).to(probe.device)[:, None],
            epsilon=images.new_tensor([number(case.params, "epsilon") / LEVELS for case in cases]),
            goal=goal_of(cases, probe, clean),
            clean=clean,
        )

    def _as_saved(self, cases: Sequence[CraftCase], images: Tensor, probe: Probe) -> tuple[list[Image], Tensor]:
        """Return images as saved, and as the probe's pixels."""
        shown = [
            saved(image[None], case.seed.image, number(case.params, "epsilon"), norm=self.norm)
            for case, image in zip(cases, images, strict=True)
        ]
        return shown, torch.cat([pixels_of(image, probe.device) for image in shown])

    def _smallest(self, batch: AttackBatch, probe: Probe) -> tuple[list[float | None], list[int]]:
        """Return the smallest ε in whole levels at which the attack flips each answer, and the queries spent.

        Found by bisection, so it is an upper bound: another attack may need less, and answers are assumed to stay
        flipped at larger ε. The attack's step is at least a quarter of ε. ε is 0 if the goal holds without any change,
        None if no ε within bounds flips the answer.
        """
        most = [math.floor(number(case.params, "epsilon")) for case in batch.cases]
        spent = [0] * len(most)
        start = batch.goal.flipped(batch.clean, batch.clean).tolist()
        results: list[dict[float, bool | None]] = [{0.0: flipped} for flipped in start]
        tried = {row: most[row] for row, flipped in enumerate(start) if not flipped and most[row] > 0}
        while tried:
            rows = torch.tensor(sorted(tried))
            at = [tried[int(row)] for row in rows]
            part = _with_epsilon(batch.part(rows), at)
            result = self.search(part, probe)
            _, pixels = self._as_saved(part.cases, result.images, probe)
            hit = part.goal.flipped(probe.logits(pixels), part.clean)
            tried = {}
            for row, epsilon, flipped, count in zip(rows.tolist(), at, hit.tolist(), result.queries, strict=True):
                spent[row] += count + 1
                results[row][float(epsilon)] = flipped
                middle = next_value(results[row], whole_between)
                if middle is not None:
                    tried[row] = int(middle)
        flips = [bracket(result)[1] for result in results]
        return flips, spent


def _with_epsilon(batch: AttackBatch, levels: Sequence[int]) -> AttackBatch:
    cases = []
    for case, epsilon in zip(batch.cases, levels, strict=True):
        shrunk = min(1.0, epsilon / max(number(case.params, "epsilon"), 1e-9))
        params = {**case.params, "epsilon": float(epsilon)}
        if "step" in params:
            params["step"] = max(number(case.params, "step") * shrunk, _LEAST_STEP * epsilon)
        cases.append(replace(case, params=params))
    return replace(batch, cases=tuple(cases), epsilon=batch.images.new_tensor(levels) / LEVELS)


def reach(seed: PreparedSeed, where: str) -> Mask:
    """Return the pixels that an attack may change, bool H×W.

    Raises:
        NotApplicable: ``where`` needs a lesion outline and the seed has none, or no pixel is left.
    """
    if where == "everywhere":
        return np.ones(seed.frame.shape, np.bool_)
    if where == "field":
        return ~seed.frame
    if seed.mask is None:
        raise NotApplicable(f"where: {where} needs the outline of a lesion, and this seed has none")
    inside = seed.mask & ~seed.frame if where == "lesion" else ~seed.mask & ~seed.frame
    if not inside.any():
        raise NotApplicable(f"where: {where} leaves no pixel")
    return inside


def noise(case: CraftCase, salt: int = 0) -> np.random.Generator:
    """Return a random generator for a case; ``salt`` distinguishes restarts."""
    return np.random.default_rng([int(number(case.params, "noise_seed")), salt])


def uniform_start(batch: AttackBatch, *, salt: int = 0) -> Tensor:
    """Return offsets uniform in [-ε, ε], float32 B×3×H×W, drawn per case."""
    shape = tuple(batch.images.shape[1:])
    drawn = np.stack([noise(case, salt).uniform(-1.0, 1.0, shape).astype(np.float32) for case in batch.cases])
    return torch.from_numpy(drawn).to(batch.images.device) * batch.epsilon[:, None, None, None]


def losses_of(goal: Goal, name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a goal's loss in the form searches expect: a function of logits and row indices."""
    return lambda logits, rows: goal.losses(name, logits, rows)  # type: ignore[arg-type]

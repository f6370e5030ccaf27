"""Inspection of the systems of a suite: make, show, compare and draw cases, and write the results beside their run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.address import stem_text
from medtest.core.cases import PreparedSeed
from medtest.core.tasks.base import CaseAnswer, task_of
from medtest.inside import numbers, space
from medtest.inside.cases import InspectedCases, LookedAt
from medtest.inside.files import InsideFiles
from medtest.inside.files import Inspected as Inspected
from medtest.inside.options import InspectOptions
from medtest.relations.adversarial.uniform_noise import UniformNoise
from medtest.runner.prepared import PreparedRun, prepare_run

if TYPE_CHECKING:
    from medtest.inside.look import Looker, Seen
    from medtest.suite.model import Invocation, Suite
    from medtest.systems.base import System

_MOST_ROWS = 6
_MOST_SAID = 5


def inspect_suite(
    suite: Suite,
    invocation: Invocation,
    options: InspectOptions,
    *,
    training: tuple[Suite, Invocation] | None = None,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> list[Inspected]:
    """Inspect every system of a suite and write figures and tables into ``inside/`` of their runs' folders.

    Args:
        suite: The suite.
        invocation: Options of the run; ``limit`` and ``only`` select cases as in a run.
        options: Settings of the inspection.
        training: Suite whose seeds are training images, with its invocation.
        progress: Called with the number of finished seeds and their total.

    Raises:
        UserMistakes: Suite or options have mistakes, an extra is not installed, a system cannot be inspected.
        OutputProblem: A folder cannot be written.
    """
    from medtest.inside.saliency import need

    if options.saliency != "none":
        need("captum", "inside", "medtest inspect")
    if options.embedding != "none":
        need("sklearn", "inside", "medtest inspect")
    if options.embedding == "umap":
        need("umap", "umap", "embedding=umap")
    prepared = prepare_run(suite, invocation)
    prepared_training = None if training is None else prepare_run(*training)
    return [
        _System(prepared, invocation, options, number, prepared_training, training).inspect(progress)
        for number in range(len(prepared.systems))
    ]


def looked_into(prepared: PreparedRun, number: int) -> System:
    """Return a system of a suite for inspection, with separate norm layers and without compilation."""
    plan = prepared.suite.systems[number]
    settings = {"fuse_norms": False, "compile": False}
    changed = {name: value for name, value in settings.items() if name in type(plan.settings).model_fields}
    plans = list(prepared.suite.systems)
    plans[number] = replace(plan, settings=plan.settings.model_copy(update=changed))
    return list(replace(prepared.suite, systems=tuple(plans)).build_systems().values())[number]


class _System:
    """Inspection of one system."""

    def __init__(
        self,
        prepared: PreparedRun,
        invocation: Invocation,
        options: InspectOptions,
        number: int,
        training_run: PreparedRun | None,
        training: tuple[Suite, Invocation] | None,
    ) -> None:
        from medtest.runner.pool.layout import resolve_device

        self._prepared, self._invocation, self._options, self._number = prepared, invocation, options, number
        self._training_run, self._training = training_run, training
        self._device = resolve_device(invocation.device)
        self.result = Inspected(system=prepared.systems[number].record_name, folder=prepared.folders[number])
        self._features = space.Features()
        self._layer_rows: list[dict[str, Any]] = []
        self._map_rows: list[dict[str, Any]] = []
        self._files = InsideFiles(self.result)
        self._images = prepared.suite.privacy.images != "none"

    def inspect(self, progress: Callable[[int, int], None]) -> Inspected:
        """Inspect the system and write the results."""
        from medtest.inside.look import network_of

        system = looked_into(self._prepared, self._number)
        network_of(system)
        system.open(device=self._device, threads=self._invocation.threads or 1)
        cases = InspectedCases(self._prepared, self._invocation, self._number, system, self._device)
        try:
            self._look(system, cases, progress)
        finally:
            cases.close()
            system.close()
        self._files.clear("*.csv", "plane*.png", "chords.png")
        self._write_tables()
        self._write_plane()
        self._files.chords(list(self._prepared.classes.values()), self._options.threshold)
        self._files.index()
        for reason, count in list(cases.left_out.items())[:_MOST_SAID]:
            self.result.notices.append(f"{count:,} follow-ups left out: {reason}")
        return self.result

    def _look(self, system: System, cases: InspectedCases, progress: Callable[[int, int], None]) -> None:
        from medtest.inside.look import Looker

        units = cases.units(self._options.cases)
        looker: Looker | None = None
        for done, unit in enumerate(units):
            progress(done, len(units))
            seed = cases.seed(unit)
            if looker is None:
                self._files.clear("case-*.png")
                looker = Looker(system, self._options.layers, seed.image)
            followups = cases.followups(unit, seed)
            if followups:
                self._seed(system, looker, cases, seed, followups, done)
        progress(len(units), len(units))
        if looker is None:
            return
        for seed in self._training_seeds(cases, units):
            look = looker.see([seed.image])
            vectors = {layer: of_images[0] for layer, of_images in look.vectors.items()}
            self._features.add(vectors, role=space.TRAINING, label=_label(seed), name=self._name(seed))
        self.result.layers = looker.layers
        self.result.notices += looker.notices

    def _training_seeds(self, cases: InspectedCases, units: Sequence[Any]) -> Any:
        most = self._options.training_cases
        if self._training_run is None or self._training is None:
            return cases.others(most, units)
        return InspectedCases(
            self._training_run, self._training[1], 0, self._training_run.systems[0], self._device
        ).others(most, ())

    def _seed(
        self,
        system: System,
        looker: Looker,
        cases: InspectedCases,
        seed: PreparedSeed,
        followups: Sequence[LookedAt],
        number: int,
    ) -> None:
        from medtest.runner.units.parts import answers

        images = [seed.image, *(followup.image for followup in followups)]
        noises: dict[int, int] = {}
        shown = list(images)
        for at, followup in enumerate(followups, 1):
            if isinstance(cases.parts.relations[followup.case.relation], UniformNoise):
                continue  # it is that noise
            rng = replace(followup.case, relation="uniform_noise").generator(self._prepared.suite.seed)
            noise = space.noise_of(seed, followup.image, int(rng.integers(2**32)))
            if noise is not None:
                noises[at] = len(shown)
                shown.append(noise)
        look = looker.see(shown)
        method = self._options.saliency
        saliency, score = (None, "") if method == "none" else looker.saliency(seed, images, method)  # type: ignore[arg-type]
        mask = looker.fitted_mask(seed.mask)
        self.result.cases += len(followups)
        vectors = {layer: of_images[0] for layer, of_images in look.vectors.items()}
        self._features.add(vectors, role=space.CLEAN, label=_label(seed), name=self._name(seed))
        for at, followup in enumerate(followups, 1):
            self._features.add(
                {layer: of_images[at] for layer, of_images in look.vectors.items()},
                role=space.FOLLOW_UP,
                label=_label(seed),
                name=f"{self._name(seed)}/{_stem(followup)}",
                relation=followup.case.relation,
                severity=followup.case.severity,
            )
            self._compare(seed, followup, look, at, noises.get(at), saliency, mask)
        if number < self._options.figures and self._images:
            rows = _rows(seed, followups)
            sources = [cases.parts.make(seed, seed.ref.source), *(followups[at - 1].made_case for at in rows[1:])]
            case_answers = answers(system, sources, lambda: None)
            self._draw(seed, followups, rows, look, saliency, score, mask, case_answers, number)

    def _compare(
        self,
        seed: PreparedSeed,
        followup: LookedAt,
        look: Seen,
        at: int,
        noise: int | None,
        saliency: Any,
        mask: Any,
    ) -> None:
        """Compute the numbers of one follow-up."""
        case = self._row(seed, followup)
        for layer, rows in look.flat.items():
            self._layer_rows.append(
                {
                    **case,
                    "layer": layer,
                    "cosine": numbers.cosine(rows[0], rows[at]),
                    "distance": numbers.relative_distance(rows[0], rows[at]),
                    "noise_distance": None if noise is None else numbers.relative_distance(rows[0], rows[noise]),
                }
            )
        maps = [("saliency", saliency, seed.mask)] if saliency is not None else []
        maps += [(name, rows, mask) for name, rows in look.attention.items()]
        for name, rows, inside in maps:
            self._map_rows.append(
                {
                    **case,
                    "map": name,
                    "rank_correlation": numbers.rank_correlation(rows[0], rows[at]),
                    "cosine": numbers.cosine(rows[0], rows[at]),
                    "lesion_before": numbers.share_inside(rows[0], inside),
                    "lesion_after": numbers.share_inside(rows[at], inside),
                }
            )

    def _draw(
        self,
        seed: PreparedSeed,
        followups: Sequence[LookedAt],
        places: Sequence[int],
        look: Seen,
        saliency: Any,
        score: str,
        mask: Any,
        case_answers: Sequence[Any],
        number: int,
    ) -> None:
        from medtest.inside.pictures import Row, draw_rows
        from medtest.runner.pictures.panels import save

        drawing = task_of(seed.kind).drawing
        names = ["source", *(followup.name for followup in followups)]
        images = [seed.image, *(followup.image for followup in followups)]
        rows = []
        for at, answer in zip(places, case_answers, strict=True):
            maps = {layer: of_images[at] for layer, of_images in look.maps.items()}
            maps |= {f"attention {name}": of_images[at] for name, of_images in look.attention.items()}
            row = Row(
                name=names[at],
                words=drawing.answer_words(CaseAnswer(output=answer.output, reason=answer.reason.text)),
                image=images[at],
                shown=look.fitted[at],
                mask=seed.mask,
                shown_mask=mask,
                maps=maps,
                saliency=None if saliency is None else saliency[at],
            )
            row.notes = self._notes(look, saliency, at, seed.mask, mask)
            rows.append(row)
        rows[0].words = "\n".join(part for part in (drawing.expected_words(seed), rows[0].words) if part)
        shown = f"{len(places) - 1} of {len(followups)} follow-ups" if len(places) <= len(followups) else ""
        detail = [f"saliency of {score}" if score else "", shown]
        file = self._files.target / f"case-{number + 1:02}.png"
        title = f"{self._name(seed)}  \N{MIDDLE DOT}  {self.result.system}"
        last = list(look.maps)[-1] if look.maps else ""
        save(draw_rows(title, "; ".join(filter(None, detail)), rows, after=last), file)
        words = f"{self._name(seed)}: features, {'saliency, ' if saliency is not None else ''}attention"
        if not look.attention:
            words = words.removesuffix(", attention")
        self._files.add(file, words)

    def _notes(self, look: Seen, saliency: Any, at: int, whole: Any, mask: Any) -> dict[str, str]:
        """Return the notes below the pictures of a row."""
        notes: dict[str, str] = {}
        for layer, rows in look.flat.items():
            if at:
                notes[layer] = f"cosine {_shown(numbers.cosine(rows[0], rows[at]))}"
        maps = [("saliency", saliency, whole)] if saliency is not None else []
        maps += [(f"attention {name}", rows, mask) for name, rows in look.attention.items()]
        for name, rows, inside in maps:
            share = numbers.share_inside(rows[at], inside)
            lines = [] if share is None else [f"in the lesion {100 * share:.0f} %"]
            lines += [f"rank corr. {_shown(numbers.rank_correlation(rows[0], rows[at]))}"] if at else []
            notes[name] = "\n".join(lines)
        return notes

    # --- output ---------------------------------------------------------------------------------------------------

    def _name(self, seed: PreparedSeed) -> str:
        shown = self._prepared.names.seed_id(seed.ref.dataset, seed.ref.seed_id)
        return f"{seed.ref.dataset}/{shown}"

    def _row(self, seed: PreparedSeed, followup: LookedAt) -> dict[str, Any]:
        case = followup.case
        return {
            "dataset": case.dataset,
            "seed_id": self._prepared.names.seed_id(case.dataset, case.seed_id),
            "relation": case.relation,
            "severity": case.severity,
            "frame": case.frame,
            "repeat": case.repeat,
            "pixels": followup.pixels,
        }

    def _write_tables(self) -> None:
        from medtest.inside.tables import first_layers, layer_table, map_table

        self._files.table("features", self._layer_rows)
        self._files.table("maps", self._map_rows)
        layers = layer_table(self._layer_rows, self._features, self.result.layers)
        self._files.table("layers", layers)
        self._files.table("first_layer", first_layers(layers))
        self._files.table("maps_by_relation", map_table(self._map_rows))

    def _write_plane(self) -> None:
        from medtest.inside.planes import draw_planes, plane_rows

        features, points = self._features, {}
        groups = _groups(features)
        for layer in features.vectors:
            everything = features.matrix(layer, range(len(features.role)))
            placed = space.embedded(space.scaled(everything)[0], self._options.embedding, self._prepared.suite.seed)  # type: ignore[arg-type]
            if placed is not None:
                points[layer] = placed
        if not points:
            return
        self._files.table("plane", plane_rows(features, points))
        embedding = {"tsne": "t-SNE", "umap": "UMAP"}[self._options.embedding]
        background = "training" if self._training_run is not None else "other clean images of the suite"
        file = self._files.target / f"plane_{self._options.embedding}.png"
        draw_planes(features, points, groups, file, reference=background, method=embedding)
        self._files.add(file, f"{embedding} of pooled features, a panel a layer: {background}, clean and follow-ups")


def _groups(features: space.Features) -> list[tuple[str, str, list[int]]]:
    """Return the rows of the plane: clean images, and the highest severity of up to three relations."""
    groups = [("clean", space.CLEAN, features.of(space.CLEAN))]
    for relation in list(dict.fromkeys(filter(None, features.relation)))[:3]:
        last = max(features.severity[at] for at in features.of(space.FOLLOW_UP, relation))
        name = relation.replace("_", " ") + (f", severity {last}" if last else "")
        groups.append((name, space.FOLLOW_UP, features.of(space.FOLLOW_UP, relation, last)))
    return groups


def _rows(seed: PreparedSeed, followups: Sequence[LookedAt]) -> list[int]:
    """Return the images of a sheet: 0, the source, and evenly spaced follow-ups that differ from it."""
    other = [at for at, followup in enumerate(followups, 1) if not np.array_equal(followup.image, seed.image)]
    most = _MOST_ROWS - 1
    if len(other) > most:
        other = [other[int(at)] for at in np.round(np.linspace(0, len(other) - 1, most))]
    return [0, *other]


def _label(seed: PreparedSeed) -> str:
    return "" if seed.labels is None else "|".join(seed.labels) or "none"


def _stem(followup: LookedAt) -> str:
    return stem_text(followup.case.relation, followup.case.severity, followup.case.frame, followup.case.repeat)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"

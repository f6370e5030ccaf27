"""Comparison of a suite's artefacts with real ones: measure both, picture by picture, and put the figures together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from medtest.core.cases import Address
from medtest.core.files.images import BadFileError
from medtest.realism.classifier import Auc
from medtest.realism.compared import PictureStatistics, StatisticRow, compare
from medtest.realism.folders import RealFolder, real_folders, without_names
from medtest.realism.made import ArtefactMaker
from medtest.realism.measures import measure, scaled
from medtest.realism.options import RealismOptions
from medtest.realism.patches import MADE, REAL, PatchTest
from medtest.realism.seams import SeamResult, seam_tests
from medtest.results.cube.resampling import generator
from medtest.suite.model import Invocation, Suite

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class PatchResult:
    """Areas under the ROC curve for one relation, made against real.

    Attributes:
        relation: Relation id.
        artefact: Patches inside the artefacts.
        clean: Patches of clean tissue of the same two sources.
        gain: Their difference.
        differences: Features by how much more artefacts differ than clean tissue, in standard deviations, made less
            real.
    """

    relation: str
    artefact: Auc
    clean: Auc
    gain: Auc
    differences: Sequence[tuple[str, float]] = ()


@dataclass(kw_only=True)
class Realism:
    """Result of a comparison.

    Attributes:
        suite: Name and version of the suite.
        phantom: Whether its seeds are generated images.
        statistics: Statistics of all relations.
        patches: Results of the patch test.
        seams: Results of the seam test.
        real: Statistics of every real picture, by relation.
        made: Statistics of every made one, by relation.
        skipped: Cases by relation and severity that the relation did not apply to, of those that were tried.
        notices: Lines for the user.
    """

    suite: str
    phantom: bool
    statistics: list[StatisticRow] = field(default_factory=list)
    patches: list[PatchResult] = field(default_factory=list)
    seams: list[SeamResult] = field(default_factory=list)
    real: dict[str, list[PictureStatistics]] = field(default_factory=dict)
    made: dict[str, list[PictureStatistics]] = field(default_factory=dict)
    skipped: Mapping[tuple[str, int], int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def compare_artefacts(
    suite: Suite, invocation: Invocation, options: RealismOptions, progress: Progress = lambda done, whole: None
) -> Realism:
    """Compare the artefacts that a suite makes with real ones.

    Pictures are opened one at a time; of each, only numbers stay in memory.

    Args:
        suite: The suite; its systems are not used.
        invocation: Only ``data``, ``limit`` and ``only`` are used.
        options: Folders of real pictures, and numbers of pictures and patches.
        progress: Called with the number of finished pictures and their total.

    Raises:
        UserMistakes: Folders or suite do not fit.
    """
    maker = ArtefactMaker(suite, invocation)
    folders, notices = real_folders(options.real, maker.parts)
    if suite.privacy.seed_ids == "hashed":
        folders = [without_names(folder) for folder in folders]
    phantom = any(plan.info.load().phantom for plan in suite.seeds)
    result = Realism(suite=f"{suite.name} {suite.version}", phantom=phantom, notices=notices)
    tests = {folder.relation: PatchTest(folder.relation, options.patches) for folder in folders}
    cases = maker.chosen(list(tests), options.cases)
    total = sum(len(folder.pictures) for folder in folders) + sum(len(own) for _, own in cases)
    done = 0
    for folder in folders:
        result.real[folder.relation] = _measure_real(folder, tests[folder.relation], options.patches, result.notices)
        done += len(folder.pictures)
        progress(done, total)
    result.made = {relation: [] for relation in tests}
    for place, own in cases:
        _measure_made(maker, place, own, tests, options.patches, result)
        done += len(own)
        progress(done, total)
    result.skipped = dict(maker.skipped)
    for folder in folders:
        real, made = result.real[folder.relation], result.made[folder.relation]
        result.statistics += compare(folder.relation, folder.part, real, made)
        if options.patches:
            test = tests[folder.relation]
            artefact, clean, gain = test.result()
            result.patches.append(
                PatchResult(
                    relation=folder.relation, artefact=artefact, clean=clean, gain=gain, differences=test.differences()
                )
            )
    if options.seam:
        result.seams = seam_tests(maker, options.seam)
    return result


def _measure_real(folder: RealFolder, test: PatchTest, patches: int, notices: list[str]) -> list[PictureStatistics]:
    samples: list[PictureStatistics] = []
    left_out: dict[str, list[str]] = {}
    for picture in folder.pictures:
        try:
            image, view, mask = picture.read(folder.part)
        except BadFileError as error:
            left_out.setdefault(str(error), []).append(picture.name)
            continue
        values = None if mask is None else measure(image, mask, view)
        if mask is None or values is None:
            reason = "no mask, and no artefact was found" if picture.mask_path is None else "the artefact is too small"
            left_out.setdefault(reason, []).append(picture.name)
            continue
        samples.append(PictureStatistics(name=picture.name, group=picture.group, values=values))
        if patches:
            image, (view, mask) = scaled(image, view, mask)
            rng = generator("realism", "real", folder.relation, picture.name)
            test.add(REAL, picture.group, rng, image=image, mask=mask, view=view)
    outlined = sum(picture.mask_path is None for picture in folder.pictures) - sum(
        len(names) for reason, names in left_out.items() if reason.startswith("no mask")
    )
    if outlined > 0:
        notices.append(f"{folder.relation}: {outlined} real pictures have no mask and were outlined by their colour")
    for reason, names in left_out.items():
        shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        notices.append(f"{folder.relation}: {len(names)} real pictures left out ({shown}): {reason}")
    return samples


def _measure_made(
    maker: ArtefactMaker,
    place: int,
    cases: Sequence[Address],
    tests: Mapping[str, PatchTest],
    patches: int,
    result: Realism,
) -> None:
    scene = maker.scene(place)
    for address, image, mask in maker.make(scene, cases):
        relation, severity = address.relation, address.severity
        values = measure(image, mask, scene.view)
        if values is None:
            continue
        result.made[relation].append(
            PictureStatistics(name=scene.name, group=scene.group, values=values, severity=severity)
        )
        if patches:
            tests[relation].add(
                MADE,
                scene.group,
                generator("realism", "made", scene.name, relation, severity),
                image=image,
                mask=mask,
                view=scene.view,
                source=scene.image,
                lesion=scene.lesion,
            )

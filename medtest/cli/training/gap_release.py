"""``medtest train release-generator``: copy a trained generator into the package, with measurements and its card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medtest.cli.training.gap import attacked, attacking, parse_gap
from medtest.core.deferred import torch
from medtest.core.errors import typed_error
from medtest.relations.adversarial.generators.files import FILE, training_folder


def release_gap(tokens: Sequence[str], *, commands: Path, notes: Sequence[str], phantoms: int, threads: int) -> Path:
    """Copy the generator that ``medtest train gap`` wrote for the same tokens into the package.

    Args:
        tokens: As after ``medtest train gap``.
        commands: Text file with the commands that trained it.
        notes: Further paragraphs of the card.
        phantoms: Number of unseen phantoms for its measurement.
        threads: Threads of torch.

    Returns:
        The card.

    Raises:
        UserMistakes: Something cannot be used, or no such generator was trained here.
    """
    from medtest.cli.training.gap import load_of
    from medtest.runner.units.parts import Parts
    from medtest.session.runs import invocation_of
    from medtest.training.generators.material import classes_of, side_of
    from medtest.training.generators.recipe import load_recipe
    from medtest.training.generators.release import release, unseen_suite

    torch.set_num_threads(threads)
    request = parse_gap(tokens)
    recipe = load_recipe(request.recipe, request.changes)
    loaded = load_of(request, ())
    system, digest = attacked(loaded)
    invocation = invocation_of(loaded)
    parts = Parts(unseen_suite(loaded.suite, phantoms), None, invocation.batch_size)
    out = training_folder(digest, classes_of(parts), side_of(loaded.suite), request.settings)
    weights = out / FILE
    if not weights.is_file():
        fix = f"medtest train gap {' '.join(tokens)}"
        raise typed_error("", "no generator that was trained so", fix=fix)
    try:
        attack, _ = attacking(request, recipe, parts, system, digest, out / "unseen", "cpu", threads)
        return release(
            attack,
            weights,
            name=system.record_name,
            system=digest,
            parts=parts,
            folder=out / "unseen",
            commands=[line for line in commands.read_text(encoding="utf-8").splitlines() if line.strip()],
            notes=notes,
        )
    finally:
        system.close()

"""Terminal output of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from medtest.training.engine.trainer import TrainingStep

OFTEN = 20
"""Steps between two progress lines on a terminal."""


class TrainingReporter:
    """Prints a line per evaluation, and progress lines on a terminal.

    Args:
        console: Console for the lines.
        title: Text before the figures of an evaluation.
        prefix: Prefix of the names of the figures to print.
    """

    def __init__(self, console: Console, title: str, prefix: str = "") -> None:
        self._console = console
        self._title = title
        self._prefix = prefix

    def drawing(self, done: int, total: int) -> None:
        """Print the progress of making perturbed images."""
        if self._console.is_terminal and (done % OFTEN == 0 or done == total):
            self._say(f"perturbed images of {done}/{total} pictures")

    def __call__(self, point: TrainingStep) -> None:
        """Print the state of a training."""
        head = f"step {point.step}/{point.steps}"
        if point.numbers:
            head += f"  loss {point.numbers['loss']:.3f}"
        if point.facts:
            shown = {key: value for key, value in point.facts.items() if key.startswith(self._prefix)}
            scores = ", ".join(
                f"{key.removeprefix(self._prefix).replace('_', ' ')} {value:.3f}" for key, value in shown.items()
            )
            best = f"best {point.best_score:.3f} at step {point.best_step}"
            self._say(f"{head}  {self._title}{scores}  {best}")
        elif point.step % OFTEN == 0 and self._console.is_terminal:
            rate = f"  rate {point.numbers['rate']:.2e}" if "rate" in point.numbers else ""
            self._say(f"{head}{rate}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

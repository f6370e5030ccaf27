"""The (α,σ) table as LaTeX, as the paper's program writes it: ``tab_rob.tex``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from medtest.results.robustness import Robustness, ranked

FILE = "tab_rob.tex"

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


def escaped(text: str) -> str:
    """Return text that LaTeX prints as it is; control characters become spaces."""
    return "".join(_SPECIAL.get(sign, sign) for sign in _CONTROL.sub(" ", text)).strip()


def latex_table(found: Sequence[Robustness]) -> str:
    """Return the table: a line an algorithm by descending α, its name, α with three decimals, σ as it was written.

    No algorithm is named before its own line, so that a program may look for the first line that holds a name.
    """
    lines = [
        r"\begin{tabular}{lcc}",
        r"\hline",
        r" & $\alpha$ & $\sigma$ \\",
        r"\hline",
        *(rf"{escaped(one.name)} & {one.alpha:.3f} & {escaped(one.sigma_label)} \\" for one in ranked(found)),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"

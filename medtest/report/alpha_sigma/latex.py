"""The (α,σ) table as LaTeX (``tab_rob.tex``), in the format of the paper's program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from medtest.results.series.robustness import Robustness, ranked

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
    '"': r"\char34{}",  # "\char" works in every font encoding
    # At the start of a row these would be parsed as arguments of the line break before it.
    "[": "{[}",
    "*": "{*}",
}
_LETTERS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
_GREEK = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SPECIAL |= {letter: rf"\ensuremath{{\{name}}}" for letter, name in zip(_LETTERS, _GREEK.split(), strict=True)}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


def escaped(text: str) -> str:
    """Return text escaped for LaTeX; control characters become spaces."""
    return "".join(_SPECIAL.get(sign, sign) for sign in _CONTROL.sub(" ", text)).strip()


def latex_table(measured: Sequence[Robustness]) -> str:
    """Return the table: one line per algorithm by descending α, with its name, α to three decimals and σ as written.

    No algorithm is named before its own line, so that a program can search for the first line that holds a name.
    """
    lines = [
        r"\begin{tabular}{lcc}",
        r"\hline",
        r" & $\alpha$ & $\sigma$ \\",
        r"\hline",
        *(
            rf"{escaped(algorithm.name)} & {algorithm.alpha:z.3f} & {escaped(algorithm.sigma_label)} \\"
            for algorithm in ranked(measured)
        ),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"

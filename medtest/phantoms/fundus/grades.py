"""Grades of Messidor, and lesion counts of each phantom.

E. Decencière et al., "Feedback on a publicly distributed image database: the Messidor database", Image Anal Stereol
2014;33:231–234, and the definition that comes with the images. With μA microaneurysms, H haemorrhages and NV
neovascularisation:

- grade 0: μA = 0 and H = 0;
- grade 1: 0 < μA ≤ 5 and H = 0;
- grade 2: (5 < μA < 15 or 0 < H < 5) and no NV;
- grade 3: μA ≥ 15 or H ≥ 5 or NV.

Exudates indicate the risk of macular oedema, not the grade: they occur here in every grade but 0, more often in
the higher ones.
"""

from __future__ import annotations

import numpy as np


def grade(microaneurysms: int, haemorrhages: int, neovascularisation: bool) -> int:
    """Return the grade of retinopathy, 0 to 3."""
    if microaneurysms >= 15 or haemorrhages >= 5 or neovascularisation:
        return 3
    if microaneurysms > 5 or haemorrhages > 0:
        return 2
    return 1 if microaneurysms > 0 else 0


EXUDATES: tuple[float, ...] = (0.0, 0.15, 0.5, 0.75)
"""Probability of exudates, by grade."""


def draw_counts(rng: np.random.Generator, target_grade: int) -> dict[str, int]:
    """Draw numbers of red dots and blots, of hard exudates, and whether there are new vessels, for a grade."""
    new = False
    if target_grade == 0:
        dots, blots = 0, 0
    elif target_grade == 1:
        dots, blots = 1 + int(rng.choice(5, p=(0.06, 0.14, 0.26, 0.3, 0.24))), 0
    elif target_grade == 2:
        way = float(rng.random())
        # The sum of two draws makes counts in the middle of the grade's range more likely.
        dots = int(rng.integers(6, 11) + rng.integers(0, 5)) if way < 0.8 else int(rng.integers(2, 6))
        blots = int(rng.integers(1, 5)) if way >= 0.3 else 0
    else:
        way = float(rng.random())
        dots = int(rng.integers(15, 26) + rng.integers(0, 12)) if way < 0.7 else int(rng.integers(6, 15))
        blots = int(rng.integers(5, 14)) if way > 0.25 else int(rng.integers(0, 5))
        new = way >= 0.85 or bool(rng.random() < 0.2)
    exudates = int(rng.integers(2, 26)) if rng.random() < EXUDATES[target_grade] else 0
    return {"microaneurysms": dots, "haemorrhages": blots, "neovascularisation": new, "exudates": exudates}

"""Made CT volumes of the upper abdomen, with a liver whose shape, outline and variability are known."""

from medtest.phantoms.abdomen.cohort import DrawnLiver, box_of_training_livers, draw_liver, training_coefficients
from medtest.phantoms.abdomen.generator import REVISION, AbdomenPhantom, abdomen_rng, make_abdomen
from medtest.phantoms.abdomen.shapes import MODES, Grid3, liver_distance
from medtest.phantoms.abdomen.variability import StandardBox, liver_variability, mean_box

__all__ = [
    "MODES",
    "REVISION",
    "AbdomenPhantom",
    "StandardBox",
    "DrawnLiver",
    "Grid3",
    "abdomen_rng",
    "box_of_training_livers",
    "draw_liver",
    "liver_distance",
    "liver_variability",
    "make_abdomen",
    "mean_box",
    "training_coefficients",
]

"""Rows of answers, one each: input of the tables of flips and accuracy."""

from __future__ import annotations

from medtest.results.columns import columns_in

SOURCE, UNCHANGED = "source", "unchanged"
"""Names of two rows that are not relations: the source image, and the same image asked again."""

COLUMNS = columns_in(__file__, "rows")
"""Columns of a row.

``item`` is the question's name. ``flip``, ``right``, ``exact`` and ``source_right`` are 1, 0, or NaN if not judged;
``flip`` of the source is NaN. ``said`` and ``true`` are canonical texts; ``true`` is empty without a truth, and
``said`` is the truth's text if the answer is at least as specific: "12 mm" is the class 11-20 mm.
"""

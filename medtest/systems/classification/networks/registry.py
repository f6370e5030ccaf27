"""The families of classification networks; :mod:`medtest.systems.networks` joins them with those of other kinds."""

from __future__ import annotations

from medtest.systems.checkpoints.families import Family

FAMILIES: tuple[Family, ...] = ()

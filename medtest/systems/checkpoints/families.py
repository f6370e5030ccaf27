"""What a family of networks is: a class, the configurations under published names, a compact one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Networks of one class, which differ in their configurations.

    Attributes:
        name: Name of the family, of its system and of its compact weights.
        network: Class of the networks; made with a configuration alone, untrained.
        config: Class of the configurations: a frozen dataclass of numbers, strings, truth values, tuples of them and
            further such dataclasses, so that it can be written down as JSON.
        published: The published networks' configurations by name.
        compact: The configuration of the small one whose weights ship with medtest.
    """

    name: str
    network: type[nn.Module]
    config: type[Any]
    published: Mapping[str, Any]
    compact: Any

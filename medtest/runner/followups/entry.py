"""What the store knows of one follow-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medtest.core.cases import Address, Effect, Params


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One follow-up of the store, without its pixels.

    Images and masks are named by the SHA-256 of their pixels (:func:`medtest.core.cases.image_sha256` over NumPy's
    dtype text, shape and bytes: uint8 H×W×3 for images, the same digest as in a run's records; bool H×W for masks).
    Give the name to :meth:`FollowUpStore.image` or :meth:`FollowUpStore.mask`.

    Attributes:
        key: Digest of everything that determines the follow-up; the same follow-up in two suites has one key.
        address: Where it lives; the seed's id is the hashed one where the suite's privacy says so.
        cluster: Patient, video or sequence, as records show it.
        strata: Further columns of the seeds' metadata, as (name, value) pairs.
        part: Name of the relation's class ("blur"), where ``address.relation`` is its id in the suite.
        revision: That class's revision.
        group: The relation's group (lighting, motion, …).
        params: Sampled parameters, which replay the follow-up.
        scale: Physical distance from identity; None where there is no follow-up.
        effect: What happened to the expected answer.
        facts: Numbers about the follow-up (``object_area``, ``lesion_distance``).
        original_sha256: The seed's image as its file holds it, before preparation.
        source_sha256: The prepared source image.
        source_mask_sha256: The source's expected mask at the prepared size; "" for an unlabelled case.
        followup_sha256: The follow-up's image; "" where there is none.
        mask_sha256: The follow-up's expected mask (moved, if the relation moves it); "" where there is none.
        skipped: Why there is no follow-up ("no room …"), or "".
    """

    key: str
    address: Address
    cluster: str = ""
    strata: tuple[tuple[str, str], ...] = ()
    part: str = ""
    revision: int = 1
    group: str = ""
    params: Params = field(default_factory=dict)
    scale: float | None = None
    effect: Effect = Effect()
    facts: Mapping[str, float] = field(default_factory=dict)
    original_sha256: str
    source_sha256: str
    source_mask_sha256: str = ""
    followup_sha256: str = ""
    mask_sha256: str = ""
    skipped: str = ""

    @property
    def source(self) -> Address:
        """Address of the source case."""
        return self.address.source()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntry:
    """A suite of which the store holds follow-ups.

    Attributes:
        key: Digest of what determines all its follow-ups; the argument ``suite`` of :meth:`FollowUpStore.entries`.
        name: The suite's name.
        version: Its version.
        added: When follow-ups of it were last added, UTC, ISO 8601.
        entries: How many of its cases the store knows, skipped ones included.
    """

    key: str
    name: str
    version: str
    added: str
    entries: int

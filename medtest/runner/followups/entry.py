"""Entry of one follow-up in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medtest.core.cases import Address, Effect, Params


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Follow-up in the store, without its pixels.

    Images and masks are named by the SHA-256 of their pixels (:func:`medtest.core.cases.image_sha256` over NumPy's
    dtype text, shape and bytes: uint8 H×W×3 for images, the same digest as in a run's records; bool H×W for masks).
    Pass the name to :meth:`FollowUpStore.image` or :meth:`FollowUpStore.mask`.

    Attributes:
        key: Digest of everything that determines the follow-up; the same follow-up in two suites has one key.
        address: Its address, with the hashed seed id if the suite's privacy requires it.
        cluster: Patient, video or sequence, as in records.
        strata: Further columns of the seeds' metadata, as (name, value) pairs.
        part: Name of the relation's class ("blur"); ``address.relation`` is its id in the suite.
        revision: Revision of that class.
        group: The relation's group (lighting, motion, …).
        params: Sampled parameters, which replay the follow-up.
        scale: Physical distance from identity; None without a follow-up.
        effect: Change of the expected answer.
        facts: Numbers about the follow-up (``object_area``, ``lesion_distance``).
        original_sha256: The seed's image in its file, before preparation.
        source_sha256: The prepared source image.
        source_mask_sha256: The source's expected mask at the prepared size; "" for an unlabelled case.
        followup_sha256: The follow-up's image; "" if there is none.
        mask_sha256: The follow-up's expected mask (moved, if the relation moves it); "" if there is none.
        skipped: Reason why there is no follow-up ("no room …"), or "".
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
    """Suite with follow-ups in the store.

    Attributes:
        key: Digest of everything that determines its follow-ups; the argument ``suite`` of
            :meth:`FollowUpStore.entries`.
        name: The suite's name.
        version: Its version.
        added: Time when its follow-ups were last added, UTC, ISO 8601.
        entries: Number of its cases in the store, including skipped ones.
    """

    key: str
    name: str
    version: str
    added: str
    entries: int

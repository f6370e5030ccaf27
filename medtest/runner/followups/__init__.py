"""Store of follow-ups, made once for testing, further training and human judgement.

Make and read::

    from medtest.runner.followups import FollowUpStore, make_followups

    report = make_followups(suite, invocation)                  # or folder=Path(…)
    store = FollowUpStore.open(report.folder)
    for entry in store.entries(report.suite):                   # in the order of the suite's plan
        followup = store.image(entry.followup_sha256)           # uint8 H×W×3 RGB
        expected = store.mask(entry.mask_sha256)                # bool H×W ("" for unlabelled seeds)
        source = store.image(entry.source_sha256)
"""

from medtest.core.files.by_content import DamagedFile
from medtest.runner.followups.entry import Entry, SuiteEntry
from medtest.runner.followups.make import make_followups
from medtest.runner.followups.making import StoreReport
from medtest.runner.followups.reuse import StoredFollowUps
from medtest.runner.followups.store import FollowUpStore, default_folder

__all__ = [
    "DamagedFile",
    "Entry",
    "FollowUpStore",
    "StoreReport",
    "StoredFollowUps",
    "SuiteEntry",
    "default_folder",
    "make_followups",
]

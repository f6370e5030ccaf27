"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on machines that run other things too.
settings.register_profile("medtest", deadline=None)
settings.load_profile("medtest")

"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on machines that run other things too. Examples are the same in every run, so
# that what passes here passes in CI; `pytest --hypothesis-profile=search` draws new ones.
settings.register_profile("medtest", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile("medtest")

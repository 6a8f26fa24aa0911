"""Generated examples are the same in every run: a test that fails, fails for everyone.

``pytest --hypothesis-profile=explore`` looks for new ones.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("steady")

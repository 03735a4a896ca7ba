"""Property tests of the core draw few examples each, so that the whole folder runs in seconds."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "core", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.load_profile("core")

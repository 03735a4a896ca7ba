"""The tests with a real agent are collected only where script/test-agent says where it is."""

from __future__ import annotations

import os

collect_ignore = [] if "HARNESSLAB_TEST_AGENT" in os.environ else ["test_mini_swe_agent.py"]

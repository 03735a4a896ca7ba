"""Differences line by line, of two texts and as git writes them."""

from __future__ import annotations

from harnesslab.core.comparing.line_changes import ChangedLine, changed_lines, diff_lines

DIFF = """diff --git a/old/h.py b/src/h.py
index 1..2 100644
--- a/old/h.py
+++ b/src/h.py
@@ -1,2 +1,2 @@ def f():
 kept
--- was a rule
+now
"""


def test_changed_lines_come_with_those_around_them() -> None:
    found = changed_lines("a\nb\nc\nd\n", "a\nb\nC\nd\n", around=1)
    assert [(line.kind, line.text) for line in found[1:]] == [
        ("same", "b"),
        ("removed", "c"),
        ("added", "C"),
        ("same", "d"),
    ]
    assert changed_lines("a", "a") == []


def test_a_diff_names_its_files_and_loses_nothing_that_only_looks_like_a_head() -> None:
    assert diff_lines(DIFF) == [
        ChangedLine("place", "src/h.py"),
        ChangedLine("place", "@@ -1,2 +1,2 @@ def f():"),
        ChangedLine("same", "kept"),
        ChangedLine("removed", "-- was a rule"),
        ChangedLine("added", "now"),
    ]

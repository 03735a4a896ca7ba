"""The learning memo keeps its proposer's notes and writes the facts anew."""

from __future__ import annotations

from harnesslab.core.training.memo import Concluded, notes_of, written

FACTS = [Concluded(0, "c" * 40, "more\nexamples", "promoted", "gain", solved=2, total=3, before=1, new=("a",))]


def test_notes_stay_above_the_facts_and_the_facts_are_no_notes() -> None:
    memo = written("# Mine\n\nRemember this.", FACTS, "exp-1")
    assert notes_of(memo) == "# Mine\n\nRemember this."
    assert memo.count("## What became of the candidates") == 1


def test_what_a_proposer_appends_below_the_facts_is_kept_among_the_notes() -> None:
    memo = written("# Mine", FACTS, "exp-1") + "\n## Learned\n\nExamples help.\n"
    again = written(notes_of(memo), FACTS, "exp-2")
    assert notes_of(again) == "# Mine\n\n## Learned\n\nExamples help."
    assert again.count("`cccccccccccc` iteration 1: more examples") == 1


def test_facts_whose_end_was_edited_away_are_still_no_notes() -> None:
    memo = written("# Mine", FACTS, "exp-1").replace("Newest experiment: exp-1.", "")
    assert notes_of(memo) == "# Mine"

"""The table of planted causes: every kind stands in two formats, with what must be said of it and what must not.

A kind without a row fails. Rows hold whole files, which the real importers read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from harnesslab.core.contracts.contract import RAW, Contract, Level, Scope
from tests.core.comparing.planting import Episode, Turn, Writing, chat, compared, mini, native, reader, swe

BEHAVIOUR = Contract(Level.BEHAVIOUR)
TOOL_CALLS = Contract(Level.JSON, (), Scope.TOOL_CALLS)
SCRUBBED = Contract.parse("text")


class Kind(StrEnum):
    """What is planted."""

    OTHER_INPUT = "the inputs can't have been the same by their prompt tokens"
    ALMOST_SAME_INPUT = "a few prompt tokens more, which hidden additions explain"
    OTHER_TOOLS = "other tool schemas"
    OTHER_MODEL = "another model"
    OTHER_TEMPLATE = "equal messages as other prompt tokens"
    OTHER_INSTRUCTIONS = "other instructions"
    SEED_AT_ZERO = "a seed at temperature 0"
    TOP_P_AT_ZERO = "top-p at temperature 0"
    SEED_ACTS = "another seed at temperature 1"
    OTHER_BACKEND = "another fingerprint of the provider"
    SAMPLING = "temperature above 0 and no seed"
    WRITTEN_BY_TEMPLATE = "the opening message of a template"
    WRITTEN_BY_SOMEONE = "an opening message of which nobody says who wrote it"
    CRASH_FIRST = "a crash before the first call"
    DAMAGED = "damaged bytes"
    TWO_CASES = "two cases"
    TWO_TASKS = "two tasks under one name"
    TWO_RECORDINGS = "two recordings of one run"
    TWO_READINGS = "two importers' readings of one run"
    INSERTED_STEP = "one step more in B"
    MISSING_STEP = "one step fewer in B"
    DIRECTORY_ORDER = "a directory listed in another order"
    DATE_IN_PROMPT = "a date in the prompt"
    HOST_IN_PROMPT = "a host name in the prompt"
    RETRY = "a request that was retried"
    DIFF_STAMPS = "workspace diffs with other time stamps and index hashes"
    REJOINS = "paths that rejoin, with another outcome or the same"
    TOKENS_UNDER_TEXT = "other token ids under equal words"
    NO_CALLS = "no tool call on either side"
    WHOSE_WORDS = "excerpts of whom the sentence names"
    NO_BREAK_SPACE = "a no-break space"
    ZERO_WIDTH = "a zero-width space"
    LINE_ENDS = "line ends"
    LOOK_ALIKE = "a look-alike letter"
    COMPOSITION = "NFC and NFD"
    FINAL_NEWLINE = "a final newline"
    TEXT_ACTIONS = "actions written in text"
    MESSAGES_INSERTED = "worked examples before an equal task"
    OLD_GREETING = "a greeting that was answered alike"
    REBUILT_CONDITIONS = "a rebuilt input with recorded conditions"
    DECIDING_WRITE = "what decided: a write"
    DECIDING_CUT = "what decided: a cut-off or an empty reply"
    TIME_STAMP = "a time stamp in what the harness did or a tool returned"


@dataclass(frozen=True)
class Planted:
    """Two files of a kind, and what is to be said of them."""

    kind: Kind
    a: tuple[Writing, Episode]
    b: tuple[Writing, Episode]
    boundary: str | None
    """None: nothing that the contract counts differs."""
    cause: str = ""
    step: int = 0
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    contract: Contract = RAW
    damage: tuple[bytes, bytes] | None = None
    """Bytes of B that are replaced."""


BASE = Episode()
WARM = BASE.but(settings={"temperature": 0.7})
COLD = BASE.but(settings={"temperature": 0})
SAME_INPUT = ("the same input",)
LAST = {"text": "Finished, all is sorted."}
LONG = "I have read the notes carefully and now sort the names into the file that was asked for."


def rows(
    kind: Kind, a: Episode, b: Episode, boundary: str | None, cause: str = "", **expected: Any
) -> Iterator[Planted]:
    """Yield the pair in each format named by `formats`."""
    for writing in expected.pop("formats", (native, chat)):
        yield Planted(kind, (writing, a), (writing, b), boundary, cause, **expected)


def table() -> Iterator[Planted]:
    yield from inputs()
    yield from drawn()
    yield from whole_pairs()
    yield from steps()
    yield from environments()
    yield from little()
    yield from actions()


def inputs() -> Iterator[Planted]:
    one, two = COLD.turn(1, tokens=40), COLD.turn(1, tokens=900, **LAST)
    says = ("the inputs can't have been the same: 40 against 900 prompt tokens", "what differs was not recorded")
    yield from rows(
        Kind.OTHER_INPUT,
        one,
        two,
        "harness",
        "input",
        step=1,
        says=says,
        never=(*SAME_INPUT, "numerics", "“", '"'),
        formats=(native, chat, mini),
    )
    one, two = WARM.turn(1, tokens=1_200), WARM.turn(1, tokens=1_207, **LAST)
    says = ("not shown equal (1,200 against 1,207 prompt tokens)", "temperature 0.7, no seed recorded")
    yield from rows(Kind.ALMOST_SAME_INPUT, one, two, "model", "sampling", step=1, says=says, never=SAME_INPUT)
    tools = [[{"type": "function", "function": {"name": name}}] for name in ("bash", "edit")]
    yield from rows(
        Kind.OTHER_TOOLS,
        BASE.but(tools=tools[0]),
        BASE.but(tools=tools[1]).turn(0, text="Hm."),
        "harness",
        "harness",
        says=("the harness offered the model other tools",),
        never=SAME_INPUT,
    )
    one, two = COLD, COLD.turn(1, **LAST)
    other = {"settings": {"temperature": 0, "model": "m-2"}}
    yield from rows(
        Kind.OTHER_MODEL,
        one,
        two.but(conditions={"model.name": "m-2"}),
        "model",
        "declared",
        step=1,
        says=("the manifests declare a difference: model",),
        never=("numerics",),
        formats=(native,),
    )
    yield from rows(
        Kind.OTHER_MODEL,
        one,
        two.but(**other),
        "model",
        "declared",
        step=1,
        says=("model",),
        never=("numerics",),
        formats=(chat,),
    )
    ids = [{"prompt_token_ids": [1, 2, number], "token_ids": [5, number]} for number in (3, 4)]
    yield from rows(
        Kind.OTHER_TEMPLATE,
        COLD.turn(0, answer=ids[0]),
        COLD.turn(0, answer=ids[1], text="Hm."),
        "model",
        "template",
        says=("the chat template or tokenizer differs",),
        never=SAME_INPUT,
    )
    yield from rows(
        Kind.OTHER_INSTRUCTIONS,
        BASE,
        BASE.but(system="You are a very careful shell agent.").turn(0, text="Hm."),
        "harness",
        "harness",
        says=("the harness sent other instructions",),
        never=(*SAME_INPUT, "the user"),
    )
    yield from rows(
        Kind.MESSAGES_INSERTED,
        BASE,
        BASE.but(examples=("build a house", "count the stars", "write a poem", "name a fish", "draw a map")).turn(
            0, text="Hm."
        ),
        "harness",
        "harness",
        says=(
            "the harness sent 10 more messages (user and assistant) in B, before a user message that is equal in both",
        ),
        never=("another user message", "the user said", "opening message differs"),
    )
    for writing in (native, chat):
        greeted = BASE.but(opening="Hello!", turns=(Turn("Hi, what shall I do?", said="Sort names.txt."), *BASE.turns))
        one = greeted.but(settings={"temperature": 0.7}).turn(2, text="x", command="sort names.txt")
        two = one.but(opening="Hi there!").turn(2, command="sort -u names.txt")
        yield Planted(
            Kind.OLD_GREETING,
            (writing, one),
            (writing, two),
            "model",
            "sampling",
            2,
            ("inputs that differ only where the model had gone on alike before were answered differently",),
            ("the user said something different", "opening message", "Hello"),
            TOOL_CALLS,
        )


def drawn() -> Iterator[Planted]:
    says = ("at temperature 0 a seed draws nothing", "numerics, batch or something undeclared")
    one, two = (COLD.but(settings={"temperature": 0, "seed": seed}) for seed in (7, 8))
    yield from rows(
        Kind.SEED_AT_ZERO,
        one,
        two.turn(0, text="Hm."),
        "model",
        "numerics",
        says=says,
        never=("differ in seed", "declare a difference"),
    )
    one, two = (COLD.but(settings={"temperature": 0, "top_p": top}) for top in (0.9, 1))
    yield from rows(
        Kind.TOP_P_AT_ZERO,
        one,
        two.turn(0, text="Hm."),
        "model",
        "numerics",
        says=("temperature 0",),
        never=("top_p", "top-p", "declare a difference"),
    )
    one, two = (COLD.but(settings={"temperature": 1, "seed": seed}) for seed in (7, 8))
    yield from rows(
        Kind.SEED_ACTS,
        one,
        two.turn(0, text="Hm."),
        "model",
        "declared",
        says=("seed",),
        never=("draws nothing", "numerics"),
    )
    one, two = (COLD.turn(0, answer={"fingerprint": name}) for name in ("fp_1", "fp_2"))
    yield from rows(
        Kind.OTHER_BACKEND,
        one,
        two.turn(0, text="Hm."),
        "model",
        "declared",
        says=("another backend (fingerprint)",),
        never=("nothing else declared",),
    )
    yield from rows(
        Kind.SAMPLING,
        WARM,
        WARM.turn(1, **LAST),
        "model",
        "sampling",
        step=1,
        says=("the same input was answered differently", "temperature 0.7, no seed recorded"),
        never=("numerics", "harness"),
    )
    one, two = (WARM.turn(1, tokens=300, text=text) for text in ("Done.", "Finished."))
    yield from rows(
        Kind.REBUILT_CONDITIONS,
        WARM,
        WARM.turn(1, **LAST),
        "model",
        "model-or-harness",
        step=1,
        says=("as far as recorded", "temperature 0.7, no seed recorded"),
        formats=(mini,),
    )
    yield from rows(
        Kind.REBUILT_CONDITIONS,
        one,
        two,
        "model",
        "sampling",
        step=1,
        says=("as far as recorded (both prompts were counted as 300 tokens)", "temperature 0.7, no seed recorded"),
        formats=(mini,),
    )
    yield from rows(
        Kind.REBUILT_CONDITIONS,
        WARM,
        WARM.turn(1, **LAST).turn(1, answer={"fidelity": "rebuilt"}),
        "model",
        "model-or-harness",
        step=1,
        says=("as far as recorded", "temperature 0.7, no seed recorded"),
        formats=(native,),
    )
    ids = [{"token_ids": [5, number]} for number in (6, 7)]
    tokens = [COLD.turn(0, answer={"token_ids": [1]}).turn(1, answer=each) for each in ids]
    for contract in (RAW, BEHAVIOUR):
        yield from rows(
            Kind.TOKENS_UNDER_TEXT,
            tokens[0],
            tokens[1],
            None,
            says=("Identical", "Token ids differ under equal words, from step 2 on"),
            contract=contract,
        )


def whole_pairs() -> Iterator[Planted]:
    yield from rows(
        Kind.WRITTEN_BY_TEMPLATE,
        BASE,
        BASE.but(opening=f"{BASE.opening} Answer in one command."),
        "harness",
        "harness",
        says=("which the harness makes of a template",),
        never=("the user said", "a person"),
        formats=(mini, swe),
    )
    yield from rows(
        Kind.WRITTEN_BY_SOMEONE,
        BASE,
        BASE.but(opening="Sort the names in names.txt by length."),
        "user",
        "user",
        says=("the opening message differs",),
        never=("the user said", "template"),
    )
    crash = BASE.but(turns=(), outcome="crash", ended={"error": "ModuleNotFoundError: No module named 'loop'"})
    for writing in (native, swe):
        first = BASE if writing is native else BASE.but(ended={})
        broken = crash if writing is native else crash.but(ended={"error": "exit_error (ModuleNotFoundError)"})
        yield Planted(
            Kind.CRASH_FIRST,
            (writing, first),
            (writing, broken),
            "harness",
            "harness",
            0,
            ("B crashed before its first model call", "ModuleNotFoundError", "the harness's"),
            ("records no conversation",),
        )
    overloaded = crash.but(ended={"error": "RateLimitError: 429 overloaded"})
    yield from rows(
        Kind.CRASH_FIRST,
        BASE,
        overloaded,
        "harness",
        "infra",
        says=("the provider's or the network's",),
        formats=(native,),
    )
    for writing in (native, chat, mini):
        yield Planted(
            Kind.DAMAGED,
            (writing, COLD),
            (writing, COLD),
            "model",
            "damage",
            0,
            ("bytes of B are damaged",),
            ("numerics", "answered differently"),
            damage=(b"cat notes.txt", b"cat n\xfftes.txt"),
        )
    other = BASE.but(case="photos", opening="Resize every photo in the album to a width of 800 pixels.")
    yield from rows(
        Kind.TWO_CASES,
        BASE,
        other,
        "user",
        "case",
        says=("They are of two cases, “tidy” and “photos”. They part",),
        never=("the user said",),
        formats=(native, chat),
    )
    yield from rows(Kind.TWO_CASES, BASE, other, "user", "case", says=("They are of two cases",), formats=(mini, swe))
    yield from rows(
        Kind.TWO_TASKS,
        BASE,
        other.but(case="tidy"),
        "user",
        "case",
        says=("They were asked for two tasks under one name, “tidy”. They part",),
        never=("the user said",),
    )
    recorded = BASE.turn(0, id="resp-81a", text=LONG).turn(1, id="resp-81b")
    for writing in (native, chat):
        yield Planted(
            Kind.TWO_RECORDINGS,
            (writing, recorded),
            (writing, recorded.turn(0, output="one\ntwo\n")),
            "tool:bash",
            "recording",
            0,
            ("They are two recordings of one run", "so that no agent differed"),
        )
    for one, two in ((native, chat), (chat, mini)):
        yield Planted(
            Kind.TWO_READINGS,
            (one, recorded),
            (two, recorded),
            "model",
            "recording",
            0,
            ("They are two readings of one run, by the importers",),
            ("the model parts them",),
        )


def steps() -> Iterator[Planted]:
    extra = Turn("Let me list the folder too.", "ls", "names.txt")
    more = COLD.but(turns=(COLD.turns[0], extra, *COLD.turns[1:]))
    says = ("Identical for 1 step. B has one extra step, 2; from A's step 2 and B's step 3 both go on alike",)
    never = ("answered differently", "the model parts them")
    yield from rows(Kind.INSERTED_STEP, COLD, more, "model", "numerics", step=1, says=says, never=never)
    says = ("Identical for 1 step. A has one extra step, 2; from A's step 3 and B's step 2 both go on alike",)
    yield from rows(Kind.MISSING_STEP, more, COLD, "model", "numerics", step=1, says=says, never=never)
    retried = BASE.turn(1, error="overloaded")
    yield from rows(
        Kind.RETRY,
        BASE,
        retried,
        "model",
        "infra",
        step=1,
        says=("the request failed in B (“overloaded”)", "a retry is no other answer"),
        never=("answered differently",),
    )


def environments() -> Iterator[Planted]:
    one, two = (BASE.turn(0, command="ls", output=text) for text in ("a.txt\nb.txt\nc.txt", "b.txt\na.txt\nc.txt"))
    yield from rows(
        Kind.DIRECTORY_ORDER,
        one,
        two,
        "tool:bash",
        "environment",
        says=("listed in another order (directory order)",),
        never=("something else",),
        formats=(native, chat, mini, swe),
    )
    one, two = (BASE.but(system=f"You are an agent. Today is {day}.") for day in ("2026-03-01", "2026-03-02"))
    yield from rows(
        Kind.DATE_IN_PROMPT,
        one,
        two.turn(0, text="Hm."),
        "harness",
        "clock",
        says=("differ in a date or time alone",),
        never=SAME_INPUT,
    )
    one, two = (BASE.but(opening=f"Fix it on this machine.\nhostname: {host}") for host in ("build-01", "build-02"))
    yield from rows(
        Kind.HOST_IN_PROMPT,
        one,
        two,
        "harness",
        "environment",
        says=("differ in a host name alone",),
        never=("the user said",),
        formats=(mini, swe),
    )
    diffs = [
        f"diff --git a/x b/x\nindex {one}..{two} 100644\n--- a/x\t{at}\n+++ b/x\t{at}\n@@ -1 +1 @@\n-a\n+b\n"
        for one, two, at in (("1a2b3c4", "5d6e7f8", "2026-01-01 10:00"), ("9a8b7c6", "0d1e2f3", "2026-01-02 11:00"))
    ]
    one, two = (BASE.but(ended={"diff": diff}) for diff in diffs)
    yield from rows(
        Kind.DIFF_STAMPS,
        one,
        two,
        "harness",
        "clock",
        step=1,
        says=("differ in time stamps and index hashes alone",),
        never=("workspaces differ at the end", "the harness acted"),
        formats=(native, swe),
    )
    stamped = [
        {"kind": "harness_action", "name": "reminder", "detail": {"text": "hurry", "time": at}} for at in (1.5, 2.5)
    ]
    one, two = (BASE.but(events=(event,)) for event in stamped)
    yield from rows(
        Kind.TIME_STAMP,
        one,
        two,
        "harness",
        "clock",
        says=("at another time",),
        never=("acted differently",),
        formats=(native,),
    )
    one, two = (BASE.turn(0, command="date", output=f"Mon Mar 2 10:00:0{second} UTC 2026") for second in (1, 2))
    yield from rows(
        Kind.TIME_STAMP,
        one,
        two,
        "tool:bash",
        "environment",
        says=("only volatile text differs",),
        never=("harness",),
        formats=(chat,),
    )
    one, two = (WARM.turn(0, output=text) for text in ("one\ntwo", "three"))
    for contract in (BEHAVIOUR, TOOL_CALLS):
        yield from rows(
            Kind.WHOSE_WORDS,
            one.turn(1, command="sort one"),
            two.turn(1, command="sort three"),
            "model" if contract is TOOL_CALLS else "tool:bash",
            "environment",
            step=1,
            says=("the result of bash at step 1, which the model was given, differs", '"one two" against "three"'),
            never=('"one" against', "the user"),
            contract=contract,
        )


def little() -> Iterator[Planted]:
    planted = (
        (
            Kind.NO_BREAK_SPACE,
            "Sort names.txt now.",
            "Sort\u00a0names.txt now.",
            "no-break or other wide spaces",
            "⟨U+00A0⟩",
        ),
        (Kind.ZERO_WIDTH, "Sort names.txt now.", "Sort na\u200bmes.txt now.", "zero-width characters", "⟨U+200B⟩"),
        (Kind.LOOK_ALIKE, "Sort names.txt now.", "Sort n\u0430mes.txt now.", "look-alike letters", "⟨U+0430⟩"),
        (Kind.COMPOSITION, "Sort café.txt now.", "Sort cafe\u0301.txt now.", "NFC and NFD", "⟨U+0301⟩"),
    )
    for kind, one, two, words, shown in planted:
        yield from rows(
            kind,
            BASE.but(opening=one),
            BASE.but(opening=two),
            "user",
            "user",
            says=(words, shown),
            never=("white space",),
        )
        yield from rows(
            kind,
            WARM.turn(0, text=one),
            WARM.turn(0, text=two),
            "model",
            "sampling",
            says=(words, shown),
            formats=(native, chat),
        )
    for kind, one, two, words in (
        (Kind.LINE_ENDS, "Sort names.txt.\nThen stop.", "Sort names.txt.\r\nThen stop.", "line ends (CRLF in B)"),
        (Kind.FINAL_NEWLINE, "Sort names.txt.", "Sort names.txt.\n", "white space (a final newline in B)"),
        (Kind.FINAL_NEWLINE, "Sort names.txt. ", "Sort names.txt.", "white space (a trailing blank in A)"),
    ):
        yield from rows(
            kind,
            BASE.but(opening=one),
            BASE.but(opening=two),
            "harness",
            "harness",
            says=(words,),
            never=("the user",),
            formats=(native, chat, mini),
        )


def actions() -> Iterator[Planted]:
    one, two = (WARM.turn(0, text=text, command=text) for text in ("cat names.txt", "wc names.txt"))
    for contract in (BEHAVIOUR, TOOL_CALLS):
        yield from rows(
            Kind.TEXT_ACTIONS,
            one,
            two,
            "model",
            "model-or-harness",
            says=("the model called bash with other arguments",),
            never=("asked for the same", "another call was made"),
            contract=contract,
            formats=(mini,),
        )
        yield from rows(
            Kind.TEXT_ACTIONS,
            one,
            two,
            "model",
            "sampling",
            says=("the model called bash with other arguments",),
            never=("asked for the same", "another call was made"),
            contract=contract,
            formats=(swe,),
        )
    silent = BASE.but(turns=(Turn("Fine."),))
    yield from rows(
        Kind.NO_CALLS,
        silent,
        silent.turn(0, text="Well."),
        None,
        says=("Neither made a tool call",),
        never=("identical",),
        contract=TOOL_CALLS,
    )
    one, two = WARM, WARM.turn(0, text="Let me look.")
    for other in (two, two.but(outcome="failed_verification")):
        yield from rows(
            Kind.REJOINS, one, other, "model", "sampling", says=("answered differently",), formats=(native,)
        )
    yield from rows(Kind.REJOINS, one, two, "model", "sampling", says=("answered differently",), formats=(chat,))
    wrote = WARM.turn(1, command="echo done > out.txt", text="I write.")
    for writing in (native, mini):
        ended = {"outcome": "failed_verification"} if writing is native else {"ended": {"error": "LimitsExceeded"}}
        yield Planted(
            Kind.DECIDING_WRITE,
            (writing, wrote),
            (writing, wrote.turn(1, command="cat out.txt").but(**ended)),
            "model",
            "sampling" if writing is native else "model-or-harness",
            1,
            (
                "a candidate for what decided is A's step 2, a write (bash echo done > out.txt)",
                "nothing here proves it",
            ),
        )
    cut = WARM.turn(1, text="I thin", answer={"finish_reason": "length"}).but(outcome="failed_verification")
    yield from rows(
        Kind.DECIDING_CUT, WARM, cut, "model", "sampling", step=1, says=("B's step 2, a cut-off",), formats=(native,)
    )
    empty = WARM.turn(1, text="").but(outcome="no_valid_action")
    yield from rows(
        Kind.DECIDING_CUT,
        WARM,
        empty,
        "model",
        "sampling",
        step=1,
        says=("B's step 2, an empty reply",),
        formats=(native,),
    )
    yield from rows(
        Kind.DECIDING_CUT,
        WARM,
        WARM.turn(1, text="").but(ended={"error": "exit_cost"}),
        "model",
        "sampling",
        step=1,
        says=("B's step 2, an empty reply",),
        formats=(swe,),
    )


TABLE = tuple(table())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.kind}-{row.a[0].__name__}-{row.contract.level}")
def test_what_is_planted_is_what_is_said(row: Planted) -> None:
    data = [writing(episode) for writing, episode in (row.a, row.b)]
    if row.damage is not None:
        assert row.damage[0] in data[1]
        data[1] = data[1].replace(*row.damage, 1)
    found = compared(reader(data[0], row.a[0]), reader(data[1], row.b[0]), row.contract)
    first = found.first_divergence
    if row.boundary is None:
        assert first is None
    else:
        assert first is not None
        assert (first.boundary, first.cause, first.step) == (row.boundary, row.cause, row.step), found.sentence
        assert first.hypotheses[0].cause == first.cause
        assert not first.hypotheses[0].contradicts
    for words in row.says:
        assert words in found.sentence
    for words in row.never:
        assert words not in found.sentence


def test_every_kind_stands_in_two_formats() -> None:
    formats = {
        kind: {writing for row in TABLE if row.kind is kind for writing in (row.a[0], row.b[0])} for kind in Kind
    }
    assert {kind: len(found) for kind, found in formats.items() if len(found) < 2} == {}


@pytest.mark.parametrize("row", [row for row in TABLE if row.kind is Kind.REJOINS])
def test_paths_rejoin_whatever_the_outcome_is(row: Planted) -> None:
    found = compared(reader(row.a[0](row.a[1]), row.a[0]), reader(row.b[0](row.b[1]), row.b[0]))
    assert found.rejoins


def test_what_made_inputs_equal_is_in_the_json() -> None:
    one, two = native(WARM), native(WARM.turn(1, **LAST)).replace(b'"c0"', b'"call_9f8e7d6c5b4a"')
    found = compared(reader(one, native), reader(two, native))
    assert found.first_divergence is not None
    assert "the inputs are equal once generated ids are renamed" in found.first_divergence.hypotheses[0].supports
    times = [WARM.turn(0, output=f"3 passed in 0.{number}2s") for number in (1, 3)]
    files = [native(times[0]), native(times[1].turn(1, **LAST))]
    found = compared(reader(files[0], native), reader(files[1], native), SCRUBBED)
    assert found.first_divergence is not None
    assert any("durations@1" in said for said in found.first_divergence.hypotheses[0].supports)
    assert "inputs that are equal only after the rules were answered differently" in found.sentence


def test_what_the_record_contradicts_is_kept_below_what_it_does_not() -> None:
    one, two = COLD.turn(1, tokens=40), COLD.turn(1, tokens=900, **LAST)
    found = compared(reader(native(one), native), reader(native(two), native))
    assert found.first_divergence is not None
    first, *others = found.first_divergence.hypotheses
    assert (first.cause, first.contradicts) == ("input", [])
    assert others
    assert all("40 against 900 prompt tokens" in each.contradicts for each in others)


def test_a_turn_that_one_records_inside_its_request_alone_is_no_word_of_the_user() -> None:
    rows = native(BASE).splitlines(keepends=True)
    bare = b"".join(row for row in rows if b'"user_turn"' not in row)
    found = compared(reader(b"".join(rows), native), reader(bare, native))
    assert found.first_divergence is not None
    assert found.first_divergence.cause == "recording"
    assert "the user spoke" not in found.sentence


@pytest.mark.parametrize(
    ("outcomes", "step"),
    [
        (("solved", "unknown"), None),
        (("solved", "not_run"), None),
        (("solved", "solved"), None),
        (("solved", "interrupted"), 1),
        (("solved", "failed_verification"), 0),
    ],
)
def test_what_decided_hangs_on_outcomes_that_differ(outcomes: tuple[str, str], step: int | None) -> None:
    one = WARM.turn(0, command="echo one > out.txt").but(outcome=outcomes[0])
    two = WARM.turn(0, command="echo two > out.txt").but(outcome=outcomes[1])
    found = compared(reader(native(one), native), reader(native(two), native))
    assert (found.deciding_action.step if found.deciding_action else None) == step


def test_a_simulator_that_words_one_task_anew_asks_for_no_other() -> None:
    openings = ("Hi! I would like to change a seat, please.", "Good morning, there is trouble with where I sit.")
    turn = b'"kind": "user_turn"'
    one, two = (native(BASE.but(opening=text)).replace(turn, turn + b', "simulated": true') for text in openings)
    found = compared(reader(one, native), reader(two, native))
    assert not found.about_pair
    assert "the simulated user said something different" in found.sentence

"""What an engine is found to do when it is registered; a flag that it reports shows nothing of that."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from harnesslab.core.running.ports import Answer, EngineDown, EnginePort, Exchange, ModelRequest

PROMPT = "Write three words about the sea, then three about the sky, and go on."
SEED = 20_260_101
TOKENS = 24


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found; None where it could not be found out."""

    seed_honoured: bool | None
    """Whether one seed gave one answer twice and another seed another, at temperature 1."""
    varies_unseeded: bool | None
    """Whether two requests without a seed differed: where not, n rollouts without seeds are one."""
    repeats: bool | None
    """Whether two greedy answers were equal."""
    token_ids: bool
    prompt_token_ids: bool
    logprobs: bool
    streams: bool
    sentences: tuple[str, ...]
    """The same for people, and what went wrong."""
    exchanges: tuple[Exchange, ...]
    """Every attempt that was made."""


def probe(engine: EnginePort, *, timeout: float = 60.0) -> Probe:
    """Ask eight short questions one after the other; raises `EngineDown` where none is answered."""
    first, second = _ask(engine, timeout, seed=SEED), _ask(engine, timeout, seed=SEED)
    other, third = _ask(engine, timeout, seed=SEED + 1), _ask(engine, timeout, seed=SEED + 2)
    free, free_again = _ask(engine, timeout), _ask(engine, timeout)
    greedy, streamed = _ask(engine, timeout, temperature=0), _ask(engine, timeout, temperature=0, stream=True)
    exchanges = (first, second, other, third, free, free_again, greedy, streamed)
    answers = [exchange.answer for exchange in exchanges if exchange.answer is not None]
    if not answers:
        reason = first.failure.sentence if first.failure is not None else "no answer"
        raise EngineDown(f"no question was answered: {reason}")
    repeats_seed, differs = _same(first, second), _any_differs(first, other, third)
    honoured = None if repeats_seed is None or differs is None else repeats_seed and differs
    same_free = _same(free, free_again)
    found = Probe(
        seed_honoured=honoured,
        varies_unseeded=None if same_free is None else not same_free,
        repeats=_same(greedy, streamed),
        token_ids=all(answer.token_ids is not None for answer in answers),
        prompt_token_ids=all(answer.prompt_token_ids is not None for answer in answers),
        logprobs=all(answer.logprobs is not None for answer in answers),
        streams=streamed.answer is not None and streamed.first_token is not None,
        sentences=(),
        exchanges=exchanges,
    )
    return _with_sentences(found, repeats_seed, differs)


def _ask(
    engine: EnginePort, timeout: float, *, seed: int | None = None, temperature: float = 1.0, stream: bool = False
) -> Exchange:
    settings = {"temperature": temperature, "max_tokens": TOKENS, **({} if seed is None else {"seed": seed})}
    request = ModelRequest([{"role": "user", "content": PROMPT}], settings, stream=stream)
    return engine.ask(request, timeout=timeout)


def _same(a: Exchange, b: Exchange) -> bool | None:
    """Compare token ids where both have them, else texts."""
    return None if a.answer is None or b.answer is None else _content(a.answer, b.answer)


def _content(a: Answer, b: Answer) -> bool:
    if a.token_ids is not None and b.token_ids is not None:
        return a.token_ids == b.token_ids
    return (a.text, a.reasoning, a.tool_calls) == (b.text, b.reasoning, b.tool_calls)


def _any_differs(first: Exchange, *others: Exchange) -> bool | None:
    compared = [same for other in others if (same := _same(first, other)) is not None]
    return None if not compared else not all(compared)


def _with_sentences(found: Probe, repeats_seed: bool | None, differs: bool | None) -> Probe:
    sentences = [_seed_sentence(repeats_seed, differs)]
    if found.varies_unseeded is not None:
        sentences.append(
            "requests without a seed differ"
            if found.varies_unseeded
            else "two requests without a seed gave the same answer at temperature 1: always send a seed"
        )
    if found.repeats is not None:
        how = "equal" if found.repeats else "different"
        sentences.append(f"two greedy answers, one whole and one streamed, were {how}")
    for has, what in (
        (found.token_ids, "token ids of the answer"),
        (found.prompt_token_ids, "token ids of the prompt"),
        (found.logprobs, "log-probabilities"),
    ):
        sentences.append(f"it {'gives' if has else 'does not give'} {what}")
    sentences.append("it streams" if found.streams else "it does not stream")
    failures = {exchange.failure.sentence for exchange in found.exchanges if exchange.failure is not None}
    return dataclasses.replace(found, sentences=(*sentences, *sorted(failures)))


def _seed_sentence(repeats: bool | None, differs: bool | None) -> str:
    match repeats, differs:
        case True, True:
            return "one seed gave the same answer twice and another seed another: it honours the seed"
        case True, False:
            return "three seeds gave the same answer at temperature 1: it does not honour the seed"
        case False, _:
            return "one seed gave two answers: it does not honour the seed"
    return "whether it honours the seed could not be found out"

"""Likelihoods of texts through an engine's pages: what transformers says of the same weights, chunked, shared and batched."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from roundhouse.build.reference import plain_model
from roundhouse.build.texts import held_out_text
from roundhouse.errors import BenchmarkStoppedError, ServeError
from roundhouse.serve.accuracy.engine_likelihoods import EngineLikelihoods, encode_pair
from roundhouse.serve.accuracy.scorer import Continuation, Prompt

TEXT = held_out_text()[:300]
PAIRS = [
    Continuation(held_out_text()[:120], " and what came then"),
    Continuation(held_out_text()[:120], " nothing"),
    Continuation(held_out_text()[:120], " n"),
    Continuation("Where is the rabbit? ", "Under the hedge."),
    Continuation("", "Once upon a time"),
]


def reference(engine, ids: list[int], arithmetic: torch.dtype = torch.float32) -> torch.Tensor:
    """Log-probabilities [T, V] after each token, by transformers."""
    model = plain_model(engine.checkpoint, engine.manifest.kv_scales, arithmetic)
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().log_softmax(-1)


@pytest.mark.parametrize(("weights", "kv_cache"), [("bf16", "bf16"), ("bf16", "fp8"), ("int4_awq", "fp8")])
def test_every_token_of_a_text_is_as_likely_as_transformers_says(
    build_engine, open_scorer, weights: str, kv_cache: str
) -> None:
    engine = build_engine("llama", weights=weights, kv_cache=kv_cache)
    scorer = open_scorer(engine)
    ((_, tokens),) = scorer.read([TEXT], top=3)
    ids = scorer._tokenizer.encode(TEXT)
    expected = reference(engine, ids)
    wanted, rounded = (
        logprobs[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
        for logprobs in (expected, reference(engine, ids, torch.bfloat16))
    )
    got = torch.tensor([token.logprob for token in tokens[1:]])
    assert tokens[0].logprob is None
    assert len(tokens) == len(ids)
    assert (got - wanted).norm() < 1.5 * (rounded - wanted).norm()
    assert tokens[-1].end == len(TEXT)


def test_in_the_reference_it_is_exactly_that(build_engine, open_scorer) -> None:
    engine = build_engine("llama", weights="bf16", kv_cache="bf16")
    scorer = open_scorer(engine, reference=True)
    ids = scorer._tokenizer.encode(TEXT)
    expected = reference(engine, ids)[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
    ((_, tokens),) = scorer.read([TEXT], top=3)
    assert [token.logprob for token in tokens[1:]] == pytest.approx(expected.tolist(), abs=1e-3)
    assert [next(iter(token.top)) for token in tokens[1:]] == reference(engine, ids)[:-1].argmax(-1).tolist()
    for number, likelihood in scorer.likelihoods(PAIRS):
        context, wanted = encode_pair(scorer._tokenizer, PAIRS[number])
        after = reference(engine, [*context, *wanted])[len(context) - 1 : -1]
        expected = after.gather(-1, torch.tensor(wanted)[:, None])[:, 0]
        assert likelihood.logprob == pytest.approx(float(expected.sum()), abs=1e-3 * len(wanted))
        assert likelihood.is_greedy == bool((after.argmax(-1) == torch.tensor(wanted)).all())


def test_tops_are_log_probabilities_likeliest_first(open_scorer) -> None:
    ((_, tokens),) = open_scorer().read([TEXT], top=512)
    values = list(tokens[5].top.values())
    assert values == sorted(values, reverse=True)
    assert sum(np.exp(values)) == pytest.approx(1, abs=1e-4)
    assert tokens[5].logprob == pytest.approx(tokens[5].top[open_scorer()._tokenizer.encode(TEXT)[5]], abs=1e-4)


def test_the_cache_is_really_read(build_engine, open_scorer) -> None:
    read = {}
    for kv_cache in ("bf16", "fp8"):
        scorer = open_scorer(build_engine("llama", weights="bf16", kv_cache=kv_cache))
        ((_, tokens),) = scorer.read([TEXT], top=0)
        read[kv_cache] = [token.logprob for token in tokens[1:]]
    assert read["bf16"] != read["fp8"]
    assert np.mean(np.abs(np.subtract(read["bf16"], read["fp8"]))) < 0.3


@pytest.mark.parametrize(
    "overrides", [{}, {"max_num_tokens": 7}, {"page_tokens": 32}, {"max_batch_size": 1}, {"kernels": "torch"}]
)
def test_how_prompts_are_packed_changes_next_to_nothing(open_scorer, overrides) -> None:
    found = dict(open_scorer(**overrides).likelihoods(PAIRS))
    alone = {number: next(iter(open_scorer(max_num_tokens=512).likelihoods([pair])))[1] for number, pair in enumerate(PAIRS)}
    for number, likelihood in found.items():
        assert likelihood.tokens == alone[number].tokens
        assert likelihood.logprob == pytest.approx(alone[number].logprob, abs=0.05 * likelihood.tokens)
    assert sorted(found) == list(range(len(PAIRS)))


def test_what_the_engine_says_itself_is_likelier_than_anything_else(open_scorer) -> None:
    scorer = open_scorer()
    context = held_out_text()[:100]
    ((_, said),) = scorer.generate([Prompt(context, 6)])
    found = dict(scorer.likelihoods([Continuation(context, said), Continuation(context, " zebra")]))
    assert found[0].logprob / found[0].tokens > found[1].logprob / found[1].tokens
    assert not found[1].is_greedy


def test_white_space_belongs_to_the_text_after_it(tokenizer) -> None:
    split = encode_pair(tokenizer, Continuation("The rabbit ", "ran"))
    whole = encode_pair(tokenizer, Continuation("The rabbit", " ran"))
    assert split == whole
    assert tokenizer.decode(whole[1]) == " ran"


def test_an_empty_context_is_the_beginning_of_a_document(tokenizer) -> None:
    context, wanted = encode_pair(tokenizer, Continuation("", "Once"))
    assert context == sorted(tokenizer.eos_ids)[:1]
    assert tokenizer.decode(wanted) == "Once"


def test_what_is_too_long_loses_its_beginning(open_scorer) -> None:
    scorer = open_scorer(max_seq_len=64)
    text = held_out_text()[:1200]
    short = scorer._tokenizer.decode(scorer._tokenizer.encode(text)[-40:])
    found = dict(scorer.likelihoods([Continuation(text, " hedge"), Continuation(short, " hedge")]))
    assert found[0].tokens == found[1].tokens
    ((_, likelihood),) = scorer.likelihoods([Continuation("", text)])
    assert likelihood.tokens == 63


def test_a_text_that_does_not_fit_is_refused(open_scorer) -> None:
    with pytest.raises(ServeError, match="cannot be read"):
        list(open_scorer(max_seq_len=64).read([held_out_text()[:1200]], top=0))


def test_nothing_is_held_afterwards(open_scorer) -> None:
    scorer = open_scorer(guard="tags+content")
    list(scorer.generate([Prompt("Down, down, down.", 8) for _ in range(20)]))
    list(scorer.likelihoods(PAIRS))
    scorer._loop.check_integrity()
    assert scorer._loop.pool.free == scorer._loop.pool.pages
    abandoned = scorer.likelihoods(PAIRS)
    next(abandoned)
    abandoned.close()
    asked = scorer.generate([Prompt("Down, down, down.", 200 if number else 1) for number in range(20)])
    next(asked)
    asked.close()
    scorer._loop.check_integrity()
    assert scorer._loop.status().running == 0


def test_a_stale_tag_stops_the_pass(open_scorer) -> None:
    scorer = open_scorer()
    reading = scorer.read([held_out_text()[:300]] * 2, top=0)
    runtime = scorer._likelihoods._prompts._runtime
    forward, steps = runtime.forward, []

    def spoil(prepared):
        steps.append(1)
        if len(steps) == 2:
            scorer._loop.pool.tracker.page_tags[prepared.page_table[0, 0]] += 1
        return forward(prepared)

    runtime.forward = spoil
    try:
        with pytest.raises(ServeError, match="no longer carries this request's tag"):
            list(reading)
    finally:
        runtime.forward = forward


def test_a_stop_ends_what_is_being_asked(open_scorer) -> None:
    stopping = threading.Event()
    scorer = open_scorer(stopping=stopping)
    stopping.set()
    with pytest.raises(BenchmarkStoppedError):
        list(scorer.likelihoods(PAIRS))
    with pytest.raises(BenchmarkStoppedError):
        list(scorer.generate([Prompt("Down", 8)]))


@pytest.mark.parametrize("logit", [np.nan, np.inf, -np.inf])
def test_logits_that_are_no_numbers_make_no_likelihood(tokenizer, logit: float) -> None:
    class Broken:
        def run(self, passages, reduce):
            for number, passage in enumerate(passages):
                rows = len(passage.tokens) - passage.first
                yield number, reduce(number, passage.first, np.full((rows, 512), logit, np.float32))

    likelihoods = EngineLikelihoods(Broken(), tokenizer, room=512)
    with pytest.raises(ServeError, match="computes no numbers"):
        list(likelihoods.score(PAIRS[:2]))
    with pytest.raises(ServeError, match="computes no numbers"):
        list(likelihoods.read([TEXT], top=3))

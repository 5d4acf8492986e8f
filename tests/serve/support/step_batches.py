"""Batches with rows of every kind, without a scheduler: pages may belong to several rows."""

from __future__ import annotations

from hypothesis import strategies as st

from roundhouse.serve.engine.batch import Run, StepBatch, make_batch
from roundhouse.serve.engine.pool import Grant
from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.engine.sampling_state import SamplingState
from roundhouse.serve.engine.sequence import Sequence

PAGE_TOKENS = 8


def run(prompt: int, generated: int, computed: int, count: int, *, first_page: int = 0) -> Run:
    """A sequence of so many tokens, some of which are cached, that runs some more."""
    tokens = list(range(100, 100 + prompt + generated))
    sampling = SamplingParams()
    sequence = Sequence(
        request_id="r",
        tokens=tokens,
        prompt_tokens=prompt,
        max_new=generated + 1,
        sampling=sampling,
        sampler=SamplingState(sampling, tokens, eos_ids=frozenset()),
        text=None,  # type: ignore[arg-type]  # nothing is detokenized
        computed=computed,
        grants=[Grant(first_page + page, page + 1) for page in range(-(-(computed + count) // PAGE_TOKENS))],
    )
    return sequence, count


@st.composite
def batches(draw: st.DrawFn) -> StepBatch:
    """Rows of every kind, in any mixture."""
    runs = []
    for _ in range(draw(st.integers(1, 6))):
        prompt, generated = draw(st.integers(1, 20)), draw(st.integers(0, 8))
        computed = draw(st.integers(0, prompt + generated - 1))
        count = draw(st.integers(1, prompt + generated - computed))
        runs.append(run(prompt, generated, computed, count, first_page=draw(st.integers(0, 50))))
    return make_batch(runs)

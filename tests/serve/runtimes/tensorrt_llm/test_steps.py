"""What each row of a batch is to an engine, and in which order rows run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from step_batches import batches, run

from roundhouse.errors import ServeError
from roundhouse.serve.engine.batch import Run, StepBatch, make_batch
from roundhouse.serve.runtimes.tensorrt_llm.steps import CONTEXT, GENERATION, check_chunks, make_step


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (run(9, 0, 0, 9), CONTEXT),  # a whole prompt
        (run(9, 0, 8, 1), CONTEXT),  # its last token, after a chunk or a found prefix
        (run(1, 0, 0, 1), CONTEXT),  # a prompt of one token
        (run(9, 1, 9, 1), GENERATION),
        (run(9, 6, 14, 1), GENERATION),
        (run(9, 6, 0, 15), CONTEXT),  # computed again after preemption, in one piece
        (run(9, 6, 12, 3), CONTEXT),  # or in parts, beyond the prompt
        (run(9, 6, 8, 1), CONTEXT),  # a part of one token that is the prompt's last
        (run(9, 6, 13, 1), GENERATION),  # a part of one token behind it: nothing tells it from an answer's
    ],
)
def test_only_a_single_token_behind_the_prompt_is_a_generation_step(case: Run, kind: int) -> None:
    assert make_step(make_batch([case]), 1).kinds.tolist() == [kind]


@given(batches())
def test_contexts_come_first_and_rows_of_a_kind_keep_their_order(batch: StepBatch) -> None:
    step = make_step(batch, 1)
    kinds = step.kinds[step.order]
    assert kinds.tolist() == sorted(kinds)
    for kind in (CONTEXT, GENERATION):
        rows = step.order[kinds == kind]
        assert rows.tolist() == sorted(rows)
    assert sorted(step.order) == list(range(len(batch.runs)))


@given(batches())
def test_a_step_says_what_the_batch_says(batch: StepBatch) -> None:
    step = make_step(batch, 7)
    assert step.number == 7
    for row, (sequence, count) in enumerate(batch.runs):
        mine = slice(step.query_start[row], step.query_start[row + 1])
        assert step.token_ids[mine].tolist() == sequence.tokens[sequence.computed :][:count]
        assert step.positions[mine].tolist() == list(range(sequence.computed, sequence.computed + count))
        assert step.context_len[row] == sequence.computed + count
        assert step.prompt_len[row] == sequence.prompt_tokens
    assert [batch.runs[row][0] for row in step.sampled] == batch.sampled
    arrays = [value for value in vars(step).values() if isinstance(value, np.ndarray)]
    assert {str(each.dtype) for each in arrays} == {"int32", "int64"}


@given(batches())
def test_whole_prompts_are_all_that_such_engines_take(batch: StepBatch) -> None:
    step = make_step(batch, 1)
    begun = any(
        sequence.computed and not (count == 1 and sequence.computed >= sequence.prompt_tokens) for sequence, count in batch.runs
    )
    if begun:
        with pytest.raises(ServeError, match="reads prompts whole"):
            check_chunks(step)
    else:
        check_chunks(step)


def test_logits_inside_a_row_are_refused() -> None:
    batch = make_batch([run(9, 0, 0, 9), run(9, 1, 9, 1)])
    with pytest.raises(ServeError, match="logits of each row's last token only"):
        make_step(dataclasses.replace(batch, sample_rows=np.arange(10)), 1)
    beyond = dataclasses.replace(batch, sample_rows=np.array([10]))
    with pytest.raises(ServeError, match="last token only"):
        make_step(beyond, 1)

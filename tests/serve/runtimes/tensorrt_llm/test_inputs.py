"""The tensors of a step: which there are, where they lie and what is in them, against what is recorded of TensorRT-LLM."""

from __future__ import annotations

import pytest
import torch
from engine_configs import geometry
from engine_twins import DeviceTwin, check_as_recorded
from hypothesis import given
from step_batches import batches, run

from roundhouse.build.trtllm.upstream import upstream
from roundhouse.serve.engine.batch import StepBatch, make_batch
from roundhouse.serve.runtimes.tensorrt_llm.geometry import EngineGeometry
from roundhouse.serve.runtimes.tensorrt_llm.inputs import StepTensors
from roundhouse.serve.runtimes.tensorrt_llm.pool import KvPool
from roundhouse.serve.runtimes.tensorrt_llm.ranks import RankPart, rank_parts
from roundhouse.serve.runtimes.tensorrt_llm.steps import Step, make_step

PAGES = 64
MIXED = [run(9, 1, 9, 1, first_page=5), run(20, 0, 8, 12, first_page=11), run(3, 4, 6, 1, first_page=30)]


def tensors_of(built: EngineGeometry, part: RankPart, device: DeviceTwin) -> StepTensors:
    pool = KvPool(built, part, pages=PAGES, device=device)
    sums = torch.zeros(23, dtype=torch.int64) if built.pretrained_config.mapping.tp_size > 1 else None
    return StepTensors(built, part, pool=pool, device=device, workspace=sums)


def named(part: RankPart, *, shared: bool) -> tuple[set[str], set[str]]:
    """Inputs and outputs that the record has for a rank."""
    record = upstream().engine_inputs
    first, last = {"first pipeline rank": part.is_first, "last pipeline rank": part.is_last}, "other pipeline ranks"
    inputs = {
        name
        for name, tensor in record.inputs.items()
        if (first | {"": True, last: not part.is_first})[tensor.on] and (shared or not tensor.when)
    }
    outputs = {name for name, tensor in record.outputs.items() if (first | {last: not part.is_last})[tensor.on]}
    return inputs, outputs


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_every_rank_makes_the_tensors_that_are_recorded_where_they_are_recorded(tp: int, pp: int) -> None:
    """On a device that is none, a tensor's place is plain to see."""
    built, device, record = geometry(tp=tp, pp=pp), DeviceTwin("meta"), upstream().engine_inputs
    step = make_step(make_batch(MIXED), 1)
    for part in rank_parts(built):
        tensors = tensors_of(built, part, device)
        inputs = tensors.inputs(step, device.put(step.page_table))
        outputs = tensors.outputs(step)
        assert (set(inputs), set(outputs)) == named(part, shared=tp > 1)
        check_as_recorded(built, part, inputs, outputs)
        for name, tensor in (inputs | outputs).items():
            place = (record.inputs | record.outputs)[name].place
            assert tensor.device.type == {"host": "cpu", "device": "meta"}[place], name


def test_a_mixed_step_is_packed_as_upstream_packs_one() -> None:
    built = geometry()
    (part,) = rank_parts(built)
    device = DeviceTwin()
    step = make_step(make_batch(MIXED), 1)
    inputs = tensors_of(built, part, device).inputs(step, device.put(step.page_table))
    told = {name: tensor.tolist() for name, tensor in inputs.items()}
    # The prompt's second chunk of twelve tokens, then the tenth token of one answer and the seventh of another.
    assert told["input_ids"] == [*range(108, 120), 109, 106]
    assert told["position_ids"] == [*range(8, 20), 9, 6]
    assert told["last_token_ids"] == [12, 13, 14]
    assert told["host_request_types"] == [0, 1, 1]
    assert told["context_lengths"] == told["host_context_lengths"] == [12, 9, 3]
    assert told["sequence_length"] == [20, 10, 7]
    assert told["host_past_key_value_lengths"] == [20, 9, 6]
    assert [row[0][:3] for row in told["kv_cache_block_offsets"][0]] == [[44, 48, 52], [20, 24, 20], [120, 120, 120]]
    assert [row[1][:3] for row in told["kv_cache_block_offsets"][0]] == [[45, 49, 53], [21, 25, 21], [121, 121, 121]]
    assert told["host_max_attention_window_sizes"] == [128, 128]
    assert told["host_sink_token_length"] == told["host_context_progress"] == [0]
    assert told["host_runtime_perf_knobs"] == [1, *[-1] * 15]
    assert not inputs["cache_indirection"].any()


@given(batches())
def test_offsets_on_host_and_device_are_those_of_the_table_that_was_checked(batch: StepBatch) -> None:
    """What the step itself says of pages is not looked at: the prepared table decides."""
    built = geometry()
    (part,) = rank_parts(built)
    device = DeviceTwin()
    step = make_step(batch, 1)
    checked = device.put(step.page_table)
    checked[checked >= 0] += 7
    inputs = tensors_of(built, part, device).inputs(step, checked)
    on_device, on_host = inputs["kv_cache_block_offsets"], inputs["host_kv_cache_block_offsets"]
    assert torch.equal(on_device, on_host)
    for place, row in enumerate(step.order):
        count = step.page_count[row]
        assert (on_host[0, place, 0, :count] // 4).tolist() == checked[row, :count].tolist()


def test_logits_have_room_for_a_vocabulary_that_ranks_share_evenly() -> None:
    built = geometry(tp=4, model={"vocab_size": 510})
    step: Step = make_step(make_batch(MIXED), 1)
    outputs = tensors_of(built, rank_parts(built)[3], DeviceTwin()).outputs(step)
    assert outputs["logits"].shape == (3, 512)


def test_a_pool_starts_empty_and_reads_back_what_lies_in_a_page() -> None:
    built = geometry()
    pool = KvPool(built, rank_parts(built)[0], pages=3, device=DeviceTwin())
    assert pool.page_bytes == 2 * 2 * 8 * 2 * 32 * 4  # layers, kinds, tokens, heads, elements, bytes
    assert not pool.buffer.any()
    pool.buffer[1, 5] = 9
    assert pool.read(1)[5] == 9
    assert not pool.read(2).any()

"""Block offsets of page tables, against the pool that they count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.errors import ServeError
from roundhouse.serve.runtimes.tensorrt_llm.offsets import block_offsets, check_pool_size


@given(seed=st.integers(0, 2**32 - 1), layers=st.integers(1, 5), rows=st.integers(1, 4), spare=st.integers(0, 3))
def test_an_offset_and_a_layer_lead_to_the_page_s_own_block(seed: int, layers: int, rows: int, spare: int) -> None:
    """A pool whose blocks are numbered through, read as the attention does: the layer's address, then the offset."""
    random = np.random.default_rng(seed)
    pages, columns = 17, 4
    table = np.full((rows, columns), -1, dtype=np.int32)
    counts = random.integers(1, columns + 1, rows)
    for row, count in enumerate(counts):
        table[row, :count] = random.integers(0, pages, count)
    pool = np.arange(pages * layers * 2).reshape(pages, layers, 2)
    offsets = block_offsets(torch.from_numpy(table), layers=layers, columns=columns + spare)
    assert offsets.dtype == torch.int32
    assert offsets.shape == (1, rows, 2, columns + spare)
    for layer in range(layers):
        from_the_layer = pool.reshape(-1)[layer * 2 :]
        for row, count in enumerate(counts):
            for kind in (0, 1):
                found = from_the_layer[offsets[0, row, kind].numpy()]
                assert found[:count].tolist() == pool[table[row, :count], layer, kind].tolist()
                assert set(found[count:].tolist()) <= {pool[table[row, 0], layer, kind]}


def test_a_table_that_is_wider_than_any_sequence_loses_only_unused_cells() -> None:
    table = torch.tensor([[4, 5, -1, -1]], dtype=torch.int32)
    assert block_offsets(table, layers=1, columns=2).tolist() == [[[[8, 10], [9, 11]]]]


def test_a_pool_may_have_as_many_blocks_as_31_bits_count() -> None:
    check_pool_size(2**31 // 160, layers=80)
    with pytest.raises(ServeError, match="13,421,773 KV pages of 80 layers") as refused:
        check_pool_size(2**31 // 160 + 1, layers=80)
    assert refused.value.hint == "At most 13,421,772 are."

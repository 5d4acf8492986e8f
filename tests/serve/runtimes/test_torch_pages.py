"""Pages in torch: where bytes lie, what FP8 rows become, and what a fresh page holds."""

from __future__ import annotations

import pytest
import torch

from roundhouse.build.planner.kv_layout import DTYPE_BYTES, KvDtype, KvField, KvGroup
from roundhouse.errors import ServeError
from roundhouse.serve.runtimes.torch_pages import KvPages

HEADS, DIM, PAGE_TOKENS, PAGES, LAYERS = 2, 8, 4, 5, 3


def make_pages(dtype: KvDtype, **scales: tuple[float, ...]) -> KvPages:
    row_bytes = HEADS * DIM * DTYPE_BYTES[dtype]
    fields = tuple(KvField(name=name, layers=tuple(range(LAYERS)), row_bytes=row_bytes, dtype=dtype) for name in ("k", "v"))
    group = KvGroup(window=None, fields=fields)
    pages = KvPages(group, pages=PAGES, page_tokens=PAGE_TOKENS, heads=HEADS, scales=scales)
    assert pages.buffer.nbytes == PAGES * group.page_bytes(PAGE_TOKENS)
    return pages


@pytest.mark.parametrize(("dtype", "stored"), [("float32", torch.float32), ("bf16", torch.bfloat16)])
def test_rows_come_back_as_written(dtype: KvDtype, stored: torch.dtype) -> None:
    pages = make_pages(dtype)
    written = {}
    slots = torch.randperm(PAGES * PAGE_TOKENS)[:13]
    for field in ("k", "v"):
        for layer in range(LAYERS):
            written[field, layer] = torch.randn(13, HEADS, DIM).to(stored)
            pages.write(field, layer, slots, written[field, layer])
    for (field, layer), rows in written.items():
        read, scale = pages.gather(field, layer, torch.arange(PAGES)[None])
        assert scale == 1
        assert read.dtype == stored
        assert torch.equal(read[0, slots], rows)


def test_a_page_is_one_block_of_fields_layers_tokens_heads() -> None:
    pages = make_pages("float32")
    row = torch.arange(HEADS * DIM, dtype=torch.float32).view(1, HEADS, DIM)
    pages.write("v", 2, torch.tensor([3 * PAGE_TOKENS + 1]), row)
    block = pages.buffer[3].view(torch.float32).view(2, LAYERS, PAGE_TOKENS, HEADS, DIM)
    assert torch.equal(block[1, 2, 1], row[0])
    assert torch.count_nonzero(pages.buffer.view(torch.float32)) == HEADS * DIM - 1


def test_a_table_gathers_pages_in_its_own_order() -> None:
    pages = make_pages("bf16")
    rows = torch.randn(PAGES * PAGE_TOKENS, HEADS, DIM).bfloat16()
    pages.write("k", 0, torch.arange(PAGES * PAGE_TOKENS), rows)
    read, _ = pages.gather("k", 0, torch.tensor([[4, 0], [2, 2]]))
    by_page = rows.view(PAGES, PAGE_TOKENS, HEADS, DIM)
    assert torch.equal(read, torch.stack((torch.cat((by_page[4], by_page[0])), torch.cat((by_page[2], by_page[2])))))


def test_fp8_rows_are_what_torch_stores_and_every_finite_pattern_reads_back() -> None:
    pages = make_pages("fp8", k=(1.0, 0.5, 2.0))
    patterns = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    rows = patterns.nan_to_num(0).view(16, HEADS, DIM)
    slots = torch.arange(16)
    for layer, scale in enumerate((1.0, 0.5, 2.0)):
        pages.write("k", layer, slots, rows * scale)
        read, factor = pages.gather("k", layer, torch.arange(PAGES)[None])
        assert factor == scale
        assert torch.equal(read[0, :16].float(), rows)


def test_fp8_rounds_and_saturates_as_torch_does() -> None:
    pages = make_pages("fp8", k=(0.37,) * LAYERS, v=(1.0,) * LAYERS)
    rows = torch.randn(16, HEADS, DIM) * torch.logspace(-4, 4, 16)[:, None, None]
    pages.write("k", 1, torch.arange(16), rows)
    read, factor = pages.gather("k", 1, torch.arange(PAGES)[None])
    expected = (rows / 0.37).clamp(-448, 448).to(torch.float8_e4m3fn).float()
    assert torch.equal(read[0, :16].float(), expected)
    assert factor == 0.37
    assert expected.abs().max() == 448


def test_a_cleared_page_keeps_nothing_and_its_neighbours_everything() -> None:
    pages = make_pages("bf16")
    rows = torch.full((PAGES * PAGE_TOKENS, HEADS, DIM), float("nan"))
    pages.write("k", 0, torch.arange(PAGES * PAGE_TOKENS), rows)
    pages.clear(torch.tensor([1, 3]))
    read = pages.gather("k", 0, torch.arange(PAGES)[None])[0].view(PAGES, -1)
    assert [bool(page.isnan().all()) for page in read] == [True, False, True, False, True]
    assert not read[[1, 3]].any()


def test_scales_must_match_the_layers() -> None:
    with pytest.raises(ServeError, match="2 k scales for 3 layers"):
        make_pages("fp8", k=(1.0, 1.0))

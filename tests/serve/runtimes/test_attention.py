"""The two attentions of the torch runtime: the same pages bit by bit, outputs that agree, and which one a runtime gets."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from driving import settings

from roundhouse.build.home import Home, default_home, home_of
from roundhouse.build.planner.kv_layout import DTYPE_BYTES, KvDtype, KvField, KvGroup
from roundhouse.errors import ServeError, SetupError
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.runtimes.attention import Attention
from roundhouse.serve.runtimes.kernel_choice import create_attention, find_kernels
from roundhouse.serve.runtimes.native_attention import NativePagedAttention
from roundhouse.serve.runtimes.torch_attention import TorchPagedAttention
from roundhouse.serve.runtimes.torch_batch import TorchBatch
from roundhouse.serve.runtimes.torch_pages import KvPages

HEADS, KV_HEADS, DIM, PAGE_TOKENS, LAYERS = 6, 2, 32, 8, 2
SCALES = {"k": (0.25, 0.3), "v": (1.0, 0.07)}


def make_pages(dtype: KvDtype, pages: int, dim: int = DIM) -> KvPages:
    row_bytes = KV_HEADS * dim * DTYPE_BYTES[dtype]
    fields = tuple(KvField(name=name, layers=tuple(range(LAYERS)), row_bytes=row_bytes, dtype=dtype) for name in "kv")
    group = KvGroup(window=None, fields=fields)
    return KvPages(group, pages=pages, page_tokens=PAGE_TOKENS, heads=KV_HEADS, scales=SCALES if dtype == "fp8" else {})


@pytest.fixture
def native(session_home: Home) -> Any:
    """Makes the native attention of some pages."""

    def make(pages: KvPages) -> NativePagedAttention:
        try:
            return NativePagedAttention(pages, load_kernels(session_home.kernels))
        except SetupError as error:
            pytest.skip(str(error))

    return make


def make_batch(rows: list[tuple[int, int]]) -> TorchBatch:
    """Rows of (tokens that run, tokens after the step), singles first, on pages of their own."""
    columns = [-(-context // PAGE_TOKENS) for _, context in rows]
    table = torch.full((len(rows), max(columns)), -1, dtype=torch.int32)
    for row, count in enumerate(columns):
        table[row, :count] = torch.arange(count) + sum(columns[:row])
    counts = [count for count, _ in rows]
    positions = np.concatenate([np.arange(context - count, context) for count, context in rows])
    return TorchBatch(
        page_table=table,
        page_count=torch.tensor(columns, dtype=torch.int32),
        expected_tags=torch.zeros_like(table),
        token_ids=torch.zeros(1, sum(counts), dtype=torch.int64),
        positions=torch.from_numpy(positions)[None],
        query_start=torch.tensor([0, *np.cumsum(counts)], dtype=torch.int32),
        context_len=torch.tensor([context for _, context in rows], dtype=torch.int32),
        sample_rows=torch.zeros(0, dtype=torch.int64),
    )


def pages_of(batch: TorchBatch) -> int:
    return int(batch.page_table.max()) + 1


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_both_agree_step_by_step(native: Any, dtype: KvDtype) -> None:
    steps = [[(5, 5), (30, 30), (16, 16)], [(1, 6), (1, 31), (9, 25)], [(1, 7), (1, 32), (1, 26)], [(1, 8), (1, 33), (20, 46)]]
    last = make_batch(steps[-1])
    ours, torchs = make_pages(dtype, pages_of(last)), make_pages(dtype, pages_of(last))
    pair = native(ours), TorchPagedAttention(torchs)
    for step in steps:
        batch = make_batch(step)
        batch.page_table.copy_(torch.where(batch.page_table >= 0, last.page_table[:, : batch.page_table.shape[1]], -1))
        tokens = batch.positions.shape[1]
        q, k, v = (torch.randn(tokens, heads, DIM).bfloat16().transpose(0, 1) for heads in (HEADS, KV_HEADS, KV_HEADS))
        got, expected = (attention.begin(batch)(1, q, k, v, 0.2) for attention in pair)
        assert torch.equal(ours.buffer, torchs.buffer)
        assert (got.float() - expected.float()).norm() < 0.01 * expected.float().norm()


def any_rows(batch: TorchBatch) -> list[torch.Tensor]:
    tokens = int(batch.query_start[-1])
    return [torch.randn(tokens, heads, DIM).bfloat16().transpose(0, 1) for heads in (HEADS, KV_HEADS, KV_HEADS)]


@pytest.mark.parametrize("off_by", [-1, 1, PAGE_TOKENS, -PAGE_TOKENS, 100 * PAGE_TOKENS])
@pytest.mark.parametrize("rows", [[(1, 6), (1, 31), (9, 25)], [(20, 20)], [(1, 1), (1, 40)]])
def test_a_wrong_position_leads_to_no_other_page_and_no_other_place(
    native: Any, rows: list[tuple[int, int]], off_by: int
) -> None:
    """Positions are for rotary embeddings: nobody checks them against the pages."""
    right = make_batch(rows)
    wrong = replace(right, positions=right.positions + off_by)
    values = any_rows(right)
    spare = pages_of(right) + 1
    for attention_of in (native, TorchPagedAttention):
        stored, attended = [], []
        for batch in (right, wrong):
            pages = make_pages("bf16", spare)
            pages.buffer.fill_(1)
            attended.append(attention_of(pages).begin(batch)(0, *values, 0.2))
            stored.append(pages.buffer)
        assert torch.equal(*stored)
        assert torch.equal(*attended)
        assert (stored[1][-1] == 1).all(), "the pool's last page is nobody's"


@pytest.mark.parametrize(
    ("rows", "changes"),
    [
        ([(1, 6), (9, 25)], {"context_len": [6, 8]}),  # fewer than its tokens that run now
        ([(1, 6), (9, 25)], {"context_len": [0, 25]}),
        ([(1, 6), (9, 25)], {"query_start": [0, 0, 10]}),  # a row without a token
        ([(1, 6), (9, 25)], {"query_start": [0, 10, 1]}),
        ([(1, 6), (9, 25)], {"query_start": [1, 2, 11]}),
        ([(1, 6), (9, 25)], {"query_start": [0, 1, 9]}),  # a token of nobody's
    ],
)
def test_a_batch_that_contradicts_itself_is_not_run(
    native: Any, rows: list[tuple[int, int]], changes: dict[str, list[int]]
) -> None:
    right = make_batch(rows)
    wrong = replace(right, **{name: torch.tensor(values, dtype=torch.int32) for name, values in changes.items()})
    values = any_rows(right)
    for attention_of in (native, TorchPagedAttention):
        pages = make_pages("bf16", pages_of(right))
        before = pages.buffer.clone()
        with pytest.raises(ServeError, match="contradicts itself"):
            attention_of(pages).begin(wrong)(0, *values, 0.2)
        assert torch.equal(pages.buffer, before)


def store(attention: Attention, values: torch.Tensor) -> None:
    """Store a field's worth of any values as keys, and the same as values, of one long prompt."""
    rows = values.view(-1, KV_HEADS, DIM).transpose(0, 1)
    tokens = rows.shape[1]
    query = torch.zeros(HEADS, tokens, DIM, dtype=values.dtype)
    step = attention.begin(make_batch([(tokens, tokens)]))
    for layer in range(LAYERS):
        step(layer, query, rows, rows, 0.2)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_every_bfloat16_there_is_is_stored_as_torch_stores_it(native: Any, dtype: KvDtype) -> None:
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    pages = len(every) // (KV_HEADS * DIM) // PAGE_TOKENS
    ours, torchs = make_pages(dtype, pages), make_pages(dtype, pages)
    store(native(ours), every)
    store(TorchPagedAttention(torchs), every)
    assert torch.equal(ours.buffer, torchs.buffer)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_float32_rows_are_rounded_as_torch_rounds_them(native: Any, dtype: KvDtype) -> None:
    some = torch.randint(-(2**31), 2**31, (1 << 14,), dtype=torch.int32).view(torch.float32)
    ties = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().sort().values  # and between them, halfway
    near = torch.cat([(ties[1:-3] + ties[2:-2]) / 2 * factor for factor in (0.25, 0.3, 1.0, 0.07)])
    values = torch.cat((near, torch.nextafter(near, near.new_tensor(1e9)), some))
    values = values[~values.isnan()]
    values = values[: len(values) // (KV_HEADS * DIM * PAGE_TOKENS) * (KV_HEADS * DIM * PAGE_TOKENS)]
    pages = len(values) // (KV_HEADS * DIM) // PAGE_TOKENS
    ours, torchs = make_pages(dtype, pages), make_pages(dtype, pages)
    store(native(ours), values)
    store(TorchPagedAttention(torchs), values)
    assert torch.equal(ours.buffer, torchs.buffer)


def test_auto_takes_what_can_be_had_and_says_once_why_it_is_not_native(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with caplog.at_level(logging.WARNING):
        assert find_kernels("auto", tmp_path) is None
    (record,) = caplog.records
    assert record.getMessage() == (
        "attention and linears run in plain torch, which is slow: CXX=no-such-compiler: no such command. "
        "Install g++ or clang++ with OpenMP, or name one in the environment variable CXX."
    )
    with pytest.raises(SetupError, match="no such command"):
        find_kernels("native", tmp_path)
    assert find_kernels("torch", tmp_path) is None
    assert create_attention(make_pages("bf16", 4), "auto", None).name == "torch"


@pytest.mark.parametrize(
    ("dtype", "dim", "reason"), [("bf16", 24, "multiple of 16, not 24"), ("float32", 32, "store no float32 pages")]
)
def test_pages_that_the_kernels_do_not_take_run_in_torch(
    native: Any, session_home: Home, caplog: pytest.LogCaptureFixture, dtype: KvDtype, dim: int, reason: str
) -> None:
    assert native(make_pages("fp8", 4)).name == "native"
    kernels = load_kernels(session_home.kernels)
    assert create_attention(make_pages(dtype, 4, dim), "auto", kernels).name == "torch"
    assert reason in caplog.text
    with pytest.raises(SetupError, match=reason):
        create_attention(make_pages(dtype, 4, dim), "native", kernels)


def test_an_engine_s_kernels_are_kept_in_its_own_home(build_engine, session_home: Home, native: Any, tmp_path: Path) -> None:
    engine = build_engine("llama")
    assert home_of(engine.folder) == Home(session_home.path.resolve())
    assert home_of(tmp_path / "elsewhere" / engine.manifest.id) == default_home()
    native(make_pages("fp8", 4))
    assert create_loop(engine, settings())._runtime.attention.name == "native"
    assert list(session_home.kernels.glob("kernels-*.so"))


def test_settings_choose_and_the_reference_is_always_plain_torch(build_engine, native: Any) -> None:
    native(make_pages("fp8", 4))
    engine = build_engine("llama")
    names = {
        (precision, choice): create_loop(
            engine, settings(precision=precision).model_copy(update={"kernels": choice})
        )._runtime.attention.name
        for precision in ("engine", "reference")
        for choice in ("auto", "native", "torch")
    }
    assert names.pop(("engine", "auto")) == names.pop(("engine", "native")) == "native"
    assert set(names.values()) == {"torch"}

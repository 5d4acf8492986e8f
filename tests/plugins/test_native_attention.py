"""The native attention against float64 on fresh random inputs, and what it promises beyond being right."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_case import Case, Row, random_case

from roundhouse.errors import ServeError, SetupError
from roundhouse.plugins.native_attention import NativeAttention

NAN = float("nan")
DECODE_AND_PREFILL = (Row(1, 0), Row(1, 63), Row(1, 64), Row(1, 200), Row(7, 0), Row(40, 90), Row(70, 0), Row(3, 125))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small geometries of every kind; contexts mostly around the borders of pages and of the kernels' spans of 64."""
    group = draw(st.integers(1, 9))
    page_tokens = draw(st.integers(1, 64))
    border = st.sampled_from([1, page_tokens, 2 * page_tokens, 64, 128])
    before = st.one_of(st.just(0), st.integers(0, 150), st.builds(lambda at, by: max(0, at + by), border, st.integers(-2, 2)))
    count = st.one_of(st.just(1), st.integers(1, 12), st.integers(50, 80))
    return random_case(
        draw(st.integers(0, 2**32)),
        kv_heads=draw(st.integers(1, 4)),
        group=group,
        head_dim=draw(st.sampled_from([16, 32, 48, 64, 80, 128, 256])),
        page_tokens=page_tokens,
        dtype=draw(st.sampled_from(["bf16", "fp8"])),
        tokens=draw(st.sampled_from([torch.float32, torch.bfloat16])),
        rows=tuple(draw(st.lists(st.builds(Row, count, before), min_size=1, max_size=4))),
    )


def mixed(dtype: Any = "fp8", tokens: torch.dtype = torch.bfloat16, seed: int = 1, **changes: Any) -> Case:
    shape: dict[str, Any] = {"kv_heads": 3, "group": 3, "head_dim": 64, "page_tokens": 16, "rows": DECODE_AND_PREFILL}
    return random_case(seed, dtype=dtype, tokens=tokens, **{**shape, **changes})


def assert_close(got: torch.Tensor, expected: np.ndarray[Any, Any]) -> None:
    assert not got.isnan().any()
    relative, absolute = (2**-8, 1e-5) if got.dtype == torch.bfloat16 else (1e-5, 3e-6)
    np.testing.assert_allclose(got.double().numpy(), expected, rtol=relative, atol=absolute)


@given(case=cases())
@settings(max_examples=80)
def test_it_agrees_with_float64(kernels: ctypes.CDLL, case: Case) -> None:
    assert_close(case.run(kernels)[0], case.expected())


@pytest.fixture
def threads() -> Iterator[None]:
    """Lets a test set the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_a_row_is_bitwise_the_same_alone_and_among_others_on_any_number_of_threads(
    kernels: ctypes.CDLL, threads: None, dtype: str
) -> None:
    case = mixed(dtype, rows=(*DECODE_AND_PREFILL, Row(1, 1500), Row(2, 900), Row(300, 300)))
    outputs = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        assert kernels.rh_threads() == count, "the kernels have an OpenMP of their own"
        outputs.append(case.run(kernels)[0])
        for row, (start, end) in enumerate(zip(case.query_start, case.query_start[1:], strict=False)):
            assert torch.equal(case.only(row).run(kernels)[0], outputs[0][start:end])
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])
    assert_close(outputs[0], case.expected())


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_prompt_is_bitwise_the_same_however_it_is_cut(kernels: ctypes.CDLL, dtype: str, chunk: int) -> None:
    whole = mixed(dtype, rows=(Row(150, 70),), page_tokens=5)
    expected, pages = whole.run(kernels)
    buffer, parts = whole.buffer, []
    for start in range(0, 150, chunk):
        count = min(chunk, 150 - start)
        packed = {name: getattr(whole, name)[:, start : start + count] for name in ("query", "key", "value")}
        part, buffer = replace(whole, rows=(Row(count, 70 + start),), buffer=buffer, **packed).run(kernels)
        parts.append(part)
    assert torch.equal(torch.cat(parts), expected)
    assert torch.equal(buffer, pages)


def test_a_step_writes_its_own_rows_and_nothing_else(kernels: ctypes.CDLL) -> None:
    case = mixed("bf16")
    _, buffer = case.run(kernels)
    shape = (len(buffer), 2, Case.LAYERS, case.page_tokens, case.kv_heads, case.head_dim)
    before, after = (each.view(torch.int16).view(shape) for each in (case.buffer, buffer))
    changed = (before != after).flatten(4).any(4)
    own = torch.zeros_like(changed)
    for row, (start, shown) in enumerate(zip(case.query_start.tolist(), case.rows, strict=False)):
        for token in range(shown.count):
            column, at = divmod(shown.before + token, case.page_tokens)
            page = int(case.page_table[row, column])
            own[page, :, Case.LAYER, at] = True
            for field, rows in enumerate((case.key, case.value)):
                assert torch.equal(after[page, field, Case.LAYER, at], rows[:, start + token].view(torch.int16))
    assert torch.equal(changed, own)


@pytest.mark.parametrize("page", [-1, -(2**31), 10**6, 2**31 - 1, "one too many"])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 12), (5, 0), (5, 8)])
def test_a_page_out_of_range_is_named_and_nothing_is_touched(kernels: ctypes.CDLL, page: Any, row: int, column: int) -> None:
    case = mixed()
    table, buffer = case.page_table.clone(), case.buffer.clone()
    table[row, column] = len(buffer) if page == "one too many" else page
    step = NativeAttention(kernels, buffer, case.geometry).step(table, case.query_start, case.context_len)
    with pytest.raises(ServeError, match=f"row {row}, column {column} of the page table is none of the {len(buffer)} pages"):
        step.attend(Case.LAYER, case.query, case.key, case.value, 1.0)
    assert torch.equal(buffer, case.buffer)


@pytest.mark.parametrize("page", [-1, 10**6])
def test_cells_behind_a_row_s_context_are_not_looked_at(kernels: ctypes.CDLL, page: int) -> None:
    case = mixed(rows=(Row(1, 15), Row(1, 40)))
    table = case.page_table.clone()
    table[0, 1:] = page
    assert torch.equal(replace(case, page_table=table).run(kernels)[0], case.run(kernels)[0])


@pytest.mark.parametrize(
    ("starts", "contexts"),
    [
        ([0, 1, 3], [1, 1]),  # more tokens than context
        ([0, 2, 2], [4, 4]),  # a row without tokens
        ([0, 2, 3], [4, 99]),  # more context than columns
        ([0, 4, 3], [4, 4]),  # not ascending
        ([1, 2, 3], [4, 4]),
        ([0, 1, 2], [4, 4]),  # a token of nobody
        ([0, 1, 3], [-4, 4]),
        ([0, 1, 2**31 - 1], [4, 4]),
    ],
)
def test_rows_that_contradict_themselves_are_refused(kernels: ctypes.CDLL, starts: list[int], contexts: list[int]) -> None:
    case = mixed(rows=(Row(1, 3), Row(2, 2)))
    tables = (torch.tensor(each, dtype=torch.int32) for each in (starts, contexts))
    step = NativeAttention(kernels, case.buffer, case.geometry).step(case.page_table, *tables)
    with pytest.raises(ServeError, match="contradicts itself"):
        step.attend(Case.LAYER, case.query, case.key, case.value, 1.0)


def test_an_empty_step_gives_nothing(kernels: ctypes.CDLL) -> None:
    case = mixed(rows=(Row(1, 3),))
    step = NativeAttention(kernels, case.buffer, case.geometry).step(
        torch.empty(0, 0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), torch.empty(0, dtype=torch.int32)
    )
    assert step.attend(Case.LAYER, case.query[:, :0], case.key[:, :0], case.value[:, :0], 1.0).shape == (0, 9, 64)


@pytest.mark.parametrize("bad", [NAN, float("inf")])
def test_a_number_that_is_none_spoils_its_own_head_and_token_only(kernels: ctypes.CDLL, bad: float) -> None:
    case = mixed("bf16", torch.float32)
    clean = case.run(kernels)[0]
    query = case.query.clone()
    query[4, 20, 13] = bad
    got = replace(case, query=query).run(kernels)[0]
    assert got[20, 4].isnan().all()
    got[20, 4] = clean[20, 4]
    assert torch.equal(got, clean)


def test_a_nan_that_is_stored_reaches_every_later_token_of_its_row(kernels: ctypes.CDLL) -> None:
    case = mixed("bf16", rows=(Row(1, 10), Row(9, 0)))
    value = case.value.clone()
    value[1, 5, 3] = NAN  # the second row's token 4
    got = replace(case, value=value).run(kernels)[0]
    assert got.isnan().nonzero().tolist() == [[token, head, 3] for token in range(5, 10) for head in (3, 4, 5)]


def test_scores_that_overflow_leave_finite_neighbours(kernels: ctypes.CDLL) -> None:
    """A key that is infinitely unlike the query weighs nothing, even when it is alone in its span of keys."""
    case = mixed("bf16", torch.float32, kv_heads=1, group=1, rows=(Row(66, 0),))
    key, query = case.key.clone(), torch.ones_like(case.query)
    key[:, :64] = -3e38
    assert_close(replace(case, key=key, query=query).run(kernels)[0][64:], _without(case, query, 64))


def _without(case: Case, query: torch.Tensor, tokens: int) -> np.ndarray[Any, Any]:
    rest = {name: getattr(case, name)[:, tokens:] for name in ("key", "value")}
    count = case.query.shape[1] - tokens
    return replace(case, rows=(Row(count, 0),), query=query[:, tokens:], **rest).expected()


@pytest.mark.parametrize("layout", ["heads first", "tokens first", "every other element"])
def test_strides_are_the_caller_s(kernels: ctypes.CDLL, layout: str) -> None:
    case = mixed()
    laid: dict[str, torch.Tensor] = {}
    for name in ("query", "key", "value"):
        rows = getattr(case, name)
        if layout == "heads first":
            laid[name] = rows.contiguous()
        elif layout == "tokens first":
            laid[name] = torch.cat((rows, rows), dim=0).transpose(0, 1).contiguous().transpose(0, 1)[: len(rows)]
        else:
            laid[name] = rows.repeat_interleave(2, dim=2)[:, :, ::2]
    assert torch.equal(replace(case, **laid).run(kernels)[0], case.run(kernels)[0])


def test_what_does_not_fit_is_refused(kernels: ctypes.CDLL) -> None:
    case = mixed()
    with pytest.raises(SetupError, match="multiple of 16, not 24"):
        NativeAttention(kernels, case.buffer, replace(case.geometry, head_dim=24))
    with pytest.raises(ServeError, match="contiguous uint8 matrix"):
        NativeAttention(kernels, case.buffer.t(), case.geometry)
    attention = NativeAttention(kernels, case.buffer, case.geometry)
    with pytest.raises(ServeError, match="int32 tables"):
        attention.step(case.page_table.long(), case.query_start, case.context_len)
    with pytest.raises(ServeError, match="does not go with"):
        attention.step(case.page_table, case.query_start, case.context_len[1:])
    step = attention.step(case.page_table, case.query_start, case.context_len)
    with pytest.raises(ServeError, match="do not fit pages"):
        step.attend(Case.LAYER, case.query, case.key[:2], case.value, 1.0)
    with pytest.raises(ServeError, match="float32 or bfloat16"):
        step.attend(Case.LAYER, case.query.float(), case.key, case.value, 1.0)
    with pytest.raises(ServeError, match="pages, heads and offsets"):
        step.attend(Case.LAYER, case.query[:7], case.key, case.value, 1.0)
    with pytest.raises(ServeError, match="pages, heads and offsets"):
        NativeAttention(kernels, case.buffer[:, :-1].contiguous(), case.geometry).step(
            case.page_table, case.query_start, case.context_len
        ).attend(2, case.query, case.key, case.value, 1.0)

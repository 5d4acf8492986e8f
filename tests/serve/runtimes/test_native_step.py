"""The whole step in native code: it computes what transformers does, whoever shares it, for models of its kind alone."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from driving import settings
from exact_models import exact_model
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from roundhouse.build.engine import Engine
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.errors import ServeError, SetupError
from roundhouse.plugins.native_step import NativeStep, StepSeconds
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.runtimes.kernel_choice import find_kernels
from roundhouse.serve.runtimes.native_attention import NativePagedAttention
from roundhouse.serve.runtimes.native_step import native_step
from roundhouse.serve.runtimes.torch_model import load_model
from roundhouse.serve.runtimes.torch_pages import KvPages

PAGES, PAGE_TOKENS, POSITIONS = 48, 8, 128
FAMILIES = ["llama", "qwen2", "qwen3", "mistral"]


class Stepper:
    """A model on pages of its own, driven row by row."""

    def __init__(self, engine: Engine, kernels: ctypes.CDLL, *, kv: Any = "bf16", int8: bool = False) -> None:
        shape = engine.manifest.plan.shape
        self.model = load_model(engine.checkpoint, dtype=torch.bfloat16, kernels=kernels, all_native=True)
        (group,) = layout_for(shape, kv).groups
        self.pages = KvPages(group, pages=PAGES, page_tokens=PAGE_TOKENS, heads=shape.kv_heads, scales={})
        pool = NativePagedAttention(self.pages, kernels).pool
        self.step = native_step(self.model, pool, kernels, positions=POSITIONS, int8_inputs=int8)

    def run(self, *rows: tuple[list[int], int, list[int]], seconds: StepSeconds | None = None) -> list[torch.Tensor]:
        """Run some tokens of each row: all its tokens, how many are cached already, and its pages. Logits of the new ones."""
        news = [tokens[cached:] for tokens, cached, _ in rows]
        columns = max(len(pages) for _, _, pages in rows)
        table = torch.tensor([[*pages, *[-1] * (columns - len(pages))] for _, _, pages in rows], dtype=torch.int32)
        starts = torch.tensor([0, *(len(new) for new in news)], dtype=torch.int32).cumsum(0, dtype=torch.int32)
        contexts = torch.tensor([len(tokens) for tokens, _, _ in rows], dtype=torch.int32)
        ids = torch.tensor([token for new in news for token in new])
        logits = self.step.run(ids, table, starts, contexts, torch.arange(len(ids)), seconds=seconds)
        return list(logits.split([len(new) for new in news]))


@pytest.fixture(scope="module")
def steppers(build_engine: Any, kernels: ctypes.CDLL) -> Any:
    """A stepper of an engine, made once."""
    made: dict[Any, Stepper] = {}

    def make(family: str = "llama", weights: str = "int4_awq", **keys: Any) -> Stepper:
        key = (family, weights, *keys.items())
        if key not in made:
            made[key] = Stepper(build_engine(family, weights=weights, kv_cache="bf16"), kernels, **keys)
        return made[key]

    return make


def prompt(length: int, seed: int = 0) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(3, 500) for _ in range(length)]


def divergence(expected: torch.Tensor, got: torch.Tensor) -> float:
    """The mean Kullback-Leibler divergence, in nats a token."""
    wanted, found = expected.log_softmax(-1), got.log_softmax(-1)
    return float((wanted.exp() * (wanted - found)).sum(-1).mean())


@pytest.mark.parametrize("weights", ["int4_awq", "bf16", "fp8"])
@pytest.mark.parametrize("family", FAMILIES)
def test_it_computes_what_transformers_does_in_float32(steppers: Any, build_engine: Any, family: str, weights: str) -> None:
    tokens = prompt(45)
    (got,) = steppers(family, weights).run((tokens, 0, list(range(6))))
    model = exact_model(build_engine(family, weights=weights, kv_cache="bf16"), as_held=True)
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).logits[0]
    assert divergence(expected, got) < 5e-4, "bf16 pages, and input scales that are rounded to bf16, are all that differs"
    best = expected.topk(2).values
    sure = best[:, 0] - best[:, 1] > 0.5
    assert torch.equal(expected.argmax(-1)[sure], got.argmax(-1)[sure])
    assert sure.any()


@pytest.mark.parametrize("family", FAMILIES)
def test_int8_activations_cost_little_and_not_nothing(steppers: Any, build_engine: Any, family: str) -> None:
    tokens = prompt(45)
    model = exact_model(build_engine(family, weights="int4_awq", kv_cache="bf16"))
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).logits[0]
    (exact,), (rounded,) = (steppers(family, **keys).run((tokens, 0, list(range(6)))) for keys in ({}, {"int8": True}))
    assert divergence(expected, exact) < divergence(expected, rounded) < 0.01


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """Prompts, and for each where it is cut into chunks."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    prompts = [prompt(length, draw(st.integers(0, 99))) for length in lengths]
    cuts = [sorted(draw(st.sets(st.integers(1, length - 1), max_size=4))) if length > 1 else [] for length in lengths]
    return prompts, cuts


@pytest.mark.parametrize(("kv", "int8"), [("bf16", False), ("fp8", False), ("fp8", True)])
@given(schedule=schedules(), seed=st.integers(0, 2**16))
@examples(max_examples=25)
def test_the_bits_of_a_row_do_not_depend_on_its_neighbours_or_chunks(
    steppers: Any, kv: str, int8: bool, schedule: tuple[list[list[int]], list[list[int]]], seed: int
) -> None:
    stepper, (prompts, cuts), draw = steppers("qwen3", kv=kv, int8=int8), schedule, random.Random(seed)
    numbers = draw.sample(range(PAGES), PAGES)
    tables = [[numbers.pop() for _ in range(-(-len(tokens) // PAGE_TOKENS))] for tokens in prompts]
    alone = [stepper.run((tokens, 0, table))[0] for tokens, table in zip(prompts, tables, strict=True)]
    chunks = [list(zip([0, *cut], [*cut, len(tokens)], strict=True)) for tokens, cut in zip(prompts, cuts, strict=True)]
    parts: list[list[torch.Tensor]] = [[] for _ in prompts]
    while left := [row for row in range(len(prompts)) if chunks[row]]:
        chosen = draw.sample(left, draw.randint(1, len(left)))
        spans = [chunks[row].pop(0) for row in chosen]
        rows = [(prompts[row][:end], begin, tables[row]) for row, (begin, end) in zip(chosen, spans, strict=True)]
        for row, logits in zip(chosen, stepper.run(*rows), strict=True):
            parts[row].append(logits)
    for whole, some in zip(alone, parts, strict=True):
        assert torch.equal(torch.cat(some), whole)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("int8", [False, True])
def test_the_number_of_threads_changes_nothing(steppers: Any, threads: None, int8: bool) -> None:
    stepper, found = steppers("llama", int8=int8), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(torch.cat(stepper.run((prompt(100), 0, list(range(13))), (prompt(3), 0, [13]))))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_parts_of_the_step_are_clocked(steppers: Any) -> None:
    seconds = StepSeconds()
    steppers().run((prompt(30), 0, list(range(4))), seconds=seconds)
    assert min(seconds.attention, seconds.linears, seconds.lm_head) > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"ids": torch.tensor([5, 512])}, "none of the vocabulary"),
        ({"ids": torch.tensor([5, -1])}, "none of the vocabulary"),
        ({"rows": torch.tensor([2])}, "none of the batch"),
        ({"table": torch.tensor([[PAGES]], dtype=torch.int32)}, f"row 0, column 0 .* none of the {PAGES} pages"),
        ({"contexts": torch.tensor([1], dtype=torch.int32)}, "contradicts itself"),
        ({"contexts": torch.tensor([POSITIONS + 1], dtype=torch.int32)}, "contradicts itself"),
        ({"ids": torch.tensor([5, 6], dtype=torch.int32)}, "int64 vectors"),
    ],
)
def test_a_batch_that_cannot_be_is_refused_and_nothing_written(steppers: Any, change: dict[str, Any], says: str) -> None:
    stepper = steppers()
    before = stepper.pages.buffer.clone()
    batch = {
        "ids": torch.tensor([5, 6]),
        "table": torch.zeros(1, 1 if "contexts" not in change else 32, dtype=torch.int32),
        "starts": torch.tensor([0, 2], dtype=torch.int32),
        "contexts": torch.tensor([2], dtype=torch.int32),
        "rows": torch.tensor([1]),
        **change,
    }
    with pytest.raises(ServeError, match=says):
        stepper.step.run(*batch.values())
    assert torch.equal(stepper.pages.buffer, before)


def test_a_number_that_is_none_spoils_its_own_row_only(steppers: Any) -> None:
    for int8 in (False, True):
        stepper = steppers("mistral", int8=int8)
        rows = ((prompt(9), 0, [0, 1]), (prompt(9, 1), 0, [2, 3]))
        clean = stepper.run(*rows)
        table = stepper.model.get_input_embeddings().weight
        kept = table[rows[0][0][4]].clone()
        try:
            table[rows[0][0][4]] = float("nan")
            spoiled, other = stepper.run(*rows)
        finally:
            table[rows[0][0][4]] = kept
        assert torch.equal(spoiled[:4], clean[0][:4])
        assert not spoiled[4:].isfinite().any()
        assert torch.equal(other, clean[1])


@pytest.mark.parametrize(
    ("family", "changes", "says"),
    [
        ("olmo2", {}, "runs LlamaForCausalLM, .*, not Olmo2ForCausalLM"),
        ("llama", {"hidden_act": "gelu"}, "computes silu, not gelu"),
        ("llama", {"intermediate_size": 136}, "multiples of 16, not 128 and 136"),
        ("llama", {}, "torch multiplies q_proj"),
    ],
)
def test_models_of_another_kind_are_refused_with_the_reason(
    kernels: ctypes.CDLL, steppers: Any, family: str, changes: dict[str, Any], says: str
) -> None:
    sizes = {"vocab_size": 64, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **{**sizes, "pad_token_id": 0, **changes}))
    pool = NativePagedAttention(steppers().pages, kernels).pool
    with pytest.raises(SetupError, match=says):
        native_step(model, pool, kernels, positions=64, int8_inputs=False)


def test_groups_that_int8_does_not_take_are_refused(build_engine: Any, kernels: ctypes.CDLL) -> None:
    engine = build_engine("llama", weights="int4_awq", group_size=16, kv_cache="bf16")
    with pytest.raises(SetupError, match="q_proj: int8 activations need groups of a multiple of 32, not 16"):
        Stepper(engine, kernels, int8=True)


def test_an_engine_runs_it_where_it_is_asked_for(build_engine: Any, kernels: ctypes.CDLL) -> None:
    engine = build_engine("llama")
    step = {
        choice: create_loop(engine, settings().model_copy(update={"kernels": choice}))._runtime.step
        for choice in ("auto", "native", "torch", "step")
    }
    assert isinstance(step.pop("step"), NativeStep)
    assert set(step.values()) == {None}
    assert create_loop(engine, settings(precision="reference").model_copy(update={"kernels": "step"}))._runtime.step is None


def test_it_is_refused_where_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SetupError, match="no such command"):
        find_kernels("step", tmp_path)

"""Real engines on the torch runtime: same tokens as transformers, bytes as planned, one request's fault its own."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from driving import (
    MAX_SEQ_LEN,
    PAGE_TOKENS,
    drain,
    failure,
    random_prompt,
    request,
    serve,
    settings,
    tokens,
)
from exact_models import exact_model
from faults import FAULTS, Fault, serve_with_newcomer
from safetensors.torch import load_file, save_file

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.kv_scales import KvScaleReport
from roundhouse.build.reference import plain_model
from roundhouse.errors import ModelError, SetupError
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.runtimes.torch_model import load_model
from roundhouse.serve.runtimes.torch_runtime import TorchRuntime
from roundhouse.serve.settings import EngineSettings, Overrides

ENGINES = [(family, "int4_awq") for family in ("llama", "qwen2", "qwen3", "mistral")] + [("llama", "bf16"), ("qwen2", "fp8")]
"""Every family, and every kind of weights."""
PROMPTS = {f"p{length}": random_prompt(length, seed=length) for length in (1, 5, 8, 13, 40, 90)}
NEW = 24
UNUSED_SCALES = KvScaleReport(state="not used")


@pytest.fixture(params=["step", "native", "torch"])
def attention(request: pytest.FixtureRequest, session_home: Home) -> str:
    """What an engine may run with: the native step, or transformers' model with native kernels or without."""
    if request.param != "torch":
        try:
            load_kernels(session_home.kernels)
        except SetupError as error:
            pytest.skip(str(error))
    return request.param


def chosen(attention: str, **keys: Any) -> EngineSettings:
    return EngineSettings.model_validate(settings(**keys).model_dump() | {"kernels": attention})


def generate(model: Any, prompt: list[int], new: int = NEW) -> list[int]:
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return out[0, len(prompt) :].tolist()


def requests() -> list[Any]:
    return [request(name, prompt, max_tokens=NEW) for name, prompt in PROMPTS.items()]


@pytest.mark.parametrize(("family", "weights"), ENGINES)
def test_reference_tokens_equal_generate_alone_and_in_a_mixed_batch(build_engine, family: str, weights: str) -> None:
    engine = build_engine(family, weights=weights, kv_cache="bf16")
    model = exact_model(engine)
    expected = {name: generate(model, prompt) for name, prompt in PROMPTS.items()}
    # A budget of 48 cuts the longer prompts into chunks that share steps with decoding rows.
    loop = create_loop(engine, settings(precision="reference", max_num_tokens=48))
    assert {name: tokens(outputs) for name, outputs in serve(loop, *requests()).items()} == expected
    for each in requests()[:4]:
        assert tokens(serve(loop, each)[each.request_id]) == expected[each.request_id]


@pytest.mark.parametrize("budget", [1, 7, 16, 128])
def test_reference_tokens_do_not_depend_on_chunks(build_engine, budget: int) -> None:
    engine = build_engine("llama", weights="bf16", kv_cache="bf16")
    expected = serve(create_loop(engine, settings(precision="reference")), *requests())
    loop = create_loop(engine, settings(precision="reference", max_num_tokens=budget, max_batch_size=3))
    got = serve(loop, *requests())
    assert {name: tokens(outputs) for name, outputs in got.items()} == {n: tokens(o) for n, o in expected.items()}


@pytest.mark.parametrize("kv_cache", ["bf16", "fp8"])
@pytest.mark.parametrize(("family", "weights"), ENGINES)
def test_logits_are_as_close_to_float32_as_transformers_in_bf16(
    build_engine, attention: str, family: str, weights: str, kv_cache: str
) -> None:
    engine = build_engine(family, weights=weights, kv_cache=kv_cache)
    prompt = random_prompt(64, seed=9)
    with torch.no_grad():
        exact, bf16 = (
            plain_model(engine.checkpoint, engine.manifest.kv_scales, dtype)(torch.tensor([prompt])).logits[0].float()
            for dtype in (torch.float32, torch.bfloat16)
        )
    got = all_logits(create_loop(engine, chosen(attention)), prompt)
    assert (got - exact).norm() < 1.5 * (bf16 - exact).norm()


def all_logits(loop: EngineLoop, prompt: list[int]) -> torch.Tensor:
    """Logits at every position of a prompt that runs in one step."""
    loop.submit(request("r", prompt))
    batch, _ = loop._scheduler.schedule()
    every_position = dataclasses.replace(batch, sample_rows=np.arange(len(prompt)))
    return torch.from_numpy(loop._runtime.forward(loop._runtime.prepare(every_position)))


@pytest.mark.parametrize(("family", "weights"), ENGINES)
def test_weights_and_pages_take_the_planned_bytes(build_engine, family: str, weights: str) -> None:
    engine = build_engine(family, weights=weights)
    chosen = EngineSettings.for_engine(engine, Overrides(kv_cache_tokens=512), free_memory=1 << 30)
    loop = create_loop(engine, chosen)
    runtime = loop._runtime
    assert isinstance(runtime, TorchRuntime)
    assert runtime.weight_bytes == engine.manifest.plan.weight_bytes_per_gpu
    assert runtime.pages.buffer.nbytes == chosen.kv.bytes == 512 * engine.manifest.plan.kv_bytes_per_token


def test_the_reference_counts_its_own_pages(build_engine) -> None:
    engine = build_engine("llama")
    budget = Overrides(kv_cache_bytes=1 << 20)
    chosen = EngineSettings.for_engine(engine, budget, free_memory=1 << 30, precision="reference")
    assert create_loop(engine, chosen)._runtime.pages.buffer.nbytes == chosen.kv.bytes == 1 << 20


def test_fp8_pages_hold_twice_the_tokens_of_bf16_pages_in_one_byte_budget(build_engine) -> None:
    held = {}
    for kv_cache in ("bf16", "fp8"):
        engine = build_engine("llama", weights="bf16", kv_cache=kv_cache)
        budget = Overrides(kv_cache_bytes=1 << 18, page_tokens=PAGE_TOKENS, max_batch_size=64)
        chosen = EngineSettings.for_engine(engine, budget, free_memory=1 << 30)
        loop = create_loop(engine, chosen)
        assert loop._runtime.pages.buffer.nbytes == 1 << 18
        for number in range(chosen.kv.pages):
            loop.submit(request(f"r{number}", random_prompt(PAGE_TOKENS), max_tokens=PAGE_TOKENS + 1))
        for _ in range(PAGE_TOKENS):
            loop.step()
        assert loop.pool.free == 0
        assert loop.status().waiting
        # The step that fills the last slots ends the first wave: every page was full of its tokens.
        finished = [output for output in loop.step() if output.finish_reason == "length"]
        held[kv_cache] = sum(output.prompt_tokens + output.completion_tokens - 1 for output in finished)
        loop.check_integrity()
    assert held["fp8"] == 2 * held["bf16"] == 1024


def test_a_stale_tag_ends_that_request_and_changes_no_neighbour(build_engine, attention: str) -> None:
    loop = create_loop(build_engine("llama"), chosen(attention))
    asked = {name: request(name, random_prompt(20, seed=seed), max_tokens=12) for seed, name in enumerate("abc")}
    expected = serve(loop, *asked.values())
    for each in asked.values():
        loop.submit(each)
    outputs = loop.step() + loop.step()
    loop.pool.tracker.page_tags[loop._live["b"].answers[0].grants[1].page] += 1
    outputs += drain(loop)
    by_name = {name: [output for output in outputs if output.request_id == name] for name in asked}
    assert failure(by_name["b"]).code == "page_tag_mismatch"
    assert by_name["a"] == expected["a"]
    assert by_name["c"] == expected["c"]
    assert loop.status().pages_quarantined == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_pool_s_books_changes_no_neighbour(build_engine, attention: str, fault: str) -> None:
    assert_only_the_victim_ends(build_engine("llama"), chosen(attention), FAULTS[fault], "page_tag_mismatch")


@pytest.mark.parametrize("guard", ["tags", "tags+content"])
@pytest.mark.parametrize("fault", FAULTS)
def test_in_the_reference_nor_does_it(build_engine, guard: str, fault: str) -> None:
    engine = build_engine("llama", weights="bf16", kv_cache="bf16")
    assert_only_the_victim_ends(engine, settings(precision="reference", guard=guard), FAULTS[fault], "page_tag_mismatch")


@pytest.mark.parametrize("spoil", ["rows swapped", "stray byte", "late write"])
@pytest.mark.parametrize("run", ["native", "torch", "reference"])
def test_a_page_that_changed_ends_its_holder_and_changes_no_neighbour(
    build_engine, request: pytest.FixtureRequest, run: str, spoil: str
) -> None:
    if run == "native":
        request.getfixturevalue("kernels")
    how = settings(guard="tags+content", precision="reference") if run == "reference" else chosen(run, guard="tags+content")

    def damage(loop: EngineLoop, column: int) -> None:
        held = {name: loop._live[name].answers[0].grants[column].page for name in ("victim", "a")}
        content, other = (loop._runtime.page_bytes(held[name]) for name in ("victim", "a"))
        rows = content.reshape(2 * 2 * PAGE_TOKENS, -1)  # keys and values of two layers
        if spoil == "rows swapped":
            assert (rows[0] != rows[1]).any()
            rows[[0, 1]] = rows[[1, 0]]
        elif spoil == "stray byte":
            rows[-1, -1] ^= 1
        else:  # what another request's step would have written there
            rows[3] = other.reshape(rows.shape)[3]

    assert_only_the_victim_ends(build_engine("llama"), how, damage, "page_content_mismatch")


def assert_only_the_victim_ends(engine: Engine, how: EngineSettings, damage: Fault, code: str) -> None:
    """Serve without the fault and with it: the victim says nothing more, the others say the same."""
    expected = serve_with_newcomer(create_loop(engine, how), lambda: None)
    loop = create_loop(engine, how)
    outputs = serve_with_newcomer(loop, lambda: damage(loop, 1))
    victim = outputs.pop("victim")
    assert failure(victim).code == code
    assert victim[:-1] == expected["victim"][:2]
    assert len(outputs) == 3
    assert outputs == {name: expected[name] for name in outputs}


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("cell", ["a neighbour's page", "no such page", -1])
def test_a_table_damaged_before_the_guard_is_neither_read_nor_written(
    build_engine, attention: str, monkeypatch: pytest.MonkeyPatch, column: int, cell: object
) -> None:
    """The table is damaged in place after it was prepared: what attention uses must be what the guard sees."""
    loop = create_loop(build_engine("llama"), chosen(attention))
    runtime: Any = loop._runtime
    asked = {name: request(name, random_prompt(20, seed=seed), max_tokens=12) for seed, name in enumerate("abc")}
    expected = serve(loop, *asked.values())
    prepare, damages = runtime.prepare, []

    def prepare_and_damage(batch: Any) -> Any:
        prepared = prepare(batch)
        rows = [row for row, (sequence, _) in enumerate(batch.runs) if sequence.request_id == "b"]
        if rows and loop._steps == 2:
            neighbour = loop._live["a"].answers[0].grants[column].page
            prepared.page_table[rows[0], column] = {"a neighbour's page": neighbour, "no such page": 999}.get(cell, cell)
            damages.append(cell)
        return prepared

    for each in asked.values():
        loop.submit(each)
    loop._steps = 0
    monkeypatch.setattr(runtime, "prepare", prepare_and_damage)
    outputs = drain(loop)
    by_name = {name: [output for output in outputs if output.request_id == name] for name in asked}
    assert len(damages) == 1
    assert failure(by_name["b"]).code == "page_tag_mismatch"
    assert by_name["a"] == expected["a"]
    assert by_name["c"] == expected["c"]


def test_attention_takes_pages_from_the_checked_table_only(build_engine, attention: str) -> None:
    """Swapping two pages in the prepared table moves what the step writes and reads: there is no earlier copy."""
    loop = create_loop(build_engine("llama"), chosen(attention))
    runtime: Any = loop._runtime
    for length in (1, 20):
        loop.submit(request(str(length), random_prompt(length, seed=length)))
    batch, _ = loop._scheduler.schedule()
    written = {}
    for shift in (0, 30):
        runtime.pages.buffer.zero_()
        prepared = runtime.prepare(batch)
        prepared.page_table[prepared.page_table >= 0] += shift
        logits = runtime.forward(prepared)
        written[shift] = (runtime.pages.buffer.any(dim=1).nonzero().flatten() - shift).tolist(), logits.tolist()
    assert written[0] == written[30]
    assert len(written[0][0]) == 4


def test_every_level_of_the_guard_gives_the_same_tokens(build_engine, attention: str) -> None:
    """With pages that are found again, chunks, and a pool so small that requests are preempted; nothing is a false alarm."""
    engine = build_engine("llama")
    served = {}
    for guard in ("off", "tags", "tags+content"):
        loop = create_loop(engine, chosen(attention, guard=guard, pages=17, max_num_tokens=48, prefix_reuse=True))
        served[guard] = [serve(loop, *requests()), serve(loop, requests()[4]), serve(loop, requests()[4])]
        status = loop.status()
        assert status.preemptions > 0
        assert status.cached_tokens > 0
        assert (status.content_checks > 0) == (guard == "tags+content")
    assert served["off"] == served["tags"] == served["tags+content"]


@pytest.mark.parametrize("kv_cache", ["bf16", "fp8"])
def test_what_a_page_held_before_reaches_nobody(build_engine, attention: str, kv_cache: str) -> None:
    """Pages full of NaN, as a broken request would leave them, do not change who gets them next."""
    loop = create_loop(build_engine("llama", weights="bf16", kv_cache=kv_cache), chosen(attention, pages=64))
    expected = serve(loop, *requests()[:5])
    loop._runtime.pages.buffer.fill_(0xFF)
    assert serve(loop, *requests()[:5]) == expected


def test_too_long_prompts_and_cancels_leave_the_neighbours_alone(build_engine) -> None:
    loop = create_loop(build_engine("qwen3"), settings())
    good = request("good", PROMPTS["p13"], max_tokens=NEW)
    expected = tokens(serve(loop, good)["good"])
    loop.submit(good)
    loop.submit(request("long", random_prompt(MAX_SEQ_LEN)))
    loop.submit(request("gone", PROMPTS["p40"], max_tokens=50))
    outputs = loop.step() + loop.step()
    loop.cancel("gone")
    outputs += drain(loop)
    assert tokens([output for output in outputs if output.request_id == "good"]) == expected
    assert loop.status().pages_free == 64


def test_a_prompt_may_be_text(build_engine, tokenizer) -> None:
    loop = create_loop(build_engine("llama"), settings())
    outputs = serve(loop, request("text", "The engine house"), request("ids", tokenizer.encode("The engine house")))
    assert tokens(outputs["text"]) == tokens(outputs["ids"])
    assert outputs["text"][0].prompt_tokens == len(tokenizer.encode("The engine house"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t.pop("model.layers.1.mlp.up_proj.weight"), "model.layers.1.mlp.up_proj.weight is missing"),
        (lambda t: t.update({"model.layers.2.extra": torch.zeros(3)}), "model.layers.2.extra has no place in the model"),
        (lambda t: t.update({"model.norm.weight": torch.ones(3)}), "does not fit its config.json"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_by_name(tiny_model, tmp_path: Path, damage: Any, message: str) -> None:
    folder = shutil.copytree(tiny_model("mistral"), tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    damage(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=message):
        load_model(folder, dtype=torch.bfloat16)

"""An engine folder as it is loaded and served, with twins of what it runs on."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from driving import drain, random_prompt, request, settings, tokens
from engine_configs import compiled_engine
from engine_twins import DeviceTwin, LinkTwin, Meeting, SessionTwin, WorkspaceTwin, float32_model

from roundhouse.build.engine import Engine
from roundhouse.errors import EngineError, SetupError, UsageError
from roundhouse.plugins.torch_guard import torch_page_guard
from roundhouse.serve.drill.drill import cases_of, run_drill
from roundhouse.serve.drill.engine_ground import engine_grounds
from roundhouse.serve.drill.levels import Level
from roundhouse.serve.engine.request import Output
from roundhouse.serve.runtimes import create_loop, create_runtime, require_runnable
from roundhouse.serve.runtimes.tensorrt_llm import load, upstream_host
from roundhouse.serve.runtimes.tensorrt_llm.fitting import engine_geometry
from roundhouse.serve.runtimes.tensorrt_llm.load import follow_engine

PAGES = 64


class HostTwin:
    """Loads twins; ``engine`` are the bytes that a rank's session was made of."""

    def __init__(self, engine: Engine, model: Any, pages: int = PAGES, links: list[LinkTwin] | None = None) -> None:
        self._geometry = engine_geometry(engine)
        self._model = model
        self._pages = pages
        self._links = links or []
        self._sums = Meeting(self._geometry.world_size)
        self.loaded: dict[int, bytes] = {}
        self.here = threading.local()

    def require(self, compiled: Any) -> None:
        assert compiled.versions["tensorrt_llm"] == "1.2.1"

    def link(self, size: int) -> LinkTwin:
        assert size == len(self._links)
        return self._links[getattr(self.here, "rank", 0)]

    def device(self, rank: int) -> DeviceTwin:
        return DeviceTwin()

    def session(self, engine: bytes, part: Any) -> SessionTwin:
        self.loaded[part.rank] = engine
        return SessionTwin(self._geometry, part, self._model, self._pages, self._sums)

    def guard(self, built: Any, folder: Path) -> Any:
        return torch_page_guard

    def workspace(self, geometry: Any, part: Any) -> WorkspaceTwin | None:
        return WorkspaceTwin() if geometry.pretrained_config.mapping.tp_size > 1 else None


@pytest.fixture(scope="module")
def torch_engine(build_engine: Any) -> Engine:
    return build_engine("llama", weights="bf16", kv_cache="bf16")


@pytest.fixture(scope="module")
def model(torch_engine: Engine) -> Any:
    return float32_model(torch_engine.checkpoint)


def with_ranks(engine: Engine) -> Engine:
    for rank in range(engine_geometry(engine).world_size):
        (engine.folder / "compiled" / f"rank{rank}.engine").write_bytes(f"rank {rank}".encode())
    return engine


def served(engine: Engine, **keys: Any) -> dict[str, list[int]]:
    loop = create_loop(engine, settings(**keys))
    for number in range(3):
        loop.submit(request(str(number), random_prompt(11 + number, seed=number), max_tokens=12))
    outputs: list[Output] = drain(loop)
    return {name: tokens([each for each in outputs if each.request_id == name]) for name in "012"}


@pytest.mark.parametrize("guard", ["off", "tags"])
def test_an_engine_folder_is_served_by_the_same_loop(
    torch_engine: Engine, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    engine = with_ranks(compiled_engine(torch_engine, tmp_path))
    host = HostTwin(engine, model)
    monkeypatch.setattr(load, "_this_host", lambda: host)
    assert served(engine, guard=guard) == served(torch_engine, precision="reference")
    assert host.loaded == {0: b"rank 0"}


def test_every_rank_loads_its_own_engine_and_follows_the_first(
    torch_engine: Engine, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = with_ranks(compiled_engine(torch_engine, tmp_path, tp=2, pp=2))
    meeting, mail = Meeting(4), defaultdict(queue.Queue)
    host = HostTwin(engine, model, links=[LinkTwin(meeting, mail, rank) for rank in range(4)])
    monkeypatch.setattr(load, "_this_host", lambda: host)

    def other(rank: int) -> None:
        host.here.rank = rank
        follow_engine(engine)

    threads = [threading.Thread(target=other, args=(rank,)) for rank in (1, 2, 3)]
    for thread in threads:
        thread.start()
    runtime: Any = create_runtime(engine, settings())
    assert host.loaded == {rank: f"rank {rank}".encode() for rank in range(4)}
    runtime.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_rank_whose_file_is_gone_is_named(torch_engine: Engine, tmp_path: Path) -> None:
    """Before anything is asked of the machine."""
    engine = with_ranks(compiled_engine(torch_engine, tmp_path, tp=2))
    (tmp_path / "compiled" / "rank1.engine").unlink()
    with pytest.raises(EngineError, match=r"lacks rank1\.engine"):
        require_runnable(engine)


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (None, "TensorRT-LLM is not installed in this environment"),
        ("1.3.0rc21", r"has no engine path .* use the target trtllm-pytorch"),
        ("0.9.0", "older than 1.2.0"),
    ],
)
def test_a_machine_without_engines_is_refused_before_anything_is_started(
    torch_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, says: str
) -> None:
    monkeypatch.setattr(upstream_host, "installed_version", lambda: version)
    with pytest.raises(SetupError, match=says):
        require_runnable(with_ranks(compiled_engine(torch_engine, tmp_path)))


def test_an_engine_for_other_software_and_another_gpu_says_all_of_it(
    torch_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_host, "installed_version", lambda: "1.2.0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    engine = with_ranks(compiled_engine(torch_engine, tmp_path, tp=2))
    with pytest.raises(EngineError) as refused:
        require_runnable(engine)
    for part in ("built by TensorRT-LLM 1.2.1, and here is 1.2.0", "built for SM 9.0", "2 ranks, and here are 1 GPUs"):
        assert part in refused.value.message


def test_the_torch_target_asks_nothing_of_the_machine(torch_engine: Engine) -> None:
    require_runnable(torch_engine)


def test_engines_of_upstream_s_own_loop_are_not_loaded_here(torch_engine: Engine) -> None:
    recipe = torch_engine.manifest.recipe.model_copy(update={"target": "trtllm-pytorch"})
    engine = Engine(torch_engine.folder, torch_engine.manifest.model_copy(update={"recipe": recipe}))
    with pytest.raises(UsageError, match="for the trtllm-pytorch target, whose own loop runs it") as refused:
        create_runtime(engine, settings())
    assert "trtllm-serve" in str(refused.value.hint)


def test_the_drill_finds_every_fault_around_a_compiled_engine(
    torch_engine: Engine, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    page_tokens = torch_engine.manifest.recipe.page_tokens
    limits = {"max_num_tokens": 8 * page_tokens, "max_seq_len": 256, "max_input_len": 256}
    engine = with_ranks(compiled_engine(torch_engine, tmp_path, build=limits, plugins={"tokens_per_block": page_tokens}))
    monkeypatch.setattr(load, "_this_host", lambda: HostTwin(engine, model, pages=24))
    monkeypatch.setattr("roundhouse.serve.drill.engine_ground.free_memory_for", lambda _: 1 << 30)
    kinds = [None, "freed_early", "rows_permuted"]
    report = run_drill(engine_grounds(engine), cases_of([Level("tags+content")], kinds), seed=3, steps=60, engine="e")
    assert report.passed
    for kind in report.kinds:
        assert kind.effective == kind.detected
        assert (kind.effective > 0) is (kind.fault is not None)

from __future__ import annotations

from pathlib import Path

from roundhouse.build.compile import compiler_for
from roundhouse.build.compiled import Compilation, Compiled, CompiledGuard
from roundhouse.build.engine import Engine, read_manifest, write_manifest
from roundhouse.build.events import Event, Reporter, StageFinished


def test_torch_compiles_nothing_and_says_so(tiny_engine: Engine) -> None:
    seen: list[Event] = []
    report = Reporter(seen.append)
    manifest = tiny_engine.manifest
    with report.stage("compile", "") as stage:
        assert compiler_for(manifest.plan)(Compilation(manifest.plan, tiny_engine.folder, stage, report)) is None
    assert [event.result for event in seen if isinstance(event, StageFinished)] == [
        "nothing to compile: the torch target runs the checkpoint"
    ]
    assert manifest.compiled is None


def test_a_manifest_keeps_what_was_compiled(tiny_engine: Engine, tmp_path: Path) -> None:
    guard = CompiledGuard(file="guard.engine", plugin="embedded", rows=8, columns=16, pages=128)
    compiled = Compiled(
        versions={"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1"},
        compute_capability="9.0",
        tensor_parallel=4,
        pipeline_parallel=2,
        guard=guard,
        options={"plugin_config": {"gemm_plugin": "auto"}},
    )
    assert compiled.world_size == 8
    write_manifest(tmp_path, tiny_engine.manifest.model_copy(update={"compiled": compiled}))
    assert read_manifest(tmp_path).compiled == compiled


def test_a_manifest_from_before_there_were_compilers_is_read(tiny_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "engine.json").write_text(tiny_engine.manifest.model_dump_json(exclude={"compiled"}))
    assert read_manifest(tmp_path) == tiny_engine.manifest

from __future__ import annotations

from pathlib import Path, PurePosixPath
from string import Template

import pytest
import yaml
from exported_engines import exported
from google.protobuf import text_format
from llm_engines import llm_engine
from tritonclient.grpc import model_config_pb2

from roundhouse.build.engine import Engine
from roundhouse.errors import ServeError, UsageError
from roundhouse.serve.export.triton import export_triton, export_trtllm_serve, place_of
from roundhouse.serve.settings import Overrides
from roundhouse.serve.triton import repository
from roundhouse.serve.trtllm_arguments import LlmPlace, serving_arguments

THERE = LlmPlace(PurePosixPath("/models/e1"))


@pytest.fixture
def engine(tiny_engine: Engine, tmp_path: Path) -> Engine:
    """A tiny engine for the target `trtllm-pytorch`."""
    return llm_engine(tiny_engine, tmp_path / "engine")


def test_an_engine_for_pytorch_becomes_upstreams_model(engine: Engine, tmp_path: Path) -> None:
    done = export_triton(engine, tmp_path / "models", THERE)
    assert (done.name, done.guard) == (engine.manifest.name, "tags")
    given = yaml.safe_load((done.written / "1" / "model.yaml").read_text())
    assert given.pop("triton_config")["decoupled"]
    assert given == serving_arguments(engine, THERE, "tags")
    assert done.start == f"tritonserver --model-repository={(tmp_path / 'models').resolve()}"
    assert any("GET /ready on 0.0.0.0:8003" in note for note in done.notes)


def test_without_a_page_check_nothing_is_said_of_it(engine: Engine, tmp_path: Path) -> None:
    done = export_triton(engine, tmp_path / "models", THERE, overrides=Overrides(guard="off"), name="plain")
    assert "roundhouse" not in (done.written / "1" / "model.yaml").read_text().partition("\n")[2]
    assert done.notes == ("start it without --disable-auto-complete-config: through it upstream's model says that it streams",)
    assert done.written.name == "plain"


def test_an_engine_for_torch_becomes_the_model_of_serve(tiny_engine: Engine, tmp_path: Path) -> None:
    done = export_triton(tiny_engine, tmp_path / "models", THERE, overrides=Overrides(guard="off"), python="/venv/bin/python")
    config = text_format.Parse((done.written / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    assert {key: value.string_value for key, value in config.parameters.items()} == {
        "engine": "/models/e1",
        "python": "/venv/bin/python",
        "overrides": '{"guard":"off"}',
    }


def test_a_cache_that_the_planned_machine_has_no_room_for_is_refused(
    engine: Engine, tiny_engine: Engine, tmp_path: Path
) -> None:
    for each in (engine, tiny_engine):
        with pytest.raises(UsageError, match=r"from kv_cache_bytes\) exceed the [\d,]+ B of free memory"):
            export_triton(each, tmp_path / "models", THERE, overrides=Overrides(kv_cache_bytes=10**15))
    with pytest.raises(UsageError, match="from kv_cache_tokens"):
        export_trtllm_serve(engine, tmp_path, THERE, overrides=Overrides(kv_cache_tokens=10**12))
    assert not (tmp_path / "models").exists()


def test_what_is_no_folder_is_named(tmp_path: Path) -> None:
    engine, place = exported("qwen3-30b-a3b", tmp_path / "engines"), tmp_path / "file"
    place.write_text("kept")
    for folder in (place, place / "models"):
        with pytest.raises(UsageError, match="file is no folder"):
            export_triton(engine, folder, THERE)
        with pytest.raises(UsageError, match="file is no folder"):
            export_trtllm_serve(engine, folder, THERE)


def test_a_model_that_does_not_pass_its_lint_leaves_nothing_behind(
    tiny_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models" / "other").mkdir(parents=True)
    monkeypatch.setattr(repository, "_CONFIG", Template("name: $name\nbackend:"))
    with pytest.raises(ServeError, match=r"config\.pbtxt does not parse"):
        export_triton(tiny_engine, tmp_path / "models", THERE)
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["other"]


def test_engines_share_a_repository_and_none_is_written_over(engine: Engine, tiny_engine: Engine, tmp_path: Path) -> None:
    models = tmp_path / "models"
    export_triton(engine, models, THERE, name="a")
    export_triton(tiny_engine, models, THERE, name="b")
    assert sorted(path.name for path in models.iterdir()) == ["a", "b"]
    for other in (engine, tiny_engine):
        with pytest.raises(UsageError, match="is there already"):
            export_triton(other, models, THERE, name="a")


def test_the_command_of_trtllm_serve_reads_the_arguments_from_a_file(engine: Engine, tmp_path: Path) -> None:
    done = export_trtllm_serve(engine, tmp_path / "out", THERE, port=9100)
    file = tmp_path / "out" / "llm.yaml"
    assert done.start == (
        f"trtllm-serve /models/e1/checkpoint --backend pytorch --host 0.0.0.0 --port 9100 --config {file.resolve()}"
    )
    assert {"model": "/models/e1/checkpoint", **yaml.safe_load(file.read_text())} == serving_arguments(engine, THERE, "tags")
    with pytest.raises(UsageError, match="is there already"):
        export_trtllm_serve(engine, tmp_path / "out", THERE)


def test_other_targets_have_no_trtllm_serve(tiny_engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is for the target torch"):
        export_trtllm_serve(tiny_engine, tmp_path / "out", THERE)
    assert not (tmp_path / "out").exists()


def test_an_engine_runs_where_it_lies_unless_another_place_is_named(engine: Engine) -> None:
    here = place_of(engine, folder=None, metrics="0.0.0.0:8003", home=None, library=None)
    assert here.model == str(engine.checkpoint.resolve())
    with pytest.raises(UsageError, match="the home data is not absolute"):
        place_of(engine, folder=None, metrics="0.0.0.0:8003", home=PurePosixPath("data"), library=None)
    for wrong in ("8003", ":8003", "0.0.0.0:http", "0.0.0.0:65536"):
        with pytest.raises(UsageError, match="is no address for the page check"):
            place_of(engine, folder=None, metrics=wrong, home=None, library=None)

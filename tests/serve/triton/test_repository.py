from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from roundhouse.build.engine import Engine
from roundhouse.errors import ServeError
from roundhouse.serve.settings import Overrides
from roundhouse.serve.triton.lint import lint_repository
from roundhouse.serve.triton.repository import config_text, write_repository

GOLDEN = Path(__file__).parents[2] / "golden" / "triton" / "config.pbtxt"
PARAMETERS = {"engine": "/engines/e1", "python": "/venv/bin/python", "overrides": '{"kv_cache_tokens":512}'}


def parsed(text: str) -> model_config_pb2.ModelConfig:
    return text_format.Parse(text, model_config_pb2.ModelConfig())


def test_config_is_the_golden_file() -> None:
    assert config_text("smollm2", PARAMETERS) == GOLDEN.read_text()


def test_values_come_back_unchanged_whatever_they_hold() -> None:
    awkward = 'a "b" \\ {c} ${d} # e\n\t\x00 grüß'
    config = parsed(config_text("m", {"engine": awkward}))
    assert config.parameters["engine"].string_value == awkward


def test_config_asks_for_a_decoupled_model_on_the_cpu() -> None:
    config = parsed(GOLDEN.read_text())
    assert config.model_transaction_policy.decoupled
    assert config.max_batch_size == 0
    assert all(tensor.optional for tensor in config.input)


def test_a_written_repository_passes_its_own_lint(tiny_engine: Engine, tmp_path: Path) -> None:
    repository = tmp_path / "$models ${x}"
    name = write_repository(repository, tiny_engine, overrides=Overrides(kv_cache_tokens=64), python="/py")
    config = parsed((repository / name / "config.pbtxt").read_text())
    assert config.name == name
    assert {key: value.string_value for key, value in config.parameters.items()} == {
        "engine": str(tiny_engine.folder),
        "python": "/py",
        "overrides": '{"kv_cache_tokens":64}',
    }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that passes, for tests to damage."""
    version = tmp_path / "models" / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text("")
    (version.parent / "config.pbtxt").write_text(config_text("m", PARAMETERS))
    lint_repository(tmp_path / "models")
    return tmp_path / "models"


def edit(repository: Path, old: str, new: str) -> None:
    config = repository / "m" / "config.pbtxt"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("max_batch_size: 0", "max_batch_size: ${max_batch_size}", "unfilled placeholder ${max_batch_size}"),
        ("/engines/e1", "${engine}", "unfilled placeholder ${engine}"),
        ('name: "m"', 'name: "other"', "names the model 'other'"),
        ("{ decoupled: true }", "{ decoupled: true", "does not parse"),
        ("max_batch_size", "max_batch_sise", "does not parse"),
    ],
)
def test_a_damaged_config_is_refused(repository: Path, old: str, new: str, problem: str) -> None:
    edit(repository, old, new)
    with pytest.raises(ServeError) as caught:
        lint_repository(repository)
    assert problem in caught.value.message


def test_missing_files_are_named(repository: Path) -> None:
    (repository / "m" / "1" / "model.py").unlink()
    (repository / "m" / "config.pbtxt").unlink()
    with pytest.raises(ServeError) as caught:
        lint_repository(repository)
    assert "1/model.py is missing" in caught.value.message
    assert "config.pbtxt is missing" in caught.value.message


def test_an_empty_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="holds no models"):
        lint_repository(tmp_path / "nothing")

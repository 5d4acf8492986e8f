from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from google.protobuf import text_format
from llm_engines import golden_llmapi_texts
from tritonclient.grpc import model_config_pb2
from trtllm_recipes import llm_plan

from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.errors import ServeError, UsageError
from roundhouse.serve.triton.lint import lint_repository
from roundhouse.serve.triton.llmapi import LLMAPI_MODEL_PY, write_llmapi
from roundhouse.serve.triton.llmapi_lint import lint_llmapi

ARGUMENTS: dict[str, Any] = {"model": "/models/e1/checkpoint", **llm_arguments(llm_plan("qwen3-30b-a3b"))}


def test_configs_and_arguments_are_the_golden_files() -> None:
    for path, text in golden_llmapi_texts().items():
        assert text == path.read_text(), f"{path.name}; if this is meant: python tests/serve/support/llm_engines.py"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that passes, for tests to damage."""
    return write_llmapi(tmp_path / "models", "qwen", ARGUMENTS, about="a test")


def test_a_written_model_passes_both_lints(model: Path) -> None:
    lint_llmapi(model)
    lint_repository(model.parent)
    config = text_format.Parse((model / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    assert config.name == "qwen"
    assert {tensor.name for tensor in config.input if not tensor.optional} == {"text_input"}
    given = yaml.safe_load((model / "1" / "model.yaml").read_text())
    assert given.pop("triton_config") == {"max_batch_size": 0, "decoupled": True, "cancellation_check_period_ms": 100}
    assert given == ARGUMENTS


def test_a_model_is_never_written_over(model: Path) -> None:
    with pytest.raises(UsageError, match="is there already"):
        write_llmapi(model.parent, "qwen", ARGUMENTS, about="")


def test_a_model_that_does_not_pass_leaves_nothing_behind(model: Path) -> None:
    with pytest.raises(ServeError, match="the nearest that it knows is max_seq_len"):
        write_llmapi(model.parent, "other", {**ARGUMENTS, "max_seqlen": 1}, about="")
    assert list(model.parent.iterdir()) == [model]


@pytest.mark.parametrize("name", ["", "a/b", 'a" b', ".hidden"])
def test_names_that_triton_does_not_take_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model can be served as"):
        write_llmapi(tmp_path, name, ARGUMENTS, about="")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("config.pbtxt", 'name: "qwen"', 'name: "other"', "names the model 'other'"),
        ("config.pbtxt", 'backend: "python"', 'backend: "tensorrtllm"', "the backend is 'tensorrtllm'"),
        ("config.pbtxt", 'backend: "python"', 'backend: "python"\nmax_batch_size: 8', "has max_batch_size"),
        (
            "config.pbtxt",
            'backend: "python"',
            'backend: "python" model_transaction_policy { decoupled: true }',
            "triton_config.decoupled",
        ),
        ("config.pbtxt", "sampling_param_top_k", "sampling_param_topk", "the input sampling_param_top_k is missing"),
        ("config.pbtxt", "sampling_param_top_k", "sampling_param_topk", "has no input sampling_param_topk"),
        (
            "config.pbtxt",
            "TYPE_UINT64 dims: [ 1 ]",
            "TYPE_INT64 dims: [ 1 ]",
            "not TYPE_UINT64 [1] optional",
        ),
        ("config.pbtxt", "input [", "input", "config.pbtxt cannot be read"),
        ("1/model.yaml", "max_seq_len", "max_seqlen", "the nearest that it knows is max_seq_len"),
        ("1/model.yaml", "backend: CUTLASS", "backend: CUTLAS", "'CUTLAS' is none of"),
        ("1/model.yaml", "decoupled", "decoupeld", "triton_config.decoupled is missing"),
        ("1/model.yaml", "decoupled", "decoupeld", "triton_config.decoupeld is not known"),
        ("1/model.yaml", "max_batch_size: 0", "max_batch_size: 8", "must be 0"),
        ("1/model.yaml", "triton_config:", "triton:", "triton_config is missing"),
        ("1/model.yaml", "model: /", "# ", "model is missing"),
        ("1/model.yaml", "model: /", "model: [", "model.yaml cannot be read"),
    ],
)
def test_a_damaged_model_is_refused(model: Path, file: str, old: str, new: str, complaint: str) -> None:
    text = (model / file).read_text()
    assert old in text
    (model / file).write_text(text.replace(old, new))
    with pytest.raises(ServeError) as caught:
        lint_llmapi(model)
    assert complaint in caught.value.message


def test_missing_files_are_named(model: Path) -> None:
    for file in ("config.pbtxt", "1/model.py", "1/model.yaml"):
        (model / file).unlink()
    with pytest.raises(ServeError) as caught:
        lint_llmapi(model)
    assert all(name in caught.value.message for name in ("config.pbtxt", "1/model.py is missing", "model.yaml"))


def run_model_py(tmp_path: Path, folder: PurePosixPath) -> subprocess.CompletedProcess[str]:
    """Load ``1/model.py`` as Triton's stub does, in a Python of its own."""
    file = tmp_path / "model.py"
    file.write_text(LLMAPI_MODEL_PY)
    command = [sys.executable, "-I", "-c", f"import runpy; print(runpy.run_path({str(file)!r})['TritonPythonModel'].twin)"]
    environment = {"ROUNDHOUSE_LLMAPI_MODEL": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_models_code_is_the_one_beside_tensorrt_llm(tmp_path: Path) -> None:
    """With a twin of upstream's model, which has its helpers beside it."""
    twin = tmp_path / "twin"
    twin.mkdir()
    (twin / "helpers.py").write_text("WORD = 'found'\n")
    (twin / "model.py").write_text("from helpers import WORD\nclass TritonPythonModel:\n    twin = WORD\n")
    done = run_model_py(tmp_path, PurePosixPath(twin))
    assert done.stdout == "found\n", done.stderr


def test_where_there_is_no_code_the_model_says_what_to_do(tmp_path: Path) -> None:
    done = run_model_py(tmp_path, PurePosixPath(tmp_path / "nowhere"))
    assert done.returncode != 0
    assert f"TensorRT-LLM's llmapi model is not in {tmp_path / 'nowhere'}: set ROUNDHOUSE_LLMAPI_MODEL" in done.stderr

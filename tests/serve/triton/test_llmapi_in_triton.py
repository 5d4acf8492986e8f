"""A real Triton server loads the `llmapi` model that we write, with a twin of upstream's code: no TensorRT-LLM runs here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from trtllm_recipes import llm_plan

from roundhouse.build.home import Home
from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.serve.private_folder import within_plain_path
from roundhouse.serve.triton.llmapi import write_llmapi
from roundhouse.serve.triton.locate import find_triton
from roundhouse.serve.triton.server import TritonServer

TWIN = '''
import os

import numpy as np
import triton_python_backend_utils as pb_utils
import yaml


def arguments():
    with open(os.path.join(pb_utils.get_model_dir(), os.environ.get("LLM_CONFIG_PATH", "model.yaml"))) as file:
        return yaml.safe_load(file)


class TritonPythonModel:
    @classmethod
    def auto_complete_config(cls, config):
        """As upstream: what config.pbtxt leaves open is in triton_config."""
        triton = arguments()["triton_config"]
        config.set_model_transaction_policy({"decoupled": triton["decoupled"]})
        config.set_max_batch_size(triton["max_batch_size"])
        return config

    def execute(self, requests):
        """Two pieces of text: what it was asked, and an argument that it was started with."""
        for request in requests:
            words = [pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0], arguments()["model"].encode()]
            sender = request.get_response_sender()
            for word in words:
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("text_output", np.array([word], dtype=np.object_))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''


class CompletingServer(TritonServer):
    """Triton as it is started for upstream's model, which says through it that it streams."""

    def _command(self) -> list[str]:
        return [word for word in super()._command() if word != "--disable-auto-complete-config"]


@pytest.fixture
def server(tmp_path: Path, session_home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[TritonServer]:
    twin = tmp_path / "twin"
    twin.mkdir()
    (twin / "model.py").write_text(TWIN)
    monkeypatch.setenv("ROUNDHOUSE_LLMAPI_MODEL", str(twin))
    arguments: dict[str, Any] = {"model": "/models/e1/checkpoint", **llm_arguments(llm_plan("smollm2"))}
    write_llmapi(tmp_path / "models", "smollm2", arguments, about="a test")
    install = within_plain_path(find_triton(session_home.cache), tmp_path)
    server = CompletingServer(install, tmp_path / "models", ["smollm2"])
    try:
        server.start()
        yield server
    finally:
        server.stop()


def test_triton_takes_the_configuration_and_streams(server: TritonServer) -> None:
    base = f"http://127.0.0.1:{server.ports.http}/v2/models/smollm2"
    config = httpx.get(f"{base}/config", trust_env=False).json()
    assert config["model_transaction_policy"] == {"decoupled": True}
    assert config["max_batch_size"] == 0
    asked = {"text_input": "hello", "streaming": True, "sampling_param_max_tokens": 4}
    lines = httpx.post(f"{base}/generate_stream", json=asked, trust_env=False).text.splitlines()
    pieces = [json.loads(line.removeprefix("data: "))["text_output"] for line in lines if line.startswith("data: ")]
    assert pieces == ["hello", "/models/e1/checkpoint"]

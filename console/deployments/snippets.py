"""Ready-made programs that talk to a deployment. They run as they are; a key is read from the environment."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from string import Template
from typing import Literal

from .records import DeploymentDetail

__all__ = ["KEY_VARIABLE", "Snippet", "snippets"]

KEY_VARIABLE = "ROUNDHOUSE_API_KEY"
"""Where the snippets find the key of the OpenAI front."""
_QUESTION, _BEGINNING = "What is the capital of France?", "The capital of France is"
_LOOPBACK, _EVERYWHERE = "127.0.0.1", ("0.0.0.0", "::")

_OPENAI_CHAT = Template("""\
$imports
from openai import OpenAI

client = OpenAI(base_url=$url, api_key=$key)
stream = client.chat.completions.create(
    model=$model,
    messages=[{"role": "user", "content": $question}],
    max_tokens=64,
    temperature=0,
    stream=True,
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print()
""")

_OPENAI_TEXT = Template("""\
$imports
from openai import OpenAI

client = OpenAI(base_url=$url, api_key=$key)
stream = client.completions.create(model=$model, prompt=$beginning, max_tokens=32, temperature=0, stream=True)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.text, end="", flush=True)
print()
""")

_TRITON = Template("""\
import queue

import numpy as np
from tritonclient.grpc import InferenceServerClient, InferInput


def tensor(name, kind, value, dtype):
    given = InferInput(name, [1], kind)
    given.set_data_from_numpy(np.array([value], dtype=dtype))
    return given


inputs = [
    tensor("text_input", "BYTES", $beginning.encode(), np.object_),
    tensor("sampling_param_max_tokens", "INT32", 32, np.int32),
    tensor("sampling_param_temperature", "FP32", 0.0, np.float32),
    tensor("streaming", "BOOL", True, np.bool_),
]
answers = queue.Queue()
with InferenceServerClient($grpc) as client:
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    client.async_stream_infer($model, inputs, enable_empty_final_response=True)
    while True:
        result, error = answers.get()
        if error is not None:
            raise SystemExit(str(error))
        text = result.as_numpy("text_output")
        if text is not None:
            print(b"".join(text).decode(), end="", flush=True)
        if result.get_response().parameters["triton_final_response"].bool_param:
            break
print()
""")


@dataclass(frozen=True)
class Snippet:
    """A program to copy."""

    name: str
    """A word for it, to be part of an address."""
    title: str
    language: Literal["shell", "python"]
    text: str


def snippets(deployment: DeploymentDetail) -> tuple[Snippet, ...]:
    """Programs for a deployment; none before it has been ready.

    One that listens on every address is named by its host, any other one by the address that it listens on.
    """
    if deployment.endpoints is None:
        return ()
    host = deployment.host if deployment.settings.address in _EVERYWHERE else None
    at = {name: _from_outside(str(deployment.endpoints[name]), host) for name in ("openai", "grpc", "http")}
    keyed, chat = deployment.settings.keyed, bool(deployment.endpoints.get("chat"))
    values = {
        "imports": "import os\n" if keyed else "",
        "url": _quoted(at["openai"]),
        "key": f'os.environ["{KEY_VARIABLE}"]' if keyed else '"none is asked for"',
        "model": _quoted(deployment.name),
        "grpc": _quoted(at["grpc"]),
        "question": _quoted(_QUESTION),
        "beginning": _quoted(_BEGINNING),
    }
    python = (_OPENAI_CHAT if chat else _OPENAI_TEXT).substitute(values).lstrip()
    return (
        Snippet("curl", "curl", "shell", _curl(at["openai"], deployment.name, chat=chat, keyed=keyed)),
        Snippet("openai", "openai for Python, streamed", "python", python),
        Snippet("tritonclient", "tritonclient for Python, gRPC, streamed", "python", _TRITON.substitute(values)),
        Snippet("triton-curl", "Triton's own HTTP endpoint", "shell", _triton_curl(at["http"], deployment.name)),
    )


def _curl(url: str, model: str, *, chat: bool, keyed: bool) -> str:
    asked = {"messages": [{"role": "user", "content": _QUESTION}]} if chat else {"prompt": _BEGINNING}
    body = json.dumps({"model": model, **asked, "max_tokens": 64, "temperature": 0})
    lines = [
        f"curl {shlex.quote(f'{url}/chat/completions' if chat else f'{url}/completions')}",
        "-H 'content-type: application/json'",
    ]
    if keyed:
        lines.append(f'-H "authorization: Bearer ${KEY_VARIABLE}"')
    return " \\\n  ".join([*lines, f"-d {shlex.quote(body)}"]) + "\n"


def _triton_curl(url: str, model: str) -> str:
    sampling = {"sampling_param_max_tokens": 32, "sampling_param_temperature": 0}
    body = json.dumps({"text_input": _BEGINNING, **sampling, "streaming": True})
    return f"curl -N {shlex.quote(f'{url}/v2/models/{model}/generate_stream')} \\\n  -d {shlex.quote(body)}\n"


def _from_outside(address: str, host: str | None) -> str:
    return address if host is None else address.replace(_LOOPBACK, host)


def _quoted(text: str) -> str:
    return json.dumps(text)

"""Where a deployment answers, with commands to try it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from .triton.control import CONTROL_HEADER

if TYPE_CHECKING:
    from .deployment import Endpoints

__all__ = ["endpoints_json", "endpoints_text"]


def endpoints_json(endpoints: Endpoints) -> str:
    """One line of JSON."""
    return json.dumps(asdict(endpoints))


def endpoints_text(endpoints: Endpoints, *, keyed: bool) -> str:
    """Endpoints and ready-made commands.

    Args:
        endpoints: where it answers.
        keyed: whether the OpenAI front wants an API key.
    """
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    question = {"model": endpoints.model, "messages": messages, "temperature": 0, "max_tokens": 64}
    prompt = {"model": endpoints.model, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 16}
    path, body = ("chat/completions", question) if endpoints.chat else ("completions", prompt)
    triton = {"text_input": "The capital of France is", "sampling_param_max_tokens": 16, "streaming": True}
    ready = f"{', '.join(endpoints.models)} {'is' if len(endpoints.models) == 1 else 'are'} ready."
    authorization = " -H 'authorization: Bearer KEY'" if keyed else ""
    control = f"  {CONTROL_HEADER}: {endpoints.control_key}\n" if endpoints.control_key else ""
    return f"""{ready}
  OpenAI        {endpoints.openai}
  Triton HTTP   {endpoints.http}
  Triton gRPC   {endpoints.grpc}
  metrics       {endpoints.metrics}
{control}
  curl {endpoints.openai}/{path} -H 'content-type: application/json'{authorization} -d '{json.dumps(body)}'
  curl -N {endpoints.http}/v2/models/{endpoints.model}/generate_stream -d '{json.dumps(triton)}'

Ctrl-C stops it."""

"""The command that serves an engine with TensorRT-LLM's own OpenAI-compatible server, ``trtllm-serve``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roundhouse.build.trtllm.upstream import check_fields, upstream
from roundhouse.errors import UsageError

__all__ = ["SERVE_OPTIONS", "trtllm_serve_command"]

SERVE_OPTIONS = "tensorrt_llm.commands.serve.serve"
"""The record of its command line."""


def trtllm_serve_command(
    model: str, config: str, *, host: str = "0.0.0.0", port: int = 8000, options: Mapping[str, Any] | None = None
) -> list[str]:
    """The words of the command.

    Args:
        model: the checkpoint's folder, where the command runs.
        config: the file of LLM arguments there (``--config``): they win over options of the command line.
        host: to listen on.
        port: to listen on.
        options: more of the command line's options, by their names without dashes: ``{"tool_parser": "qwen3"}``. True is a
            flag that is given, False one that is not.

    Raises:
        UsageError: an option that the recorded command line does not have, or a value that it does not take.
    """
    given: dict[str, Any] = {"backend": "pytorch", "host": host, "port": port, "config": config, **(options or {})}
    if complaints := check_fields(SERVE_OPTIONS, given):
        raise UsageError(f"trtllm-serve of TensorRT-LLM {upstream().version} does not take this: {'; '.join(complaints)}")
    words = ["trtllm-serve", model]
    for name, value in given.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not False:
            words += [f"--{name}", str(value)]
    return words

from __future__ import annotations

import pytest

from roundhouse.errors import UsageError
from roundhouse.serve.trtllm_serve import trtllm_serve_command


def test_the_command_names_the_model_and_the_arguments() -> None:
    assert trtllm_serve_command("/e/checkpoint", "/e/llm.yaml", port=9100) == [
        "trtllm-serve",
        "/e/checkpoint",
        "--backend",
        "pytorch",
        "--host",
        "0.0.0.0",
        "--port",
        "9100",
        "--config",
        "/e/llm.yaml",
    ]


def test_flags_are_given_or_not() -> None:
    options = {"trust_remote_code": True, "enable_chunked_prefill": False, "tool_parser": "qwen3"}
    words = trtllm_serve_command("/e", "/c", options=options)
    assert words[-3:] == ["--trust_remote_code", "--tool_parser", "qwen3"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tool_parsr": "x"}, "the nearest that it knows is tool_parser"),
        ({"backend": "tensort"}, "'tensort' is none of"),
    ],
)
def test_options_that_it_does_not_take_are_refused(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        trtllm_serve_command("/e", "/c", options=options)

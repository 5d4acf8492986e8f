"""Containers for TensorRT-LLM's PyTorch backend: Triton with upstream's `llmapi` model, or ``trtllm-serve``."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from roundhouse.build.recipe import Guard

from ..settings import Overrides
from ..triton.llmapi import LLMAPI_MODEL_PY, MODEL_YAML, llmapi_config_text, model_yaml
from ..triton.repository import model_name
from ..trtllm_arguments import LlmPlace, arguments_text, guard_of, serving_arguments
from ..trtllm_serve import trtllm_serve_command
from .container import CONTAINER_ENTRY, HOME, Asked, EngineContainer, Need

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

__all__ = ["llmapi_container", "trtllm_serve_container"]

_REPOSITORY = "/models"
_ARGUMENTS = "/etc/roundhouse/llm.yaml"
_GUARD_PORT, _GUARD_ASKED = {"guard": 8003}, Asked("guard", "/ready")
"""Where rank 0 tells of the page check: TensorRT-LLM's servers know nothing of it."""
_LIBRARY = PurePosixPath("/opt/roundhouse/plugin/libroundhouse_page_guard_cuda.so")
_ENVIRONMENT = {"PYTHONPATH": "/opt/roundhouse/package"}
"""The package for the container's own Python, with nothing of ours beside it."""


def llmapi_container(engine: Engine, image: str, need: Need, overrides: Overrides) -> EngineContainer:
    """Triton with upstream's `llmapi` model.

    Args:
        engine: of the target `trtllm-pytorch`.
        image: with TensorRT-LLM, and this package beside it.
        need: what it takes of a machine.
        overrides: what to change of its recipe.

    Raises:
        UsageError: the engine cannot have this page check, or an override cannot be.
        EngineError: its arguments cannot be read.
    """
    guard, name = guard_of(engine, overrides.guard), model_name(engine)
    folder = f"{_REPOSITORY}/{name}"
    files = {
        f"{folder}/config.pbtxt": llmapi_config_text(name),
        f"{folder}/1/model.py": LLMAPI_MODEL_PY,
        f"{folder}/1/{MODEL_YAML}": model_yaml(
            serving_arguments(engine, _place(engine), guard, overrides), about=_about(engine, guard)
        ),
    }
    return EngineContainer(
        name=name,
        engine_id=engine.manifest.id,
        image=image,
        # Without --disable-auto-complete-config: through it upstream's model says that it streams.
        entrypoint=(CONTAINER_ENTRY, "tritonserver"),
        arguments=(f"--model-repository={_REPOSITORY}",),
        ports={"http": 8000, "grpc": 8001, "metrics": 8002} | (_GUARD_PORT if guard != "off" else {}),
        live=Asked("http", "/v2/health/live"),
        ready=(Asked("http", "/v2/health/ready"), *([_GUARD_ASKED] if guard != "off" else [])),
        metrics=("metrics", *(_GUARD_PORT if guard != "off" else ())),
        need=need,
        environment=_ENVIRONMENT,
        files=files,
        keyed=False,
    )


def trtllm_serve_container(engine: Engine, image: str, need: Need, overrides: Overrides) -> EngineContainer:
    """TensorRT-LLM's own OpenAI-compatible server; arguments and errors as :func:`llmapi_container`."""
    guard = guard_of(engine, overrides.guard)
    arguments = serving_arguments(engine, _place(engine), guard, overrides)
    command, *words = trtllm_serve_command(str(arguments.pop("model")), _ARGUMENTS)
    return EngineContainer(
        name=model_name(engine),
        engine_id=engine.manifest.id,
        image=image,
        entrypoint=(CONTAINER_ENTRY, command),
        arguments=tuple(words),
        ports={"openai": 8000} | (_GUARD_PORT if guard != "off" else {}),
        live=Asked("openai", "/health"),
        ready=(Asked("openai", "/health"), *([_GUARD_ASKED] if guard != "off" else [])),
        metrics=tuple(_GUARD_PORT) if guard != "off" else (),
        need=need,
        environment=_ENVIRONMENT,
        files={_ARGUMENTS: arguments_text(arguments, about=_about(engine, guard))},
        keyed=False,
    )


def _place(engine: Engine) -> LlmPlace:
    return LlmPlace(PurePosixPath(HOME) / "engines" / engine.manifest.id, home=PurePosixPath(HOME), library=_LIBRARY)


def _about(engine: Engine, guard: Guard) -> str:
    return f"Engine {engine.manifest.id} ({engine.manifest.name}), guard {guard}."

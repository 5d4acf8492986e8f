"""The LLM arguments of a deployment: an engine's, with what only a deployment knows: where it lies, and its page check.

The page check is installed in every rank through the KV connector that the arguments name (``roundhouse.serve.trtllm_guard``);
each rank finds what it must know in its environment, which ``env_overrides`` sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from roundhouse.build.engine import CHECKPOINT, Engine
from roundhouse.build.merging import merged
from roundhouse.build.planner.support import needed_version
from roundhouse.build.recipe import Guard, Recipe
from roundhouse.build.trtllm.llm_engine import LLM_FILE, require_known
from roundhouse.build.trtllm.llm_options import llm_problems
from roundhouse.errors import EngineError, UsageError

from .settings import Overrides
from .trtllm_overrides import changed_recipe, overridden

__all__ = ["TARGET", "LlmPlace", "arguments_text", "guard_of", "placed_arguments", "serving_arguments"]

TARGET = "trtllm-pytorch"

_GUARD: dict[str, Any] = {
    "disable_overlap_scheduler": True,
    "kv_cache_config": {"enable_partial_reuse": False},
    "kv_connector_config": {
        "connector_module": "roundhouse.serve.trtllm_guard.connector",
        "connector_scheduler_class": "GuardScheduler",
        "connector_worker_class": "GuardWorker",
    },
}


@dataclass(frozen=True)
class LlmPlace:
    """Where an engine runs; paths are those of the machine, or the container, in which it does.

    ``metrics`` is where rank 0 says that the page check is alive, as ``host:port``; ``home`` has the file of integrity events,
    which is not written without it; ``library`` is the CUDA guard, where the environment does not name it.
    """

    engine: PurePosixPath
    metrics: str = "0.0.0.0:8003"
    home: PurePosixPath | None = None
    library: PurePosixPath | None = None

    @property
    def model(self) -> str:
        """The checkpoint's folder."""
        return str(self.engine / CHECKPOINT)


def guard_of(engine: Engine, asked: Guard | None) -> Guard:
    """The page check that a deployment has: the one asked for, or the recipe's.

    Raises:
        UsageError: the engine cannot have it.
    """
    guard = asked or engine.manifest.recipe.guard
    if guard == "tags+content":
        raise UsageError(f"guard {guard} is for the torch target only", hint="Take guard tags, which checks every page's tag.")
    _require_possible(engine, engine.manifest.recipe.model_copy(update={"guard": guard}))
    return guard


def serving_arguments(engine: Engine, place: LlmPlace, guard: Guard, overrides: Overrides | None = None) -> dict[str, Any]:
    """The arguments of ``tensorrt_llm.LLM`` for an engine at its place.

    Args:
        engine: of the target `trtllm-pytorch`.
        place: where it runs.
        guard: as :func:`guard_of` gives it.
        overrides: what else to change of its recipe.

    Raises:
        UsageError: the engine is for another target, or an override cannot be, alone or with this guard.
        EngineError: its arguments cannot be read.
        BuildError: one of them is not TensorRT-LLM's.
    """
    changes = overrides or Overrides()
    arguments = overridden(_built(engine), engine.manifest.plan, changes)
    _require_possible(engine, changed_recipe(engine.manifest.recipe, changes).model_copy(update={"guard": guard}))
    arguments = placed_arguments(arguments, engine.manifest.id, place, guard)
    require_known(arguments)
    return arguments


def placed_arguments(arguments: dict[str, Any], identity: str, place: LlmPlace, guard: Guard) -> dict[str, Any]:
    """An engine's arguments with its place, and with what puts the page check in.

    Args:
        arguments: that were written when the engine was built.
        identity: the engine's id, for metrics and integrity events.
        place: where it runs.
        guard: which page check.
    """
    found = {"model": place.model, **arguments}
    return found if guard == "off" else merged(found, {**_GUARD, "env_overrides": _environment(identity, place)})


def arguments_text(arguments: dict[str, Any], *, about: str) -> str:
    """Arguments as a YAML file.

    Args:
        arguments: as :func:`serving_arguments` gives them.
        about: said in the file's first line.
    """
    return f"# {about}\n" + yaml.safe_dump(arguments, sort_keys=False, allow_unicode=True, width=120)


def _require_possible(engine: Engine, recipe: Recipe) -> None:
    """Refuse what the engine's own recipe does not say, where upstream or the page check in it would."""
    if recipe == engine.manifest.recipe:
        return
    shape = engine.manifest.plan.shape
    if problems := llm_problems(recipe, shape, since=needed_version(TARGET, shape.architecture)):
        reasons = "; ".join(problem.message for problem in problems)
        raise UsageError(f"engine {engine.manifest.id} cannot run like this, with guard {recipe.guard}: {reasons}")


def _built(engine: Engine) -> dict[str, Any]:
    manifest = engine.manifest
    if manifest.compiled is None or manifest.recipe.target != TARGET:
        raise UsageError(
            f"engine {manifest.id} is for the target {manifest.recipe.target}, and has no arguments for TensorRT-LLM's LLM API",
            hint=f"Build it with --target {TARGET}.",
        )
    path = engine.folder / manifest.compiled.folder / LLM_FILE
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise EngineError(f"{path} cannot be read: {error}", hint="Build the engine again.") from None
    if not isinstance(found, dict):
        raise EngineError(f"{path} holds no arguments", hint="Build the engine again.")
    return found


def _environment(identity: str, place: LlmPlace) -> dict[str, str]:
    """What each rank's page check is told (``roundhouse.serve.trtllm_guard.settings``)."""
    found = {"ROUNDHOUSE_GUARD_ENGINE": identity, "ROUNDHOUSE_GUARD_METRICS": place.metrics}
    if place.home is not None:
        found["ROUNDHOUSE_GUARD_HOME"] = str(place.home)
    if place.library is not None:
        found["ROUNDHOUSE_GUARD_LIBRARY"] = str(place.library)
    return found

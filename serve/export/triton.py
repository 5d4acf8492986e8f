"""A Triton repository, or a ``trtllm-serve`` command, for an engine that somebody else's server runs."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from roundhouse.build.engine import Engine
from roundhouse.build.recipe import Guard
from roundhouse.errors import UsageError

from ..settings import Overrides
from ..triton.lint import lint_repository
from ..triton.llmapi import write_llmapi
from ..triton.repository import ENGINE_KEY, model_name, model_parameters, require_model_name, write_model
from ..triton.staging import staged_model
from ..trtllm_arguments import TARGET, LlmPlace, arguments_text, guard_of, serving_arguments
from ..trtllm_serve import trtllm_serve_command
from .listening import TRITON_PORTS, port_of, require_address, require_apart
from .output import require_folder, write_new
from .planned import planned_settings

__all__ = ["Exported", "export_triton", "export_trtllm_serve", "place_of"]

_ARGUMENTS_FILE = "llm.yaml"
_STREAMS = "start it without --disable-auto-complete-config: through it upstream's model says that it streams"


@dataclass(frozen=True)
class Exported:
    """What was written, and how it is started where the engine runs."""

    name: str
    """What clients call the model."""
    written: Path
    """The model's folder, or the file of arguments."""
    guard: Guard
    start: str
    """A command line for a shell."""
    notes: tuple[str, ...] = ()


def place_of(
    engine: Engine, *, folder: PurePosixPath | None, metrics: str, home: PurePosixPath | None, library: PurePosixPath | None
) -> LlmPlace:
    """Where an engine will run.

    Args:
        engine: the engine.
        folder: of the engine there; None: here.
        metrics: where its page check answers, as ``host:port``.
        home: for integrity events there.
        library: the CUDA guard there.

    Raises:
        UsageError: a path is not absolute, or ``metrics`` is no address.
    """
    port_of(metrics)
    for what, path in (("engine folder", folder), ("home", home), ("guard library", library)):
        if path is not None and not path.is_absolute():
            raise UsageError(f"the {what} {path} is not absolute: whoever starts the server does so from another folder")
    return LlmPlace(folder or PurePosixPath(engine.folder.resolve()), metrics=metrics, home=home, library=library)


def export_triton(
    engine: Engine,
    repository: Path,
    place: LlmPlace,
    *,
    overrides: Overrides | None = None,
    name: str | None = None,
    python: str = sys.executable,
) -> Exported:
    """Add an engine to a Triton repository once its model passed the lint.

    An engine for `trtllm-pytorch` becomes TensorRT-LLM's own `llmapi` model, any other the model of `roundhouse serve`.

    Args:
        engine: of any target.
        repository: the folder to write to; made when absent.
        place: where the engine runs.
        overrides: what to change of its recipe.
        name: what it is served as; None takes its own name.
        python: the interpreter of the engine process, where there is one.

    Raises:
        UsageError: the name cannot be, or is taken, or an override cannot be, or the page check's port is Triton's.
        EngineError: what was compiled cannot be read.
        ServeError: what was written does not pass its lint.
    """
    name = name or model_name(engine)
    require_model_name(name)
    folder = repository / name
    if folder.exists():
        raise UsageError(f"{folder} is there already", hint="Remove it, or give --name or another --output.")
    require_folder(repository)
    start = shlex.join(["tritonserver", f"--model-repository={repository.resolve()}"])
    changes = overrides or Overrides()
    if engine.manifest.recipe.target == TARGET:
        guard = guard_of(engine, changes.guard)
        require_apart(place.metrics, guard, TRITON_PORTS)
        write_llmapi(repository, name, serving_arguments(engine, place, guard, changes), about=_about(engine, guard))
        return Exported(name, folder, guard, start, (_STREAMS, *_about_guard(place, guard)))
    planned_settings(engine, changes)
    parameters = model_parameters(engine, changes, python=python) | {ENGINE_KEY: str(place.engine)}
    with staged_model(repository, name) as staging:
        write_model(staging, name, parameters)
        lint_repository(staging)
    note = f"its engine process runs in {python}, which must have roundhouse with all that serving needs"
    return Exported(name, folder, changes.guard or engine.manifest.recipe.guard, start, (note,))


def export_trtllm_serve(
    engine: Engine,
    folder: Path,
    place: LlmPlace,
    *,
    overrides: Overrides | None = None,
    host: str = "0.0.0.0",
    port: int = 8000,
) -> Exported:
    """Write an engine's arguments to a file, and tell the ``trtllm-serve`` command for it.

    Args:
        engine: of the target `trtllm-pytorch`.
        folder: to write ``llm.yaml`` to; made when absent.
        place: where the engine runs.
        overrides: what to change of its recipe.
        host: to listen on.
        port: to listen on.

    Raises:
        UsageError: the engine is for another target, or an override or the address cannot be, or the page check has the same
            port, or the file is there already.
    """
    changes = overrides or Overrides()
    guard = guard_of(engine, changes.guard)
    require_address(host, port)
    require_apart(place.metrics, guard, {"trtllm-serve's": port})
    arguments = serving_arguments(engine, place, guard, changes)
    model = str(arguments.pop("model"))  # the command's own
    file = folder / _ARGUMENTS_FILE
    if file.exists():
        raise UsageError(f"{file} is there already", hint="Remove it, or give another --output.")
    require_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_new(file, arguments_text(arguments, about=_about(engine, guard)))
    start = shlex.join(trtllm_serve_command(model, str(file.resolve()), host=host, port=port))
    return Exported(model_name(engine), file, guard, start, _about_guard(place, guard))


def _about(engine: Engine, guard: Guard) -> str:
    return f"Engine {engine.manifest.id} ({engine.manifest.name}), guard {guard}; written by `roundhouse export`."


def _about_guard(place: LlmPlace, guard: Guard) -> tuple[str, ...]:
    if guard == "off":
        return ()
    return (
        "roundhouse must be importable where TensorRT-LLM runs; in the gpu image by PYTHONPATH=/opt/roundhouse/package",
        f"the page check is alive while GET /ready on {place.metrics} answers 200; its metrics are at /metrics there",
        "the overlap scheduler is off: the host's work of each step no longer hides behind the GPU's; --guard off keeps it",
    )

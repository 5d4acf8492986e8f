"""The page guard as a TensorRT engine of its own: what it is, and how it is built. ``tensorrt_guard_engine.py`` runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import BuildError, SetupError

from .tensorrt_aot import read_kernel, register_page_guard

__all__ = ["INPUTS", "OUTPUT", "PLUGIN_NAME", "GuardLimits", "build_guard_engine", "load_plugin", "load_tensorrt"]

PLUGIN_NAME = "KvPageGuard"
_PLUGIN_VERSION = "1"
INPUTS: Mapping[str, str] = {"page_table": "BM", "page_count": "B", "expected_tags": "BM", "page_tags": "P"}
"""The engine's inputs, int32, in the plugin's order, and the sizes that their dimensions are."""
OUTPUT = "first_bad"
"""int32 [B]."""


@dataclass(frozen=True)
class GuardLimits:
    """The largest tables the engine takes; every size may be anything from 1."""

    rows: int
    columns: int
    pages: int

    def shape(self, dimensions: str, *, smallest: bool = False) -> tuple[int, ...]:
        """A shape at the limit, or the smallest one, of dimensions such as ``BM``."""
        sizes = {"B": self.rows, "M": self.columns, "P": self.pages}
        return tuple(1 if smallest else sizes[each] for each in dimensions)


def build_guard_engine(plugin: Path, limits: GuardLimits) -> bytes:
    """Build the engine for the GPU of this machine.

    Args:
        plugin: what ``native/CMakeLists.txt`` built: ``libroundhouse_kv_page_guard.so``, which must then
            be loaded wherever the engine runs, or ``page_guard.ptx``, which the engine carries itself.
        limits: sizes are dynamic up to these; the engine is tuned for them.

    Returns:
        The serialized engine.

    Raises:
        SetupError: TensorRT is not here or too old, or the plugin cannot be loaded.
        BuildError: TensorRT could not build it.
    """
    trt = load_tensorrt()
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(0)
    tensors = [network.add_input(name, trt.int32, (-1,) * len(dimensions)) for name, dimensions in INPUTS.items()]
    layer = _embedded(network, tensors, plugin) if plugin.suffix == ".ptx" else _loaded(trt, network, tensors, plugin)
    first_bad = layer.get_output(0)
    first_bad.name = OUTPUT
    network.mark_output(first_bad)

    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for name, dimensions in INPUTS.items():
        largest = limits.shape(dimensions)
        profile.set_shape(name, limits.shape(dimensions, smallest=True), largest, largest)
    config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise BuildError("TensorRT could not build the page guard's engine", hint="Its log, above, says why.")
    return bytes(engine)


def load_tensorrt() -> Any:
    """The module ``tensorrt``.

    Raises:
        SetupError: it is not here.
    """
    try:
        import tensorrt
    except ImportError as error:
        raise SetupError(f"TensorRT cannot be imported: {error}", hint="Run this where TensorRT is installed.") from None
    return tensorrt


def load_plugin(trt: Any, library: Path) -> Any:
    """The creator of the plugin in TensorRT's registry. Its library is loaded, unless it is there already.

    Raises:
        SetupError: the library gave TensorRT no such plugin.
    """
    registry = trt.get_plugin_registry()
    creator = registry.get_creator(PLUGIN_NAME, _PLUGIN_VERSION, "")
    if creator is None:  # a library of LD_PRELOAD registers itself
        registry.load_library(str(library))
        creator = registry.get_creator(PLUGIN_NAME, _PLUGIN_VERSION, "")
    if creator is None:
        raise SetupError(f"{library} gave TensorRT no plugin {PLUGIN_NAME}", hint="docs/native.md says how it is built.")
    return creator


def _embedded(network: Any, tensors: list[Any], ptx: Path) -> Any:
    make = register_page_guard(read_kernel(ptx))
    return network.add_plugin(make(*tensors), aot=True)


def _loaded(trt: Any, network: Any, tensors: list[Any], library: Path) -> Any:
    creator = load_plugin(trt, library)
    plugin = creator.create_plugin(PLUGIN_NAME, trt.PluginFieldCollection([]), trt.TensorRTPhase.BUILD)
    return network.add_plugin_v3(tensors, [], plugin)

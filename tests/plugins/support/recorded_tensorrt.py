"""TensorRT's names as far as the guard uses them, as its 10.14 and 11.1 sources have them. They record; they do nothing."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

__all__ = ["record_tensorrt"]


class TensorDesc:
    """A tensor's shape and what was made like it."""

    def __init__(self, *shape_expr: str) -> None:
        self.shape_expr = shape_expr

    def like(self) -> TensorDesc:
        return TensorDesc(*self.shape_expr)


class KernelLaunchParams:
    """Upstream's seven fields and their defaults."""

    def __init__(
        self,
        grid_x: Any = 1,
        grid_y: Any = 1,
        grid_z: Any = 1,
        block_x: Any = 1,
        block_y: Any = 1,
        block_z: Any = 1,
        shared_mem: Any = 0,
    ) -> None:
        self.fields = (grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_mem)


class SymIntExprs(list[Any]):
    """Made of a length, then filled."""

    def __init__(self, length: int) -> None:
        super().__init__([None] * length)


class AutoTuneCombination:
    """Types and layouts of all inputs and outputs."""

    def __init__(self, io_types: str, layouts: str) -> None:
        self.io_types, self.layouts = io_types, layouts


class Recorder:
    """Notes every call with its arguments; what a call returns is looked up by its name."""

    def __init__(self, calls: list[tuple[Any, ...]], answers: dict[str, Any]) -> None:
        self._calls, self._answers = calls, answers

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._calls.append((name, *arguments, *named.items()))
            answer = self._answers.get(name, self)
            return answer(*arguments) if callable(answer) else answer

        return call


def record_tensorrt(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], *, ahead_of_time: bool = True) -> Any:
    """Put modules ``tensorrt`` and ``tensorrt.plugin`` in place for one test.

    Returns:
        ``calls`` on builder, network, registry, runtime and the like; ``registered``: part of the plugin → function.
    """
    calls: list[tuple[Any, ...]] = []
    registered: dict[str, Any] = {}
    recorder = Recorder(calls, answers)

    def part(name: str) -> Any:
        def decorator(plugin_id: str) -> Any:
            return lambda function: registered.setdefault(f"{name} {plugin_id}", function)

        return decorator

    plugin, tensorrt = ModuleType("tensorrt.plugin"), ModuleType("tensorrt")
    names: dict[str, Any] = {"register": part("register"), "autotune": part("autotune")}
    if ahead_of_time:
        names["aot_impl"] = part("aot_impl")
    for kind in (TensorDesc, KernelLaunchParams, SymIntExprs, AutoTuneCombination):
        names[kind.__name__] = kind
    names["SymInt32"] = lambda value: f"SymInt32({value})"
    names["op"] = SimpleNamespace(roundhouse=SimpleNamespace(page_guard=lambda *tensors: ("plugin of", *tensors)))
    vars(plugin).update(names)

    class Logger:
        WARNING = "warnings"

        def __init__(self, level: str) -> None:
            self.level = level

    vars(tensorrt).update(
        Builder=lambda logger: recorder,
        Logger=Logger,
        PluginFieldCollection=tuple,
        Runtime=lambda logger: recorder,
        TensorRTPhase=SimpleNamespace(BUILD="build"),
        get_plugin_registry=lambda: recorder,
        int32="int32",
        plugin=plugin,
    )
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt)
    monkeypatch.setitem(sys.modules, "tensorrt.plugin", plugin)
    return SimpleNamespace(calls=calls, registered=registered)

"""A twin of the modules that a TensorRT-LLM engine is loaded with: the same names and signatures, and nothing behind them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

IN, OUT = SimpleNamespace(name="INPUT"), SimpleNamespace(name="OUTPUT")


class LoadedTwin:
    """``ICudaEngine``, as far as it is asked: what it takes and gives is written in its bytes, ``in:a,b;out:c``."""

    def __init__(self, engine: bytes) -> None:
        parts = dict(part.split(":") for part in engine.decode().split(";"))
        self._tensors = [(name, mode) for key, mode in (("in", IN), ("out", OUT)) for name in parts[key].split(",")]
        self.num_io_tensors = len(self._tensors)

    def get_tensor_name(self, index: int) -> str:
        return self._tensors[index][0]

    def get_tensor_mode(self, name: str) -> Any:
        return dict(self._tensors)[name]


class Session:
    """``tensorrt_llm.runtime.session.Session``: remembers what it was given; refuses rows above four."""

    def __init__(self, engine: LoadedTwin) -> None:
        self.engine = engine
        self.ran: list[tuple[dict[str, Any], dict[str, Any], int]] = []
        self.accepts = True

    @staticmethod
    def from_serialized_engine(engine: bytes) -> Session:
        assert not engine.endswith(b"large"), "Failed to create an execution context!"
        if not engine.startswith(b"in:"):
            raise AttributeError("'NoneType' object has no attribute 'create_execution_context'")
        return Session(LoadedTwin(engine))

    def set_shapes(self, tensor_dict: dict[str, torch.Tensor], context: Any = None) -> None:
        for index in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(index)
            if self.engine.get_tensor_mode(name) is IN and tensor_dict[name].shape[0] > 4:
                raise ValueError(f"Couldn't assign {name} with shape {tuple(tensor_dict[name].shape)}")

    def run(self, inputs: dict[str, Any], outputs: dict[str, Any], stream: int, context: Any = None) -> bool:
        self.ran.append((inputs, outputs, stream))
        return self.accepts


class Mapping:
    """``tensorrt_llm.mapping.Mapping``: keeps what it was made with."""

    def __init__(self, **keys: int) -> None:
        self.keys = keys


class CustomAllReduceHelper:
    """``tensorrt_llm.plugin.plugin.CustomAllReduceHelper``."""

    @staticmethod
    def max_workspace_size_auto(tp_size: int, support_deterministic: bool = True) -> int:
        return 1000 * tp_size

    @staticmethod
    def allocate_workspace(mapping: Mapping, size: int) -> tuple[list[Any], torch.Tensor]:
        return [mapping, size], torch.tensor([size, mapping.keys["rank"]], dtype=torch.int64)


class CommTwin:
    """mpi4py's communicator, of one process among several."""

    def __init__(self, size: int, rank: int) -> None:
        self.size, self.rank = size, rank
        self.calls: list[tuple[Any, ...]] = []

    def Get_size(self) -> int:  # noqa: N802 -- MPI's names
        return self.size

    def Get_rank(self) -> int:  # noqa: N802
        return self.rank

    def Dup(self) -> CommTwin:  # noqa: N802
        self.calls.append(("Dup",))
        return CommTwin(self.size, self.rank)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        self.calls.append(("bcast", root))
        return obj

    def allgather(self, sendobj: Any) -> list[Any]:
        return [sendobj] * self.size

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        self.calls.append(("send", obj, dest))

    def recv(self, buf: Any = None, source: int = -1, tag: int = -1) -> Any:
        return f"from {source}"


def install(monkeypatch: pytest.MonkeyPatch, *, size: int = 1, rank: int = 0) -> CommTwin:
    """Put the twins where upstream's modules would be; returns the world's communicator."""
    world = CommTwin(size, rank)
    modules: dict[str, dict[str, Any]] = {
        "tensorrt_llm": {},
        "tensorrt_llm.runtime": {},
        "tensorrt_llm.runtime.session": {"Session": Session},
        "tensorrt_llm.mapping": {"Mapping": Mapping},
        "tensorrt_llm.plugin": {},
        "tensorrt_llm.plugin.plugin": {"CustomAllReduceHelper": CustomAllReduceHelper},
        "mpi4py": {},
        "mpi4py.MPI": {"COMM_WORLD": world},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return world

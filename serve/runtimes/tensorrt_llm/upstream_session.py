"""TensorRT-LLM's own ``Session`` as the runtime's, and the memory that ranks of one layer add up in.

Names are those of ``build/trtllm/upstream.json``. Nothing is imported before an engine is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch

from roundhouse.errors import ServeError, SetupError

from .geometry import EngineGeometry
from .ranks import RankPart

__all__ = ["AllReduceWorkspace", "UpstreamSession"]

_REFUSED = "TensorRT's log, above, says why."


class UpstreamSession:
    """A :class:`~.session.Session` around ``tensorrt_llm.runtime.session.Session``, on torch's current device.

    Args:
        engine: the serialized engine of this rank.

    Raises:
        SetupError: TensorRT-LLM cannot be imported.
        ServeError: TensorRT does not take the engine, or the GPU has no room for what it computes with.
    """

    def __init__(self, engine: bytes) -> None:
        upstream = _imported("tensorrt_llm.runtime.session").Session
        try:
            self._session: Any = upstream.from_serialized_engine(engine)
        except (AttributeError, RuntimeError) as error:  # an engine that cannot be read is None upstream, and None is asked on
            hint = f"{_REFUSED} An engine runs on the TensorRT-LLM and the kind of GPU that it was built with."
            raise ServeError(f"TensorRT does not take the engine: {error}", hint=hint) from None
        except AssertionError as error:  # upstream's word for a context that it did not get: its memory is taken then
            hint = (
                f"{_REFUSED} Most likely the GPU is full: free memory on it, or build the engine with a lower max_num_tokens."
            )
            raise ServeError(f"TensorRT cannot begin to run the engine: {error}", hint=hint) from None
        loaded = self._session.engine
        names = [loaded.get_tensor_name(index) for index in range(loaded.num_io_tensors)]
        self.inputs = frozenset(name for name in names if loaded.get_tensor_mode(name).name == "INPUT")
        self.outputs = frozenset(names) - self.inputs

    def run(self, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor], stream: int) -> None:
        try:
            self._session.set_shapes(dict(inputs))
        except ValueError as error:
            raise ServeError(f"the engine takes no such step: {error}", hint="Build it with larger limits.") from None
        if not self._session.run(dict(inputs), dict(outputs), stream):
            raise ServeError("TensorRT refused to run a step", hint=_REFUSED)


class AllReduceWorkspace:
    """Memory of one rank that the others of its layers write to, as upstream allocates it.

    Making it is collective: every rank of the engine does it at the same time.

    Args:
        geometry: of the engine.
        part: of the rank.

    Raises:
        SetupError: TensorRT-LLM cannot be imported.
    """

    def __init__(self, geometry: EngineGeometry, part: RankPart) -> None:
        ranks = geometry.pretrained_config.mapping
        mapping = _imported("tensorrt_llm.mapping").Mapping(
            world_size=geometry.world_size,
            rank=part.rank,
            gpus_per_node=torch.cuda.device_count(),
            tp_size=ranks.tp_size,
            pp_size=ranks.pp_size,
        )
        helper = _imported("tensorrt_llm.plugin.plugin").CustomAllReduceHelper
        size = helper.max_workspace_size_auto(ranks.tp_size)
        self._buffers, workspace = helper.allocate_workspace(mapping, size)  # freed with the last reference
        self.tensor: torch.Tensor = workspace
        """int64 on the host: addresses, which the engine's input ``all_reduce_workspace`` is."""


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise SetupError(
            f"TensorRT-LLM cannot be imported: {error}", hint="Run this in its container; docs/deploy.md tells which."
        ) from None

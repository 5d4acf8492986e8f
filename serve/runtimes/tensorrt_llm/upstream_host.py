"""This machine's GPUs and TensorRT-LLM, to load an engine with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from roundhouse.build.compiled import Compiled, CompiledGuard
from roundhouse.build.trtllm.engines import PLUGIN_VARIABLE
from roundhouse.build.trtllm.host import require_host
from roundhouse.build.trtllm.interpreter import Installation
from roundhouse.build.trtllm.versions import installed_version, target_verdicts
from roundhouse.errors import SetupError
from roundhouse.plugins.native_guard import FirstBad
from roundhouse.plugins.tensorrt_guard import GuardLimits
from roundhouse.plugins.tensorrt_guard_engine import GuardEngine
from roundhouse.plugins.torch_guard import torch_page_guard

from .device import CudaDevice
from .geometry import EngineGeometry
from .mpi_link import MpiLink
from .ranks import RankPart
from .upstream_session import AllReduceWorkspace, UpstreamSession

__all__ = ["UpstreamHost"]


class UpstreamHost:
    """A :class:`~.load.Host`."""

    def require(self, compiled: Compiled) -> None:
        found = installed_version()
        if reason := target_verdicts(found)["tensorrt"]:
            raise SetupError(f"target tensorrt: {reason}", hint="Serve it with the Python that TensorRT-LLM is installed in.")
        require_host(compiled, Installation(Path(sys.executable), found or "", tensorrt=""))

    def link(self, size: int) -> MpiLink:
        return MpiLink(size)

    def device(self, rank: int) -> CudaDevice:
        return CudaDevice(rank)

    def session(self, engine: bytes, part: RankPart) -> UpstreamSession:
        return UpstreamSession(engine)

    def guard(self, built: CompiledGuard | None, folder: Path) -> FirstBad:
        if built is None:  # the recipe had the guard off, and the server turned it on
            return torch_page_guard
        try:
            engine = (folder / built.file).read_bytes()
        except OSError as error:
            raise SetupError(f"{folder / built.file}: {error.strerror}", hint="Build the engine again.") from None
        limits = GuardLimits(rows=built.rows, columns=built.columns, pages=built.pages)
        return GuardEngine(engine, limits, Path("page_guard.ptx") if built.plugin == "embedded" else _library())

    def workspace(self, geometry: EngineGeometry, part: RankPart) -> AllReduceWorkspace | None:
        return AllReduceWorkspace(geometry, part) if geometry.pretrained_config.mapping.tp_size > 1 else None


def _library() -> Path:
    """The guard's plugin, where its engine does not carry the kernel itself."""
    given = os.environ.get(PLUGIN_VARIABLE)
    if not given:
        raise SetupError(
            f"the page check of this engine needs its plugin, and {PLUGIN_VARIABLE} names none",
            hint="Give the path of the libroundhouse_kv_page_guard.so that it was built with, or serve with --guard off.",
        )
    return Path(given)

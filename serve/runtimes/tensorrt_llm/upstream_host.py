"""This machine's GPUs and TensorRT-LLM, to load an engine with."""

from __future__ import annotations

from pathlib import Path

from roundhouse.build.compiled import CompiledGuard
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

__all__ = ["GUARD_LIBRARY", "UpstreamHost"]

GUARD_LIBRARY = "libroundhouse_kv_page_guard.so"
"""Beside the engine, where the guard's engine does not carry its kernel itself."""


class UpstreamHost:
    """A :class:`~.load.Host`."""

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
        plugin = Path("page_guard.ptx") if built.plugin == "embedded" else folder / GUARD_LIBRARY
        return GuardEngine(engine, limits, plugin)

    def workspace(self, geometry: EngineGeometry, part: RankPart) -> AllReduceWorkspace | None:
        return AllReduceWorkspace(geometry, part) if geometry.pretrained_config.mapping.tp_size > 1 else None

"""From an engine folder to a running rank: rank 0 becomes the runtime, every other one follows it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from roundhouse.build.compiled import COMPILED
from roundhouse.errors import EngineError

from .fitting import engine_geometry
from .link import Link, NoLink
from .rank import RankEngine, follow
from .ranks import RankPart, rank_parts
from .runtime import TensorRtRuntime, begin
from .session import Device, Session, Workspace

if TYPE_CHECKING:
    from roundhouse.build.compiled import CompiledGuard
    from roundhouse.build.engine import Engine
    from roundhouse.plugins.native_guard import FirstBad

    from .geometry import EngineGeometry

__all__ = ["Host", "follow_engine", "load_runtime"]


class Host(Protocol):
    """What an engine is loaded with; the GPU's is :class:`~.upstream_host.UpstreamHost`."""

    def link(self, size: int) -> Link:
        """To the other ranks of an engine with more than one."""
        ...

    def device(self, rank: int) -> Device:
        """The GPU of a rank."""
        ...

    def session(self, engine: bytes, part: RankPart) -> Session:
        """Load a serialized engine."""
        ...

    def guard(self, built: CompiledGuard | None, folder: Path) -> FirstBad:
        """What compares tags: the guard that was built with the engine, in this folder, or torch's own operations."""
        ...

    def workspace(self, geometry: EngineGeometry, part: RankPart) -> Workspace | None:
        """Where ranks that share layers add up; None where none are shared. All ranks ask at the same time."""
        ...


def load_runtime(engine: Engine, pages: int, host: Host | None = None) -> TensorRtRuntime:
    """Load rank 0, and let the others load.

    Args:
        engine: of the target ``tensorrt``.
        pages: of every rank's pool.
        host: what to load with; this machine's GPUs when None.

    Raises:
        EngineError: nothing was compiled, or a rank's file is missing.
        SetupError: TensorRT-LLM, MPI or a GPU is missing here.
        ServeError: TensorRT does not take the engine, pages do not fit, or another number of ranks was started.
    """
    geometry, host = engine_geometry(engine), host or _this_host()
    link: Link = NoLink() if geometry.world_size == 1 else host.link(geometry.world_size)
    begin(link, pages)
    return TensorRtRuntime(geometry, _load_rank(engine, geometry, link, host, pages), link)


def follow_engine(engine: Engine, host: Host | None = None) -> None:
    """Be another rank of an engine, until rank 0 ends.

    Raises:
        EngineError: as :func:`load_runtime`.
        SetupError: as :func:`load_runtime`.
        ServeError: as :func:`load_runtime`, or rank 0 said what does not fit.
    """
    geometry, host = engine_geometry(engine), host or _this_host()
    link = host.link(geometry.world_size)
    follow(link, partial(_load_rank, engine, geometry, link, host))


def _load_rank(engine: Engine, geometry: EngineGeometry, link: Link, host: Host, pages: int) -> RankEngine:
    part = rank_parts(geometry)[link.rank]
    folder = engine.folder / COMPILED
    compiled = engine.manifest.compiled
    device = host.device(part.rank)
    with device.active():
        return RankEngine(
            geometry,
            part,
            session=host.session(_engine_bytes(folder, part.rank), part),
            device=device,
            pages=pages,
            guard=host.guard(compiled.guard if compiled else None, folder),
            workspace=host.workspace(geometry, part),
        )


def _engine_bytes(folder: Path, rank: int) -> bytes:
    path = folder / f"rank{rank}.engine"
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineError(f"{path}: {error.strerror}", hint="Build the engine again.") from None


def _this_host() -> Host:
    from .upstream_host import UpstreamHost

    return UpstreamHost()

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
    from roundhouse.build.compiled import Compiled, CompiledGuard
    from roundhouse.build.engine import Engine
    from roundhouse.plugins.native_guard import FirstBad

    from .geometry import EngineGeometry

__all__ = ["Host", "follow_engine", "load_runtime", "require_runnable"]


class Host(Protocol):
    """What an engine is loaded with; the GPU's is :class:`~.upstream_host.UpstreamHost`."""

    def require(self, compiled: Compiled) -> None:
        """See that what was compiled runs here.

        Raises:
            SetupError: there is no TensorRT-LLM, or none that runs engines.
            EngineError: it was compiled for other software or another GPU.
        """
        ...

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
    """Load rank 0 of an engine that :func:`require_runnable` has seen, and let the others load.

    Args:
        engine: of the target ``tensorrt``.
        pages: of every rank's pool.
        host: what to load with; this machine's GPUs when None.

    Raises:
        EngineError: as :func:`require_runnable`.
        SetupError: TensorRT-LLM, MPI or a GPU is missing here.
        ServeError: TensorRT does not take the engine, pages do not fit, or another number of ranks was started.
    """
    host, geometry = host or _this_host(), engine_geometry(engine)
    link: Link = NoLink() if geometry.world_size == 1 else host.link(geometry.world_size)
    begin(link, pages)
    return TensorRtRuntime(geometry, _load_rank(engine, geometry, link, host, pages), link)


def require_runnable(engine: Engine, host: Host | None = None) -> EngineGeometry:
    """See that an engine is whole and runs here, before anything is started for it.

    Raises:
        EngineError: nothing was compiled, a rank's file is missing, or it was compiled for other software or another GPU.
        SetupError: there is no TensorRT-LLM here, or none that runs engines.
    """
    geometry, compiled = engine_geometry(engine), engine.manifest.compiled
    names = [_rank_file(rank) for rank in range(geometry.world_size)]
    if missing := [name for name in names if not (engine.folder / COMPILED / name).is_file()]:
        raise EngineError(f"engine {engine.manifest.id} lacks {', '.join(missing)}", hint="Build it again.")
    if compiled is not None:
        (host or _this_host()).require(compiled)
    return geometry


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
            session=host.session((folder / _rank_file(part.rank)).read_bytes(), part),
            device=device,
            pages=pages,
            guard=host.guard(compiled.guard if compiled else None, folder),
            workspace=host.workspace(geometry, part),
        )


def _rank_file(rank: int) -> str:
    return f"rank{rank}.engine"


def _this_host() -> Host:
    from .upstream_host import UpstreamHost

    return UpstreamHost()

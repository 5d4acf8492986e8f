"""What is measured, made ready for it: an engine alone, an engine behind a server of ours, or an endpoint that is there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import Home
from roundhouse.build.recipe import Recipe
from roundhouse.errors import BenchmarkStoppedError, UsageError

from ..deployment import Deployment, Ports
from ..measurement.about import Subject
from ..measurement.endpoints import is_here
from ..measurement.engines import subject_of
from ..measurement.gpus import NO_GPUS, Gpus
from ..measurement.processes import Family, families_at
from ..settings import EngineSettings, Overrides
from .counts import NO_COUNTS, CountsSource, TritonCounts, pool_pages
from .driver import LoadDriver
from .fitting import remarks
from .wish import BenchmarkWish

__all__ = ["OpenSubject", "PreparedSubject"]


@dataclass(frozen=True)
class OpenSubject:
    """Something that can be measured now."""

    subject: Subject
    driver: LoadDriver
    counts: CountsSource
    gpus: Gpus
    """Those that it may run on."""
    here: bool
    """Whether it is on this machine."""
    recipe: Recipe | None = None
    """Of an engine of ours that runs as its subject says, with our packages; None for a server of which that is not known."""
    families: tuple[Family, ...] | None = ()
    """Its processes that we have not started; None when they cannot be told from others'."""
    require_running: Callable[[], None] = lambda: None
    """Raises ServeError when it has ended by itself."""


@dataclass(frozen=True)
class PreparedSubject:
    """A wish that was looked at and can be fulfilled. Nothing is started yet."""

    home: Home
    wish: BenchmarkWish
    engine: Engine | None = None
    settings: EngineSettings | None = None
    """Of an engine that is started for the benchmark."""
    url: str | None = None
    model: str | None = None
    key: str | None = None
    metrics: str | None = None

    @property
    def name(self) -> str:
        """The engine's, or the model's at the endpoint."""
        return self.engine.manifest.name if self.engine else self.model or ""

    @property
    def remarks(self) -> list[str]:
        """What there is to say beforehand."""
        return remarks(self.engine, self.settings, self.wish) if self.engine and self.settings else []

    @contextlib.contextmanager
    def opened(self, gpus: Gpus, stop: threading.Event) -> Iterator[OpenSubject]:
        """Start what has to be started, and end it again.

        Args:
            gpus: of this machine.
            stop: gives up when it is set.

        Raises:
            SetupError: what it needs is not there.
            ServeError: it could not be started.
            BenchmarkStoppedError: ``stop`` was set.
        """
        opening = self._at_url if self.url else self._bare if self.wish.driver == "loop" else self._served
        with opening(gpus, stop) as subject:
            yield subject

    @contextlib.contextmanager
    def _bare(self, gpus: Gpus, stop: threading.Event) -> Iterator[OpenSubject]:
        from .loop_driver import LoopDriver

        engine, settings = self._own()
        with LoopDriver(engine, settings, stop=stop) as driver:
            subject = subject_of(engine, settings)
            yield OpenSubject(subject, driver, driver, gpus, here=True, recipe=engine.manifest.recipe)

    @contextlib.contextmanager
    def _served(self, gpus: Gpus, stop: threading.Event) -> Iterator[OpenSubject]:
        engine, settings = self._own()
        ports = Ports(http=0, grpc=0, metrics=0, openai=0)
        # Exactly the pages that were counted with: another engine may be started beside it.
        memory = Overrides(kv_cache_tokens=settings.kv.tokens).model_dump(exclude_none=True)
        overrides = self.wish.overrides.model_copy(update={"memory_fraction": None, "kv_cache_bytes": None, **memory})
        deployment = Deployment([engine], self.home, ports=ports, overrides=overrides)
        try:
            if not deployment.start(stop):
                raise BenchmarkStoppedError("the benchmark was stopped")
            at = deployment.endpoints
            with self._driver(at.openai, at.model, engine) as driver:
                yield OpenSubject(
                    subject_of(engine, settings, url=at.openai),
                    driver,
                    TritonCounts(at.metrics, at.model),
                    gpus,
                    here=True,
                    recipe=engine.manifest.recipe,
                    require_running=deployment.require_running,
                )
        finally:
            deployment.close(grace_s=0.0)

    @contextlib.contextmanager
    def _at_url(self, gpus: Gpus, stop: threading.Event) -> Iterator[OpenSubject]:
        url, model, wish = self.url or "", self.model or "", self.wish
        here = is_here(url)
        counts = TritonCounts(self.metrics, model) if self.metrics else NO_COUNTS
        if self.engine is None:
            subject = Subject(kind="endpoint", name=model, model=model, url=url, server=wish.server)
        else:
            subject = subject_of(self.engine, self._settings_of(self.engine, counts, stop), url=url)
        with self._driver(url, model, self.engine) as driver:
            yield OpenSubject(
                subject,
                driver,
                counts,
                gpus if here else NO_GPUS,
                here=here,
                # Whoever listens there may run elsewhere, or with other packages: known is what proved to be ours.
                recipe=self.engine.manifest.recipe if self.engine and subject.settings else None,
                families=families_at(each for each in (url, self.metrics) if each and is_here(each)) if here else None,
            )

    @contextlib.contextmanager
    def _driver(self, url: str, model: str, engine: Engine | None) -> Iterator[LoadDriver]:
        from .aiperf.driver import AiperfDriver

        given = self.wish.tokenizer
        tokenizer = Path(given) if given else None if engine is None else engine.checkpoint
        with AiperfDriver(self.home, url=url, model=model, tokenizer=tokenizer, api_key=self.key) as driver:
            yield driver

    def _own(self) -> tuple[Engine, EngineSettings]:
        if self.engine is None or self.settings is None:
            raise UsageError("the bare loop and a server of ours need an engine")
        return self.engine, self.settings

    def _settings_of(self, engine: Engine, counts: CountsSource, stop: threading.Event) -> EngineSettings | None:
        """What an engine runs with that others have started, if its pool is as large as we make it out to be."""
        try:
            settings = EngineSettings.for_engine(engine, self.wish.overrides, free_memory=this_machine().total_memory)
        except UsageError:
            return None
        return settings if pool_pages(counts, stop) == settings.kv.pages else None

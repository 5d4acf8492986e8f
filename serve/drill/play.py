"""A drill as it is played from outside: on this machine, with the guard and the kernels that engines run with here."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from roundhouse.build.events import OnStep

from ..runtimes import require_runnable
from ..runtimes.kernel_choice import find_kernels
from .drill import Case, run_drill
from .episode import Ground
from .report import DrillReport
from .synthetic_ground import synthetic_ground

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine
    from roundhouse.build.home import Home

__all__ = ["play_drill"]

_STEPS = 2_000
_STEPS_WITH_ENGINE = 100


def play_drill(
    home: Home,
    engine: Engine | None,
    cases: Sequence[Case],
    *,
    seed: int | None = None,
    steps: int | None = None,
    on_case: OnStep = lambda *_: None,
) -> DrillReport:
    """Play cases.

    Args:
        home: whose native kernels are used; they are compiled when they are not there.
        engine: whose model runs; None: no model, and far more steps in the same time.
        cases: what is played.
        seed: decides everything; None: a new one, which the report names.
        steps: of each case, at least; None: 2,000, and 100 with an engine.
        on_case: told how many cases of all are behind us.

    Raises:
        UsageError: the engine's target has a loop of its own.
        EngineError: as :func:`roundhouse.serve.runtimes.require_runnable`.
        SetupError: as :func:`roundhouse.serve.runtimes.require_runnable`.
    """
    if engine is not None:
        require_runnable(engine)  # before kernels are compiled for it
    find_kernels("auto", home.kernels)  # the guard that engines run with here
    ground: Callable[[Random], Ground] = synthetic_ground
    if engine is not None:
        from .engine_ground import engine_grounds

        ground = engine_grounds(engine)
    # Every fault that is found is an error in the loop's log, and here there are thousands.
    logging.getLogger("roundhouse.serve.engine").addHandler(logging.NullHandler())
    return run_drill(
        ground,
        cases,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        steps=steps or (_STEPS if engine is None else _STEPS_WITH_ENGINE),
        engine=None if engine is None else engine.manifest.id,
        on_case=on_case,
    )

"""How fast an engine is, beside ``transformers.generate`` on the same weights in the same run.

    python tests/bench/run.py --concurrency 1,8,32 --json bench.json

What the columns mean is in docs/benchmarks.md. Nothing here passes or fails by how long something took.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from bench import Bench

from roundhouse.build.command_options import progress_terminal
from roundhouse.build.engine import Engine
from roundhouse.build.home import default_home
from roundhouse.build.models.sources import DEMO_MODEL
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import Recipe
from roundhouse.build.store import EngineStore
from roundhouse.errors import RoundhouseError
from roundhouse.serve.threads import prepare_threads


def main() -> int:
    """Measure, print tables, and write everything that was seen when asked to."""
    given = _options()
    found = dict(os.environ)
    prepare_threads()  # before anything imports torch, as the engine's own process does
    bench = Bench(
        _engine(given.engine),
        concurrency=given.concurrency,
        input_tokens=given.input_tokens,
        output_tokens=given.output_tokens,
        repeats=given.repeats,
        environment=found,
    )
    report = bench.run()
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description="How fast an engine is, beside transformers.generate on the same weights.")
    options.add_argument("--concurrency", type=_numbers, default=[1, 8, 32], help="requests at once, such as 1,8,32")
    options.add_argument("--input-tokens", type=_positive, default=128, help="of each prompt")
    options.add_argument("--output-tokens", type=_positive, default=64, help="of each answer")
    options.add_argument("--repeats", type=_positive, default=3)
    options.add_argument("--engine", help="an engine's name, id or folder; the demo's, built when it is not there")
    options.add_argument("--json", type=Path, help="a file for everything that was measured")
    return options.parse_args()


def _numbers(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def _engine(wanted: str | None) -> Engine:
    home = default_home()
    if wanted is not None:
        return EngineStore(home).find(wanted)
    with progress_terminal() as terminal:
        return build(Recipe(model=DEMO_MODEL, name="demo"), home, terminal).engine


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RoundhouseError as error:
        sys.exit(str(error))

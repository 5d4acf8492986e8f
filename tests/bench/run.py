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
from options import ENGINE_HELP, engine_of, numbers, positive

from roundhouse.errors import RoundhouseError
from roundhouse.serve.threads import prepare_threads


def main() -> int:
    """Measure, print tables, and write everything that was seen when asked to."""
    given = _options()
    found = dict(os.environ)
    prepare_threads()  # before anything imports torch, as the engine's own process does
    bench = Bench(
        engine_of(given.engine),
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
    options.add_argument("--concurrency", type=numbers, default=[1, 8, 32], help="requests at once, such as 1,8,32")
    options.add_argument("--input-tokens", type=positive, default=128, help="of each prompt")
    options.add_argument("--output-tokens", type=positive, default=64, help="of each answer")
    options.add_argument("--repeats", type=positive, default=3)
    options.add_argument("--engine", help=ENGINE_HELP)
    options.add_argument("--json", type=Path, help="a file for everything that was measured")
    return options.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RoundhouseError as error:
        sys.exit(str(error))

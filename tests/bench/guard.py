"""What the page check costs: alone, in a decode step, and to whoever waits for tokens.

    python tests/bench/guard.py --interleaved 1,8 --json guard.json

What the columns mean is in docs/benchmarks.md. Nothing here passes or fails by how long something took.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from guard_ratios import FEWEST_ROUNDS
from options import ENGINE_HELP, engine_of, numbers, positive

from roundhouse.errors import RoundhouseError
from roundhouse.serve.threads import prepare_threads


def main() -> int:
    """Measure, print tables, and write everything that was seen when asked to."""
    given = _options()
    prepare_threads()
    from guard_bench import GuardBench  # imports torch, which must find the threads prepared

    bench = GuardBench(
        engine_of(given.engine),
        concurrency=given.concurrency,
        interleaved=given.interleaved,
        input_tokens=given.input_tokens,
        output_tokens=given.output_tokens,
        rounds=given.rounds,
    )
    report = bench.run()
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description="What the page check costs: alone, in a step, and off beside on.")
    options.add_argument(
        "--concurrency", type=numbers, default=[1, 2, 4, 8, 32, 64], help="requests at once where a step is taken apart"
    )
    options.add_argument("--interleaved", type=numbers, default=[1, 8, 32], help="requests at once where off and on take turns")
    options.add_argument("--input-tokens", type=positive, default=128, help="of each prompt")
    options.add_argument("--output-tokens", type=positive, default=48, help="of each answer")
    options.add_argument("--rounds", type=_rounds, default=9, help=f"how often off and on take turns, {FEWEST_ROUNDS} or more")
    options.add_argument("--engine", help=ENGINE_HELP)
    options.add_argument("--json", type=Path, help="a file for everything that was measured")
    return options.parse_args()


def _rounds(text: str) -> int:
    number = positive(text)
    if number < FEWEST_ROUNDS:
        raise argparse.ArgumentTypeError(f"{number} rounds give no 95 % interval; it takes {FEWEST_ROUNDS}")
    return number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RoundhouseError as error:
        sys.exit(str(error))

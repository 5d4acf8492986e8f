"""Run by TensorRT-LLM's own Python: builds the page guard as an engine of its own, by ``guard_build.py JOB.json``.

Of this package it needs ``roundhouse.plugins.tensorrt_guard``, which imports TensorRT and nothing else that is heavy.
"""

import json
import sys
from pathlib import Path

__all__ = ["main"]


def main(job_file: str) -> None:
    """Read a job (``plugin``, ``output``, ``rows``, ``columns``, ``pages``), and write the serialized engine."""
    from roundhouse.errors import RoundhouseError
    from roundhouse.plugins.tensorrt_guard import GuardLimits, build_guard_engine

    job = json.loads(Path(job_file).read_text())
    limits = GuardLimits(rows=job["rows"], columns=job["columns"], pages=job["pages"])
    try:
        engine = build_guard_engine(Path(job["plugin"]), limits)
    except RoundhouseError as error:
        sys.exit(str(error))
    Path(job["output"]).write_bytes(engine)


if __name__ == "__main__":
    sys.path.pop(0)  # this script's folder: its other modules must not be taken for anyone's
    main(*sys.argv[1:])

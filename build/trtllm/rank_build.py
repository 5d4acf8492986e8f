"""Run by TensorRT-LLM's own Python: builds one rank of an engine, by ``rank_build.py JOB.json RANK``.

A script, not a module of this package: it imports nothing but the standard library and TensorRT-LLM. It tells how far it is
on lines of its own, which ``children.py`` looks for among upstream's.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

__all__ = ["main"]


def main(job_file: str, rank_text: str) -> None:
    """Read a job (``checkpoint``, ``output``, ``build_config``), build the rank, and save ``rankN.engine``.

    Every rank has an output folder of its own; the first saves the engine's ``config.json``, too.
    """
    job, rank = json.loads(Path(job_file).read_text()), int(rank_text)
    builder, models = import_module("tensorrt_llm.builder"), import_module("tensorrt_llm.models")
    import_module("tensorrt_llm.logger").logger.set_level("info")
    _say("imported")
    config = import_module("tensorrt_llm.models.modeling_utils").PretrainedConfig.from_json_file(
        str(Path(job["checkpoint"]) / "config.json")
    )
    model = models.MODEL_MAP[config.architecture].from_checkpoint(job["checkpoint"], rank=rank, config=config)
    _say("loaded")
    engine = builder.build(model, builder.BuildConfig(**job["build_config"]))
    if engine is None or engine.engine is None:
        sys.exit("TensorRT built no engine; its log, above, says why")
    _say("built")
    engine.save(str(Path(job["output"]) / f"rank{rank}"))
    _say("saved")


def _say(milestone: str) -> None:
    sys.stdout.write(f"roundhouse: {milestone}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path.pop(0)  # this script's folder: its other modules must not be taken for anyone's
    main(*sys.argv[1:])

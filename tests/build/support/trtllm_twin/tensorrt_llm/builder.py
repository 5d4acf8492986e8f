"""The twin's builder: an engine is JSON of what it was asked to be built from."""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from .logger import logger

__all__ = ["BuildConfig", "Engine", "build"]


class BuildConfig:
    """Keeps its keys."""

    def __init__(self, **keys):
        self.keys = keys


class Engine:
    """What was asked for, under upstream's names."""

    def __init__(self, config, engine, managed_weights=None):
        self.config, self.engine, self.managed_weights = config, engine, managed_weights or {}

    def save(self, engine_dir):
        rank = self.config["rank"]
        if rank == 0:
            kept = {key: value for key, value in self.config.items() if key != "rank"}
            Path(engine_dir, "config.json").write_text(json.dumps(kept))
        path = Path(engine_dir, f"rank{rank}.engine")
        logger.info(f"Serializing engine to {path}...")
        path.write_bytes(self.engine)
        logger.info("Engine serialized. Total time: 00:00:00")


def build(model, build_config):
    rank = model.config.mapping.rank
    logger.info("Build TensorRT engine Unnamed Network 0")
    if os.environ.get("TWIN_FAILS_AT") == str(rank):
        sys.stderr.write("[TRT] [E] 10: Could not find any implementation for node\n")
        raise RuntimeError("Engine building failed, please check the error log.")
    if os.environ.get("TWIN_FAILS_AT"):
        time.sleep(60)  # until it is ended
    logger.info("Total time of building Unnamed Network 0: 00:00:01")
    _turn_off_what_cannot_be(model.config.keys["quantization"], build_config.keys["plugin_config"])
    Path("model.cache").write_bytes(b"timings")  # upstream's default is a name in the working folder
    made_from = {
        "rank": rank,
        "weights": hashlib.sha256(Path(model.path).read_bytes()).hexdigest(),
        "device": os.environ["CUDA_VISIBLE_DEVICES"],
    }
    config = {"rank": rank, "version": "1.2.1", "pretrained_config": model.config.keys, "build_config": build_config.keys}
    return Engine(config, json.dumps(made_from).encode())


def _turn_off_what_cannot_be(quantization, plugins):
    """Context attention's switches as upstream's build() leaves them on GPUs with FP8."""
    fp8_cache = quantization["kv_cache_quant_algo"] == "FP8"
    if not plugins.get("context_fmha", True):
        plugins.update(use_fp8_context_fmha=False, use_paged_context_fmha=False)
    elif quantization["quant_algo"] != "FP8":
        plugins["use_fp8_context_fmha"] = False
        plugins["use_paged_context_fmha"] = plugins["use_paged_context_fmha"] and not fp8_cache
    elif plugins["use_paged_context_fmha"]:
        plugins["use_fp8_context_fmha"] = fp8_cache

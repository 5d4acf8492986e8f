"""TensorRT-LLM on this machine: which version, and which of our targets it can run.

The engine path (``trtllm-build``, ``tensorrt_llm.builder``) ended with 1.3.0rc20; from 1.3.0rc21 on
only the PyTorch backend remains.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.version import InvalidVersion, Version

__all__ = ["installed_version", "target_verdicts"]

_FIRST_WITHOUT_ENGINES = Version("1.3.0rc21")
_OLDEST = Version("1.2.0")


def installed_version() -> str | None:
    """The version of the installed tensorrt_llm package, or None. Nothing of it is imported."""
    for name in ("tensorrt_llm", "tensorrt-llm"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def target_verdicts(found: str | None) -> dict[str, str | None]:
    """For each TensorRT-LLM target, None when this version can run it, else the reason why not."""
    if found is None:
        missing = "TensorRT-LLM is not installed in this environment"
        return {"tensorrt": missing, "trtllm-pytorch": missing}
    try:
        parsed = Version(found)
    except InvalidVersion:
        unreadable = f"TensorRT-LLM calls itself {found!r}, which is not a version"
        return {"tensorrt": unreadable, "trtllm-pytorch": unreadable}
    if parsed < _OLDEST:
        old = f"TensorRT-LLM {found} is older than {_OLDEST}"
        return {"tensorrt": old, "trtllm-pytorch": old}
    if parsed >= _FIRST_WITHOUT_ENGINES:
        gone = f"TensorRT-LLM {found} has no engine path (it ended with 1.3.0rc20); use the target trtllm-pytorch"
        return {"tensorrt": gone, "trtllm-pytorch": None}
    return {"tensorrt": None, "trtllm-pytorch": None}

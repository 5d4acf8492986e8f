"""TensorRT-LLM: which versions we can build for, and what is recorded of its surface (``upstream.json``)."""

from .interpreter import version_there
from .versions import installed_version, target_verdicts

__all__ = ["installed_version", "target_verdicts", "version_there"]

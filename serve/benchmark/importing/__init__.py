"""Result files of other tools as runs of the history: aiperf's, and those of vLLM's serve benchmark."""

from .importing import import_results, read_results

__all__ = ["import_results", "read_results"]

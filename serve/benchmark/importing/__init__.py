"""Result files of other tools as runs of the history: aiperf's, and those of vLLM's serve benchmark."""

from .importing import checked_results, import_results, read_results, store_results

__all__ = ["checked_results", "import_results", "read_results", "store_results"]

"""How the command line calls what a wish, its workload and its overrides hold."""

from __future__ import annotations

__all__ = ["option_of"]

_CALLED_OTHERWISE = {
    "concurrencies": "--concurrency",
    "prefill_lengths": "--prefill",
    "request_timeout_s": "--timeout",
}


def option_of(field: object) -> str:
    """The option for a field, such as ``--timeout`` for ``request_timeout_s``."""
    return _CALLED_OTHERWISE.get(str(field), "--" + str(field).replace("_", "-"))

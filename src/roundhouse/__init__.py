"""Roundhouse: plan, build, inspect and serve quantized engines of open models.

The rooms, lowest first: :mod:`roundhouse.plugins` (page tags and native code),
:mod:`roundhouse.build` (recipe to engine directory), :mod:`roundhouse.serve` (engine directory to
tokens) and :mod:`roundhouse.console` (the web console). A room imports only rooms below it.
"""

__version__ = "0.2.0"

__all__ = ["__version__"]

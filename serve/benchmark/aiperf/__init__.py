"""aiperf, which makes load over HTTP: found or installed in an environment of its own, configured, run and read."""

from .driver import AiperfDriver
from .install import install_aiperf
from .locate import Aiperf, find_aiperf

__all__ = ["Aiperf", "AiperfDriver", "find_aiperf", "install_aiperf"]

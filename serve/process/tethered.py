"""The owner's side of a tether: a command that ends with this process, and whose output is relayed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from . import tether

__all__ = ["TetheredProcess"]


class TetheredProcess:
    """Starts a command on a tether (:mod:`roundhouse.serve.process.tether`).

    Args:
        command: what to run.
        environment: all of its environment variables.
        on_line: gets each line that it or its children print, from a thread of its own.
        descriptors: open files that it inherits, under the same numbers.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        *,
        descriptors: Collection[int] = (),
    ) -> None:
        self._on_line = on_line
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-S", tether.__file__, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=descriptors,
            start_new_session=True,  # Ctrl-C in a terminal is for the owner to handle, in order
        )
        self._relay = threading.Thread(target=self._relay_lines, name="tethered-output", daemon=True)
        self._relay.start()

    @property
    def exit_code(self) -> int | None:
        """How the command ended, or None while it runs."""
        return self._process.poll()

    def ask_to_end(self) -> None:
        """Send the command SIGTERM, and do not wait for what it makes of it."""
        self._process.terminate()

    def stop(self, grace_s: float) -> None:
        """Ask the command to end, and kill it and all its children when it has not after ``grace_s`` seconds."""
        self.ask_to_end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=grace_s)
        self.close()

    def close(self) -> None:
        """Cut the tether, wait for the end and for the last lines of output."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._relay.join(timeout=5.0)

    def _relay_lines(self) -> None:
        if self._process.stdout is None:
            return
        with self._process.stdout as lines:
            for line in lines:
                with contextlib.suppress(Exception):  # a log that fails (a closed terminal) must not fill the pipe
                    self._on_line(line.rstrip())

"""The twin's log, in upstream's form."""

import sys

__all__ = ["logger"]


class Logger:
    """Prints what upstream's would."""

    level = "warning"

    def set_level(self, min_severity: str) -> None:
        self.level = min_severity

    def info(self, message: str) -> None:
        if self.level == "info":
            sys.stdout.write(f"[11/30/2026-12:00:00] [TRT-LLM] [I] {message}\n")


logger = Logger()

"""The optional parts of the installation, and a clear word when one is needed and not there."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from typing import Literal

from roundhouse.errors import SetupError

__all__ = ["Extra", "require_extra"]

Extra = Literal["build", "serve", "console", "parquet"]

_MODULES: dict[Extra, tuple[str, ...]] = {
    "build": ("torch", "transformers", "modelopt", "safetensors", "gguf"),
    "serve": ("torch", "transformers", "msgspec", "zmq", "fastapi", "httpx", "uvicorn", "tritonclient"),
    "console": ("alembic", "argon2", "fastapi", "httpx", "jinja2", "pwdlib", "sqlalchemy", "uvicorn"),
    "parquet": ("pyarrow",),
}
"""What each extra of pyproject.toml brings, by import name."""


def require_extra(*extras: Extra, only: Collection[str] | None = None) -> None:
    """See that everything of these extras can be imported; nothing of it is.

    Args:
        extras: of this package.
        only: the modules of them that are really needed; all when None.

    Raises:
        SetupError: naming what is missing and how to install it.
    """
    needed = only or [module for extra in extras for module in _MODULES[extra]]
    missing = [module for module in needed if find_spec(module) is None]
    if missing:
        raise SetupError(
            f"this installation lacks {', '.join(dict.fromkeys(missing))}",
            hint=f"pip install 'roundhouse-llm[{','.join(extras)}]'",
        )

"""The optional parts of the installation, and a clear word when one is needed and not there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from roundhouse.errors import SetupError

__all__ = ["Extra", "require_extra"]

Extra = Literal["build", "serve", "console"]

_MODULES: dict[Extra, tuple[str, ...]] = {
    "build": ("torch", "transformers", "modelopt", "safetensors", "gguf"),
    "serve": ("torch", "transformers", "msgspec", "zmq", "fastapi", "httpx", "uvicorn", "tritonclient"),
    "console": ("alembic", "argon2", "fastapi", "httpx", "jinja2", "pwdlib", "sqlalchemy", "uvicorn"),
}
"""What each extra of pyproject.toml brings, by import name."""


def require_extra(*extras: Extra) -> None:
    """See that everything of these extras can be imported; nothing of it is.

    Raises:
        SetupError: naming what is missing and how to install it.
    """
    missing = [module for extra in extras for module in _MODULES[extra] if find_spec(module) is None]
    if missing:
        raise SetupError(
            f"this installation lacks {', '.join(dict.fromkeys(missing))}",
            hint=f"pip install 'roundhouse-llm[{','.join(extras)}]'",
        )

"""A model as the front serves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .chat import ChatTemplate
from .errors import ApiError
from .triton_client import Generator

__all__ = ["ServedModel", "model_named"]


@dataclass(frozen=True)
class ServedModel:
    """How a model's messages become a prompt, and what answers it; ``connect`` is called inside the server's event loop."""

    template: ChatTemplate
    connect: Callable[[], Generator]


def model_named(name: str, models: Mapping[str, ServedModel]) -> ServedModel:
    """The model of a name.

    Raises:
        ApiError: it is not served here.
    """
    if name not in models:
        served = ", ".join(map(repr, models))
        message = f"the model {name!r} is not served here; {served} {'is' if len(models) == 1 else 'are'}"
        raise ApiError(404, message, code="model_not_found", param="model")
    return models[name]

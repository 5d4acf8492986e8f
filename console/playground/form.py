"""The playground's form as a browser without scripts sends it: every field a text."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .question import Parameters

__all__ = ["PlaygroundForm"]

_LARGEST = 900_000


class PlaygroundForm(BaseModel):
    """What was typed."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    chosen: Annotated[str, Field(alias="with", max_length=64)] = ""
    """Id of the deployment that is asked."""
    beside: Annotated[str, Field(max_length=64)] = ""
    """Id of a second one."""
    conversation: Annotated[str, Field(max_length=_LARGEST)] = ""
    """What was said before, as JSON."""
    prompt: str = ""
    system: str = ""
    temperature: str = "0"
    """The likeliest answer, so that what one sees is the engine and not the dice."""
    top_p: str = ""
    top_k: str = ""
    max_tokens: str = "256"
    seed: str = ""
    stop: str = ""
    """One text a line."""

    def parameters(self) -> tuple[Parameters, dict[str, str]]:
        """How to answer, and what is wrong with it by field; where something is, the parameters are the default ones."""
        given: dict[str, Any] = {
            name: text
            for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")
            if (text := getattr(self, name).strip())
        }
        stop = tuple(line for line in self.stop.splitlines() if line)
        try:
            return Parameters(system=self.system.strip(), stop=stop, **given), {}
        except ValidationError as error:
            return Parameters(), {str(each["loc"][0]): each["msg"] for each in error.errors()}

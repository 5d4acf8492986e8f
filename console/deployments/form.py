"""The form for a new deployment: every field a text, and what it comes to."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from roundhouse.serve.settings import Overrides

from ..access.secrets import new_secret
from .settings import DeploymentSecrets, DeploymentSettings

__all__ = ["DeployForm"]

_KEY_PREFIX = "rh-"
_Typed = Annotated[str, Field(max_length=2000)]
_PLACES = ("http", "grpc", "metrics", "openai")
_AMOUNTS = {
    "kv_cache_tokens": "write how many tokens, for example 4096",
    "kv_cache_bytes": "write how many bytes, for example 1073741824",
    "memory_fraction": "write which share, for example 0.5",
}
"""What is wanted beside each memory key, where that is no number."""
_NO_NUMBER = {
    "int_parsing": "write a whole number",
    "int_parsing_size": "write a smaller number",
    "float_parsing": "write a number",
}
"""By what pydantic calls the problem."""
_REMOTE = ("triton_url", "triton_grpc", "triton_metrics", "control_header")


class DeployForm(BaseModel):
    """What was typed."""

    model_config = ConfigDict(frozen=True)

    engine: _Typed = ""
    """Its id."""
    host: _Typed = ""
    """Empty: one that has the engine and a live worker."""
    name: _Typed = ""
    kind: _Typed = "local"
    address: _Typed = "127.0.0.1"
    http: _Typed = "0"
    grpc: _Typed = "0"
    metrics: _Typed = "0"
    openai: _Typed = "0"
    triton_url: _Typed = ""
    triton_grpc: _Typed = ""
    triton_metrics: _Typed = ""
    control_header: _Typed = ""
    control_value: SecretStr = SecretStr("")
    max_batch_size: _Typed = ""
    max_seq_len: _Typed = ""
    memory: _Typed = ""
    """Which memory key is given, if any."""
    memory_value: _Typed = ""
    guard: _Typed = ""
    guard_sample: _Typed = ""
    page_tokens: _Typed = ""
    prefix_reuse: _Typed = ""
    max_waiting: _Typed = ""
    tool_form: _Typed = ""
    keyed: _Typed = ""
    api_key: SecretStr = SecretStr("")
    idempotency_key: _Typed = ""

    @classmethod
    def like(cls, settings: DeploymentSettings, host: str) -> Self:
        """The form that asks for the same again; secrets are not shown."""
        kept = settings.model_dump(exclude={"overrides", "engine_id", "keyed"}, exclude_none=True)
        changed = settings.overrides.model_dump(exclude_none=True)
        memory = next((key for key in ("kv_cache_tokens", "kv_cache_bytes", "memory_fraction") if key in changed), "")
        typed = {name: str(value) for name, value in (kept | changed).items() if name in cls.model_fields}
        if "prefix_reuse" in changed:
            typed["prefix_reuse"] = "on" if changed["prefix_reuse"] else "off"
        given = {"memory": memory, "memory_value": str(changed.get(memory, "")), "keyed": "on" if settings.keyed else ""}
        return cls(engine=settings.engine_id, host=host, **{**typed, **given})

    def read(self) -> tuple[DeploymentSettings | None, DeploymentSecrets, dict[str, str]]:
        """The settings, its secrets, and what is wrong by field; where something is, there are no settings."""
        overrides, errors = self.overrides()
        remote = self.kind == "remote"
        given: dict[str, Any] = {name: getattr(self, name).strip() or None for name in _REMOTE} if remote else {}
        given |= {name: getattr(self, name).strip() or "0" for name in (_PLACES[-1:] if remote else _PLACES)}
        plain = {"kind": self.kind, "engine_id": self.engine, "name": self.name.strip(), "keyed": self.keyed == "on"}
        plain |= {"address": self.address.strip(), "tool_form": self.tool_form or None, "overrides": overrides}
        try:
            settings = DeploymentSettings.model_validate(plain | given)
        except ValidationError as error:
            errors |= {str(each["loc"][0]) if each["loc"] else "kind": _words(each) for each in error.errors()}
        if not self.engine:
            errors["engine"] = "choose an engine"
        return (None if errors else settings), self._secrets(remote), errors

    def overrides(self) -> tuple[Overrides, dict[str, str]]:
        """What is to be changed of the engine's recipe, and what is wrong with it by field."""
        names = ("max_batch_size", "max_seq_len", "guard", "guard_sample", "page_tokens", "max_waiting")
        given: dict[str, Any] = {name: text for name in names if (text := getattr(self, name).strip())}
        if self.prefix_reuse:
            given["prefix_reuse"] = self.prefix_reuse == "on"
        if self.memory_value.strip() and not self.memory:
            return Overrides(), {"memory": "choose what this number is"}
        if self.memory:
            given[self.memory] = self.memory_value.strip()
        try:
            return Overrides.model_validate(given), {}
        except ValidationError as error:
            return Overrides(), dict(self._override_wrong(each) for each in error.errors())

    def _override_wrong(self, problem: Any) -> tuple[str, str]:
        """The field that an override was typed into, and what is wrong with it."""
        key = str(problem["loc"][0])
        if key != self.memory:
            return key, _words(problem)
        if key not in _AMOUNTS:
            return "memory", "choose one of these"
        return "memory_value", _AMOUNTS[key] if problem["type"] in _NO_NUMBER else _words(problem)

    def _secrets(self, remote: bool) -> DeploymentSecrets:
        """A key that is asked for and not typed is drawn."""
        key = self.api_key.get_secret_value() or new_secret(_KEY_PREFIX)
        control = self.control_value if remote and self.control_value.get_secret_value() else None
        return DeploymentSecrets(api_key=SecretStr(key) if self.keyed == "on" else None, control_value=control)


def _words(problem: Any) -> str:
    """What is wrong with a field, for whoever typed it."""
    if problem["type"] in _NO_NUMBER:
        return _NO_NUMBER[problem["type"]]
    if problem["type"] == "string_pattern_mismatch":
        return "letters, digits, dots, dashes and underscores; a letter or digit first"
    return str(problem["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")

"""The plan form, which is also the address of a plan: texts by field, and the recipe that they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from pydantic import ValidationError

from roundhouse.build.planner.problems import Alternative
from roundhouse.build.recipe import Calibration, Recipe

from .recipe_text import given_keys

__all__ = ["FIELDS", "MEMORY_KEYS", "MOST_COMPARED", "FormProblemsError", "PlanForm"]

MEMORY_KEYS = ("memory_fraction", "kv_cache_bytes", "kv_cache_tokens")
_NOT_IN_THE_FORM = (*MEMORY_KEYS, "calibration", "target_options", "lm_head")
_CALIBRATION = tuple(f"calibration.{key}" for key in Calibration.model_fields)
_RECIPE = tuple(key for key in Recipe.model_fields if key not in _NOT_IN_THE_FORM)
FIELDS = (*_RECIPE, "memory", "memory_value", *_CALIBRATION, "device", "request_tokens", "price")
"""Every field, by the name that it has in addresses: the recipe's keys, and what a plan asks beside them."""
MOST_COMPARED = 4
_WITH = "with"
_LONGEST = 1_024
_BYTES = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt])i?b?", re.IGNORECASE)
_QUOTED = re.compile(r"'([^']+)'")
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_EXPECTED = {
    "int_parsing": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "int_type": "a whole number is needed",
    "int_parsing_size": "nothing is so large",
    "float_parsing": "a number is needed",
    "float_type": "a number is needed",
    "finite_number": "a number is needed",
    "bool_parsing": "it is either on or off",
    "string_pattern_mismatch": "letters, digits, dots, dashes and underscores only, the first a letter or a digit",
    "string_too_short": "it is missing",
}


class FormProblemsError(Exception):
    """Fields that need other values.

    Args:
        problems: field → what is wrong, in words.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in problems.items()))
        self.problems = dict(problems)


@dataclass(frozen=True)
class PlanForm:
    """What somebody typed. Empty fields are left out."""

    values: Mapping[str, str] = field(default_factory=dict)
    compared: tuple[str, ...] = ()
    """Other plans beside this one, each as the address that it had."""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> PlanForm:
        """Read an address; what no field is called like is left out."""
        values, compared = dict[str, str](), list[str]()
        for key, value in pairs:
            text = value.strip()[: _LONGEST + 1]
            if key == _WITH and value:
                compared.append(_form_of(value).query)
            elif key in FIELDS and text:
                values[key] = text
        return cls(values, tuple(dict.fromkeys(query for query in compared if query))[:MOST_COMPARED])

    @classmethod
    def of(cls, recipe: Recipe, device: str | None = None) -> PlanForm:
        """The form that means a recipe."""
        given = given_keys(recipe)
        values = {key: _text(given[key]) for key in _RECIPE if key in given and given[key] is not None}
        for key in MEMORY_KEYS:
            if given.get(key) is not None:
                values |= {"memory": key, "memory_value": _text(given[key])}
        for key, value in given.get("calibration", {}).items():
            if value is not None:
                values[f"calibration.{key}"] = _text(value)
        return cls(values | ({"device": device} if device else {}))

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field, filled in or not."""
        return FIELDS

    @property
    def query(self) -> str:
        """The address of this plan alone, always the same for the same plan."""
        return urlencode({key: self.values[key] for key in FIELDS if key in self.values})

    @property
    def full_query(self) -> str:
        """The address of this plan with those beside it."""
        return "&".join(part for part in (self.query, urlencode([(_WITH, each) for each in self.compared])) if part)

    def changed(self, changes: Mapping[str, Any]) -> PlanForm:
        """The same with other values; None takes one away."""
        values = dict(self.values) | {key: _text(value) for key, value in changes.items() if value is not None}
        return PlanForm({key: value for key, value in values.items() if changes.get(key, "") is not None}, self.compared)

    def with_alternative(self, alternative: Alternative) -> PlanForm | None:
        """The same with an alternative taken; None where that cannot be said in a form: it needs another model's files."""
        if not alternative.unquantized:
            return self.changed(alternative.changes)
        model = self.values.get("model", "")
        if not model.startswith("shape:") or "@" in model:
            return None
        return self.changed({"model": f"{model}@bf16", **alternative.changes})

    def compared_with(self, compared: Iterable[str]) -> PlanForm:
        """The same beside other plans."""
        return PlanForm(self.values, tuple(compared)[:MOST_COMPARED])

    def recipe(self) -> Recipe:
        """The recipe that it means.

        Raises:
            FormProblemsError: with a sentence for every field that needs another value.
        """
        problems = {key: "this is too long" for key, value in self.values.items() if len(value) > _LONGEST}
        problems |= {key: "it holds characters that cannot be shown" for key, value in self.values.items() if not _plain(value)}
        keys: dict[str, Any] = {key: self.values[key] for key in _RECIPE if key in self.values}
        calibration = {key: self.values[key] for key in _CALIBRATION if key in self.values}
        if calibration:
            keys["calibration"] = {key.removeprefix("calibration."): value for key, value in calibration.items()}
        memory, value = self.values.get("memory"), self.values.get("memory_value")
        if memory is not None and memory not in MEMORY_KEYS:
            problems["memory"] = f"it is one of {', '.join(MEMORY_KEYS)}"
        elif memory is not None and value is None:
            problems["memory_value"] = "say how much"
        elif memory is None and value is not None:
            problems["memory"] = "say what the number beside it is"
        elif memory is not None and value is not None:
            keys[memory] = _bytes(value) if memory == "kv_cache_bytes" else value
        try:
            recipe = Recipe.model_validate(keys)
        except ValidationError as error:
            for each in error.errors():
                problems.setdefault(*_explained(dict(each)))
        if problems:
            raise FormProblemsError(problems)
        return recipe


def _form_of(query: str) -> PlanForm:
    try:
        return PlanForm.read((key, value) for key, value in parse_qsl(query, max_num_fields=100) if key != _WITH)
    except ValueError:
        return PlanForm()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(text: str) -> bool:
    return text.isprintable()


def _bytes(text: str) -> str:
    """``8 GiB`` in bytes; anything else as it is."""
    found = _BYTES.fullmatch(text)
    return text if found is None else str(round(float(found[1]) * _UNITS[found[2].lower()]))


def _explained(problem: dict[str, Any]) -> tuple[str, str]:
    """Which field a problem belongs to, and what to say of it."""
    path = [str(part) for part in problem["loc"] if part not in ("int", "literal['auto']")]
    name = ".".join(path[:2] if path[:1] == ["calibration"] else path[:1])
    if not name:  # what two keys have to do with each other
        message = str(problem["msg"]).removeprefix("Value error, ")
        return next((key for key in ("guard_sample", "group_size") if message.startswith(key)), "model"), message
    name = "memory_value" if name in MEMORY_KEYS else name
    kind, context = problem["type"], problem.get("ctx", {})
    if len(path) < len(problem["loc"]):
        return name, "auto or a whole number is needed"
    if kind == "missing":
        return name, "choose a model"
    if kind == "literal_error":
        return name, f"it is one of {', '.join(_QUOTED.findall(str(context['expected'])))}"
    if kind in ("greater_than_equal", "greater_than", "less_than_equal", "less_than"):
        words = {
            "greater_than_equal": "at least",
            "greater_than": "more than",
            "less_than_equal": "at most",
            "less_than": "below",
        }
        return name, f"it has to be {words[kind]} {f'{next(iter(context.values())):,}'.removesuffix('.0')}"
    return name, _EXPECTED.get(kind, str(problem["msg"]).removeprefix("Value error, "))

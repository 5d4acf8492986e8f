"""From the words of a command line to wishes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import UsageError

from ..disk import spelled_out
from ..measurement.endpoints import base_url, host_of
from ..measurement.engines import lasting_name
from ..settings import Overrides
from .option_names import OPTIONS
from .wish import BenchmarkWish, usual_seed
from .workload import Workload
from .workload_files import workload_named

__all__ = ["numbers_of", "wishes_of", "with_ids", "workload_of"]

_URL = re.compile(r"https?://", re.IGNORECASE)
_ADDRESS = re.compile(r"[\w.-]+:\d+(/.*)?|\w+://.*")
_WITH_SETTINGS = re.compile(r"(?P<engine>.+):(?P<settings>\w+=.*)")
_OF_ENDPOINTS = ("model", "tokenizer", "metrics", "api_key_variable", "server")


def numbers_of(option: str, text: str) -> tuple[int, ...]:
    """Numbers from 1 on, with commas between them.

    Raises:
        UsageError: naming the option.
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text!r}: these are no numbers", hint=f"Such as {option} 1,8,32.") from None
    if min(numbers) < 1:
        raise UsageError(f"{option} {text!r}: {min(numbers)} is below 1")
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"{option} {text!r}: a number is there twice", hint="--repeats measures everything more than once.")
    return numbers


def wishes_of(subjects: Sequence[str], *, overrides: Overrides, **common: Any) -> list[BenchmarkWish]:
    """A wish for each subject, alike but for what it measures.

    Args:
        subjects: engines as people call them, or with settings of their own (``demo:guard=off,max_batch_size=8``), or URLs.
        overrides: of every engine's recipe, where a subject does not say otherwise.
        common: other fields of :class:`BenchmarkWish`; those of endpoints belong to URLs alone. Without a seed all get the
            same one: what is measured by turns is asked the same.

    Raises:
        UsageError: a subject or a value cannot be, or a key would go to several hosts.
    """
    if common.get("seed") is None:
        common["seed"] = usual_seed(of_url=any(_URL.match(subject) for subject in subjects))
    wishes = []
    for subject in subjects:
        wish = _place(subject, overrides)
        if "url" in wish:
            given = overrides.model_dump(exclude_none=True)
            if given:
                option = OPTIONS.of(next(iter(given)))
                raise UsageError(f"{option} is for engines that are started here; {subject} runs as it is")
        wishes.append(_wish({**common, **wish}))
    if not any(wish.url for wish in wishes):
        for name in _OF_ENDPOINTS:
            if common.get(name) is not None:
                raise UsageError(f"{OPTIONS.of(name)} is for endpoints", hint="Give the URL of one.")
    if common.get("api_key_variable") is not None:
        _refuse_one_key_for_several([wish.url for wish in wishes if wish.url is not None])
    return wishes


def with_ids(home: Home, wishes: Sequence[BenchmarkWish]) -> list[BenchmarkWish]:
    """The same with names of engines that last, and with whole paths.

    Raises:
        UsageError: there is no such engine.
        EngineError: an engine is damaged.
    """
    return [wish.model_copy(update=_lasting(home, wish)) for wish in wishes]


def _lasting(home: Home, wish: BenchmarkWish) -> dict[str, str]:
    changed = {}
    if wish.engine is not None:
        changed["engine"] = lasting_name(home, EngineStore(home).find(wish.engine))
    if wish.tokenizer is not None:
        changed["tokenizer"] = str(spelled_out(wish.tokenizer).resolve())
    return changed


def _refuse_one_key_for_several(urls: Sequence[str]) -> None:
    """A key is its owner's secret: it goes to the host that it is for, and to no other."""
    hosts = dict.fromkeys(host_of(base_url(url)) for url in urls)
    if len(hosts) > 1:
        hint = "Measure each host in a run of its own, with the variable of its own key, and compare the runs."
        raise UsageError(f"one key would be sent to several hosts: {', '.join(hosts)}", hint=hint)


def _place(subject: str, overrides: Overrides) -> dict[str, Any]:
    if _URL.match(subject):
        return {"url": subject}
    if with_settings := _WITH_SETTINGS.fullmatch(subject):
        own = _settings(subject, with_settings["settings"])
        memory = {"memory_fraction", "kv_cache_bytes", "kv_cache_tokens"}
        kept = overrides.model_dump(exclude_none=True, exclude=memory if memory & own.keys() else set())
        return {"engine": with_settings["engine"], "overrides": _overrides(subject, {**kept, **own})}
    if _ADDRESS.fullmatch(subject):
        raise UsageError(f"{subject!r} is neither an engine nor a URL", hint=f"Did you mean http://{subject.split('://')[-1]}?")
    return {"engine": subject, "overrides": overrides}


def _settings(subject: str, text: str) -> dict[str, str]:
    settings = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in Overrides.model_fields:
            known = ", ".join(Overrides.model_fields)
            raise UsageError(f"{subject!r}: {part!r} is no setting", hint=f"Such as demo:guard=off. Settings are: {known}")
        settings[key] = value
    return settings


def _overrides(subject: str, values: dict[str, Any]) -> Overrides:
    try:
        return Overrides.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        raise UsageError(f"{subject!r}: {problem['loc'][0]} {problem['input']}: {problem['msg']}") from None


def _wish(values: dict[str, Any]) -> BenchmarkWish:
    try:
        return BenchmarkWish.model_validate({key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        raise OPTIONS.misfit(error, whole="the benchmark") from None


def workload_of(
    named: str | None, *, input_tokens: int | None, output_tokens: int | None, requests_each: int | None
) -> Workload:
    """What is asked.

    Args:
        named: a shipped workload's name, or a file; None asks prompts of one length.
        input_tokens: of each prompt; for what is not named.
        output_tokens: of each answer; likewise.
        requests_each: requests of a point, as a multiple of its concurrency; None leaves it as it is.

    Raises:
        UsageError: both were given, a number cannot be, or there is no such workload.
    """
    given = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    lengths = {key: value for key, value in given.items() if value is not None}
    if named is not None and lengths:
        option = OPTIONS.of(next(iter(lengths)))
        raise UsageError(f"--workload and {option} exclude each other", hint="A workload says how long its requests are.")
    changes = lengths if requests_each is None else {**lengths, "requests_each": requests_each}
    workload = Workload() if named is None else workload_named(named)
    try:
        return Workload.model_validate({**workload.model_dump(), **changes})
    except ValidationError as error:
        raise OPTIONS.misfit(error, whole="the workload") from None

"""Load over HTTP, made by aiperf."""

from __future__ import annotations

import json
import math
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from roundhouse.build.home import Home
from roundhouse.errors import ServeError

from ...disk import writing
from ...leftovers import own_folder
from ..driver import Measured, PointWish
from ..failure_words import UNREACHABLE
from ..records import Driver
from .configuration import KEY_VARIABLE, Endpoint, configuration, root_url
from .conversations import write_for_aiperf
from .failures import REFUSED
from .locate import Aiperf, clean_environment, find_aiperf
from .process import run_aiperf, what_went_wrong
from .results import Records, read_records
from .tokenizer import write_approximate_tokenizer

__all__ = ["AiperfDriver"]

_OVERHEAD_S = 300.0
"""For aiperf's start, its making of prompts and its end, on a slow machine."""
_OTHER_PROMPTS = 1_000_003
"""Added to the seed when a point is measured again."""
_KEPT = ("profile_export.jsonl", "profile_export_aiperf.json", "logs/aiperf.log")


class AiperfDriver:
    """Sends each point's requests with a process of aiperf. As a context manager it owns a private folder.

    Args:
        home: where aiperf may be installed.
        url: of an OpenAI-compatible endpoint, with or without ``/v1``.
        model: its name there.
        tokenizer: folder of the model's tokenizer; None makes prompts of about the length that was asked for.
        api_key: of the endpoint. It is in aiperf's environment and in no file.

    Raises:
        SetupError: there is no aiperf.
    """

    name: Driver = "aiperf"

    def __init__(self, home: Home, *, url: str, model: str, tokenizer: Path | None, api_key: str | None) -> None:
        self._aiperf: Aiperf = find_aiperf(home)
        self.version: str | None = self._aiperf.version
        self._url, self._model, self._tokenizer, self._key = root_url(url), model, tokenizer, api_key
        self._folder: Path | None = None
        self._count_here = False
        self._points = 0

    def __enter__(self) -> Self:
        # Sockets need a short path, which only the system's temporary folder promises.
        self._folder = own_folder("what aiperf works with")
        try:
            with writing("a tokenizer", self._folder):
                self._tokenizer = self._tokenizer or write_approximate_tokenizer(self._folder / "tokenizer")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def measure(self, wish: PointWish, stop: threading.Event) -> Measured:
        run = self._run(wish, wish.seed, stop)
        if run.records.answered and not run.records.counted and not self._count_here:
            # The endpoint does not tell how many tokens it made. So count them here, from now on.
            self._count_here = True
            run = self._run(wish, wish.seed + _OTHER_PROMPTS, stop)
        self._check(run.records)
        requests = run.records.requests(count_here=self._count_here)
        return Measured(requests, "client" if self._count_here else "usage", run.files)

    def _check(self, records: Records) -> None:
        """A point of which no request was even accepted says nothing about speed."""
        requests = records.requests(count_here=self._count_here)
        kinds = {each.error for each in requests}
        said = records.messages[0] if records.messages else ""
        if kinds == {UNREACHABLE}:
            raise ServeError(f"{self._url} cannot be reached: {said}")
        if kinds <= REFUSED:
            hint = None
            if "ignore_eos" in said:
                hint = "It does not know `ignore_eos`, without which answers have no exact length: it cannot be measured so."
            what = ", ".join(sorted(str(kind) for kind in kinds))
            raise ServeError(f"{self._url} refused every request ({what}): {said[:500]}", hint=hint)

    def _run(self, wish: PointWish, seed: int, stop: threading.Event) -> _Run:
        if self._folder is None or self._tokenizer is None:
            raise RuntimeError("measure() belongs into the `with` block of its driver")
        wish = PointWish(wish.workload, wish.concurrency, wish.requests, seed, wish.timeout_s)
        folder = self._fresh_folder(self._folder)
        dataset = write_for_aiperf(wish.workload, folder) if wish.workload.kind == "conversations" else None
        endpoint = Endpoint(self._url, self._model, self._tokenizer, has_key=self._key is not None)
        config = configuration(wish, endpoint, folder / "artifacts", count_here=self._count_here, dataset=dataset)
        with writing("aiperf's configuration", folder):
            # JSON is YAML, and quotes whatever needs it.
            (folder / "config.yaml").write_text(json.dumps(config, indent=1), encoding="utf-8")
        waves = math.ceil(wish.requests / wish.concurrency)
        longest_s = waves * wish.timeout_s + _OVERHEAD_S
        environment = self._environment(self._folder)
        code, lines = run_aiperf(
            self._aiperf.executable, folder / "config.yaml", environment, stop, longest_s, hide=self._without_key
        )
        kept = [folder / "artifacts" / name for name in _KEPT]
        self._hide_key(kept)
        try:
            records = read_records(folder / "artifacts" / "profile_export.jsonl")
        except ServeError:
            records = Records(())
        # When every request failed, aiperf ends as if it had failed itself, but has recorded them.
        if not len(records) or (code != 0 and records.answered):
            raise ServeError(f"aiperf failed with exit code {code}: {what_went_wrong(lines)}")
        return _Run(records, tuple((path.name, path) for path in kept if path.is_file()))

    def _fresh_folder(self, parent: Path) -> Path:
        """One for a run; that of the run before goes, and what aiperf left of it among temporary files."""
        for left in (parent / str(self._points), parent / "tmp"):
            shutil.rmtree(left, ignore_errors=True)
        self._points += 1
        folder = parent / str(self._points)
        with writing("what aiperf works with", parent):
            folder.mkdir()
            (parent / "tmp").mkdir()
        return folder

    def _environment(self, own: Path) -> dict[str, str]:
        temporary = str(own / "tmp")
        told = {
            "AIPERF_DATASET_MMAP_BASE_PATH": temporary,
            "AIPERF_DATASET_MMAP_CACHE_ENABLED": "false",  # else every prompt stays in the user's cache folder for ever
            "AIPERF_HTTP_IP_VERSION": "auto",
            "COLUMNS": "500",  # its errors on one line
            "NO_COLOR": "1",
            "TMPDIR": temporary,
        }
        if self._key is not None:
            told[KEY_VARIABLE] = self._key
        return clean_environment() | told

    def _hide_key(self, paths: list[Path]) -> None:
        """Aiperf redacts keys that it knows. This is for those that a server repeats in an error."""
        for path in paths:
            if self._key and path.is_file():
                content = path.read_bytes()
                if self._key.encode() in content:
                    path.write_bytes(content.replace(self._key.encode(), b"<redacted>"))

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "<redacted>") if self._key else text


@dataclass(frozen=True)
class _Run:
    records: Records
    files: tuple[tuple[str, Path], ...]

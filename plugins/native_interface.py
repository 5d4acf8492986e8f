"""``native/attention.h``, ``linear.h``, ``step.h`` and ``page_guard.h`` for ctypes: the library, its structures and codes.

What they mean is said there.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from pathlib import Path

from roundhouse.errors import SetupError

from .native_library import compiled_library

__all__ = [
    "Batch",
    "Code",
    "Fault",
    "GuardTables",
    "Layer",
    "Linear",
    "LinearKind",
    "Model",
    "ModelLayer",
    "Pool",
    "Product",
    "Projection",
    "StepTokens",
    "Tokens",
    "load_kernels",
]


def load_kernels(cache: Path) -> ctypes.CDLL:
    """Load the compiled kernels; compile them first when ``cache`` does not have them.

    Raises:
        SetupError: they cannot be compiled or loaded here.
    """
    path = compiled_library(cache)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise SetupError(f"the compiled kernels cannot be loaded: {error}", hint=f"Delete {path} and try again.") from None
    library.rh_paged_attention.argtypes = [ctypes.c_void_p] * 5
    library.rh_paged_attention.restype = ctypes.c_int32
    library.rh_step.argtypes = [ctypes.c_void_p] * 5
    library.rh_step.restype = ctypes.c_int32
    library.rh_linear.argtypes = [ctypes.c_void_p] * 2
    library.rh_linear.restype = ctypes.c_int32
    library.rh_page_guard.argtypes = [ctypes.c_void_p] * 2
    library.rh_page_guard.restype = ctypes.c_int32
    return library


class Code(IntEnum):
    """What a call returns when it did nothing."""

    BAD_GEOMETRY = 1
    BAD_ROW = 2
    BAD_PAGE = 3
    NO_MEMORY = 4
    BAD_TOKEN = 5


class LinearKind(IntEnum):
    """How a weight matrix lies in memory."""

    BF16 = 0
    INT4 = 1


class Pool(ctypes.Structure):
    """``RhPool``."""

    _fields_ = (
        ("pages", ctypes.c_void_p),
        ("page_bytes", ctypes.c_int64),
        ("page_count", ctypes.c_int32),
        ("page_tokens", ctypes.c_int32),
        ("kv_heads", ctypes.c_int32),
        ("head_dim", ctypes.c_int32),
        ("is_fp8", ctypes.c_int32),
    )


class Layer(ctypes.Structure):
    """``RhLayer``."""

    _fields_ = (
        ("key_offset", ctypes.c_int64),
        ("value_offset", ctypes.c_int64),
        ("key_scale", ctypes.c_float),
        ("value_scale", ctypes.c_float),
    )


class Batch(ctypes.Structure):
    """``RhBatch``."""

    _fields_ = (
        ("page_table", ctypes.c_void_p),
        ("query_start", ctypes.c_void_p),
        ("context_len", ctypes.c_void_p),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
    )


class Tokens(ctypes.Structure):
    """``RhTokens``."""

    _fields_ = (
        ("queries", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("query_token_stride", ctypes.c_int64),
        ("query_head_stride", ctypes.c_int64),
        ("key_token_stride", ctypes.c_int64),
        ("key_head_stride", ctypes.c_int64),
        ("value_token_stride", ctypes.c_int64),
        ("value_head_stride", ctypes.c_int64),
        ("tokens", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("is_bfloat16", ctypes.c_int32),
        ("scaling", ctypes.c_float),
    )


class Fault(ctypes.Structure):
    """``RhFault``."""

    _fields_ = (("row", ctypes.c_int32), ("column", ctypes.c_int32))


class Linear(ctypes.Structure):
    """``RhLinear``."""

    _fields_ = (
        ("weights", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("outputs", ctypes.c_int32),
        ("inputs", ctypes.c_int32),
        ("group", ctypes.c_int32),
    )


class Product(ctypes.Structure):
    """``RhProduct``."""

    _fields_ = (
        ("input", ctypes.c_void_p),
        ("input_scale", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("rows", ctypes.c_int32),
        ("float_output", ctypes.c_int32),
        ("int8_input", ctypes.c_int32),
    )


class Projection(ctypes.Structure):
    """``RhProjection``."""

    _fields_ = (("linear", Linear), ("input_scale", ctypes.c_void_p), ("bias", ctypes.c_void_p))


class ModelLayer(ctypes.Structure):
    """``RhModelLayer``."""

    _fields_ = (
        ("attention_norm", ctypes.c_void_p),
        ("mlp_norm", ctypes.c_void_p),
        ("query_norm", ctypes.c_void_p),
        ("key_norm", ctypes.c_void_p),
        ("query", Projection),
        ("key", Projection),
        ("value", Projection),
        ("output", Projection),
        ("gate", Projection),
        ("up", Projection),
        ("down", Projection),
        ("place", Layer),
    )


class Model(ctypes.Structure):
    """``RhModel``."""

    _fields_ = (
        ("layers", ctypes.c_void_p),
        ("embedding", ctypes.c_void_p),
        ("norm", ctypes.c_void_p),
        ("head", Projection),
        ("cosines", ctypes.c_void_p),
        ("sines", ctypes.c_void_p),
        ("layer_count", ctypes.c_int32),
        ("hidden", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("intermediate", ctypes.c_int32),
        ("vocab", ctypes.c_int32),
        ("positions", ctypes.c_int32),
        ("int8_inputs", ctypes.c_int32),
        ("epsilon", ctypes.c_float),
        ("scaling", ctypes.c_float),
    )


class StepTokens(ctypes.Structure):
    """``RhStepTokens``."""

    _fields_ = (
        ("token_ids", ctypes.c_void_p),
        ("sample_rows", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
        ("seconds", ctypes.c_void_p),
        ("tokens", ctypes.c_int32),
        ("samples", ctypes.c_int32),
    )


class GuardTables(ctypes.Structure):
    """``RhPageGuard``."""

    _fields_ = (
        ("page_table", ctypes.c_void_p),
        ("page_count", ctypes.c_void_p),
        ("expected_tags", ctypes.c_void_p),
        ("page_tags", ctypes.c_void_p),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
        ("pages", ctypes.c_int32),
    )

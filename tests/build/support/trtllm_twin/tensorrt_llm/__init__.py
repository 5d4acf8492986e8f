"""A twin of TensorRT-LLM: it answers as upstream does and builds nothing."""

import os

if os.environ.get("TWIN_IMPORT_FAILS"):
    raise ImportError("libth_common.so: undefined symbol")
__version__ = os.environ.get("TWIN_VERSION", "1.2.1")

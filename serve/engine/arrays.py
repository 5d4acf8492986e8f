"""Names for the NumPy arrays that pass between the loop and its runtimes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roundhouse.plugins.page_tag import Int32Array

__all__ = ["Float32Array", "Float64Array", "Int32Array", "Int64Array"]

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

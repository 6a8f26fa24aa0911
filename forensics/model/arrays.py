"""Array types shared by the model: one-dimensional numpy arrays with a fixed item type."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
NumArray: TypeAlias = NDArray[np.float64] | NDArray[np.int64]

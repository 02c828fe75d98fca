"""The dtypes, with their ranges and precisions."""

from __future__ import annotations

from plait_abi import binding

bool_ = binding.dtype("bool")
uint8 = binding.dtype("uint8")
uint16 = binding.dtype("uint16")
uint32 = binding.dtype("uint32")
uint64 = binding.dtype("uint64")
int8 = binding.dtype("int8")
int16 = short = binding.dtype("int16")
int32 = binding.dtype("int32")
int64 = long = binding.dtype("int64")
float16 = half = binding.dtype("float16")
bfloat16 = binding.dtype("bfloat16")
float32 = binding.dtype("float32")
float64 = double = binding.dtype("float64")
complex64 = cfloat = binding.dtype("complex64")
complex128 = cdouble = binding.dtype("complex128")
# stored and converted, not computed with
float8_e4m3fn = binding.dtype("float8_e4m3fn")
float8_e4m3fnuz = binding.dtype("float8_e4m3fnuz")
float8_e5m2 = binding.dtype("float8_e5m2")
float8_e5m2fnuz = binding.dtype("float8_e5m2fnuz")
float8_e8m0fnu = binding.dtype("float8_e8m0fnu")

# exponent bits and fraction bits, from IEEE 754 and the bfloat16 format
_FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
# eps, the smallest, the largest and the smallest normal number, as PyTorch has them
_FORMATS_OF_8 = {
    "float8_e4m3fn": (0.125, -448.0, 448.0, 2.0**-6),
    "float8_e4m3fnuz": (0.125, -240.0, 240.0, 2.0**-7),
    "float8_e5m2": (0.25, -57344.0, 57344.0, 2.0**-14),
    "float8_e5m2fnuz": (0.125, -57344.0, 57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**-127, 2.0**127, 2.0**-127),
}


class finfo:  # noqa: N801  (NumPy's and PyTorch's name)
    """The range and precision of a floating-point dtype.

    Args:
        dtype: a floating-point or complex dtype; default: the default dtype.

    Attributes:
        bits, eps, max, min, tiny, smallest_normal, resolution: as in NumPy.

    Raises:
        TypeError: for other dtypes.

    Example:
        >>> import plait_core as pc
        >>> pc.finfo(pc.float32).eps
        1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "smallest_normal")

    def __init__(self, dtype: binding.dtype | None = None) -> None:
        from plait_core import _core

        kind = _core.get_default_dtype() if dtype is None else binding.dtype(dtype)
        name = {"complex64": "float32", "complex128": "float64"}.get(kind.name, kind.name)
        self.dtype = name
        if name in _FORMATS_OF_8:
            self.bits = 8
            self.eps, self.min, self.max, self.smallest_normal = _FORMATS_OF_8[name]
            return
        if name not in _FORMATS:
            raise TypeError(f"finfo: a floating-point dtype is required, got {kind.name}")
        exponent, fraction = _FORMATS[name]
        bias = (1 << (exponent - 1)) - 1
        largest = (2.0 - 2.0**-fraction) * 2.0**bias
        self.bits = 1 + exponent + fraction
        self.eps = 2.0**-fraction
        self.max = largest
        self.min = -largest
        self.smallest_normal = 2.0 ** (1 - bias)

    @property
    def tiny(self) -> float:
        """The smallest positive normal number."""
        return self.smallest_normal

    @property
    def resolution(self) -> float:
        """The decimal resolution: 10 to the minus number of exact decimal digits."""
        digits = int(_FORMATS.get(self.dtype, (0, 0))[1] * 0.30102999566398120)
        return float(f"1e-{digits}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  (NumPy's and PyTorch's name)
    """The range of an integer dtype.

    Args:
        dtype: an integer dtype.

    Raises:
        TypeError: for other dtypes.

    Example:
        >>> import plait_core as pc
        >>> pc.iinfo(pc.int8).max
        127
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: binding.dtype) -> None:
        kind = binding.dtype(dtype)
        if kind.is_floating_point or kind.is_complex or kind is bool_:
            raise TypeError(f"iinfo: an integer dtype is required, got {kind.name}")
        bits = 8 * kind.itemsize
        self.bits = bits
        self.min = -(2 ** (bits - 1)) if kind.is_signed else 0
        self.max = self.min + 2**bits - 1
        self.dtype = kind.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

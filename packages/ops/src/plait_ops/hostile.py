"""Invalid calls of operators: samples with arguments that could cause crashes.

The calls are data, the same ones for the same seed: NumPy arrays stand for tensors. A call must
give a result or an exception, never a signal; `tests/hostile` runs them, under sanitizers in the
session of that name.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from plait_ops import samples
from plait_ops.schema import Argument
from plait_ops.spec import Operator

__all__ = ["HostileCall", "calls"]

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]
SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (7,),
    (2, 3),
    (3, 2),
    (0, 3),
    (3, 0),
    (2, 3, 4),
    (2, 0, 3),
    (1, 1, 4, 4),
    (2, 3, 5, 5),
]
SHAPES += [(1,) * 6, (1,) * 33, (2, 1, 2, 1, 2, 1, 2)]
# sizes: small, or larger than the address space that tests/hostile allows the process
INTS: list[Any] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    5,
    64,
    65,
    255,
    1000,
    -1000,
    2**31 - 1,
    2**47,
    -(2**31),
    2**62,
    2**63 - 1,
    -(2**63),
]
NOT_INTS: list[Any] = [2**63, 10**30, 1.5, float("nan"), "2", None, b"2", [], object, True]
FLOATS: list[Any] = [
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    2.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e308,
    5e-324,
    3,
    -3,
]
NOT_FLOATS: list[Any] = [10**400, "x", None, [1.0], 1j, {}]
STRINGS: list[Any] = [
    "mean",
    "sum",
    "none",
    "tanh",
    "floor",
    "trunc",
    "",
    "bogus",
    "m\0ean",
    "é" * 100,
    None,
    3,
]
TYPES: list[Any] = [
    *DTYPES,
    "bfloat16",
    "float8_e4m3fn",
    "float8_e8m0fnu",
    "float128",
    "",
    None,
    int,
    float,
    bool,
    3,
    object(),
    "f",
]
DEVICES: list[Any] = ["cpu", "meta", "cuda", "cpu:0", "cpu:7", "meta:-1", "", "bogus", None, 3]
NOT_TENSORS: list[Any] = [
    None,
    "tensor",
    3.5,
    7,
    object(),
    {},
    [],
    [1, 2],
    (1.0,),
    b"bytes",
    NotImplemented,
    2**70,
    1j,
]


@dataclasses.dataclass(frozen=True)
class HostileCall:
    """One call: `form` is "", "_" (in place) or "out"."""

    operator: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    form: str


class _Draw:
    """Draws hostile values of each kind of argument."""

    def __init__(self, rng: Any) -> None:
        import numpy as np

        self.np, self.rng = np, rng

    def pick(self, values: list[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def maybe(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def array(self) -> Any:
        np = self.np
        dtype, shape = np.dtype(self.pick(DTYPES)), self.pick(SHAPES)
        with np.errstate(all="ignore"):
            drawn = self.rng.standard_normal(shape) * self.pick([1, 3, 1e4, 1e30])
            array = np.array(drawn, dtype)  # 0-d ones too, which arithmetic makes scalars
        if array.size and self.maybe(0.3):
            array.reshape(-1)[int(self.rng.integers(array.size))] = self.extreme(dtype)
        return self.layout(array)

    def extreme(self, dtype: Any) -> Any:
        if dtype.kind in "fc":
            return self.pick(
                [float("nan"), float("inf"), float("-inf"), -0.0, self.np.finfo(dtype).tiny / 2]
            )
        if dtype.kind in "iu":
            info = self.np.iinfo(dtype)
            return self.pick([info.min, info.max])
        return True

    def layout(self, array: Any) -> Any:
        """Return the same array, or one with unusual strides."""
        np = self.np
        kind = int(self.rng.integers(8))
        if kind == 0:
            return array.T
        if kind == 1 and array.ndim:
            return array[tuple(slice(None, None, -1) for _ in array.shape)]
        if kind == 2 and array.ndim:
            return np.broadcast_to(array[:1], (4, *array.shape[1:])) if array.shape[0] else array
        if kind == 3:
            array.flags.writeable = False
        if kind == 4:  # bytes that are not aligned for their dtype
            raw = np.zeros(array.nbytes + 1, np.uint8)
            odd = raw[1:].view(array.dtype).reshape(array.shape) if array.size else array
            odd[...] = array
            return odd
        if kind == 5 and array.ndim:
            return array[::2]
        return array

    def integer(self) -> Any:
        return self.pick(NOT_INTS if self.maybe(0.2) else INTS)

    def integers(self) -> Any:
        if self.maybe(0.15):
            return self.pick(
                [
                    None,
                    "ab",
                    3,
                    2**63,
                    [1.5],
                    [None],
                    [[1]],
                    object(),
                    (2**64,),
                    [1] * 65,
                    [-1] * 40,
                ]
            )
        return [self.integer() for _ in range(int(self.rng.integers(5)))]

    def tensors(self) -> Any:
        if self.maybe(0.15):
            return self.pick([None, (), [], 3, [None], ["a"], [3.5]])
        same = self.array()
        return [
            same if self.maybe(0.6) else self.tensor() for _ in range(int(self.rng.integers(1, 5)))
        ]

    def tensor(self) -> Any:
        return self.pick(NOT_TENSORS) if self.maybe(0.15) else self.array()

    def value(self, argument: Argument) -> Any:
        makers: dict[str, Callable[[], Any]] = {
            "Tensor": self.tensor,
            "Tensor|Scalar": self.tensor,
            "Tensor[]": self.tensors,
            "int": self.integer,
            "int[]": self.integers,
            "float": lambda: self.pick(NOT_FLOATS if self.maybe(0.2) else FLOATS),
            "float[]": self.integers,
            "Scalar": lambda: self.pick([*FLOATS, *INTS, 1j, True, *NOT_FLOATS]),
            "bool": lambda: self.pick([True, False, 0, 1, None, "x", 2.5]),
            "str": lambda: self.pick(STRINGS),
            "dtype": lambda: self.pick(TYPES),
            "device": lambda: self.pick(DEVICES),
            "Generator": lambda: self.pick([None, 3, "generator", object()]),
        }
        return makers[argument.type]()


def calls(operator: Operator, seed: int = 0, n: int = 500) -> Iterator[HostileCall]:
    """Yield ``n`` hostile calls of ``operator``.

    Two thirds start from one of its samples and replace one to three arguments, the others are
    drawn without one. Every operator has a random stream of its own, so adding an operator does not
    change the calls of others.
    """
    import numpy as np

    rng = np.random.default_rng([seed, zlib.crc32(operator.name.encode())])
    draw = _Draw(rng)
    drawn = list(samples.draw(operator, seed))
    arguments = list(operator.schema.arguments)
    forms = ["", "", "", *(["_"] if operator.inplace else []), *(["out"] if operator.out else [])]
    for _ in range(n):
        if drawn and draw.maybe(0.67):
            sample = drawn[int(rng.integers(len(drawn)))]
            values = dict(operator.schema.bind(sample.args, sample.kwargs))
            changed = rng.choice(
                len(arguments), size=min(len(arguments), int(rng.integers(1, 4))), replace=False
            )
            for i in changed if arguments else []:
                values[arguments[i].name] = draw.value(arguments[i])
        else:
            values = {argument.name: draw.value(argument) for argument in arguments}
        kwargs = dict(values)
        form = draw.pick(forms)
        if form == "out":
            kwargs["out"] = draw.tensor() if draw.maybe(0.9) else (draw.array(), draw.array())
        if draw.maybe(0.02):
            kwargs["no_such_argument"] = 1
        if kwargs and draw.maybe(0.02):
            kwargs.pop(next(iter(kwargs)))
        positional: list[Any] = []
        while kwargs and arguments and draw.maybe(0.6) and len(positional) < len(arguments):
            name = arguments[len(positional)].name
            if name not in kwargs:
                break
            positional.append(kwargs.pop(name))
        yield HostileCall(operator, tuple(positional), kwargs, form if form == "_" else "")

"""The words of shape functions, derivatives and decompositions, in Python.

Each has a namesake in `cpp/words.hpp`, which is what the translator calls; these are the oracle.
The string in `@word("int str int ints -> int")` gives the C++ types of arguments and result. Words
that fail or make results work on the call that `infer` runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from plait_ops import promotion

__all__ = [
    "Fault",
    "Meta",
    "accumulated",
    "broadcast",
    "cast_argument",
    "check",
    "contiguous_strides",
    "count_of",
    "default_dtype",
    "dense_strides",
    "dtype_of",
    "format_strides",
    "gather_check",
    "index_shape",
    "infer",
    "infer_size",
    "is_contiguous",
    "is_floating",
    "is_in_format",
    "is_integral",
    "is_number",
    "is_tensor",
    "item",
    "max_dims",
    "numel",
    "part",
    "promote_all",
    "reduce_dims",
    "reduced",
    "require",
    "require_common",
    "require_same",
    "result",
    "result_as",
    "sizes",
    "slice_count",
    "slice_start",
    "sum_to",
    "to_dtype",
    "view",
    "view_strides",
    "viewable",
    "windows",
    "wrap_dim",
    "wrap_index",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Shape = Sequence[int]
MAX_DIMS = 64
LIMIT = 2**63


class DType(str):
    """The name of a dtype, as a constant that the translator knows."""


bool_ = DType("bool")
uint8, int32, int64 = DType("uint8"), DType("int32"), DType("int64")
float16, bfloat16 = DType("float16"), DType("bfloat16")
float32, float64 = DType("float32"), DType("float64")
complex64, complex128 = DType("complex64"), DType("complex128")


class Fault(Exception):
    """An error of the call: `kind` is the name of the exception that the host raises."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Size(tuple[int, ...]):
    """A shape as C++ has it: it joins with lists and equals them."""

    def __add__(self, other: Sequence[int]) -> Size:  # type: ignore[override]
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: Sequence[int]) -> Size:
        return Size(tuple(other) + tuple(self))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (list, tuple)) else False

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __getitem__(self, at: Any) -> Any:
        value = tuple(self)[at]
        return Size(value) if isinstance(at, slice) else value

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclasses.dataclass
class Meta:
    """A tensor without values."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        self.shape = Size(self.shape)
        self.strides = Size(
            contiguous_strides(self.shape) if self.strides is None else self.strides
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclasses.dataclass
class _Call:
    name: str
    values: dict[str, Any]


_calls: list[_Call] = []


@contextlib.contextmanager
def calling(name: str, values: dict[str, Any]) -> Iterator[None]:
    """Make the words within fail and give results on behalf of the operator ``name``."""
    _calls.append(_Call(name, values))
    try:
        yield
    finally:
        _calls.pop()


def word(signature: str) -> Callable[[Function], Function]:
    """Give a function its C++ types; ``@`` before them means that it works on the call."""

    def mark(function: Function) -> Function:
        function.__word__ = signature  # type: ignore[attr-defined]
        return function

    return mark


def part(function: Function) -> Function:
    """Mark a function that shape functions, derivatives and decompositions share: the translator
    puts its body where it is called. It returns a value of one type, or nothing, and makes no
    results.
    """
    function.__part__ = True  # type: ignore[attr-defined]
    return function


def _fail(kind: str, text: str) -> None:
    name = _calls[-1].name if _calls else "?"
    raise Fault(kind, f"{name}: {text}")


def _text(shape: Shape) -> str:
    return str(tuple(int(size) for size in shape))


def infer(function: Callable[..., Any], name: str, values: dict[str, Any]) -> list[Any]:
    """Run a shape function on values whose tensors are `Meta`; return its results."""
    values = {key: Size(value) if type(value) is tuple else value for key, value in values.items()}
    with calling(name, values):
        wanted = inspect.signature(function).parameters
        made = function(**{key: value for key, value in values.items() if key in wanted})
    return list(made) if isinstance(made, (tuple, list)) else [made]


# ---- failing -------------------------------------------------------------------------------------
@word("@bool text str -> none")
def check(condition: bool, message: str, kind: str = "ShapeError") -> None:
    """Fail with `kind` and `message` unless the condition holds."""
    if not condition:
        _fail(kind, message)


@word("@str int ints -> int")
def wrap_dim(argument: str, dim: int, shape: Shape) -> int:
    """Return `dim` counted from the front; a 0-d shape has the dims -1 and 0."""
    room = max(len(shape), 1)
    if not -room <= dim < room:
        _fail(
            "IndexError",
            f"`{argument}` must be in [{-room}, {room - 1}] for shape {_text(shape)}; got {dim}",
        )
    return dim + room if dim < 0 else dim


@word("@str int int -> int")
def wrap_index(argument: str, index: int, size: int) -> int:
    """Return `index` counted from the front of `size` elements."""
    if not -size <= index < size:
        _fail(
            "IndexError",
            f"`{argument}` must be in [{-size}, {size - 1}] for a dimension of size {size}; got "
            f"{index}",
        )
    return index + size if index < 0 else index


@word("@str ints -> none")
def sizes(argument: str, shape: Shape) -> None:
    """Fail unless `shape` could be a new tensor's."""
    if len(shape) > MAX_DIMS:
        _fail(
            "ShapeError", f"`{argument}` must have at most {MAX_DIMS} dimensions; got {len(shape)}"
        )
    if any(size < 0 for size in shape):
        _fail("ShapeError", f"`{argument}` must not hold negative sizes; got {_text(shape)}")
    if math.prod(size for size in shape if size) >= LIMIT:  # zeros do not excuse the others
        _fail("ShapeError", f"`{argument}` must name fewer than 2**63 elements; got {_text(shape)}")


@word("@str int -> none")
def max_dims(argument: str, ndim: int) -> None:
    """Fail if a result of `ndim` dimensions has too many."""
    if ndim > MAX_DIMS:
        _fail(
            "ShapeError",
            f"`{argument}` would give a result of {ndim} dimensions; at most {MAX_DIMS} are "
            f"supported",
        )


@word("@str dtype str -> none")
def require(argument: str, dtype: str, group: str) -> None:
    """Fail unless `dtype` belongs to the group (see `plait_ops.spec.GROUPS`)."""
    if str(dtype) in promotion.group(group):
        return
    what = {
        "arithmetic": "an integer, floating-point or complex dtype",
        "numeric": "an integer or floating-point dtype",
        "inexact": "a floating-point or complex dtype",
        "floating": "a floating-point dtype",
        "integral": "an integer dtype or bool",
        "integer": "an integer dtype",
        "bool": "bool",
    }.get(group, "a real number: bool, an integer or floating-point dtype")
    _fail("DTypeError", f"`{argument}` must be {what}; got {dtype}")


@word("@str tensor str tensor -> none")
def require_same(name_a: str, a: Any, name_b: str, b: Any) -> None:
    """Fail unless the two tensors have one dtype."""
    if str(a.dtype) != str(b.dtype):
        _fail(
            "DTypeError",
            f"`{name_a}` and `{name_b}` must have the same dtype; got {a.dtype} and {b.dtype}",
        )


# ---- shapes --------------------------------------------------------------------------------------
@word("any -> int")
def numel(shape: Any) -> int:
    """Return the number of elements of a shape or tensor."""
    return math.prod(getattr(shape, "shape", shape))


@word("ints -> list")
def contiguous_strides(shape: Shape) -> list[int]:
    """Return the strides of C order."""
    strides, step = [0] * len(shape), 1
    for i in reversed(range(len(shape))):
        strides[i] = step
        step *= max(shape[i], 1)
    return strides


@word("tensor -> list")
def dense_strides(tensor: Any) -> list[int]:
    """Return strides of a fresh tensor that keeps the order in which this one's dimensions lie in
    memory.
    """
    order = sorted(range(tensor.ndim), key=lambda i: (-abs(tensor.strides[i]), i))
    strides, step = [0] * tensor.ndim, 1
    for i in reversed(order):
        strides[i] = step
        step *= max(tensor.shape[i], 1)
    return strides


@word("@str ints ints -> list")
def format_strides(memory_format: str, shape: Shape, preserved: Sequence[int]) -> list[int]:
    """Return the strides of a fresh tensor in a memory format; `preserved` are those of
    "preserve_format".
    """
    if memory_format == "preserve_format":
        return list(preserved)
    if memory_format == "contiguous_format":
        return contiguous_strides(shape)
    ndim = {"channels_last": 4, "channels_last_3d": 5}.get(memory_format)
    if ndim is None:
        _fail(
            "ValueError",
            "`memory_format` must be contiguous_format, preserve_format, channels_last or "
            f"channels_last_3d; got {memory_format}",
        )
    if len(shape) != ndim:
        _fail(
            "ShapeError",
            f"`memory_format` {memory_format} requires {ndim} dimensions, got shape {_text(shape)}",
        )
    order = [0, *range(2, len(shape)), 1]
    dense = contiguous_strides([shape[i] for i in order])
    return [dense[order.index(i)] for i in range(len(shape))]


@word("@str tensor -> bool")
def is_in_format(memory_format: str, tensor: Any) -> bool:
    """Whether the elements lie without gaps in the order of a memory format."""
    if memory_format == "contiguous_format":
        return is_contiguous(tensor)
    want = format_strides(memory_format, tensor.shape, tensor.strides)
    size = getattr(tensor, "itemsize", 1) if hasattr(tensor, "flags") else 1
    return all(
        n == 1 or a == b * size for n, a, b in zip(tensor.shape, tensor.strides, want, strict=True)
    )


@word("@str ints str ints -> list")
def broadcast(name_a: str, a: Shape, name_b: str, b: Shape) -> list[int]:
    """Return the shape that both broadcast to."""
    n = max(len(a), len(b))
    out = []
    for i in range(n):
        x = a[i - n + len(a)] if i - n + len(a) >= 0 else 1
        y = b[i - n + len(b)] if i - n + len(b) >= 0 else 1
        if x != y and x != 1 and y != 1:
            _fail(
                "ShapeError",
                f"shapes must broadcast; `{name_a}` has {_text(a)} and `{name_b}` has {_text(b)}, "
                f"which differ in dimension {i - n}",
            )
        out.append(y if x == 1 else x)
    return out


@word("@str ints? ints -> list")
def reduce_dims(argument: str, dims: Shape | None, shape: Shape) -> list[int]:
    """Return the dims in [0, ndim) that are named, all of them for None or an empty list; fail
    for repeated ones.
    """
    if dims is None or len(dims) == 0:
        return list(range(len(shape)))
    out: list[int] = []
    for dim in dims:
        at = wrap_dim(argument, dim, shape)
        if at in out:
            _fail("ValueError", f"`{argument}` must not repeat a dimension; got {_text(dims)}")
        out.append(at)
    return out


@word("ints ints bool -> list")
def reduced(shape: Shape, dims: Shape, keepdim: bool) -> list[int]:
    """Return the shape without `dims`, or with 1 in their place."""
    if keepdim:
        return [1 if i in dims else size for i, size in enumerate(shape)]
    return [size for i, size in enumerate(shape) if i not in dims]


@word("@str ints ints -> list")
def infer_size(argument: str, size: Shape, shape: Shape) -> list[int]:
    """Return `size` with its -1 replaced by what makes as many elements as `shape` has."""
    have, known, unknown = math.prod(shape), 1, 0
    max_dims(argument, len(size))
    for value in size:
        if value < -1:
            _fail(
                "ShapeError",
                f"`{argument}` must not hold negative sizes other than one -1; got {_text(size)}",
            )
        unknown += value == -1
        known *= 1 if value == -1 else value
    if unknown > 1:
        _fail("ShapeError", f"`{argument}` must hold at most one -1; got {_text(size)}")
    if unknown and known == 0:
        _fail(
            "ShapeError",
            f"`{argument}` {_text(size)} leaves the size of -1 open for shape {_text(shape)}",
        )
    if known != have if not unknown else have % known != 0:
        _fail(
            "ShapeError",
            f"`{argument}` {_text(size)} must name as many elements as shape {_text(shape)} "
            f"has, {have}",
        )
    return [have // known if value == -1 else value for value in size]


def _view_strides(tensor: Any, shape: Shape) -> list[int] | None:
    """Walk both shapes from the back and match runs of dimensions that lie one after the other."""
    if math.prod(shape) == 0 or tensor.ndim == 0:
        return contiguous_strides(shape)
    strides = [0] * len(shape)
    at, step, run = len(shape) - 1, tensor.strides[-1], 1
    left = 1
    for i in reversed(range(tensor.ndim)):
        run *= tensor.shape[i]
        if i and (tensor.shape[i - 1] == 1 or tensor.strides[i - 1] == run * step):
            continue
        while at >= 0 and (left < run or shape[at] == 1):
            strides[at] = left * step
            left *= shape[at]
            at -= 1
        if left != run:
            return None
        if i:
            step, run, left = tensor.strides[i - 1], 1, 1
    return strides if at < 0 else None


@word("@scalar scalar scalar bool -> int")
def count_of(start: Any, end: Any, step: Any, whole: bool) -> int:
    """Return how many of ``start, start + step, ...`` come before `end`; if `whole`, of the three
    without their fractions.
    """
    for value in (start, end, step):
        if isinstance(value, complex) or not math.isfinite(value):
            _fail(
                "ValueError",
                f"`start`, `end` and `step` must be finite real numbers; got {start}, {end} and "
                f"{step}",
            )
    if whole:
        if any(not -LIMIT <= value < LIMIT for value in (start, end, step)):
            _fail(
                "ValueError",
                f"`start`, `end` and `step` must fit in 64 bits; got {start}, {end} and {step}",
            )
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        _fail("ValueError", f"`step` must not be 0; got {step}")
    if (end - start if step > 0 else start - end) < 0:
        _fail("ValueError", f"`step` {step} must lead from `start` {start} towards `end` {end}")
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        count = math.ceil((float(end) - float(start)) / float(step))
    else:
        count = -((start - end) // step)
    if count >= LIMIT:
        _fail(
            "ShapeError",
            f"`start` {start}, `end` {end} and `step` {step} name 2**63 elements or more",
        )
    return count


@word("int? int int -> int")
def slice_start(start: int | None, step: int, size: int) -> int:
    """Return the index at which ``start::step`` begins."""
    return slice(start, None, step).indices(size)[0]


@word("int? int? int int -> int")
def slice_count(start: int | None, end: int | None, step: int, size: int) -> int:
    """Return how many elements ``start:end:step`` names."""
    return len(range(*slice(start, end, step).indices(size)))


@word("@str ints int str tensor -> none")
def gather_check(name: str, shape: Shape, dim: int, index_name: str, index: Any) -> None:
    """Fail unless `index` can pick elements of `shape` along `dim`."""
    at = wrap_dim("dim", dim, shape)
    require(index_name, str(index.dtype), "integer")
    fits = len(shape) == index.ndim
    for d in range(index.ndim):
        fits = fits and (d == at or index.shape[d] <= shape[d])
    if not fits:
        _fail(
            "ShapeError",
            f"`{index_name}` of shape {_text(index.shape)} must have the dimensions of `{name}` "
            f"of shape {_text(shape)} and, "
            f"except along {at}, must not be larger",
        )


@word("@str ints tensors -> list")
def index_shape(argument: str, shape: Shape, indices: Sequence[Any]) -> list[int]:
    """Return the shape of ``x[indices]`` for integer tensors, with None for whole dimensions."""
    if len(indices) > len(shape):
        _fail(
            "IndexError", f"too many indices for `self` of shape {_text(shape)}: got {len(indices)}"
        )
    common: list[int] = []
    places = [i for i, index in enumerate(indices) if index is not None]
    for i in places:
        require(argument, str(indices[i].dtype), "integer")
        common = broadcast(argument, common, f"{argument}[{i}]", indices[i].shape)
    if not places:
        return list(shape)
    rest = [size for i, size in enumerate(shape) if i not in places]
    together = places[-1] - places[0] + 1 == len(places)
    lead = places[0] if together else 0
    return rest[:lead] + common + rest[lead:]


@word("@ints int int int int int bool -> int")
def windows(
    shape: Shape, at: int, size: int, stride: int, padding: int, dilation: int, ceil: bool
) -> int:
    """Return how many windows of `size` fit into the padded dimension `at` of an image of
    `shape`.
    """
    for name, value, least in (
        ("kernel_size", size, 1),
        ("stride", stride, 1),
        ("padding", padding, 0),
        ("dilation", dilation, 1),
    ):
        if not least <= value < 2**31:
            _fail("ValueError", f"`{name}` must be in [{least}, 2**31); got {value}")
    room = shape[at] + 2 * padding - dilation * (size - 1) - 1
    if room < 0:
        _fail(
            "ShapeError",
            f"windows of {dilation * (size - 1) + 1} elements must fit into the padded "
            f"dimension {at} of shape "
            f"{_text(shape)}, which has {shape[at] + 2 * padding}",
        )
    count = (room + stride - 1 if ceil else room) // stride + 1
    # the last window must begin inside the image or its left padding
    return count - 1 if ceil and (count - 1) * stride >= shape[at] + padding else count


@word("tensor -> bool")
def is_contiguous(tensor: Any) -> bool:
    """Whether the elements lie in C order."""
    flags = getattr(tensor, "flags", None)
    if flags is not None:
        return bool(flags["C_CONTIGUOUS"])
    want = contiguous_strides(tensor.shape)
    return all(
        size == 1 or a == b for size, a, b in zip(tensor.shape, tensor.strides, want, strict=True)
    )


@word("tensor ints -> bool")
def viewable(tensor: Any, shape: Shape) -> bool:
    """Whether a tensor of `shape`, of as many elements, can look at the same bytes."""
    return _view_strides(tensor, shape) is not None


@word("tensor ints -> list")
def view_strides(tensor: Any, shape: Shape) -> list[int]:
    """Return the strides of that look; meaningless unless `viewable`."""
    return _view_strides(tensor, shape) or [0] * len(shape)


# ---- dtypes --------------------------------------------------------------------------------------
@word("dtype -> bool")
def is_floating(dtype: Any) -> bool:
    """Whether it is a floating-point dtype (complex is not)."""
    return promotion.category(str(dtype)) == 2


@word("dtype -> bool")
def is_complex(dtype: Any) -> bool:
    """Whether it is a complex dtype."""
    return str(dtype) in promotion.COMPLEX


@word("dtype -> dtype")
def real_dtype(dtype: Any) -> str:
    """Return the dtype of a complex dtype's parts; others are their own."""
    return promotion.real_dtype(str(dtype))


@word("dtype -> dtype")
def complex_dtype(dtype: Any) -> str:
    """Return the complex dtype whose parts are float32 or float64, as `dtype` is at least."""
    return "complex128" if str(dtype) in ("float64", "complex128") else "complex64"


@word("dtype -> bool")
def is_integral(dtype: Any) -> bool:
    """Whether it is bool or an integer dtype."""
    return promotion.category(str(dtype)) < 2


@word("scalar -> dtype")
def dtype_of(number: Any) -> str:
    """Return the dtype that a number becomes where nothing else decides: bool, int64, the default
    dtype, or the complex dtype of its width.
    """
    return promotion.number_dtype(number)


@word("dtype -> dtype")
def accumulated(dtype: Any) -> str:
    """Return the dtype of a sum: int64 for bool and integers (uint64 for itself), else the same."""
    if str(dtype) == "uint64":
        return "uint64"
    return "int64" if is_integral(dtype) else str(dtype)


@word("@ -> dtype")
def default_dtype() -> str:
    """Return the dtype of floats that are made of integers or of nothing."""
    return promotion.DEFAULT


@word("@str tensors -> dtype")
def promote_all(argument: str, tensors: Sequence[Any]) -> str:
    """Return the dtype to which a list of tensors promotes; of none, the default dtype."""
    if not tensors:
        return promotion.DEFAULT
    levels: tuple[list[str], list[str]] = ([], [])
    for tensor in tensors:
        levels[tensor.ndim == 0].append(str(tensor.dtype))
    try:
        return promotion.result_type(*levels, [])
    except promotion.PromotionError as error:
        _fail("DTypeError", f"`{argument}`: {error}")
        raise


@word("@str operand str operand -> dtype")
def require_common(name_a: str, a: Any, name_b: str, b: Any) -> str:
    """Return the dtype to which two operands promote."""
    levels: tuple[list[str], list[str], list[str]] = ([], [], [])
    for value in (a, b):
        if not is_tensor(value):
            levels[2].append(promotion.number_dtype(value))
        else:
            levels[value.ndim == 0].append(str(value.dtype))
    try:
        return promotion.result_type(*levels)
    except promotion.PromotionError as error:
        _fail("DTypeError", f"`{name_a}` and `{name_b}`: {error}")
        raise


# ---- values --------------------------------------------------------------------------------------
@word("operand -> bool")
def is_tensor(value: Any) -> bool:
    """Whether an operand is a tensor."""
    return hasattr(value, "shape")


@word("operand -> bool")
def is_number(value: Any) -> bool:
    """Whether an operand is a number."""
    return isinstance(value, (bool, int, float, complex))


@word("@tensor -> int")
def item(tensor: Any) -> int:
    """Return the integer in a tensor of one element; an error without values (device meta)."""
    return int(tensor.reshape(()))


@word("@tensor dtype -> tensor")
def to_dtype(tensor: Any, dtype: Any) -> Any:
    """Return the tensor in `dtype`: itself if it has it already."""
    return tensor if str(tensor.dtype) == str(dtype) else tensor.astype(dtype)


@word("@tensor ints -> tensor")
def sum_to(tensor: Any, shape: Shape) -> Any:
    """Return the tensor summed over the dimensions in which `shape` was broadcast."""
    lead = tensor.ndim - len(shape)
    dims = tuple(
        i for i in range(tensor.ndim) if i < lead or (shape[i - lead] == 1 and tensor.shape[i] != 1)
    )
    return tensor.sum(dims, keepdims=True, dtype=tensor.dtype).reshape(shape) if dims else tensor


# ---- results -------------------------------------------------------------------------------------
@word("@result ints dtype -> made")
def result(shape: Shape, dtype: Any) -> Meta:
    """Make a result in C order."""
    if len(shape) > MAX_DIMS:
        _fail("ShapeError", f"a tensor has at most {MAX_DIMS} dimensions; got {len(shape)}")
    return Meta(tuple(shape), str(dtype))


@word("@result ints dtype ints -> made")
def result_as(shape: Shape, dtype: Any, strides: Shape) -> Meta:
    """Make a result whose dimensions lie in another order."""
    return Meta(tuple(shape), str(dtype), tuple(strides))


@word("@result tensor ints ints int -> made")
def view(base: Any, shape: Shape, strides: Shape, offset: int = 0) -> Meta:
    """Make a result that looks at the bytes of `base`, `offset` elements after its first."""
    max_dims("shape", len(shape))
    return Meta(tuple(shape), str(base.dtype), tuple(strides), getattr(base, "offset", 0) + offset)


@word("@result tensor dtype ints ints int -> made")
def view_parts(base: Any, dtype: Any, shape: Shape, strides: Shape, offset: int = 0) -> Meta:
    """As `view`, of the parts of complex numbers or of pairs of parts; strides and `offset` count
    elements of `dtype`.
    """
    max_dims("shape", len(shape))
    before = getattr(base, "offset", 0)
    first = before * 2 if is_complex(base.dtype) else before // 2
    return Meta(tuple(shape), str(dtype), tuple(strides), first + offset)


@word("@str dtype -> none")
def cast_argument(argument: str, dtype: Any) -> None:
    """Let the kernel see an argument in `dtype`."""
    value = _calls[-1].values[argument]
    for tensor in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(tensor, Meta):
            tensor.dtype = str(dtype)

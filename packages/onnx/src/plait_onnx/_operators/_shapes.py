"""Operators that move elements: views, joining, splitting, repeating, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait_onnx._builder import Builder, Unsupported, Value
from plait_onnx._table import lowers


@lowers("view", "reshape", "_unsafe_view")
def view(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    return b.reshape(self, arguments["size" if "size" in arguments else "shape"])


@lowers("flatten")
def flatten(b: Builder, self: Value, start_dim: int, end_dim: int) -> str:
    if not self.ndim:
        return b.flat(self)
    first, last = start_dim % self.ndim, end_dim % self.ndim
    sizes = b.sizes_of(self)
    return b.reshape(self, [*sizes[:first], b.product(sizes[first : last + 1]), *sizes[last + 1 :]])


@lowers("unflatten")
def unflatten(b: Builder, self: Value, dim: int, sizes: Any) -> str:
    dim %= self.ndim
    own = b.sizes_of(self)
    return b.reshape(self, [*own[:dim], *sizes, *own[dim + 1 :]])


@lowers("ravel")
def ravel(b: Builder, self: Value) -> str:
    return b.flat(self)


@lowers("view_as", "reshape_as")
def view_as(b: Builder, self: Value, other: Value) -> str:
    return b.op("Reshape", self, b.op("Shape", other))


@lowers("permute")
def permute(b: Builder, self: Value, dims: tuple[int, ...]) -> str:
    return b.permute(self, [dim % self.ndim for dim in dims])


@lowers("transpose", "swapaxes", "swapdims")
def transpose(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    if not self.ndim:
        return self.name
    first, second = (dim % self.ndim for dim in list(arguments.values())[1:3])
    order = list(range(self.ndim))
    order[first], order[second] = second, first
    return b.permute(self, order)


@lowers("t", "adjoint")
def t(b: Builder, self: Value) -> str:
    if self.ndim < 2:
        return self.name
    return b.permute(self, [*range(self.ndim - 2), self.ndim - 1, self.ndim - 2])


@lowers("movedim", "moveaxis")
def movedim(b: Builder, self: Value, source: Any, destination: Any) -> str:
    places = {d % self.ndim: s % self.ndim for s, d in zip(source, destination, strict=True)}
    rest = iter(dim for dim in range(self.ndim) if dim not in places.values())
    return b.permute(self, [places[d] if d in places else next(rest) for d in range(self.ndim)])


@lowers("unsqueeze")
def unsqueeze(b: Builder, self: Value, dim: int) -> str:
    return b.unsqueeze(self, dim % (self.ndim + 1))


@lowers("squeeze")
def squeeze(b: Builder, self: Value) -> str:
    dims = [dim for dim, size in enumerate(self.dims) if size == 1]
    return b.squeeze(self, *dims) if dims else self.name


@lowers("squeeze.dim")
def squeeze_dim(b: Builder, self: Value, dim: tuple[int, ...]) -> str:
    dims = sorted({each % max(self.ndim, 1) for each in dim})
    dims = [each for each in dims if self.ndim and self.shape[each] == 1]
    return b.squeeze(self, *dims) if dims else self.name


@lowers("expand", "broadcast_to", "expand_as")
def expand(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    other = arguments.get("other")
    if isinstance(other, Value):
        return b.op("Expand", self, b.op("Shape", other))
    # 1 keeps the size of the operand
    sizes = [1 if n == -1 else n for n in arguments["size" if "size" in arguments else "shape"]]
    return b.expand(self, sizes)


@lowers("select")
def select(b: Builder, self: Value, dim: int, index: Any) -> str:
    return b.op("Gather", self, b.scalar(index), axis=dim % self.ndim)


_LAST = 2**63 - 1


@lowers("slice")
def slice_(b: Builder, self: Value, dim: int, start: Any, end: Any, step: int) -> str:
    first, behind = (0, _LAST) if step > 0 else (_LAST, -_LAST)
    begin, end = (first if start is None else start), (behind if end is None else end)
    return b.slice(self, dim % self.ndim, begin, end, step)


@lowers("narrow")
def narrow(b: Builder, self: Value, dim: int, start: Any, length: Any) -> str:
    dim %= self.ndim
    if isinstance(start, int) and isinstance(length, int):
        if start < 0:
            size = self.dims[dim]
            if not isinstance(size, int):
                raise Unsupported("narrow with a negative start in a free dimension")
            start += size
        return b.slice(self, dim, start, start + length)
    begin = b.sizes_tensor([start])
    end = b.op("Add", begin, b.sizes_tensor([length]))
    return b.op("Slice", self, begin, end, b.constant([dim]))


@lowers("cat", "concat", "concatenate")
def cat(b: Builder, tensors: tuple[Value, ...], dim: int) -> str:
    result = b.results[0]
    parts = [each for each in tensors if not (each.shape == (0,) and result.ndim != 1)]
    names = [b.cast(each, result.dtype) for each in parts]
    return b.op("Concat", *names, axis=dim % result.ndim)


@lowers("stack")
def stack(b: Builder, tensors: tuple[Value, ...], dim: int) -> str:
    result = b.results[0]
    dim %= result.ndim
    names = [b.unsqueeze(b.cast(each, result.dtype), dim) for each in tensors]
    return b.op("Concat", *names, axis=dim)


@lowers(
    *("split", "split.sizes", "chunk", "tensor_split", "tensor_split.indices"),
    *("split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"),
    *("hsplit", "vsplit", "dsplit", "hsplit.indices", "vsplit.indices", "dsplit.indices"),
)
def split(b: Builder, self: Value) -> list[str]:
    (parts,) = b.results
    differs = [d for d in range(self.ndim) if any(p.shape[d] != self.shape[d] for p in parts)]
    if not differs:
        return [self.name for _ in parts]
    dim = differs[0]
    sizes = b.sizes_tensor([part.dims[dim] for part in parts])
    if any(part.dims[dim] is None for part in parts):
        raise Unsupported("a split into parts whose sizes depend on values")
    return b.ops("Split", len(parts), self, sizes, axis=dim)


@lowers("unbind")
def unbind(b: Builder, self: Value, dim: int) -> list[str]:
    (parts,) = b.results
    dim %= self.ndim
    if len(parts) == 1:
        return [b.squeeze(self, dim)]
    sizes = b.constant([1] * len(parts))
    return [b.squeeze(part, dim) for part in b.ops("Split", len(parts), self, sizes, axis=dim)]


@lowers("repeat", "tile")
def repeat(b: Builder, self: Value, arguments: dict[str, Any]) -> str:
    times = arguments["repeats" if "repeats" in arguments else "dims"]
    more = len(times) - self.ndim
    if more < 0:
        times = (*[1] * -more, *times)
    x = b.unsqueeze(self, *range(more)) if more > 0 else self.name
    return b.op("Tile", x, b.sizes_tensor(times)) if times else x


@lowers("repeat_interleave")
def repeat_interleave(b: Builder, self: Value, repeats: Any, dim: int | None) -> str:
    x: Any = self
    if dim is None:
        x, dim, sizes = b.flat(self), 0, [b.product(b.sizes_of(self))]
    else:
        dim %= self.ndim
        sizes = b.sizes_of(self)
    wide = b.unsqueeze(x, dim + 1)
    times = [1] * (len(sizes) + 1)
    times[dim + 1] = repeats
    tiled = b.op("Tile", wide, b.sizes_tensor(times))
    sizes[dim] = b.product([sizes[dim], repeats])
    return b.reshape(tiled, sizes)


@lowers("flip_view", "flip")
def flip(b: Builder, self: Value, dims: tuple[int, ...]) -> str:
    if not dims or not self.ndim:
        return self.name
    axes = [dim % self.ndim for dim in dims]
    count = len(axes)
    starts, ends = b.constant([-1] * count), b.constant([-_LAST] * count)
    return b.op("Slice", self, starts, ends, b.constant(axes), b.constant([-1] * count))


@lowers("roll_one")
def roll_one(b: Builder, self: Value, shift: Any, dim: int) -> str:
    dim %= self.ndim
    size = self.dims[dim]
    if isinstance(size, int) and isinstance(shift, int):
        shift = shift % size if size else 0
        if not shift:
            return self.name
        parts = b.slice(self, dim, -shift, _LAST), b.slice(self, dim, 0, -shift)
        return b.op("Concat", *parts, axis=dim)
    count = b.scalar(b.size(self, dim))
    moved = b.op("Sub", b.positions(b.size(self, dim)), b.scalar(shift))
    return b.op("Gather", self, b.op("Mod", moved, count), axis=dim)


def _triangle(name: str, upper: int) -> None:
    @lowers(name)
    def _(b: Builder, self: Value, diagonal: Any) -> str:
        # onnxruntime has it for few dtypes
        narrow = self.dtype.name in ("int8", "int16", "uint8", "uint16", "float16", "bfloat16")
        x = b.cast(self, "int64" if "int" in self.dtype.name else "float32") if narrow else self
        result = b.op("Trilu", x, b.scalar(diagonal), upper=upper)
        return b.cast(result, self.dtype) if narrow else result


_triangle("tril", 0)
_triangle("triu", 1)


@lowers("diagonal", "linalg_diagonal")
def diagonal(b: Builder, arguments: dict[str, Any]) -> str:
    x = next(iter(arguments.values()))
    first, second = arguments["dim1"] % x.ndim, arguments["dim2"] % x.ndim
    offset = arguments["offset"]
    order = [d for d in range(x.ndim) if d not in (first, second)]
    moved = b.permute(x, [*order, first, second])
    sizes = [b.size(x, d) for d in order]
    count = b.results[0].dims[-1]
    rows, columns = b.size(x, first), b.size(x, second)
    flat = b.reshape(moved, [*sizes, b.product([rows, columns])])
    start = offset if offset >= 0 else b.product([-offset, columns])
    step = b.op("Add", b.scalar(columns), b.constant(1))
    places = b.op("Add", b.op("Mul", b.positions(count), step), b.scalar(start))
    return b.op("Gather", flat, places, axis=len(order))


@lowers("unfold")
def unfold(b: Builder, self: Value, dim: int, size: int, step: int) -> str:
    if not self.ndim:
        return b.unsqueeze(self, 0)
    dim %= self.ndim
    count = b.results[0].dims[dim]
    starts = b.op("Mul", b.positions(count), b.scalar(step))
    places = b.op("Add", b.unsqueeze(starts, 1), b.positions(size))
    taken = b.op("Gather", self, places, axis=dim)
    order = [d for d in range(self.ndim + 1) if d != dim + 1]
    return b.permute(taken, [*order, dim + 1])


@lowers("pad_end")
def pad_end(b: Builder, self: Value, size: tuple[int, ...]) -> str:
    more = [n - old for n, old in zip(size, self.shape, strict=True)]
    return b.op("Pad", self, b.constant([0] * self.ndim + more))


_EDGES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


@lowers("pad")
def pad(b: Builder, self: Value, pad: tuple[Any, ...], mode: str, value: Any) -> str:
    if not any(not isinstance(n, int) or n for n in pad):
        return self.name
    pairs = [(pad[at], pad[at + 1]) for at in reversed(range(0, len(pad), 2))]
    pairs = [(0, 0)] * (self.ndim - len(pairs)) + pairs
    if mode != "constant" and not all(isinstance(n, int) for n in pad):
        raise Unsupported(f"padding by free sizes in the mode {mode!r}")
    if mode == "circular":
        return _wrapped(b, self, pairs)
    # onnxruntime has it for few dtypes
    narrow = self.dtype.name in ("bool", "int16", "uint16", "float16", "bfloat16")
    kind = self.dtype.name
    if narrow:
        kind = "int32" if "int" in kind or kind == "bool" else "float32"
    x = b.cast(self, kind)
    cuts = [(d, *pair) for d, pair in enumerate(pairs) if _cuts(pair)]
    widths = [tuple(max(n, 0) if isinstance(n, int) else n for n in pair) for pair in pairs]
    fill = b.constant(int(value) if "int" in kind else value, kind) if mode == "constant" else None
    if any(not isinstance(n, int) or n for pair in widths for n in pair):
        sizes = b.sizes_tensor([low for low, _ in widths] + [high for _, high in widths])
        x = b.op("Pad", x, sizes, fill, mode=_EDGES[mode])
    for dim, low, high in cuts:
        x = b.slice(x, dim, max(-low, 0), min(high, 0) or _LAST)
    return b.cast(x, self.dtype) if narrow else x


def _cuts(pair: tuple[Any, Any]) -> bool:
    return any(isinstance(n, int) and n < 0 for n in pair)


def _wrapped(b: Builder, self: Value, pairs: list[tuple[int, int]]) -> str:
    """Return a tensor with the elements of the other end before and behind its own."""
    x = self.name
    for dim, (low, high) in enumerate(pairs):
        if low < 0 or high < 0:
            x = b.slice(x, dim, max(-low, 0), min(high, 0) or _LAST)
        before = [b.slice(x, dim, -low, _LAST)] if low > 0 else []
        behind = [b.slice(x, dim, 0, high)] if high > 0 else []
        if before or behind:
            x = b.op("Concat", *before, x, *behind, axis=dim)
    return x


@lowers("as_strided")
def as_strided(b: Builder, self: Value, size: Any, stride: Any, offset: Any) -> str:
    numbers = (*size, *stride, offset, *self.dims)
    if not all(isinstance(n, int) for n in numbers):
        raise Unsupported("as_strided with free sizes")
    if not b.in_memory_order:
        raise Unsupported("as_strided of a tensor that is not in C order")
    places = np.array(offset, np.int64)
    for n, step in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(n) * step
    return b.op("Gather", b.flat(self), b.constant(places), axis=0)

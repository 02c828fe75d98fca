"""The words in C++ against those in Python, on generated inputs.

For each word the translator makes an operator that calls it and fails with the value as text. The
operators are compiled with the C++ words into a plug-in. This tests a word, its declared types and
the translation of its call. A failure of the word must have the same kind and the same text on both
sides.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import itertools
import json
import linecache
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import plait_abi
from plait_abi import operator
from plait_ops import calls, fft_words, linear_words, promotion, specs, words
from plait_ops.emit import functions, register
from plait_ops.promotion import GROUPS
from plait_ops.spec import REGISTRY, Composite, Operator
from plait_ops.value_types import Kind
from plait_ops.words import KINDS, WORDS, Fault, Meta, Word
from plait_ops.words.calling import current

ERRORS = {kind: getattr(plait_abi, kind, None) or getattr(builtins, kind) for kind in KINDS}
SOURCES = pathlib.Path(__file__).parents[1] / "cpp"
COMPILED = ("words", "shapes", "scope", "promotion", "calls", "fft_words", "linear_words")
CALLED = ("cast", "conj", "sum", "view")  # operators that words call
SCHEMA_TYPES = {
    Kind.STR: "str",
    Kind.INT: "int",
    Kind.BOOL: "bool",
    Kind.DTYPE: "dtype",
    Kind.SCALAR: "Scalar",
    Kind.OPERAND: "Tensor|Scalar",
    Kind.INTS: "int[]",
    Kind.ANY: "int[]",
    Kind.TENSOR: "Tensor",
    Kind.TENSORS: "Tensor?[]",
}
TENSOR_VALUES = ("conjugate", "sum_to", "to_dtype")  # words that give tensors
# words that have tests of their own: below, and in plait_autograd (test_linalg_grad.py,
# test_unused_outputs.py)
OTHERS = (
    *("cast_argument", "check", "is_recorded", "is_unused"),
    *("warn", "warn_of_freedom", "warn_of_real"),
)
SHOWN = [
    word
    for word in WORDS.values()
    if not word.makes_result and word.name not in (*TENSOR_VALUES, *OTHERS)
]
PLUGIN = """
#include "wrappers.hpp"
namespace plait::ops {{
namespace generated {{
{declarations}
}}
namespace {{
const plait_op_def definitions[] = {{
{definitions}
}};
// Marks a tensor as one that stands for a number.
plait_status wrap(plait_call *c) {{
  c->in[0].u.t->flags |= PLAIT_TENSOR_WRAPPED_NUMBER;
  return c->thread->runtime->result(c, 0, dtype::bool_, 0, nullptr);
}}
const plait_op_def wrapping{{
    PLAIT_HEADER(plait_op_def), "word_wrap(Tensor self) -> Tensor", "", 0,
    wrap, nullptr, nullptr, nullptr, nullptr, nullptr}};
const char *const called[] = {{{called}}};
const plait_op *table[kOperators];
const plait_runtime *runtime_;
plait_status init(const plait_runtime *runtime, const plait_plugin *) {{
  runtime_ = runtime;
  take_default_dtype(runtime);
  int i = 0;
  for (const plait_op_def &each : definitions) {{
    const plait_status s = runtime->define(runtime->thread(), &each, &table[i++]);
    if (s < 0) return s;
  }}
  const plait_op *wrapper;
  if (runtime->define(runtime->thread(), &wrapping, &wrapper) < 0) return PLAIT_ERROR;
  for (const char *name : called) table[i++] = runtime->op(name);
  return PLAIT_OK;
}}
}}
const plait_op *const *operators() {{ return table; }}
extern "C" __attribute__((visibility("default"))) void set_default(int bits) {{
  *runtime_->default_dtype = bits == 64 ? dtype::float64 : dtype::float32;
}}
}}
extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1;
const plait_plugin plait_plugin_v1{{
    PLAIT_HEADER(plait_plugin), "word_tests", "1", 0, plait::ops::init, nullptr}};
"""


# ---- the operators -------------------------------------------------------------------------------
def written(name: str, parameters: list[str], body: str) -> Callable[..., Any]:
    """Return a function with source text that `inspect` finds, as the translator needs it."""
    source = f"def _({', '.join(parameters)}):\n{body}"
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {**vars(words), **vars(fft_words), **vars(linear_words), "conj": calls.conj}
    exec(compile(source, file, "exec"), scope)
    result: Callable[..., Any] = scope["_"]
    return result


def failing(
    name: str, parameters: dict[str, str], *expressions: str, first: str = "pass"
) -> Operator:
    """An operator whose shape function does what `first` says, then fails with the values of
    expressions as text.
    """
    items = ", ".join(f"{kind} {each}" for each, kind in parameters.items())
    spec = Operator(f"word_{name}({items}) -> Tensor", doc="x")
    text = "; ".join(f"{{{expression}}}" for expression in expressions) or "nothing"
    body = (
        f'    {first}\n    check(False, f"{text}", "RuntimeError")\n    return result([], bool_)\n'
    )
    spec.shape(written(spec.name, list(parameters), body))
    return spec


def schema_types(word: Word) -> dict[str, str]:
    return {
        each.name: SCHEMA_TYPES[each.type.kind] + ("?" if each.type.optional else "")
        for each in word.parameters
    }


def of_word(word: Word) -> Operator:
    """The operator of a word that gives no tensor."""
    types = schema_types(word)
    call = f"{word.name}({', '.join(types)})"
    if word.result.kind is Kind.NONE:
        return failing(word.name, types, first=call)
    return failing(word.name, types, call)


def of_result(word: Word) -> Operator:
    """The operator whose shape function returns what the word makes, on the device of `on`."""
    types = schema_types(word)
    items = ", ".join(f"{kind} {name}" for name, kind in types.items())
    spec = Operator(f"word_{word.name}(Tensor on, {items}) -> Tensor", doc="x")
    body = f"    return {word.name}({', '.join(types)})\n"
    spec.shape(written(spec.name, ["on", *types], body))
    return spec


def of_tensor(word: Word) -> Operator:
    """The operator that is made of the word."""
    types = {**schema_types(word), word.parameters[0].name: "Tensor"}
    items = ", ".join(f"{kind} {name}" for name, kind in types.items())
    spec = Composite(f"word_{word.name}({items}) -> Tensor", doc="x")
    spec.decompose(written(spec.name, list(types), f"    return {word.name}({', '.join(types)})\n"))
    return spec


def of_check() -> Operator:
    """Return an operator that fails with one of the kinds of errors unless its argument is true."""
    spec = Operator("word_check(Tensor on, bool ok, str text, int n) -> Tensor", doc="x")
    body = "".join(
        f'    if n == {n}:\n        check(ok, f"{{text}}: {{n}}", "{kind}")\n'
        for n, kind in enumerate(words.KINDS)
    )
    body += "    return result([n], on.dtype)\n"
    spec.shape(written(spec.name, ["on", "ok", "text", "n"], body))
    return spec


INTEGERS = (
    *("a + b", "a - b", "a * b", "-a", "min(a, b)", "max(a, b)", "abs(a)", "float(a)", "int(x)"),
    *("a < b", "a == b", "a != b", "a <= b < 5", "a if a > b else b", "a < 0 or not b < 0"),
    *("x + a", "x * 2.0 - b", "x / 2", "float(min(x, a))", "x < a"),
)
LISTS = (
    *("tuple(s[a:b])", "tuple(s[:b])", "tuple(s[a:])", "tuple(s[::-1])", "tuple(s + [a, b])"),
    *(
        "tuple([a] * len(s))",
        "tuple(sorted(s))",
        "a in s",
        "b not in s",
        "s == sorted(s)",
        "len(s)",
    ),
    *("tuple(list(s))", "tuple([n + a for n in s if n > b])", "tuple([i for i in range(a, b)])"),
    "tuple([n * i for i, n in enumerate(s)])",
    "tuple([n for n in reversed(s)])",
)


def all_operators() -> list[Operator]:
    """Return the operators that call words, and some for other features of the translator."""
    numbers = {"a": "int", "b": "int", "x": "float"}
    lists = {"s": "int[]", "a": "int", "b": "int"}
    return [
        *(of_word(word) for word in SHOWN),
        *(of_result(word) for word in WORDS.values() if word.makes_result),
        *(of_tensor(WORDS[name]) for name in TENSOR_VALUES),
        of_check(),
        failing("strides", {"tensor": "Tensor"}, "tensor.strides"),
        failing("integers", numbers, *INTEGERS),
        failing("division", numbers, "a // b", "a % b"),
        failing("lists", lists, *LISTS),
    ]


# ---- compiling them ------------------------------------------------------------------------------
def plugin_source(operators: list[Operator]) -> str:
    declarations, definitions = [], []
    for spec in operators:
        result = functions.functions_of(spec)
        for name in functions.own_functions(spec).values():
            declarations.append(f"plait_status {name}(plait_call *);")
        flags = " | ".join(register.flags(spec)) or "0"
        definitions.append(
            f'{{PLAIT_HEADER(plait_op_def), {json.dumps(spec.schema.text)}, "", {flags}, '
            f"{result.get('shape', 'nullptr')}, nullptr, nullptr, nullptr, "
            f"{result.get('decompose', 'nullptr')}, nullptr}},"
        )
    return PLUGIN.format(
        declarations="\n".join(declarations),
        definitions="\n".join(definitions),
        called=", ".join(f'"{name}"' for name in CALLED),
    )


class Library(NamedTuple):
    """The loaded plug-in and the specs of its operators."""

    handle: ctypes.CDLL
    specs: dict[str, Operator]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The plug-in with an operator for each word."""
    folder = tmp_path_factory.mktemp("words")
    list(specs.all())
    before = dict(REGISTRY)
    try:
        result = all_operators()
        listed = [*result, *(specs.find(name) for name in CALLED)]
        texts = functions.emit(result)
        texts["operators.hpp"] = register.emit(listed)["operators.hpp"]
        texts["plugin.cpp"] = plugin_source(result)
    finally:
        REGISTRY.clear()
        REGISTRY.update(before)
    for name, text in texts.items():
        (folder / name).write_text(text)
    sources = [str(folder / name) for name in texts if name.endswith(".cpp")]
    sources += [str(SOURCES / f"{name}.cpp") for name in COMPILED]
    whole = folder / "all.cpp"
    whole.write_text("".join(f'#include "{name}"\n' for name in sources))
    compiler = shlex.split(os.environ.get("CXX", "")) or [shutil.which("c++") or "g++"]
    includes = [f"-I{each}" for each in (folder, SOURCES, plait_abi.paths()["include"])]
    path = folder / "words.so"
    command = [*compiler, "-std=c++17", "-O0", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([*command, *includes, str(whole), "-o", str(path)], check=True)
    plait_abi.load(str(path))
    return Library(ctypes.CDLL(str(path)), {spec.name: spec for spec in result})


# ---- values --------------------------------------------------------------------------------------
STRINGS = {
    "group": tuple(GROUPS),
    "memory_format": (
        *("contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "rows"),
    ),
    "norm": ("backward", "forward", "ortho", "sideways"),
}
NUMBERS = [True, False, 0, 1, -1, 3, 255, 256, -129, 2**31, 2**53, 2**63 - 1, -(2**63)]
REALS = [0.0, 0.5, -2.5, 7.0, 65505.0, 1e39, -1e300, float("nan"), float("inf"), float("-inf")]
COMPLEXES = [2j, 1.5 - 0.5j]


class Draw:
    """Random values for the parameters of words."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def size(self) -> int:
        return self.random.choice([0, 1, 1, 2, 3, 4, 5])

    def shape(self) -> list[int]:
        return [self.size() for _ in range(self.random.randint(0, 5))]

    def int(self) -> int:
        if self.random.random() < 0.05:
            return self.random.choice([2**31, -(2**31), 2**62, -(2**62)])
        return self.random.randint(-6, 6)

    def ints(self, name: str) -> list[int]:
        if name in ("shape", "preserved", "a", "b"):
            return self.shape()
        return [self.random.randint(-3, 5) for _ in range(self.random.randint(0, 4))]

    def dtype(self) -> str:
        return self.random.choice(promotion.ANY)

    def tensor(self) -> Meta:
        """A view of some tensor: permuted, stepped, backwards or expanded."""
        whole = np.zeros(
            [self.random.choice([1, 2, 3, 4]) for _ in range(self.random.randint(0, 5))]
        )
        cuts = [slice(None), slice(None), slice(None, None, 2), slice(None, None, -1), slice(0, 1)]
        part = whole[tuple(self.random.choice([*cuts, slice(0, 0)]) for _ in whole.shape)]
        part = part.transpose(self.random.sample(range(part.ndim), part.ndim))
        if self.random.random() < 0.2:
            part = np.broadcast_to(part, (self.size(), *part.shape))
        return Meta(part.shape, self.dtype(), tuple(step // 8 for step in part.strides))

    def number(self) -> Any:
        return self.random.choice([*NUMBERS, *REALS, *REALS, *COMPLEXES])

    def value(self, name: str, kind: Kind) -> Any:
        """A value for a parameter."""
        if kind is Kind.STR:
            return self.random.choice(STRINGS.get(name, ("self", "other")))
        if kind is Kind.OPERAND:
            return self.random.choice([self.number, self.tensor])()
        if kind is Kind.TENSORS:
            return [self.tensor() for _ in range(self.random.randint(0, 3))]
        if kind in (Kind.INTS, Kind.ANY):
            return self.ints(name)
        simple: dict[Kind, Callable[[], Any]] = {
            Kind.INT: self.int,
            Kind.BOOL: lambda: self.random.random() < 0.5,
            Kind.DTYPE: self.dtype,
            Kind.SCALAR: self.number,
            Kind.TENSOR: self.tensor,
        }
        return simple[kind]()

    def values(self, word: Word) -> list[Any]:
        """Values for all parameters of a word."""
        return [
            None
            if each.type.optional and self.random.random() < 0.25
            else self.value(each.name, each.type.kind)
            for each in word.parameters
        ]


def on_meta(value: Any) -> Any:
    """Return the runtime's value for a value of the Python word."""
    if isinstance(value, list):
        return [on_meta(item) for item in value]
    if not isinstance(value, Meta):
        return value
    result = operator("empty")((1,), dtype=value.dtype, device="meta")
    result = operator("as_strided")(result, value.shape, value.strides)
    if value.wrapped_number:
        operator("word_wrap")(result)
    return result


def text_of(value: Any) -> str:
    """A value as a message of C++ has it."""
    return str(tuple(value)) if isinstance(value, (list, tuple)) else str(value)


def in_python(word: Word, values: list[Any]) -> tuple[str, str]:
    """The kind of error and the text that the operator of a word must fail with."""
    name = f"word_{word.name}"
    try:
        with words.calling(name, {}):
            value = word.function(*values)
    except Fault as fault:
        return fault.kind, fault.text
    text = "nothing" if word.result.kind is Kind.NONE else text_of(value)
    return "RuntimeError", f"{name}: {text}"


def in_cpp(name: str, values: list[Any]) -> tuple[str, str]:
    """The kind of error and the text that it fails with."""
    with pytest.raises(tuple(ERRORS.values())) as raised:
        operator(name)(*[on_meta(value) for value in values])
    # an index out of range is a ValueError, too
    kinds = sorted(ERRORS, key=lambda key: key != "IndexError")
    kind = next(key for key in kinds if isinstance(raised.value, ERRORS[key]))
    return kind, str(raised.value)


# ---- arguments that have to do with one another --------------------------------------------------
def with_the_elements_of(draw: Draw, shape: Any) -> list[int]:
    """Sizes with as many elements as `shape`."""
    sizes = [size for size in shape if size != 1]
    while len(sizes) > 1 and draw.random.random() < 0.5:
        at = draw.random.randrange(len(sizes) - 1)
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    for _ in range(draw.random.randint(0, 2)):
        sizes.insert(draw.random.randint(0, len(sizes)), 1)
    return sizes


def related_sizes(draw: Draw, values: list[Any]) -> list[Any]:
    name, size, shape = values
    if draw.random.random() < 0.7:
        size = with_the_elements_of(draw, shape)
        if size and draw.random.random() < 0.5:
            size[draw.random.randrange(len(size))] = -1
    return [name, size, shape]


def related_broadcast(draw: Draw, values: list[Any]) -> list[Any]:
    name_a, a, name_b, b = values
    if draw.random.random() < 0.7:
        b = [draw.random.choice([1, size]) for size in a[draw.random.randint(0, len(a)) :]]
    return [name_a, a, name_b, b]


def related_index(draw: Draw, values: list[Any]) -> list[Any]:
    name, shape, dim, index_name, index = values
    if draw.random.random() < 0.7:
        dtype = draw.random.choice(["int64", "int32", "uint8", "float32"])
        index = Meta(tuple(draw.random.randint(0, size + 1) for size in shape), dtype)
    return [name, shape, dim, index_name, index]


def related_indices(draw: Draw, values: list[Any]) -> list[Any]:
    name, shape, _ = values
    whole = draw.shape()[:3]
    indices: list[Meta | None] = []
    for _ in range(draw.random.randint(0, 4)):
        dtype = draw.random.choice(["int64", "int64", "int64", "int32", "float32"])
        sizes = tuple(draw.random.choice([1, size]) for size in whole)
        indices.append(draw.random.choice([None, Meta(sizes, dtype), Meta(sizes, dtype)]))
    return [name, shape, indices]


def related_windows(draw: Draw, values: list[Any]) -> list[Any]:
    shape = [*values[0], draw.random.randint(1, 20)]
    size, stride, padding, dilation = (
        draw.random.choice([*[1, 2, 3, 4] * 5, 0, -1, 2**31]) for _ in range(4)
    )
    at = draw.random.randrange(len(shape))
    return [shape, at, size, stride, padding - 1, dilation, values[-1]]


def related_slice(draw: Draw, values: list[Any]) -> list[Any]:
    return [*values[:-2], values[-2] or 1, draw.random.randint(0, 9)]


def related_fft(draw: Draw, values: list[Any]) -> list[Any]:
    shape = [*values[0], 3]
    dims = draw.random.sample(range(len(shape)), draw.random.randint(0, len(shape)))
    s = None if values[1] is None else [draw.random.randint(-1, 5) for _ in dims]
    return [shape, s, dims]


def of_format(draw: Draw, values: list[Any]) -> list[Any]:
    shape = draw.shape()[:4] + [draw.size() for _ in range(draw.random.choice([0, 1, 4]))]
    return [values[0], shape, [draw.random.randint(0, 9) for _ in shape]]


def viewed(draw: Draw, values: list[Any]) -> list[Any]:
    return [values[0], with_the_elements_of(draw, values[0].shape)]


def viewable_only(draw: Draw, values: list[Any]) -> list[Any]:
    """Strides that mean something."""
    tensor, shape = viewed(draw, values)
    return [tensor, shape if words.viewable(tensor, shape) else tensor.shape]


def with_values(draw: Draw, values: list[Any]) -> list[Any]:
    return [draw.random.choice([values[0], np.arange(3)])]


def one_element(draw: Draw, values: list[Any]) -> list[Any]:
    return [np.full(draw.random.choice([(), (1,), (1, 1)]), draw.int())]


def shape_or_tensor(draw: Draw, values: list[Any]) -> list[Any]:
    return [draw.shape()]


def many_elements(draw: Draw, values: list[Any]) -> list[Any]:
    if draw.random.random() < 0.3:
        return [values[0], [2 ** draw.random.randint(0, 40) for _ in range(2)]]
    return [values[0], [1] * 65 if draw.random.random() < 0.1 else values[1]]


RELATED: dict[str, Callable[[Draw, list[Any]], list[Any]]] = {
    "broadcast": related_broadcast,
    "fft_sizes": related_fft,
    "format_strides": of_format,
    "gather_check": related_index,
    "has_values": with_values,
    "index_shape": related_indices,
    "infer_size": related_sizes,
    "item": one_element,
    "numel": shape_or_tensor,
    "sizes": many_elements,
    "slice_count": related_slice,
    "slice_start": related_slice,
    "view_strides": viewable_only,
    "viewable": viewed,
    "windows": related_windows,
}


def cases(word: Word, n: int = 400) -> Iterator[list[Any]]:
    """Yield arguments for a word, the same ones every time."""
    draw = Draw(word.name)
    for _ in range(n if word.parameters else 1):
        values = draw.values(word)
        yield RELATED.get(word.name, lambda draw, values: values)(draw, values)


# ---- the tests -----------------------------------------------------------------------------------
@pytest.mark.parametrize("word", SHOWN, ids=lambda word: word.name)
def test_words_give_the_same(library: Library, word: Word) -> None:
    outcomes = set()
    for values in cases(word):
        want = in_python(word, values)
        assert in_cpp(f"word_{word.name}", values) == want, values
        outcomes.add(want)
    assert len(outcomes) > 1 or not word.parameters  # the values were worth drawing


@pytest.mark.parametrize(
    "word", [w for w in WORDS.values() if w.makes_result], ids=lambda w: w.name
)
def test_results_are_the_same(library: Library, word: Word) -> None:
    draw = Draw(word.name)
    for _ in range(200):
        shape, strides = draw.shape(), [draw.random.randint(0, 7) for _ in range(5)]
        dtype = draw.dtype()
        base = Meta((4000,), dtype)
        if word.name == "view_parts":
            base.dtype = draw.random.choice(["complex64", "float32"])
            dtype = {"complex64": "float32", "float32": "complex64"}[base.dtype]
        parts = {"base": base, "shape": shape, "dtype": dtype, "strides": strides[: len(shape)]}
        if word.name == "result_as":  # every element has an address of its own
            parts["strides"] = words.contiguous_strides(shape[::-1])[::-1]
        values = [parts.get(each.name, 3) for each in word.parameters]
        on = on_meta(Meta((1,)))
        got = operator(f"word_{word.name}")(on, *[on_meta(value) for value in values])
        with words.calling("f", {}):
            want = word.function(*values)
        assert (tuple(got.shape), got.dtype.name) == (tuple(want.shape), want.dtype), values
        if 0 not in shape:
            walked = [i for i, size in enumerate(shape) if size != 1]
            steps = strides_of(got)
            assert [steps[i] for i in walked] == [want.strides[i] for i in walked], values


def strides_of(tensor: Any) -> list[int]:
    """The strides, as another operator sees them."""
    with pytest.raises(RuntimeError) as raised:
        operator("word_strides")(tensor)
    return list(ast.literal_eval(str(raised.value).partition(": ")[2]))


@pytest.mark.parametrize("name", TENSOR_VALUES)
def test_words_that_give_tensors(library: Library, name: str) -> None:
    """Shapes and dtypes; the values are those of the operators that the words call."""
    draw, word = Draw(name), WORDS[name]
    numpy_dtypes = [dtype for dtype in promotion.group("inexact") if dtype != "bfloat16"]
    for _ in range(200):
        array = np.zeros(draw.shape(), draw.random.choice(numpy_dtypes))
        rest: list[Any] = []
        if name == "to_dtype":
            rest = [draw.random.choice(numpy_dtypes)]
        elif name == "sum_to":
            cut = draw.random.randint(0, array.ndim)
            rest = [[draw.random.choice([1, size]) for size in array.shape[cut:]]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's about imaginary parts
            want = word.function(array, *rest)
        got = operator(f"word_{name}")(on_meta(Meta(array.shape, array.dtype.name)), *rest)
        assert (tuple(got.shape), got.dtype.name) == (want.shape, want.dtype.name)


def test_check_fails_with_every_kind(library: Library) -> None:
    on = Meta((2,))
    for n, kind in enumerate(words.KINDS):
        assert in_cpp("word_check", [on, False, "so", n]) == (kind, f"word_check: so: {n}")
        assert operator("word_check")(on_meta(on), True, "so", n).shape == (n,)


def warnings_in_python(name: str, word: str, *values: Any) -> list[str]:
    """The texts of a word's warnings in a call of an operator."""
    with words.calling(name, {}):
        WORDS[word].function(*values)
        return list(current().warnings)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_warnings_of_variances_agree(library: Library, n: int, correction: int) -> None:
    want = warnings_in_python("var", "warn_of_freedom", [n, 3], [0], float(correction))
    assert len(want) == (n <= correction)
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        operator("var")(on_meta(Meta((n, 3))), 0, correction=correction)
    assert [str(each.message) for each in got] == want


@pytest.mark.parametrize("to", ["float32", "complex128", "int64", "bool"])
def test_warnings_of_lost_parts_agree(library: Library, to: str) -> None:
    for dtype in ("float32", "complex64"):
        want = warnings_in_python("cast", "warn_of_real", dtype, to)
        assert len(want) == (dtype == "complex64" and to in ("float32", "int64"))
        with warnings.catch_warnings(record=True) as got:
            warnings.simplefilter("always")
            operator("cast")(on_meta(Meta((2,), dtype)), to)
        assert [str(each.message) for each in got] == want


def in_python_too(spec: Operator, *values: Any) -> tuple[str, str]:
    """How the shape function of a test operator fails in Python."""
    names = [argument.name for argument in spec.schema.arguments]
    assert spec.shape_function is not None
    with pytest.raises(Fault) as raised:
        words.infer(spec.shape_function, spec.name, dict(zip(names, values, strict=True)))
    return raised.value.kind, raised.value.text


@pytest.mark.parametrize("name", ["integers", "division"])
def test_arithmetic_is_python_s(library: Library, name: str) -> None:
    spec, draw = library.specs[f"word_{name}"], Draw(name)
    for _ in range(300):
        a, b = draw.random.randint(-40, 40), draw.random.randint(-9, 9) or 1
        x = draw.random.choice([0.5, -2.25, 7.0, -0.0, 100.0])
        assert in_cpp(spec.name, [a, b, x]) == in_python_too(spec, a, b, x)


def test_lists_are_python_s(library: Library) -> None:
    spec, draw = library.specs["word_lists"], Draw("lists")
    for _ in range(300):
        s, a, b = draw.ints("s"), draw.random.randint(-5, 5), draw.random.randint(-5, 5)
        assert in_cpp(spec.name, [s, a, b]) == in_python_too(spec, s, a, b)


def test_what_64_bits_cannot_hold_is_an_error(library: Library) -> None:
    for a, b in ((2**62, 2), (-(2**63), -1)):
        with pytest.raises(plait_abi.PlaitError, match="64 bits"):
            operator("word_integers")(a, b, 0.0)
    with pytest.raises(plait_abi.PlaitError, match="64 bits"):
        operator("word_division")(1, 0, 0.0)


# ---- promotion -----------------------------------------------------------------------------------
KINDS_OF_OPERANDS = [
    *(Meta(shape, dtype) for dtype in promotion.ANY for shape in ((2,), ())),
    *(Meta((), dtype, wrapped_number=True) for dtype in ("bool", "int64", "float64", "complex128")),
    *(True, 2, 2.5, 2j),
]


@pytest.fixture(params=["float32", "float64"])
def default_dtype(library: Library, request: pytest.FixtureRequest) -> Iterator[str]:
    """Set the default dtype in C++ and in Python."""
    before = promotion.DEFAULT
    library.handle.set_default(int(request.param.removeprefix("float")))
    promotion.DEFAULT = request.param
    yield request.param
    library.handle.set_default(32)
    promotion.DEFAULT = before


def test_all_pairs_of_operands_promote_alike(library: Library, default_dtype: str) -> None:
    word = WORDS["require_common"]
    for a, b in itertools.product(KINDS_OF_OPERANDS, KINDS_OF_OPERANDS):
        values = ["self", a, "other", b]
        assert in_cpp("word_require_common", values) == in_python(word, values), values


def test_all_lists_of_three_dtypes_promote_alike(library: Library, default_dtype: str) -> None:
    word, draw = WORDS["promote_all"], Draw("three")
    for dtypes in itertools.product(promotion.ANY, repeat=3):
        tensors = [Meta(draw.random.choice([(2,), ()]), dtype) for dtype in dtypes]
        values = ["tensors", tensors]
        assert in_cpp("word_promote_all", values) == in_python(word, values), values


def test_every_dtype_and_group(library: Library, default_dtype: str) -> None:
    of_dtypes = [w for w in SHOWN if [str(p.type) for p in w.parameters] == ["dtype"]]
    assert len(of_dtypes) >= 6
    for dtype in promotion.ANY:
        for word in of_dtypes:
            assert in_cpp(f"word_{word.name}", [dtype]) == in_python(word, [dtype])
        for group in GROUPS:
            values = ["self", dtype, group]
            assert in_cpp("word_require", values) == in_python(WORDS["require"], values)
    for number in (True, 2, 2.5, 2j):
        assert in_cpp("word_dtype_of", [number]) == in_python(WORDS["dtype_of"], [number])
    assert in_cpp("word_default_dtype", []) == (
        "RuntimeError",
        f"word_default_dtype: {default_dtype}",
    )

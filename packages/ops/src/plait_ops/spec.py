"""The language of operator specs: an object for each operator, with decorated functions.

`docs/design/0004` describes it; `plait_ops/specs/` is written in it; `plait_ops/lower/` translates
it.
"""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from plait_ops import glossary, promotion, rules, schema as grammar
from plait_ops.promotion import GROUPS
from plait_ops.sampling import Sample, Sampler
from plait_ops.words import numel

__all__ = [
    "REGISTRY",
    "Composite",
    "ErrorFact",
    "Operator",
    "Pointwise",
    "Reduction",
    "Reference",
    "SpecError",
    "View",
    "Vjp",
    "compute_dtype",
    "has_out_form",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Reference = Callable[..., Any]

SPECS = pathlib.Path(__file__).with_name("specs")
"""The folder of the specs; a file in it is a family."""

REGISTRY: dict[str, Operator] = {}
"""All operators by name (``max.dim``), in order of definition; filled by importing the specs."""

NAMESPACES = ("linalg", "fft", "special")
"""Namespaces: the operator ``linalg_solve`` is ``linalg.solve`` for users (docs/design/0008)."""

VARIANTS = ("function", "function_", "method")
"""The ways in which users can call an operator; see `Operator`."""


class SpecError(ValueError):
    """A spec that contradicts itself."""


@dataclasses.dataclass(frozen=True)
class Vjp:
    """A vector-Jacobian product for `inputs`; names in `meta` are saved without their values."""

    inputs: tuple[str, ...]
    function: Callable[..., Any]
    meta: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ErrorFact:
    """A call that must fail with an error of `kind` whose text holds every string of `contains`."""

    kind: str
    call: Callable[[Sampler], Sample]
    contains: tuple[str, ...]


def has_out_form(schema: grammar.Schema) -> bool:
    """Return whether an operator can write its results into tensors given as ``out=``: they are
    tensors (no list of them, no view of an argument), and it writes none of its arguments.
    """
    return bool(schema.results) and not (
        any(each.type != "Tensor" or each.alias or each.writes for each in schema.results)
        or any(each.writes for each in schema.arguments)
    )


class Operator:
    """An operator with a kernel of its own.

    Args:
        schema: a schema string, see docs/design/0003.
        doc: one line, then formula, shapes, dtypes, errors and an example. A block ``Args:`` has
            the arguments that mean something else than `plait_ops.glossary` says.
        inplace: it has the form ``name_``.
        out: it has the form ``out=``; default: it does if all results are new tensors, and it is no
            part of other operators (`has_out_form`).
        dtypes: the group of dtypes that its tensors may have; see
            `plait_ops.promotion.GROUPS`.
        kernel: the signature of the kernel, if the schema does not say it.
        random: it draws from a generator.
        any_device: its tensors may be on several devices.
        auxiliary: positions of results without a gradient: results that only the operator's own
            derivative reads, or detached ones.
        unpredictable: only shape and dtype of the results are known (random numbers, uninitialised
            memory).
        variants: how users call it, words out of `VARIANTS`. ``function``: as ``plait.name``;
            ``method``: as ``x.name()`` where `x` is its first argument `self`, and ``x.name_()``
            where it has that form; ``function_``: as ``plait.name_`` too. Every operator, also one
            without any variant, can be called as ``plait_abi.operator("name")``: so does
            ``plait.nn.functional``.
        internal: a part of other operators: it has no variant, errors name the operator that calls
            it, and it has no place in the front page of the reference.
        lapack: its kernels call LAPACK, so that results depend on the processor.
        libm: the dtypes for which its kernels call functions of the C library, so that results
            depend on the processor: "all", "wide" (float64 and complex) or "complex"; empty: none.
        widens: its decomposition and its derivatives compute halves in float32 and round each
            result once: float16 and bfloat16 arguments are cast before them, results after them
            (docs/design/0007). Results that a derivative reads are computed again, not rounded.
    """

    kind = "structured"

    def __init__(
        self,
        schema: str,
        *,
        doc: str,
        inplace: bool = False,
        out: bool | None = None,
        dtypes: str = "all",
        kernel: str = "",
        random: bool = False,
        any_device: bool = False,
        internal: bool = False,
        variants: str = "function",
        unpredictable: bool = False,
        auxiliary: Sequence[int] = (),
        widens: bool = False,
        lapack: bool = False,
        libm: str = "",
    ) -> None:
        self.schema = grammar.parse(schema)
        self.lapack, self.libm = lapack, libm
        self.widens = self._checked_widens(widens)
        self.summary, self.meanings = glossary.own_meanings(inspect.cleandoc(doc))
        self.unpredictable, self.auxiliary = unpredictable or random, tuple(auxiliary)
        self.inplace, self.dtypes, self.kernel = inplace, dtypes, kernel
        self.random, self.any_device = random, any_device
        self.internal = internal or self.schema.base.endswith("_backward")
        self.out = has_out_form(self.schema) and not self.internal if out is None else out
        self.variants = self._checked_variants(variants)
        self.shape_function: Callable[..., Any] | None = None
        self.decompose_function: Callable[..., Any] | None = None
        self.jvp_function: Callable[..., Any] | None = None
        self.cost_function: Callable[..., Any] | None = None
        self.reference_function: Reference | None = None
        self.sample_function: Callable[[Sampler], Iterator[Sample]] | None = None
        self.determined: Callable[..., Sequence[Any]] = lambda *results: results
        self.vjps: list[Vjp] = []
        self.constants: set[str] = set()
        self.errors: list[ErrorFact] = []
        self.slice_dims: dict[str, int | str] = {}
        self.batching, self.sharding = "", ""  # rules as texts, see `plait_ops.rules`
        self.zero_preserving = False
        self.file = self._where()
        if libm not in ("", "all", "wide", "complex"):
            raise SpecError(f"{self.name}: `libm` must be all, wide or complex, got {libm!r}")
        if dtypes not in GROUPS:
            raise SpecError(f"{self.name}: `dtypes` must be one of {tuple(GROUPS)}, got {dtypes!r}")
        for name in self.meanings:
            self.schema.argument(name)  # a text for an argument that does not exist is an error
        if self.name in REGISTRY:
            raise SpecError(
                f"{self.name} is specified twice: {REGISTRY[self.name].file} and {self.file}"
            )
        if not self.schema.overload and any(
            each.schema.base == self.name for each in REGISTRY.values()
        ):
            raise SpecError(
                f"{self.name} must be specified before its overloads, which it is tried before"
            )
        REGISTRY[self.name] = self

    def _checked_variants(self, text: str) -> tuple[str, ...]:
        """Return the words of `text`; an internal operator has none."""
        words = tuple(text.split())
        if not set(words) <= set(VARIANTS):
            raise SpecError(f"{self.name}: `variants` must be of {VARIANTS}, got {text!r}")
        if self.internal:
            if words not in ((), ("function",)):
                raise SpecError(f"{self.name}: it is internal and has no `variants`, got {text!r}")
            return ()
        first = self.schema.arguments[0] if self.schema.arguments else None
        takes_self = first is not None and first.name == "self" and first.is_tensor
        if "method" in words and not (takes_self and first and first.type != "Tensor[]"):
            raise SpecError(f"{self.name}: a method's first argument must be `Tensor self`")
        if "function_" in words and not self.inplace:
            raise SpecError(f"{self.name}: it has no form in place for the variant 'function_'")
        return words

    def _checked_widens(self, widens: bool) -> bool:
        """Return `widens`; lists of tensors and arguments that are written cannot be cast."""
        arguments, results = self.schema.arguments, self.schema.results
        written = any(each.writes for each in arguments) or any(each.writes for each in results)
        types = {each.type for each in arguments} | {each.type for each in results}
        if widens and (written or "Tensor[]" in types):
            raise SpecError(f"{self.name}: `widens` needs tensors that are only read, and no lists")
        return widens

    @staticmethod
    def _where() -> pathlib.Path:
        frame = sys._getframe()  # `inspect.stack` takes milliseconds, where many modules are loaded
        while (file := pathlib.Path(frame.f_code.co_filename)).parent == SPECS.parent:
            assert frame.f_back is not None  # the spec language does not run by itself
            frame = frame.f_back
        return file

    def __repr__(self) -> str:
        return f"<{self.kind} operator {self.name}>"

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def family(self) -> str:
        """Folder and stem of the file that defines it: ``pointwise/activations``."""
        if SPECS in self.file.parents:
            return self.file.relative_to(SPECS).with_suffix("").as_posix()
        return self.file.stem

    @property
    def identifier(self) -> str:
        return self.schema.identifier

    @property
    def doc(self) -> str:
        """The documentation: the spec's text, its arguments, and paragraphs for the operator's
        kind. The arguments of an operator are those of all its overloads.
        """
        if self.internal:
            return self.text
        own = (self.schema, self.text, self.meanings)
        return glossary.with_arguments(
            [own, *((o.schema, o.text, o.meanings) for o in self.overloads)], out=self.out
        )

    @property
    def overloads(self) -> list[Operator]:
        """The overloads of an operator without one: `max.dim` of `max`."""
        if self.schema.overload:
            return []
        named = (each for each in REGISTRY.values() if each.schema.base == self.name)
        return [each for each in named if each is not self]

    @property
    def text(self) -> str:
        """The documentation without its arguments."""
        return self.summary

    @property
    def composite(self) -> bool:
        """Whether it runs as other operators above the layers, which differentiate those."""
        return False

    # ---- the parts -------------------------------------------------------------------------------
    def shape(self, function: Function) -> Function:
        """Set the shape function, which validates the arguments and makes the results."""
        self.shape_function = function
        return function

    def vjp(self, *inputs: str, meta: Sequence[str] = ()) -> Callable[[Function], Function]:
        """Set the derivative for `inputs`: from ``g``, arguments and results by name to their
        gradients.
        """
        for name in inputs:
            if not self.schema.argument(name).is_tensor:
                raise SpecError(f"{self.name}: `{name}` is not a tensor and has no derivative")

        def keep(function: Function) -> Function:
            self.vjps.append(Vjp(inputs, function, tuple(meta)))
            return function

        return keep

    def constant(self, *inputs: str) -> None:
        """Declare that the gradients of `inputs` are zero almost everywhere, or are part of another
        input's.
        """
        self.constants.update(self.schema.argument(name).name for name in inputs)

    def slices(self, /, **dims: int | str) -> None:
        """Declare that a call is the same as calls on slices of its tensors, one after the other: a
        backend that computes halves in float32 then needs memory for a slice alone.

        The names are those of arguments, and ``result`` or ``result0``. A value is the dimension
        along which a tensor is cut, or the entry of a list of sizes that becomes the slice's;
        "dim": any dimension but those that the argument `dim` names; "sum": the result is the sum
        of those of the slices. All results are named. Every slice sees other arguments whole. The
        first tensor that is named decides how many slices there are.
        """
        names = [each.name for each in self.schema.arguments] + self._result_names()
        for name, dim in dims.items():
            if name not in names or dim not in (*range(10), "dim", "sum"):
                raise SpecError(f"{self.name}: cannot cut `{name}` along {dim!r}")
            if dim == "sum" and name not in self._result_names():
                raise SpecError(f"{self.name}: `{name}` is no result, so it is no sum")
        for name in self._result_names():
            if name not in dims:
                raise SpecError(f"{self.name}: how is `{name}` made of those of the slices?")
        self.slice_dims = dims

    def _result_names(self) -> list[str]:
        single = "result" not in [each.name for each in self.schema.arguments]
        if len(self.schema.results) == 1 and single:
            return ["result"]
        return [f"result{i}" for i in range(len(self.schema.results))]

    @property
    def slice_letters(self) -> str:
        """The way in which calls are cut, a letter for each argument and after ">" for each result:
        a digit, "d" for "dim", "+" for "sum", "." for what is not cut. Empty if nothing is.
        """
        if not self.slice_dims:
            return ""
        arguments = [each.name for each in self.schema.arguments]
        letters = {"dim": "d", "sum": "+", ".": "."}
        texts = [
            "".join(
                letters.get(str(dim), str(dim))
                for dim in (self.slice_dims.get(name, ".") for name in names)
            )
            for names in (arguments, self._result_names())
        ]
        return ">".join(texts)

    def batch(self, kind: str, /, **actions: str) -> None:
        """Declare how one call computes all samples of a batch, if its kind of operator does not
        say it.

        Args:
            kind: "leading": the samples are one more dimension in front, for arguments that have
                one ("dimensions"), are matrices ("matrices"), or count a dimension that the result
                has ("new dimension"). "rows": dimension 0 is a list of independent rows, which the
                samples become part of. "pointwise" and "reduction": as the operators of that name.
                "code": a function in Python of the package that has vmap. `rules.BATCHING` has
                those in C++.
            actions: what is done with an argument, by its name, if its type and name do not say it:
                "same": nothing, samples share it; "all": it gets the samples in front; "dims" and
                "sizes": dimensions and sizes of a sample become those of all.
        """
        self.batching = self._rule(rules.batching, kind, actions)

    def shard(
        self,
        kind: str,
        /,
        *,
        linear: Sequence[str] = (),
        nonlinear: Sequence[str] = (),
        dims: Sequence[str] = (),
    ) -> None:
        """Declare what a call on parts of tensors, which several ranks hold, computes of the whole.

        Args:
            kind: "elements": an element of the result depends on those at its place in the tensors,
                which broadcast. "sum", "mean", "max", "min": the result for the whole is that of
                the results for the parts. "code": a function in Python of distributed tensors.
            linear: tensors in which the results are linear, together: a sum of parts gives the sum
                of results.
            nonlinear: arguments that must be None for that.
            dims: arguments that name dimensions whose elements depend on each other.
        """
        self.sharding = self._rule(rules.sharding, kind, linear, nonlinear, dims)

    def _rule(self, write: Callable[..., str], *facts: Any) -> str:
        try:
            return write(self.schema, *facts)
        except ValueError as error:
            raise SpecError(f"{self.name}: {error}") from None

    def jvp(self, function: Function) -> Function:
        """Set the forward derivative, if a formula is faster than the transposed vjp. Its
        parameters are the tangents ``d_<name>`` (None for a missing one), and results as ``result``
        or ``result0``.
        """
        self.jvp_function = function
        return function

    def decompose(self, function: Function) -> Function:
        """Set the decomposition into calls of other operators, which runs if a backend has no
        kernel. That of a `Pointwise` sees what a kernel sees: operands in the dtype that it
        computes in, but float32 for halves (unless it is `exact`), and numbers as they are; its
        result is rounded once.
        """
        self.decompose_function = function
        return function

    def cost(self, function: Function) -> Function:
        """Set the cost of a call: from arguments and results by name, and whether it is `inplace`,
        to the number of floating-point operations, or to that and the bytes read and written.

        An addition is one operation and a multiplication is one, of whatever dtype. The function
        reads sizes, dtypes, integers, truth values and strings, never elements or other numbers.
        What it leaves out is counted by the runtime: the bytes of all tensors among the arguments
        and of the results, and one operation for each element that a `Pointwise` writes.
        """
        self.cost_function = function
        return function

    def reference(self, function: Function) -> Function:
        """Set the NumPy reference, which kernels are compared with. By default it is the
        decomposition, run on the references of the other operators.
        """
        self.reference_function = function
        return function

    def compare(self, function: Function) -> Function:
        """Set what tests compare where the definition leaves a choice, such as the signs of
        vectors: `function` gets the results as NumPy arrays, and returns arrays without that
        choice.
        """
        self.determined = function
        return function

    def samples(self, function: Function) -> Function:
        """Set the generator of calls that must work."""
        self.sample_function = function
        return function

    def error(self, kind: str, call: Callable[[Sampler], Sample], contains: Sequence[str]) -> None:
        """Declare that `call` fails with an error of `kind` whose text has every string of
        `contains`.
        """
        self.errors.append(ErrorFact(kind, call, tuple(contains)))

    # ---- for tests -------------------------------------------------------------------------------
    @property
    def differentiable(self) -> tuple[str, ...]:
        """Names of the inputs that have a derivative."""
        return tuple(name for vjp in self.vjps for name in vjp.inputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the reference on NumPy arrays, as operator calls in derivatives do in tests."""
        return self.run_reference(self.schema.bind(args, kwargs))

    def _loaded_reference(self) -> Reference:
        function = self.reference_function or self.decompose_function
        if function is None:
            raise SpecError(f"{self.name}: it has no reference; plait_ops.samples.load() sets them")
        return function

    def run_reference(self, values: dict[str, Any]) -> Any:
        """Run the reference on bound values; if it `widens`, for float16 in float32."""
        return (
            _run_in_float32(self._run_as_given, values)
            if self.widens
            else self._run_as_given(values)
        )

    def _run_as_given(self, values: dict[str, Any]) -> Any:
        function = self._loaded_reference()
        parameters = inspect.signature(function).parameters
        return function(**{name: value for name, value in values.items() if name in parameters})


class Pointwise(Operator):
    """``out[i] = f(a[i], b[i], ...)`` with broadcasting and promotion.

    Args:
        promote: ``same`` (the operands' dtype), ``float`` (integers become float32), ``bool``
            (computed in the common dtype, gives bool), ``first`` (the first operand's dtype, which
            the others are cast to), ``number`` (the operands' dtype, int64 for bools).
        conditions: tensor arguments that must be bool or uint8 and do not count in promotion.
        scalar: whether the family's header in ``core/cpp`` has the scalar function, or its name
            there; False: there is a kernel instead.
        domain: the interval that samples are drawn from.
        real: its results for complex numbers are real.
        exact: numbers that do not fit in the dtype are errors instead of wrapping around.
        c_order: results are in C order, as PyTorch's, whatever the order of the operands.
        factor: the number among the arguments that multiplies the last operand; it must be whole
            where that holds integers.
        bounded: a floating-point operand, and the least and the largest value that its elements may
            have; the kernel raises a ValueError for another one, and for nan.
        zero_preserving: its value at 0 is 0: it runs on the stored elements of a sparse tensor.
        unrounded: operands that count as numbers if they are 0-d, on the CPU, and wider than the
            half of the other operands; they are not rounded before the computation.
    """

    kind = "pointwise"

    def __init__(
        self,
        schema: str,
        *,
        doc: str,
        promote: str = "same",
        inplace: bool | None = None,
        out: bool | None = None,
        dtypes: str = "all",
        conditions: Sequence[str] = (),
        scalar: bool | str = True,
        domain: tuple[float, float] = (-3.0, 3.0),
        real: bool = False,
        exact: bool = False,
        c_order: bool = False,
        unrounded: Sequence[str] = (),
        factor: str | None = None,
        bounded: tuple[str, float, float] | None = None,
        kernel: str = "",
        internal: bool = False,
        variants: str = "function",
        widens: bool = False,
        libm: str = "",
        zero_preserving: bool = False,
    ) -> None:
        self.exact, self.c_order, self.unrounded = exact, c_order, tuple(unrounded)
        self.factor, self.bounded = factor, bounded
        self.special_values = True  # whether samples contain nan, infinities and limits of integers
        default_inplace = not internal and not conditions
        super().__init__(
            schema,
            doc=doc,
            inplace=default_inplace if inplace is None else inplace,
            out=out,
            dtypes=dtypes,
            kernel=kernel,
            internal=internal,
            variants=variants,
            widens=widens,
            libm=libm,
        )
        self.zero_preserving = zero_preserving
        self.batch("pointwise")
        self.shard("elements")
        modes = ("same", "float", "bool", "first", "number")
        if promote not in modes:
            raise SpecError(f"{self.name}: `promote` must be one of {modes}, got {promote!r}")
        self.promote, self.conditions, self.scalar, self.domain, self.real = (
            promote,
            tuple(conditions),
            scalar,
            domain,
            real,
        )

    @property
    def text(self) -> str:
        return self.summary + _pointwise_paragraphs(self)

    @property
    def operands(self) -> list[grammar.Argument]:
        """The tensor arguments, in order."""
        return [argument for argument in self.schema.arguments if argument.is_tensor]

    @property
    def parameters(self) -> list[grammar.Argument]:
        """The arguments that the scalar function gets after the operands."""
        return [argument for argument in self.schema.arguments if not argument.is_tensor]

    def run_reference(self, values: dict[str, Any]) -> Any:
        return _run_pointwise(self, self._loaded_reference(), values)


def _is_half(value: Any) -> bool:
    return str(getattr(value, "dtype", "")) == "float16"


def _run_in_float32(run: Reference, values: dict[str, Any]) -> Any:
    """Run a reference with float16 arguments as float32, and round its results once."""
    halves = {k: v.astype("float32") for k, v in values.items() if _is_half(v)}
    floats = {
        str(each.dtype)
        for each in values.values()
        if str(getattr(each, "dtype", "")).startswith("float")
    }
    parameters = values.get("dtype")
    results = run({**values, **halves})
    if floats != {"float16"} or parameters is not None:
        return results  # float32 is the dtype of the result

    def rounded(each: Any) -> Any:
        return each.astype("float16") if str(each.dtype) == "float32" else each

    return tuple(map(rounded, results)) if isinstance(results, tuple) else rounded(results)


class Reduction(Operator):
    """Elements along `dim` become one: arguments `self`, `dim`, and maybe `keepdim` and `dtype`.

    Args:
        result: dtype of the result: ``same``, ``sum`` (integers and bool become int64), ``float``
            (of floating inputs only, or of `dtype`), ``real`` (as float; of complex inputs that
            of their parts), ``bool``, ``int64``.
        identity: whether an empty reduction has a value; without one it is an error.
        empty: what an empty list of dimensions reduces: ``all`` of them, or ``none``.
    """

    kind = "reduction"

    def __init__(
        self,
        schema: str,
        *,
        doc: str,
        result: str = "same",
        identity: bool = True,
        empty: str = "all",
        out: bool | None = None,
        dtypes: str = "all",
        kernel: str = "",
        internal: bool = False,
        variants: str = "function",
    ) -> None:
        super().__init__(
            schema,
            doc=doc,
            out=out,
            dtypes=dtypes,
            kernel=kernel,
            internal=internal,
            variants=variants,
        )
        if result not in ("same", "sum", "float", "real", "bool", "int64"):
            raise SpecError(f"{self.name}: unknown `result` {result!r}")
        self.result, self.identity, self.empty = result, identity, empty
        self.batch("reduction", **({"dim": "reduced or none"} if empty == "none" else {}))
        self.cost_function = _one_for_each_element

    @property
    def text(self) -> str:
        return self.summary + _reduction_paragraphs(self)

    def run_reference(self, values: dict[str, Any]) -> Any:
        """Run the reference; for float16 in float32, so that only the result is rounded."""
        return _run_in_float32(self._run_as_given, values)


def _one_for_each_element(self: Any) -> Any:
    return numel(self)


class View(Operator):
    """A view of the same bytes: the shape function makes the result, there is no kernel.

    Args:
        fresh: it makes new, uninitialised memory.
        cut: no gradient flows through it.
    """

    kind = "view"

    def __init__(
        self,
        schema: str,
        *,
        doc: str,
        out: bool = False,
        variants: str = "function",
        internal: bool = False,
        fresh: bool = False,
        cut: bool = False,
    ) -> None:
        super().__init__(
            schema,
            doc=doc,
            out=out,
            dtypes="any",
            variants=variants,
            internal=internal,
            unpredictable=fresh,
        )
        self.cut = cut
        if not fresh and not any(result.alias for result in self.schema.results):
            raise SpecError(f"{self.name}: a view's result must alias an argument: write (a)")


class Composite(Operator):
    """An operator made of calls of other operators; layers such as autograd see these calls.

    Args:
        zero_preserving: see `Pointwise`.
    """

    kind = "composite"

    def __init__(self, schema: str, *, zero_preserving: bool = False, **options: Any) -> None:
        super().__init__(schema, **options)
        self.zero_preserving = zero_preserving

    @property
    def text(self) -> str:
        halves = (
            "\n\nfloat16 and bfloat16 are computed in float32, and each result is rounded once."
        )
        return self.summary + halves if self.widens else self.summary

    @property
    def composite(self) -> bool:
        return True


_GROUP_TEXT = {
    "any": "all dtypes",
    "all": "bool, integers and floating-point dtypes",
    "arithmetic": "integers, floating-point and complex dtypes",
    "numeric": "integers and floating-point dtypes",
    "inexact": "floating-point and complex dtypes",
    "floating": "floating-point dtypes",
    "integral": "bool and integers",
    "integer": "integers",
    "bool": "bool",
}


def _pointwise_paragraphs(operator: Pointwise) -> str:
    """Return the paragraphs on shapes, dtypes and errors."""
    names = [f"`{argument.name}`" for argument in operator.operands]
    computed = [f"`{a.name}`" for a in operator.operands if a.name not in operator.conditions]
    common = (
        "the dtype of `self`"
        if computed == ["`self`"]
        else f"the dtype to which {' and '.join(computed)} promote"
    )
    shapes = "Shape: the result has the shape of `self`."
    if len(names) > 1:
        shapes = (
            f"Shapes: {', '.join(names)} broadcast; the result has the shape they broadcast to."
        )
    dtypes = {
        "same": f"Dtypes: {_GROUP_TEXT[operator.dtypes]}; the result has {common}.",
        "float": f"Dtypes: {_GROUP_TEXT[operator.dtypes]}; the result has {common}, or float32 "
        "if that is bool or an integer.",
        "bool": f"Dtypes: {_GROUP_TEXT[operator.dtypes]}; the result is bool.",
        "number": f"Dtypes: {_GROUP_TEXT[operator.dtypes]}; the result has {common}, or int64 "
        "if that is bool.",
        "first": f"Dtypes: {_GROUP_TEXT[operator.dtypes]}; the result has the dtype of "
        f"{computed[0]}, to which the others are cast.",
    }[operator.promote]
    if operator.real:
        dtypes = (
            dtypes.removesuffix(".") + "; for complex numbers it is the real dtype of their parts."
        )
    if operator.conditions:
        dtypes += (
            f" {' and '.join(f'`{name}`' for name in operator.conditions)} must be bool, or uint8 "
        )
        dtypes += "in which all but 0 is True."
    raises = "Raises: DTypeError for other dtypes."
    if len(names) > 1:
        raises = "Raises: ShapeError if the shapes do not broadcast, DTypeError for other dtypes."
    return f"\n\n{shapes}\n{dtypes}\n{raises}"


def _reduction_paragraphs(operator: Reduction) -> str:
    """Return the paragraphs on shapes, dtypes and errors."""
    names = [argument.name for argument in operator.schema.arguments]
    shapes = "Shape: the result is 0-d."
    if "dim" in names:
        every = "None or an empty list: all of them"
        every = every if operator.empty == "all" else "None: all of them; an empty list: none"
        shapes = f"Shape: `dim` names the dimensions to reduce ({every})"
        shapes += "; with `keepdim` they stay, with size 1." if "keepdim" in names else "."
    dtypes = (
        f"Dtypes: {_GROUP_TEXT[operator.dtypes]}; "
        + {
            "same": "the result has the dtype of `self`",
            "sum": "bool and integers give int64, others their own dtype",
            "float": "the result has the dtype of `self`",
            "real": "the result has the dtype of `self`, or of its parts if that is complex",
            "bool": "the result is bool",
            "int64": "the result is int64",
        }[operator.result]
    )
    dtypes += "; with `dtype`, `self` is first cast to it." if "dtype" in names else "."
    raises = "Raises: DTypeError for other dtypes"
    if "dim" in names:
        raises += ", IndexError for a `dim` out of range, ValueError for a repeated one"
    if not operator.identity:
        raises += ", IndexError if there are no elements to reduce"
    return f"\n\n{shapes}\n{dtypes}\n{raises}."


def compute_dtype(operator: Pointwise, values: dict[str, Any]) -> str:
    """Return the dtype that the operator computes in."""
    computed = [each.name for each in operator.operands if each.name not in operator.conditions]
    dtype = promotion.of_operands(values[name] for name in computed if values[name] is not None)
    if operator.promote == "first":
        return str(values[computed[0]].dtype)
    if operator.promote == "number" and dtype == "bool":
        return "int64"
    if operator.promote == "bool" and dtype in promotion.INTEGER:
        numbers = [values[name] for name in computed if isinstance(values[name], int)]
        if not all(promotion.holds(dtype, number) for number in numbers):
            return "float64" if dtype == "uint64" else "int64"
    return (
        promotion.DEFAULT
        if operator.promote == "float" and promotion.category(dtype) < 2
        else dtype
    )


def _run_pointwise(operator: Pointwise, reference: Reference, values: dict[str, Any]) -> Any:
    """Promote and cast the operands, run `reference`, cast its result, which is rounded once for
    float16 too.
    """
    import numpy as np

    dtype = compute_dtype(operator, values)
    inner = "float32" if dtype == "float16" else dtype
    conditions = operator.conditions
    arguments = [
        np.asarray(values[argument.name]).astype(inner)
        if argument.is_tensor
        and argument.name not in conditions
        and values[argument.name] is not None
        else values[argument.name]
        for argument in operator.schema.arguments
    ]
    with np.errstate(all="ignore"):
        results = reference(*arguments)
        made_dtype = promotion.real_dtype(dtype) if operator.real else dtype
        return np.asarray(results).astype("bool" if operator.promote == "bool" else made_dtype)

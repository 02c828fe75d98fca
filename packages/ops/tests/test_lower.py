"""The translator: each construct, and errors that name file and line."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from plait_ops import calls as op, lower, specs
from plait_ops.spec import REGISTRY, Composite, Operator, SpecError
from plait_ops.words import (
    bool_,
    check,
    float32,
    is_tensor,
    part,
    result,
    to_dtype,
    view,
    wrap_dim,
)

list(specs.all())  # the calls below are of operators that must be known
pytestmark = pytest.mark.usefixtures("scratch")
SCHEMA = (
    "made_up(Tensor self, Tensor|Scalar other, Tensor? bias=None, Tensor[] parts=None, int "
    "dim=0, int? end=None, "
    'int[] size=(), int[]? dims=None, float eps=1.0, str mode="a", dtype? dtype=None, Scalar '
    "alpha=1, *, "
    "bool flag=False) -> Tensor"
)


def shape(function: Callable[..., Any]) -> str:
    spec = Operator(SCHEMA, doc="x")
    spec.shape(function)
    return squeezed(lower.to_cpp(lower.shape(spec)))


def decomposed(function: Callable[..., Any], schema: str = SCHEMA) -> str:
    spec = Composite(schema, doc="x")
    spec.decompose(function)
    return squeezed(lower.to_cpp(lower.decompose(spec)))


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_arguments_are_read_by_type() -> None:
    def function(self, dim, end, size, dims, eps, mode, dtype, flag):  # type: ignore[no-untyped-def]
        check(end is None or dims is not None or flag, f"{dim} {size} {eps} {mode}")
        return result(self.shape, dtype if dtype is not None else float32)

    text = shape(function)
    for piece in (
        "plait_tensor * self_ = as_tensor(c->in[0]);",
        "const int64_t dim_ = as_int(c->in[4]);",
        "const std::optional<int64_t> end_ = maybe_int(c->in[5]);",
        "const Ints size_ = as_ints(c->in[6]);",
        "const std::optional<Ints> dims_ = maybe_ints(c->in[7]);",
        "const double eps_ = as_float(c->in[8]);",
        "const char * mode_ = as_str(c->in[9]);",
        "const std::optional<DType> dtype_ = maybe_dtype(c->in[10]);",
        "const bool flag_ = as_bool(c->in[12]);",
        "(is_none(end_) || !is_none(dims_) || flag_)",
        "result(x, 0, shape_of(self_), (!is_none(dtype_) ? (*dtype_) : dtype::float32));",
    ):
        assert piece in text, text


def test_lists_of_sizes() -> None:
    def function(self, dim, size):  # type: ignore[no-untyped-def]
        shape = list(self.shape)
        shape[dim] = 2
        shape[-1] *= 3
        shape.append(4)
        shape.insert(0, 5)
        shape.pop(1)
        more = self.shape[:1] + [1] * len(size) + size[1:]
        check(more == shape and 3 not in size, "no")
        return result([n + 1 for n in more if n > 1], self.dtype)

    text = shape(function)
    for piece in (
        "shape_ = Dims(shape_of(self_));",
        "shape_[dim_] = int64_t(2);",
        "shape_[(-int64_t(1))] = times(shape_[(-int64_t(1))], int64_t(3));",
        "shape_.push(int64_t(4)); insert(shape_, int64_t(0), int64_t(5)); pop(shape_, int64_t(1));",
        "repeat(Ints(Dims{int64_t(1)}), size_.size())",
        "part(size_, int64_t(1), INT64_MAX)",
        "!contains(size_, int64_t(3))",
        "if (!((n_ > int64_t(1)))) continue; made_.push(plus(n_, int64_t(1)));",
    ):
        assert piece in text, text


def test_conditions_and_loops() -> None:
    def function(self, dim, end, size, eps):  # type: ignore[no-untyped-def]
        n = 0
        for i in range(self.ndim):
            if i == dim:
                continue
            elif 0 <= i < 3 and not i % 2 == 1:  # noqa: SIM201
                n += self.shape[i] // 2
            else:
                break
        for i in reversed(range(1, n)):
            n -= i
        for k, d in enumerate(size):
            n += k * d
        for a, b in zip(size, self.shape, strict=True):
            n = min(a, b)
        while n > 3:
            n = n - 1
        scale = float(n) / 2 + eps**2
        check(scale > 0, "no")
        return result([n if end is None else end], self.dtype)

    text = shape(function)
    for piece in (
        "for (int64_t i_ = int64_t(0), end_i_ = int64_t((self_)->dl.ndim); i_ < end_i_; i_++) {",
        "continue; } else { if ((((int64_t(0) <= i_) && (i_ < int64_t(3))) &&",
        "floor_div(shape_of(self_)[i_], int64_t(2))",
        "for (int64_t i_ = n_ - 1; i_ >= int64_t(1); i_--) {",
        "n_ = std::min<int64_t>(a_, b_);",
        "while ((n_ > int64_t(3))) {",
        "((double(n_) / double(int64_t(2))) + std::pow(eps_, double(int64_t(2))))",
        "(is_none(end_) ? n_ : (*end_))",
    ):
        assert piece in text, text


def test_messages_are_built_when_they_are_needed() -> None:
    def function(self, dim, mode):  # type: ignore[no-untyped-def]
        check(dim > 0, f"`dim` {dim} of {self.shape} in {self.dtype}", "IndexError")
        check(mode in ("a", "b"), "mode", "ValueError")
        return result(self.shape, bool_)

    text = shape(function)
    assert (
        'if (!((dim_ > int64_t(0)))) fail(x, PLAIT_INDEX_ERROR, std::string() + "`dim` " + '
        'show(dim_) + " of " + '
        'show(shape_of(self_)) + " in " + show((self_)->dl.dtype));' in text
    )
    assert '(equal(mode_, "a") || equal(mode_, "b"))' in text
    assert "dtype::bool_" in text


def test_comparisons_of_sizes_in_decompositions_are_told() -> None:
    def function(self, dim, size, eps):  # type: ignore[no-untyped-def]
        if self.shape[0] % dim == 0 and size == self.shape and eps > 0:
            return op.mul(self, max(dim, 2))
        return op.neg(self)

    text = decomposed(function)
    for piece in (
        "is_equal(told_rest(shape_of(self_)[int64_t(0)], dim_), int64_t(0))",
        "are_equal(size_, shape_of(self_))",
        "(eps_ > double(int64_t(0)))",
        "larger(dim_, int64_t(2))",
    ):
        assert piece in text, text


def test_views_in_a_list() -> None:
    def function(self, size):  # type: ignore[no-untyped-def]
        parts = []
        for n in size:
            parts.append(view(self, [n], [1], n))
        return parts

    assert "view(x, 0, self_, Ints(Dims{n_}), Ints(Dims{int64_t(1)}), n_);" in shape(function)


def test_operator_calls_and_tensor_arithmetic() -> None:
    def function(self, other, bias, parts, alpha):  # type: ignore[no-untyped-def]
        y = -self * 2.0 + other
        if bias is not None:
            y = y + bias
        op.add_(y, 1, alpha=alpha)
        best, _where = op.max_dim(y, -1, keepdim=True)
        joined = op.cat([best, y], dim=1)
        more = [op.mul(p, 2) for p in parts]
        pieces = op.split(joined, 2)
        for piece in pieces:
            more.append(piece)
        return to_dtype(y if is_tensor(other) else more[0], self.dtype)

    text = decomposed(function)
    for piece in (
        "[&] { return run(x, Op::add, {value([&] { return run(x, Op::mul, {value(run(x, Op::neg, "
        "{value(self_)})), value(double(2.0))}, 0x1); }()), other_}, 0x1); }()",
        "if (!is_none(bias_)) {",
        "run_in_place(x, Op::add, {value(y_), value(int64_t(int64_t(1))), alpha_});",
        "run_all(x, Op::max_dim, {value(y_), value(int64_t((-int64_t(1)))), "
        "value(true)}).into({&best_, &_where_});",
        "run(x, Op::cat, {tensors_value(Bag({best_, y_}).span()), value(int64_t(int64_t(1)))})",
        "pieces_ = run_list(x, Op::split, {value(joined_), value(int64_t(int64_t(2)))});",
        "more_.push(Tensor::share(piece_));",
        "give(x, 0, to_dtype(x,",
    ):
        assert piece in text, text


def test_arguments_between_take_their_defaults() -> None:
    def function(self, dim):  # type: ignore[no-untyped-def]
        values, _at = op.max_dim(self, dim=dim)
        return values

    assert "run_all(x, Op::max_dim, {value(self_), value(int64_t(dim_))})" in decomposed(function)


def test_a_derivative_names_its_saved_values() -> None:
    spec = Operator(SCHEMA, doc="x")

    @spec.vjp("self", meta=["bias"])
    def _(g, self, other, bias, dim, result):  # type: ignore[no-untyped-def]
        return to_dtype(g * other * result, self.dtype)

    derivative = lower.vjp(spec, spec.vjps[0])
    read = lower.reads_values(derivative)
    assert read == {"g", "other", "result"}
    text = squeezed(lower.to_cpp(derivative))
    assert "plait_tensor * g_ = v->gy[0];" in text
    assert "plait_tensor * result_ = as_tensor(v->out[0]);" in text
    assert "gx[0] = to_dtype(x, " in text


def test_dtypes_that_a_shape_function_names() -> None:
    def named(self, flag):  # type: ignore[no-untyped-def]
        if flag:
            return result(self.shape, bool_)
        return result([], float32)

    def given(self):  # type: ignore[no-untyped-def]
        return result(self.shape, self.dtype)

    for function, want in ((named, {"bool", "float32"}), (given, {"?"})):
        spec = Operator(SCHEMA, doc="x")
        spec.shape(function)
        assert lower.result_dtypes(lower.shape(spec)) == want
        REGISTRY.pop(spec.name)


def test_a_loop_s_names_end_with_it() -> None:
    def function(self, size):  # type: ignore[no-untyped-def]
        for n in size:
            check(n > 0, "no")
        return result([n], self.dtype)

    with pytest.raises(SpecError, match="`n` is neither a variable"):
        shape(function)


def test_a_loop_is_over_tensors_that_live() -> None:
    def function(self):  # type: ignore[no-untyped-def]
        total = self
        for piece in op.split(self, 2):
            total = total + piece
        return total

    with pytest.raises(SpecError, match="name the list before the loop"):
        decomposed(function)


def test_a_list_that_began_empty_takes_its_type_from_the_first_item() -> None:
    def function(self, parts, size):  # type: ignore[no-untyped-def]
        tensors = []
        sizes = []
        for p in parts:
            tensors.append(p)
        for n in size:
            sizes.append(n)
        sizes = []
        check(len(sizes) == 0, "no")
        return op.cat(tensors)

    text = decomposed(function)
    assert "Bag tensors_; Dims sizes_; tensors_ = {}; sizes_ = {};" in text
    assert "sizes_.push(n_); } sizes_ = {}; " in text


# ---- what cannot be translated -------------------------------------------------------------------
def unknown_name(self):  # type: ignore[no-untyped-def]
    return result(self.shape, nothing)  # type: ignore[name-defined]  # noqa: F821


def a_lambda(self):  # type: ignore[no-untyped-def]
    f = lambda: 1  # noqa: E731
    return result([f()], self.dtype)


def wrong_type(self, mode):  # type: ignore[no-untyped-def]
    return result([mode], self.dtype)


def an_unknown_operator(self):  # type: ignore[no-untyped-def]
    op.nothing(self)
    return result(self.shape, self.dtype)


def an_operator_in_a_shape_function(self):  # type: ignore[no-untyped-def]
    op.mul(self, 2)
    return result(self.shape, self.dtype)


def a_value_in_a_shape_function(self):  # type: ignore[no-untyped-def]
    check(self > 0, "no")
    return result(self.shape, self.dtype)


def no_result(self):  # type: ignore[no-untyped-def]
    return self.shape


def an_argument_assigned(self, dim):  # type: ignore[no-untyped-def]
    dim = wrap_dim("dim", dim, self.shape)
    return result([dim], self.dtype)


def too_few_words(self, dim):  # type: ignore[no-untyped-def]
    return result([wrap_dim("dim", dim)], self.dtype)  # type: ignore[call-arg]


def a_variable_of_nothing(self):  # type: ignore[no-untyped-def]
    n = None
    return result([n], self.dtype)


def a_variable_of_two_types(self, size):  # type: ignore[no-untyped-def]
    for n in size:
        check(n > 0, "no")
    n = 1
    for n in size:
        check(n > 0, "no")
    n = self.shape
    return result(n, self.dtype)


def an_unknown_argument(self, nobody):  # type: ignore[no-untyped-def]
    return result(self.shape, self.dtype)


def an_unknown_error(self):  # type: ignore[no-untyped-def]
    check(self.ndim > 0, "no", "KeyError")
    return result(self.shape, self.dtype)


@pytest.mark.parametrize(
    ("function", "offset", "text"),
    [
        (unknown_name, 1, "`nothing` is neither a variable, an argument, a word nor an operator"),
        (an_unknown_operator, 1, "there is no operator `nothing`"),
        (a_lambda, 1, "cannot be translated"),
        (wrong_type, 1, "`[mode]` is str, int is required"),
        (an_operator_in_a_shape_function, 1, "a shape function calls no operators"),
        (a_value_in_a_shape_function, 1, "a shape function sees no values of tensors"),
        (no_result, 1, "returns result"),
        (an_argument_assigned, 1, "the argument `dim` cannot be assigned"),
        (a_variable_of_nothing, 1, "`n` cannot hold none"),
        (a_variable_of_two_types, 6, "`n` stands for something else; use another name"),
        (too_few_words, 1, "`wrap_dim` takes (str, int, ints)"),
        (an_unknown_argument, None, "shape asks for `nobody`"),
        (an_unknown_error, 1, "check(condition, text, kind)"),
    ],
)
def test_errors_name_the_line(function: Callable[..., Any], offset: int | None, text: str) -> None:
    with pytest.raises(SpecError) as raised:
        shape(function)
    message = str(raised.value)
    assert text in message
    if offset is not None:
        line = function.__code__.co_firstlineno + offset
        assert f"{pathlib.Path(__file__).name}:{line}: made_up: " in message


@part
def _checked_dim(shape, dim):  # type: ignore[no-untyped-def]
    check(len(shape) > 0, f"`self` must have a dimension; got {shape}")
    return wrap_dim("dim", dim, shape)


@part
def _fits(rank, most):  # type: ignore[no-untyped-def]
    check(rank <= most, f"at most {most}")


@part
def _no_list():  # type: ignore[no-untyped-def]
    return []


def test_a_part_stands_where_it_is_called() -> None:
    def function(self, dim):  # type: ignore[no-untyped-def]
        at = _checked_dim(self.shape, dim + 1)
        _fits(self.ndim, 4)
        return result([self.shape[at]], self.dtype)

    text = shape(function)
    assert "at_ = [&](auto &&shape_, auto &&dim_) -> int64_t { if (!(" in text
    assert 'return wrap_dim(x, "dim", dim_, shape_); }(shape_of(self_), plus(dim_,' in text
    assert "[&](auto &&rank_, auto &&most_) -> void { if (!((rank_ <= most_))) fail(" in text


def test_a_part_returns_one_type_of_value() -> None:
    def function(self):  # type: ignore[no-untyped-def]
        sizes = _no_list()
        return result(sizes, self.dtype)

    with pytest.raises(SpecError, match="one type of value; got empty"):
        shape(function)


def test_names_of_the_functions_around_are_seen() -> None:
    def around(operator, by):  # type: ignore[no-untyped-def]
        def function(self, dim):  # type: ignore[no-untyped-def]
            return operator(self, by)

        return function

    text = decomposed(around(op.mul, 2.0))
    assert "give_last(x, Op::mul, {value(self_), value(double(2.0))})" in text


def test_temporaries_end_after_their_last_reader() -> None:
    def function(self, other):  # type: ignore[no-untyped-def]
        y = op.mul(self, 2)
        z = op.add(y, 1)
        if self.ndim == 0:
            return op.mul(z, z)
        w = op.mul(y, z)
        return op.add(w, op.mul(self, z))

    text = decomposed(function)
    for piece in (
        # `y` is read again, `z` twice by one call: neither may be overwritten there
        "z_ = run(x, Op::add, {value(y_), value(int64_t(int64_t(1)))});",
        "give_last(x, Op::mul, {value(z_), value(z_)});",
        "w_ = [&] { return run(x, Op::mul, {value(Tensor(std::move(y_))), value(z_)}, 0x1); }();",
        "y_ = Tensor();",
        # `z` ends in the inner call, which runs first; the outer one may overwrite both
        "give_last(x, Op::add, {value(Tensor(std::move(w_))), "
        "value([&] { return run(x, Op::mul, {value(self_), value(Tensor(std::move(z_)))}, 0x2); "
        "}())}, 0x3);",
    ):
        assert piece in text, text


def test_a_variable_of_a_loop_is_kept() -> None:
    def function(self, dims):  # type: ignore[no-untyped-def]
        y = op.mul(self, 2)
        z = op.mul(y, 3)
        for _d in range(len(dims)):
            z = op.add(z, y)
        return z

    text = decomposed(function)
    assert "z_ = run(x, Op::add, {value(z_), value(y_)});" in text, text
    assert text.index("y_ = Tensor();") > text.index("Op::add"), text

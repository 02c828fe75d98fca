"""`vmap`: writes into tensors that the function makes, rules of functions, checks of values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn.functional as F
import plait_optim
from plait_autograd import Function
from plait_func import grad, hessian, jacfwd, jacrev, vmap

sys.path.insert(0, str(Path(__file__).parent))

from write_programs import Program, program


def close(one: Any, two: Any) -> bool:
    return one.shape == two.shape and pc.allclose(one, two, 1e-4, 1e-5, equal_nan=True)


# ---- tensors that the function makes ------------------------------------------------------------

X, I = pc.arange(6.0).reshape(2, 3) + 1, pc.tensor([[0, 1, 2], [2, 1, 0]])  # noqa: E741
Z = pc.zeros(5)
MASKS = pc.tensor([[True, False, True], [False, True, True]])


def _set(z: Any, key: Any, value: Any) -> Any:
    z[key] = value
    return z


WRITES: list[Any] = [
    lambda a, i: a.new_zeros(3).add_(a), lambda a, i: a.new_empty(3).copy_(a),
    lambda a, i: a.new_full((3,), 2.0).mul_(a), lambda a, i: a.new_ones(2, 3).mul_(a),
    lambda a, i: a.new_tensor([1.0, 2, 3]).mul_(a), lambda a, i: _set(a.new_zeros(3), 0, a[1]),
    lambda a, i: a.new_empty_strided((3,), (1,)).copy_(a), lambda a, i: _set(Z.clone(), i, 1.0),
    lambda a, i: pc.zeros(5).index_fill_(0, i, 1.0), lambda a, i: pc.arange(3.0).add_(a),
    lambda a, i: pc.tensor([1.0, 2.0, 3.0]).sub_(a), lambda a, i: pc.eye(3).fill_(a[0]),
    lambda a, i: pc.sub(a, 1, out=pc.empty(3)), lambda a, i: pc.full((3,), 2.0).pow_(a),
    lambda a, i: _set(pc.zeros(2, 3), (slice(None), 1), a[1]).t().contiguous(),
    lambda a, i: Z.index_put((i,), pc.tensor(1.0)), lambda a, i: Z.index_fill(0, i, 1.0),
    lambda a, i: Z.index_copy(0, pc.tensor([0, 1, 2]), a), lambda a, i: Z.put(i, pc.ones(3)),
    lambda a, i: Z.index_fill(0, pc.tensor([0]), a[0]), lambda a, i: Z.index_copy(0, i, a),
    lambda a, i: Z[:3].masked_scatter(pc.tensor([True, False, True]), a),
    lambda a, i: Z.as_strided_scatter(a, (3,), (1,)), lambda a, i: Z.put(i, a, accumulate=True),
    lambda a, i: pc.nonzero_static(a > 2, size=3), lambda a, i: Z.index_add(0, i, a),
    lambda a, i: Z.scatter(0, i, a), lambda a, i: Z.clone().fill_(a.sum()),
    lambda a, i: pc.stack([_set(pc.zeros(2), 1, each) for each in a]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRITES)))
def test_writes_of_each_sample(number: int) -> None:
    f = WRITES[number]
    expected = pc.stack([f(a, i) for a, i in zip(X, I, strict=True)])
    assert close(vmap(f)(X, I), expected) and Z.tolist() == [0] * 5
    for mode in ("same", "different"):
        assert close(vmap(f, randomness=mode)(X, I), expected)
    # what one call of vmap maps is shared by the other
    for dims in (((0, None), (None, 0)), ((None, 0), (0, None))):
        result = vmap(vmap(f, dims[1]), dims[0])(X, I)
        pairs = [[(a, i) for i in I] for a in X] if dims[0][0] == 0 else [[(a, i) for a in X]
                                                                         for i in I]  # fmt: skip
        assert close(result, pc.stack([pc.stack([f(*each) for each in r]) for r in pairs]))


def test_a_write_at_an_inner_level_is_seen_by_views_of_any_dtype() -> None:
    """A tensor of each sample of the outer call becomes one of each sample of the inner one."""

    def f(a: Any, b: Any) -> Any:
        z = a * 1
        part, number = z[1:], pc.view_as_complex(z[:2])
        z.add_(b)
        part.mul_(2)
        return z, part, pc.view_as_real(number)

    def nested(a: Any) -> Any:
        return vmap(lambda b: f(a, b))(more[:, : len(a)])

    rows, more = pc.arange(8.0).reshape(2, 4), pc.arange(12.0).reshape(3, 4)
    # of one sample also rows of 12 bytes, of which the complex number has 8
    for x in (rows, rows[:1], rows[:1, :3]):
        expected = [_stack([f(a, b) for b in more[:, : len(a)]]) for a in x]
        assert all(map(close, vmap(nested)(x), _stack(expected)))
    deep = vmap(lambda a: vmap(lambda b: vmap(lambda c: (a * b).add_(c))(more))(more + 1))(rows)
    assert close(deep, rows[:, None, None] * (more + 1)[None, :, None] + more)


def test_a_masked_fill_of_a_shared_tensor() -> None:
    result = vmap(lambda m: Z[:3].masked_fill(m, 1.0))(MASKS)
    assert result.tolist() == MASKS.to(pc.float32).tolist()


# The engine's error for a value that was written after it was saved.
OVERWRITTEN = "which the derivative needs, was overwritten by"


def _outcome(call: Any) -> tuple[list[Any], str]:
    """Return the tensors that a call returns, or what its error says."""
    try:
        result = call()
    except RuntimeError as error:
        return [], str(error)
    return list(result) if isinstance(result, (tuple, list)) else [result], ""


def _stack(rows: list[Any]) -> Any:
    """Return results of each sample as those of all: tensors, and tuples of what can be stacked."""
    if pc.is_tensor(rows[0]):
        return pc.stack(rows)
    return tuple(_stack(list(column)) for column in zip(*rows, strict=True))


def _jacobian(f: Any, *inputs: Any) -> Any:
    """Return the Jacobian for each input by a backward pass for each element."""
    own = [each.detach().requires_grad_() for each in inputs]
    result = f(*own)
    rows = [
        [
            pc.zeros_like(x) if g is None else g
            for g, x in zip(
                pa.grad(each, own, allow_unused=True, create_graph=True), own,
                strict=True,
            )
        ] if each.requires_grad else [pc.zeros_like(x) for x in own]
        for each in result.reshape(-1)
    ]  # fmt: skip
    return tuple(
        pc.stack([row[i] for row in rows]).reshape(*result.shape, *x.shape)
        if rows else x.new_zeros(*result.shape, *x.shape)
        for i, x in enumerate(own)
    )  # fmt: skip


def _gradients(total: Any, a: Any, w: Any) -> Any:
    """Return gradients of a number for two inputs."""
    own, shared = a.clone().requires_grad_(), w.clone().requires_grad_()
    output = total(own, shared)
    if not output.requires_grad:
        return own * 0, shared * 0
    result = pa.grad(output, (own, shared), allow_unused=True)
    return [x * 0 if g is None else g for g, x in zip(result, (own, shared), strict=True)]


def _transforms(p: Program) -> dict[str, tuple[Any, Any]]:
    """Return what vmap computes of a program, and what a loop does."""
    pc.manual_seed(0)
    a, w = pc.rand(3, 2, 3) + 0.2, pc.rand(3) + 0.2
    last, ws = a.movedim(0, -1).contiguous(), pc.stack([w, w * 2])

    def f(a: Any, w: Any) -> Any:
        return p.run(pc, a, w, scalar=False)

    def number(a: Any, w: Any) -> Any:
        return p.run(pc, a, w, scalar=True)

    def each(g: Any) -> Any:
        return lambda: _stack([g(x, w) for x in a])

    def mapped(g: Any) -> Any:
        return lambda: vmap(g, (0, None))(a, w)

    both = grad(number, (0, 1))
    return {
        "value": (mapped(f), each(f)),
        "vmap(grad)": (mapped(both), each(both)),
        "grad(vmap)": (
            lambda: _gradients(lambda a, w: vmap(number, (0, None))(a, w).sum(), a, w),
            lambda: _gradients(lambda a, w: sum(number(x, w) for x in a), a, w),
        ),
        "grad(vmap), samples last": (
            lambda: _gradients(lambda a, w: vmap(number, (-1, None))(a, w).sum(), last, w),
            lambda: _gradients(lambda a, w: sum(number(x, w) for x in a.movedim(-1, 0)), last, w),
        ),
        "jacrev": (lambda: jacrev(f, (0, 1))(a[0], w), lambda: _jacobian(f, a[0], w)),
        "jacfwd": (lambda: jacfwd(f, (0, 1))(a[0], w), lambda: _jacobian(f, a[0], w)),
        "vmap(jacrev)": (mapped(jacrev(f, (0, 1))), each(lambda a, w: _jacobian(f, a, w))),
        "vmap(jacfwd)": (mapped(jacfwd(f, (0, 1))), each(lambda a, w: _jacobian(f, a, w))),
        "jacrev(vmap)": (
            lambda: jacrev(lambda w: vmap(f, (0, None))(a, w))(w),
            each(lambda a, w: _jacobian(lambda w: f(a, w), w)[0]),
        ),
        "vmap(hessian)": (
            mapped(hessian(number)),
            each(lambda a, w: _jacobian(grad(lambda a: number(a, w)), a)[0]),
        ),
        "vmap(vmap(grad))": (
            lambda: vmap(vmap(both, (None, 0)), (0, None))(a, ws),
            lambda: _stack([_stack([both(x, y) for y in ws]) for x in a]),
        ),
        "vmap(vmap(grad)), w first": (
            lambda: vmap(vmap(both, (0, None)), (None, 0))(a, ws),
            lambda: _stack([_stack([both(x, y) for x in a]) for y in ws]),
        ),
    }


@pytest.mark.parametrize("part", range(4))
def test_programs_of_writes_have_the_derivatives_of_each_sample(part: int) -> None:
    """A program may be wrong by itself: then vmap says what a loop says."""
    served = {}
    for seed in range(part * 25, part * 25 + 25):
        p = program(seed)
        for name, (call, loop) in _transforms(p).items():
            result, error = _outcome(call)
            target, expected = _outcome(loop)
            # forward derivatives here are derivatives of a backward pass, which saves more
            if OVERWRITTEN in error and name in ("jacfwd", "vmap(jacfwd)"):
                continue
            assert (OVERWRITTEN in error) == (OVERWRITTEN in expected), (seed, p, name, error)
            assert bool(error) == bool(expected), (seed, p, name, error, expected)
            assert len(result) == len(target), (seed, p, name)
            assert all(map(close, result, target)), (seed, p, name)
            served[name] = served.get(name, 0) + bool(result)
    assert min(served.values()) >= 20, served


def test_what_the_caller_holds_is_not_written_with_history() -> None:
    """The gradients of its other users would not include the write."""

    def total(y: Any) -> Any:
        return vmap(lambda r: r.mul_(w))(y).sum() + y.sum()

    for w in (pc.tensor(2.0), pc.tensor(2.0, requires_grad=True)):
        for y in (X * 1, (X * 1).requires_grad_() * 1):
            if w.requires_grad or y.requires_grad:
                with pytest.raises(NotImplementedError, match="tensor outside of the function"):
                    total(y)
            else:
                assert total(y).item() == 4 * X.sum() and close(y, X * 2)


def test_a_tensor_that_was_saved_and_written_is_an_error() -> None:
    def f(a: Any) -> Any:
        b = a * 1
        y = (b * b).sum()
        b.mul_(2)
        return y

    with pytest.raises(RuntimeError, match=r"in place|modified"):
        grad(f)(X[0])
    with pytest.raises(RuntimeError, match=r"in place|modified"):
        vmap(grad(f))(X)


def test_memory_that_others_see_does_not_change_its_meaning() -> None:
    def f(a: Any) -> Any:
        z = pc.zeros(3)
        references.append(z.numpy())
        return z.add_(a)

    references: list[Any] = []
    with pytest.raises(RuntimeError, match="cannot be written in place"):
        vmap(f)(X)


# ---- rules of functions -------------------------------------------------------------------------


class Scaled(Function):
    """x * w, whose rule for vmap says that it was called."""

    calls: list[Any] = []  # noqa: RUF012

    @staticmethod
    def forward(x: Any, w: Any) -> Any:
        return x * w

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, g * x

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
        Scaled.calls.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        x = x if in_dims[0] is None else x.movedim(in_dims[0], -1)
        w = w if in_dims[1] is None else w.movedim(in_dims[1], -1)
        return Scaled.apply(x, w), -1


def test_the_rule_of_a_function() -> None:
    w = pc.tensor(2.0)
    Scaled.calls.clear()
    assert close(vmap(Scaled.apply, (0, None))(X, w), X * w)
    assert Scaled.calls == [(2, "error", (0, None), (2, 3))]
    assert close(vmap(Scaled.apply, (1, None), randomness="same")(X, w), X.T * w)
    assert close(vmap(vmap(Scaled.apply))(X, X), X * X)
    assert len(Scaled.calls) == 4 and Scaled.calls[1][1] == "same"


@pytest.mark.parametrize("way", [grad, jacrev, jacfwd])
def test_derivatives_of_a_function_with_a_rule(way: Any) -> None:
    w = pc.tensor([2.0, 3.0])
    for argnums in (0, 1):
        result = vmap(way(lambda x, w: Scaled.apply(x, w).pow(2).sum(), argnums))(X, w)
        expected = vmap(way(lambda x, w: (x * w).pow(2).sum(), argnums))(X, w)
        assert close(result, expected)
    of_result = vmap(jacfwd(Scaled.apply))(X, w)
    assert close(of_result, vmap(jacfwd(lambda x, w: x * w))(X, w))
    # of what the samples share: in the call that of each sample, outside the sum
    inner = vmap(lambda x: grad(lambda w: Scaled.apply(x, w).sum())(w[0]))(X)
    assert close(inner, X.sum(1))
    shared = w.clone().requires_grad_()
    vmap(lambda x: Scaled.apply(x, shared[0]))(X).sum().backward()
    assert shared.grad.tolist() == [X.sum().item(), 0]


def test_a_rule_that_returns_something_else() -> None:
    def made(result: Any, generates: bool = False) -> Any:
        class Wrong(Scaled):
            generate_vmap_rule = generates

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
                return result(x)

        return Wrong.apply

    for result, text in (
        (lambda x: x, "must return a pair"), (lambda x: (x, 1), "has the 2 samples"),
        (lambda x: (x, (0, 0)), "structure of its outputs"), (lambda x: (x, 7), "dimension 7"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=f"Wrong: .*{text}"):
            vmap(made(result), (0, None))(X, pc.tensor(2.0))
    with pytest.raises(RuntimeError, match="`generate_vmap_rule` must not be True"):
        vmap(made(lambda x: (x, 0), True), (0, None))(X, pc.tensor(2.0))
    shared = vmap(made(lambda x: (pc.ones(2), None)), (0, None))(X, pc.tensor(2.0))
    assert shared.tolist() == [[1, 1], [1, 1]]


def test_a_rule_draws_once_for_all_samples() -> None:
    class Noise(Scaled):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
            drawn = pc.rand(x.shape)
            assert drawn.shape == x.shape
            return x + drawn, in_dims[0]

    assert vmap(Noise.apply, (0, None))(X, pc.tensor(1.0)).shape == X.shape


# ---- checks of values ---------------------------------------------------------------------------

CHECKED: dict[str, tuple[Any, Any, Any]] = {
    # a function, arguments of two samples, and what is wrong in the second of them
    "one_hot": (lambda i: F.one_hot(i, 3), (I,), (I + pc.tensor([[0], [3]]),)),
    "one_hot of negatives": (lambda i: F.one_hot(i, 3), (I,), (I - pc.tensor([[0], [1]]),)),
    "multi_margin_loss": (F.multi_margin_loss, (X, I[:, 0]), (X, pc.tensor([0, 3]))),
    "multilabel_margin_loss": (F.multilabel_margin_loss, (X, I), (X, I + 1)),
    "gaussian_nll_loss": (F.gaussian_nll_loss, (X, X, X), (X, X, X - 5)),
    "max_unpool1d": (lambda x, i: F.max_unpool1d(x[None], i[None], 2), (X, 2 * I), (X, 9 * I)),
    "ctc_loss": (
        lambda x, i: F.ctc_loss(x.log_softmax(0).expand(4, 1, 3), i[None], [4], [2]),
        (X, I.clamp(1, 2)[:, :2]), (X, I[:, :2] + 2),
    ),
    "nll_loss": (F.nll_loss, (X, I[:, 0]), (X, pc.tensor([0, 3]))),
    "cross_entropy": (F.cross_entropy, (X, I[:, 0]), (X, pc.tensor([0, 3]))),
    "attention": (
        lambda x, m: F.scaled_dot_product_attention(x[None], x[None], x[None], m[None, :1]),
        (X, MASKS), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_checks_see_all_samples(name: str) -> None:
    f, good, bad = CHECKED[name]
    assert close(vmap(f)(*good), pc.stack([f(*each) for each in zip(*good, strict=True)]))
    if bad is not None:
        with pytest.raises((ValueError, RuntimeError, IndexError)) as one:
            [f(*each) for each in zip(*bad, strict=True)]
        with pytest.raises((ValueError, RuntimeError, IndexError)) as all_:
            vmap(f)(*bad)
        assert type(all_.value) is type(one.value) and "vmap" not in str(all_.value)


# ---- operators that read values -----------------------------------------------------------------

COUNTS, SHAPED = pc.tensor([[1, 1, 1], [2, 0, 1], [0, 0, 3]]), "must not depend on values"
THREE, SETS = pc.arange(9.0).reshape(3, 3), pc.tensor([[True, False, True], [True] * 3,
                                                             [False] * 3])  # fmt: skip
READERS: dict[str, tuple[Any, Any]] = {
    "bincount": (lambda i: pc.bincount(i, minlength=4), (COUNTS,)),
    "bincount of weights": (lambda i, x: pc.bincount(i, x, 4), (COUNTS, THREE)),
    "histc": (lambda x: pc.histc(x, 4), (THREE,)),
    "unravel_index": (lambda i: pc.unravel_index(i, (2, 2)), (COUNTS,)),
    "repeat_interleave": (pc.repeat_interleave, (THREE, COUNTS)),
    "repeat_interleave of a size": (
        lambda x, c: x.repeat_interleave(c, output_size=3), (THREE, COUNTS),
    ),
    "repeat_interleave of counts": (pc.repeat_interleave, (COUNTS,)),
    "masked_scatter": (pc.masked_scatter, (THREE, SETS, THREE * 2)),
    "masked_scatter_": (lambda x, m, s: x.clone().masked_scatter_(m, s), (THREE, SETS, THREE * 2)),
    "masked_scatter_ of zeros": (
        lambda m, s: pc.zeros(3).masked_scatter_(m, s), (SETS, THREE * 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_operators_that_read_values(name: str) -> None:
    """They are called for each sample, with every choice of mapped arguments."""
    f, argument = READERS[name]
    for numbers in range(1, 2 ** len(argument)):
        dims = tuple(0 if numbers >> i & 1 else None for i in range(len(argument)))
        args = [x if d == 0 else x[1] for x, d in zip(argument, dims, strict=True)]
        rows = [[x[k] if d == 0 else x for x, d in zip(args, dims, strict=True)] for k in range(3)]
        expected = _stack([f(*row) for row in rows])
        result = vmap(f, dims)(*args)
        pairs = (
            zip(result, expected, strict=True)
            if isinstance(expected, tuple)
            else [(result, expected)]
        )
        assert all(close(x, y) for x, y in pairs)
        for i, x in enumerate(args):
            if not x.dtype.is_floating_point or name == "histc":
                continue
            derivative = grad(lambda *a: (f(*a) ** 2).sum(), i)
            result = vmap(derivative, dims)(*args)
            assert close(result, pc.stack([derivative(*row) for row in rows]))
            derivative = jacfwd(f, i)  # of its result, without another operator
            result = vmap(derivative, dims)(*args)
            assert close(result, pc.stack([derivative(*row) for row in rows]))
    if name.startswith(("bincount", "repeat_interleave")):
        with pytest.raises(NotImplementedError, match="0 samples"):
            vmap(f)(*(x[:0] for x in argument))
        return
    empty = vmap(f)(*(x[:0] for x in argument))
    assert (empty if pc.is_tensor(empty) else empty[0]).shape[0] == 0


@pytest.mark.parametrize(
    "f",
    [
        pc.bincount, pc.nonzero, pc.argwhere, pc.unique, lambda i: i[i > 1],
        lambda i: pc.repeat_interleave(i), lambda i: pc.masked_select(i, i > 0),
    ],
)  # fmt: skip
def test_a_shape_that_differs_between_samples_is_an_error(f: Any) -> None:
    with pytest.raises(RuntimeError, match=SHAPED):
        vmap(f)(pc.tensor([[1, 1, 1], [2, 0, 2]]))


@pytest.mark.parametrize("draw", ["normal_", "uniform_", "exponential_", "bernoulli_", "random_"])
def test_draws_into_a_tensor_of_an_outer_call(draw: str) -> None:
    def f(inner: str) -> Any:
        def outer(x: Any) -> Any:
            return vmap(lambda i: getattr(x, draw)() + 0 * i, randomness=inner)(pc.zeros(2))

        return outer

    for outer in ("error", "different", "same"):
        for inner in ("error", "different", "same"):
            call = vmap(f(inner), randomness=outer)
            if "error" in (outer, inner) or inner == "different":
                text = "draws random numbers|cannot hold different random numbers"
                with pytest.raises(RuntimeError, match=text):
                    call(pc.zeros(3, 8))
                continue
            result = call(pc.zeros(3, 8))
            assert close(result[:, 0], result[:, 1])
            distinct = len({tuple(row) for row in result[:, 0].tolist()})
            assert distinct == (1 if outer == "same" else 3)


# ---- functions with many outputs ----------------------------------------------------------------


def test_one_backward_pass_for_all_outputs() -> None:
    """A pass for each would go through what they share once for each of them."""
    passes = []

    class Counted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            passes.append(tuple(g.shape))
            return g * 2

    def many(x: Any) -> Any:
        shared, outputs = Counted.apply(x), []
        for _ in range(30):
            shared = shared.sin()
            outputs.append(shared.sum())
        return {"all": outputs, "constant": pc.ones(2), "empty": shared[:0]}

    x = pc.rand(3)
    rows = jacrev(many)(x)
    assert passes == [(3,)]
    columns = jacfwd(many)(x)
    assert rows["constant"].shape == (2, 3) and rows["empty"].shape == (0, 3)
    for one, two in zip(rows["all"], columns["all"], strict=True):
        assert close(one, two)
    passes.clear()
    jacrev(many, chunk_size=10)(x)
    assert passes == [(3,)] * 3
    passes.clear()
    second = hessian(many)(x)["all"]
    assert len(passes) < 10
    for i in (0, 29):
        assert close(second[i], jacrev(grad(lambda x, i=i: many(x)["all"][i]))(x))


SHAPES = [((2, 3, 5), (4, 3, 2)), ((3, 5), (4, 3, 2)), ((2, 0, 5), (4, 0, 2)), ((), (4, 3, 2)),
          ((2, 3, 5), (4, 2, 2)), ((2, 3, 5), (3, 2)), ((2, 3, 0), (4, 3, 2)),
          ((2, 3, 5), (0, 3, 2)), ((5,), (4, 3, 2))]  # fmt: skip


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_convolutions_of_mapped_weights(name: str, shapes: Any) -> None:
    """They are those of each sample, or the errors of a sample."""
    two = name.endswith("2d")
    x, w = (pc.rand(*s, 2) if two and len(s) > 1 else pc.rand(s) for s in shapes)
    w = w.transpose(0, 1).contiguous() if "transpose" in name and w.ndim > 1 else w
    b = pc.rand(w.shape["transpose" in name])
    for extra in ({}, {"stride": 2}, {"padding": 1}, {"groups": 3}, {"groups": 0}):
        for dims in ((None, 0, 0), (0, 0, None), (0, 0, 0), (None, None, 0)):
            arguments = [pc.stack([t, t * 2]) if d == 0 else t
                     for t, d in zip((x, w, b), dims, strict=True)]  # fmt: skip

            def call(x: Any, w: Any, b: Any, extra: Any = extra) -> Any:
                return getattr(F, name)(x, w, b, **extra)

            one = [[t[i] if d == 0 else t for t, d in zip(arguments, dims, strict=True)]
                   for i in range(2)]  # fmt: skip
            try:
                expected = pc.stack([call(*each) for each in one])
            except Exception as error:
                with pytest.raises(type(error)):
                    vmap(call, dims)(*arguments)
                continue
            assert close(vmap(call, dims)(*arguments), expected)


# ---- steps of optimizers ------------------------------------------------------------------------


def _trained(a: Any, name: str, options: dict[str, Any]) -> Any:
    p, q = (a * 0 + 1).detach().requires_grad_(), pc.ones(2, requires_grad=True)
    optimizer = getattr(plait_optim, name)([p, q], lr=0.1, **options)
    for _ in range(3):
        loss = (p * a).sum() ** 2 + (q * a[0]).sum()
        p.grad, q.grad = pa.grad(loss, [p, q])
        optimizer.step()
    return pc.cat([p.detach(), q.detach()])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {})),
        *(("AdamW", {"amsgrad": True}), ("RMSprop", {}), ("Adadelta", {}), ("Adamax", {})),
        *(("NAdam", {}), ("RAdam", {}), ("Rprop", {}), ("ASGD", {})),
        *(("Adagrad", {}), ("Adafactor", {})),
    ],
)
def test_optimizers_step_for_each_sample_or_say_that_they_do_not(
    name: str, options: dict[str, Any]
) -> None:
    if name == "Adagrad":  # its step is taken apart, and a part of it is refused
        with pytest.raises(NotImplementedError, match=r"outside of vmap"):
            vmap(lambda a: _trained(a, name, options))(X)
        return
    got = vmap(lambda a: _trained(a, name, options))(X)
    want = pc.stack([_trained(a, name, options) for a in X])
    assert pc.allclose(got, want)


def test_a_write_into_a_sample_of_an_outer_call_says_what_to_do() -> None:
    def outer(a: Any, b: Any) -> Any:
        z = a * 1

        def refused(c: Any) -> Any:
            return z.add_(c)

        def advised(c: Any) -> Any:
            return (z + pc.zeros_like(c)).add_(c)

        with pytest.raises(RuntimeError, match=r"a sample of the inner call of vmap first"):
            vmap(refused)(b)
        return vmap(advised)(b)

    got = vmap(outer, (0, None))(X, X)
    assert pc.equal(got, X[:, None] + X[None])


# ---- what is written is batched and what is read is not, and the reverse ------------------------

S, EYE = pc.tensor([0.5, -1.0, 2.0]), pc.eye(2)
INTO: list[Any] = [
    lambda out: pc.add(S, 1.0, out=out), lambda out: pc.abs(S, out=out),
    lambda out: pc.mm(EYE, EYE + 1, out=out), lambda out: pc.where(S > 0, S, -S, out=out),
    lambda out: pc.sum(S, out=out), lambda out: pc.cumsum(S, 0, out=out),
    lambda out: pc.cat([S, S], out=out), lambda out: pc.arange(3.0, out=out),
    lambda out: pc.linalg.svdvals(EYE, out=out), lambda out: pc.norm(S, out=out),
    lambda out: pc.max(S, 0, out=None if out is None else (out, pc.tensor(0)))[0],
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(INTO)))
def test_out_is_batched_and_the_arguments_are_shared(number: int) -> None:
    f = INTO[number]
    single = f(None)
    out = pc.full((3, *single.shape), 9.0)
    made = vmap(f)(out)
    assert pc.equal(out, single.expand(out.shape)) and pc.equal(made, out)
    nested = pc.full((2, 3, *single.shape), 9.0)
    vmap(vmap(f))(nested)
    assert pc.equal(nested, single.expand(nested.shape))


def _without_recording(write: Any) -> Any:
    def call(z: Any, a: Any) -> None:
        with pa.no_grad():
            write(z, a)

    return call


UNRECORDED: dict[str, Any] = {
    "no_grad": _without_recording(lambda z, a: z.add_(a)),
    "detach": lambda z, a: z.detach().add_(a),
    "data": lambda z, a: z.data.mul_(a),
    "new data": lambda z, a: setattr(z, "data", a),
    "view": _without_recording(lambda z, a: z[:2].copy_(a[:2])),
    "view of detach": lambda z, a: z.detach()[1:].fill_(a[0]),
    "out": _without_recording(lambda z, a: pc.add(a, 1, out=z)),
    "out of detach": lambda z, a: pc.add(a, 1, out=z.detach()),
    "index": lambda z, a: z.detach().index_put_((pc.tensor([0]),), a[:1]),
    "setitem": lambda z, a: z.detach().__setitem__(0, a[0]),
}


class _Double(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


@pytest.mark.parametrize("name", UNRECORDED)
def test_a_shared_history_does_not_get_samples_by_a_write_that_is_not_recorded(name: str) -> None:
    c = pc.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def written(z: Any, a: Any) -> Any:
        UNRECORDED[name](z, a)
        return z * a

    outside = c * 2
    for make in (lambda: c * 2, lambda: _Double.apply(c), lambda: pc.zeros(3).add_(c)):
        with pytest.raises(RuntimeError, match="differ between samples"):
            vmap(lambda a, make=make: written(make(), a))(X)
    with pytest.raises(RuntimeError, match="differ between samples"):
        vmap(lambda a: written(outside, a))(X)
    # a copy has no history, nor has what is made of shapes alone
    for make in (lambda: (c * 2).detach().clone(), lambda: pc.zeros_like(c)):
        if name == "new data":  # which a tensor of all samples never gets
            break
        vmap(lambda a, make=make: written(make(), a))(X)


def test_a_recorded_write_into_a_tensor_with_a_shared_history() -> None:
    c = pc.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def f(a: Any) -> Any:
        z = c * 2
        z[1:].add_(a[1:])
        return (z * a).sum()

    (found,) = pa.grad(vmap(f)(X).sum(), c)
    (wanted,) = pa.grad(sum(f(a) for a in X), c)
    assert close(found, wanted)

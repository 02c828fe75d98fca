"""Backward passes and modes."""

from __future__ import annotations

from typing import Any

from torch_programs import case, gl


@case
def backward_twice(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = (x * x).sum()
    y.backward()
    y.backward()


@case
def backward_nonscalar(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    (x * x).backward()


@case
def backward_no_grad(lib: Any) -> Any:
    lib.t(1.0).backward()


@case
def backward_inputs_nonleaf(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    return (gl(x.grad), gl(y.grad))


@case
def backward_wrong_shape(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    (x * x).backward(lib.t([1.0]))


@case
def grad_unused(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    z = lib.t([1.0], True)
    return lib.ag.grad((x * x).sum(), [x, z])


@case
def grad_unused_allow(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    z = lib.t([1.0], True)
    r = lib.ag.grad((x * x).sum(), [x, z], allow_unused=True)
    return (gl(r[0]), r[1])


@case
def grad_of_const(lib: Any) -> Any:
    x = lib.t([1.0, 2.0])
    return lib.ag.grad(lib.t(1.0, True) * 2, [x])


@case
def grad_same(lib: Any) -> Any:
    x = lib.t(2.0, True)
    return gl(lib.ag.grad(x, x)[0])


@case
def grad_dup_inputs(lib: Any) -> Any:
    x = lib.t(2.0, True)
    return [gl(g) for g in lib.ag.grad(x * x, [x, x])]


@case
def grad_dup_outputs(lib: Any) -> Any:
    x = lib.t(2.0, True)
    y = x * x
    return [gl(g) for g in lib.ag.grad([y, y], [x])]


@case
def grad_inter(lib: Any) -> Any:
    x = lib.t(2.0, True)
    y = x * x
    z = y * x
    return [gl(g) for g in lib.ag.grad(z, [x, y])]


@case
def batched(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    return [
        gl(g) for g in lib.ag.grad(x * x, [x], lib.m.eye(2, dtype=lib.f64), is_grads_batched=True)
    ]


@case
def accumulate_create(lib: Any) -> Any:
    x = lib.t(2.0, True)
    y = x**3
    y.backward(create_graph=True)
    g = x.grad
    (g * 1).backward()
    return gl(x.grad)


@case
def enable_in_no(lib: Any) -> Any:
    x = lib.t(2.0, True)
    with lib.nograd():
        with lib.enable():
            y = x * x
        z = x * x
    return (y.requires_grad, z.requires_grad)


@case
def nograd_decorator_gen(lib: Any) -> Any:
    x = lib.t(2.0, True)

    @lib.nograd()
    def g():
        for _ in range(2):
            yield (x * x).requires_grad

    out = []
    for v in g():
        out.append((v, (x * x).requires_grad))
    return out


@case
def inf_decorator(lib: Any) -> Any:
    x = lib.t(2.0, True)

    @lib.inf()
    def f():
        return (x * x).requires_grad

    return (f(), (x * x).requires_grad)


@case
def inf_gen(lib: Any) -> Any:
    x = lib.t(2.0, True)

    @lib.inf()
    def g():
        yield (x * x).requires_grad

    return [(v, (x * x).requires_grad) for v in g()]


@case
def inf_false(lib: Any) -> Any:
    x = lib.t(2.0, True)
    with lib.nograd(), lib.inf(False):
        y = x * x
    return y.requires_grad


@case
def inf_true_then_false(lib: Any) -> Any:
    x = lib.t(2.0, True)
    with lib.inf(), lib.inf(False):
        y = x * x
    return y.requires_grad


@case
def inf_bare(lib: Any) -> Any:
    x = lib.t(2.0, True)

    @lib.inf
    def f():
        return (x * x).requires_grad

    return f()


@case
def inf_leaf_requires(lib: Any) -> Any:
    with lib.inf():
        x = lib.t(2.0)
    x.requires_grad_()
    return 1


@case
def gen_exception(lib: Any) -> Any:
    x = lib.t(2.0, True)

    @lib.nograd()
    def g():
        try:
            yield 1
        except KeyError:
            yield (x * x).requires_grad

    it = g()
    next(it)
    r = it.throw(KeyError())
    return (r, (x * x).requires_grad)


@case
def gen_close(lib: Any) -> Any:
    x = lib.t(2.0, True)
    s = []

    @lib.nograd()
    def g():
        try:
            yield 1
        finally:
            s.append((x * x).requires_grad)

    it = g()
    next(it)
    it.close()
    return (s, (x * x).requires_grad)


@case
def cls_decorator(lib: Any) -> Any:

    @lib.nograd()
    class A:
        def f(self):
            return (lib.t(2.0, True) * 1).requires_grad

    return A().f()

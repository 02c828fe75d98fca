"""What a Function gets and returns."""

from __future__ import annotations

from typing import Any

from torch_programs import case, gl


@case
def f_nontuple_list(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: [x * 2, x * 3], lambda ctx, a, b: a * 2 + b * 3)
    x = lib.t(1.0, True)
    r = F.apply(x)
    r[0].backward()
    return (type(r).__name__, gl(x.grad))


@case
def f_too_few(lib: Any) -> Any:
    F = lib.function(lambda ctx, x, y: x * y, lambda ctx, g: g)
    x = lib.t(1.0, True)
    F.apply(x, x).backward()


@case
def f_too_many_none(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x * 2, lambda ctx, g: (g, None, None))
    x = lib.t(1.0, True)
    F.apply(x).backward()
    return gl(x.grad)


@case
def f_wrong_shape(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x * 2, lambda ctx, g: lib.m.ones(3, dtype=lib.f64))
    x = lib.t([1.0, 2.0], True)
    F.apply(x).sum().backward()
    return gl(x.grad)


@case
def f_broadcast_grad(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x * 2, lambda ctx, g: lib.m.ones(3, 2, dtype=lib.f64))
    x = lib.t([1.0, 2.0], True)
    F.apply(x).sum().backward()
    return gl(x.grad)


@case
def f_wrong_dtype(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x * 2, lambda ctx, g: lib.m.ones(2))
    x = lib.t([1.0, 2.0], True)
    F.apply(x).sum().backward()
    return (gl(x.grad), x.grad.dtype == lib.f64)


@case
def f_none_grad(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x * 2, lambda ctx, g: None)
    x = lib.t([1.0, 2.0], True)
    F.apply(x).sum().backward()
    return gl(x.grad)


@case
def f_kw(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x, k=1):
            return x * k

    F.apply(lib.t(1.0), k=2)


@case
def f_no_backward(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    F.apply(lib.t(1.0, True)).backward()


@case
def f_both_bw_vjp(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = lib.t(1.0, True)
    F.apply(x).backward()
    return gl(x.grad)


@case
def f_instance(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    F()(lib.t(1.0))


@case
def f_dirty(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = lib.t([1.0], True)
    y = x * 1
    z = F.apply(y)
    z.backward()
    return (z is y, gl(x.grad), y.grad_fn is z.grad_fn)


@case
def f_dirty_leaf(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    F.apply(lib.t([1.0], True))


@case
def f_dirty_notreturned(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = lib.t([1.0], True)
    F.apply(x * 1)


@case
def f_dirty_not_input(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = lib.t([1.0], True)
    F.apply(x).backward()
    return gl(x.grad)


@case
def f_nondiff(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = (x * 2, x > 0)
            ctx.mark_non_differentiable(b)
            return (a, b)

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 if h is None or h.shape == g.shape else None

    x = lib.t([1.0], True)
    a, b = F.apply(x)
    a.backward()
    return (a.requires_grad, b.requires_grad, gl(x.grad))


@case
def f_int_output(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: (x * 2, x > 0), lambda ctx, g, h: g * 2)
    x = lib.t([1.0], True)
    a, b = F.apply(x)
    a.backward()
    return (b.requires_grad, gl(x.grad))


@case
def f_mat_zero(lib: Any) -> Any:
    s = []

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2, x * 3)

        @staticmethod
        def backward(ctx, g, h):
            s.append(h.tolist())
            return g * 2

    x = lib.t([1.0], True)
    a, _b = F.apply(x)
    a.backward()
    return s


@case
def f_needs(lib: Any) -> Any:
    s = []

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x, y, z):
            s.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            s.append(ctx.needs_input_grad)
            return (g, g, None)

    F.apply(lib.t([1.0], True), lib.t([1.0]), 3).backward()
    return s

"""A Function's context, writes and passes within."""

from __future__ import annotations

from typing import Any

from torch_programs import case, gl


@case
def f_once(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @lib.once
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = lib.t(3.0, True)
    (g,) = lib.ag.grad(F.apply(x), x, create_graph=True)
    r = gl(g)
    g.backward()
    return r


@case
def f_saved_modified(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = lib.t([3.0], True)
    y = x * 1
    z = F.apply(y)
    y.add_(1)
    z.backward()


@case
def f_saved_twice(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = lib.t([3.0], True)
    z = F.apply(x)
    z.backward()
    z.backward()


@case
def f_save_outside(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y * 1

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return y * g

    x = lib.t([0.0], True)
    (g,) = lib.ag.grad(F.apply(x), x, create_graph=True)
    return (gl(g), g.requires_grad)


@case
def f_double(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return y * g

    x = lib.t([1.0], True)
    (g,) = lib.ag.grad(F.apply(x), x, create_graph=True)
    (g2,) = lib.ag.grad(g, x, create_graph=True)
    (g3,) = lib.ag.grad(g2, x)
    return round(g3.item(), 6)


@case
def f_view_out(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x.view(-1), lambda ctx, g: g.view(1, 2))
    x = lib.t([[1.0, 2.0]], True)
    y = F.apply(x * 1)
    (y * y).sum().backward()
    return gl(x.grad)


@case
def f_view_out_inplace(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x.view(-1), lambda ctx, g: g.view(1, 2))
    x = lib.t([[1.0, 2.0]], True)
    y = F.apply(x * 1)
    y.mul_(2)
    y.sum().backward()
    return gl(x.grad)


@case
def f_return_input(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: x, lambda ctx, g: g * 5)
    x = lib.t([1.0], True)
    y = F.apply(x)
    y.backward()
    return (y is x, gl(x.grad))


@case
def f_none_output(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: (x * 2, None), lambda ctx, g, h: g * 2)
    x = lib.t([1.0], True)
    y, n = F.apply(x)
    y.backward()
    return (n, gl(x.grad))


@case
def f_str_output(lib: Any) -> Any:
    F = lib.function(lambda ctx, x: (x * 2, "s"), lambda ctx, g, h: g * 2)
    x = lib.t([1.0], True)
    y, n = F.apply(x)
    y.backward()
    return (n, gl(x.grad))


@case
def f_setup(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return (g * ctx.k, None)

    x = lib.t([1.0], True)
    F.apply(x, 4.0).backward()
    return gl(x.grad)


@case
def f_setup_missing(lib: Any) -> Any:
    F = lib.function(lambda x, k: x * k, lambda ctx, g: (g, None))
    F.apply(lib.t([1.0], True), 4.0)


@case
def f_exc(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("mine")

    F.apply(lib.t([1.0], True)).backward()


@case
def f_reentrant(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with lib.enable():
                y = x.detach().requires_grad_()
                (y * y).sum().backward()
            return y.grad * g

    x = lib.t([3.0], True)
    F.apply(F.apply(x)).backward()
    return gl(x.grad)


@case
def f_deep_reentrant(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.n:
                with lib.enable():
                    y = lib.t([1.0], True)
                    F.apply(y, ctx.n - 1).sum().backward()
            return (g, None)

    x = lib.t([3.0], True)
    F.apply(x, 100).backward()
    return gl(x.grad)


@case
def f_saved_none(lib: Any) -> Any:

    class F(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            n, x = ctx.saved_tensors
            assert n is None
            return 2 * x * g

    x = lib.t([3.0], True)
    F.apply(x).backward()
    return gl(x.grad)


@case
def f_nested_apply(lib: Any) -> Any:
    G = lib.function(lambda ctx, x: x * 2, lambda ctx, g: g * 7)
    F = lib.function(lambda ctx, x: G.apply(x), lambda ctx, g: G.apply(g))
    x = lib.t([3.0], True)
    (g,) = lib.ag.grad(F.apply(x), x, create_graph=True)
    return gl(g)


@case
def f_name(lib: Any) -> Any:

    class MyOp(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = MyOp.apply(lib.t([1.0], True))
    return y.grad_fn.name()


@case
def f_gradfn_attr(lib: Any) -> Any:

    class MyOp(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.k = 5
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = MyOp.apply(lib.t([1.0], True))
    return y.grad_fn.k

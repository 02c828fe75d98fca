"""Views in place, functions that write views, and a number to fill with that requires grad."""

from __future__ import annotations

from typing import Any

from torch_programs import case, gl

SQUARE = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@case
def t_in_place(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * 2
    z = y.t_()
    (y * lib.t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    return (z is y, tuple(y.shape), gl(x.grad), y.is_leaf)


@case
def all_in_place(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * 1
    y.unsqueeze_(0).transpose_(0, 2).squeeze_(2).swapaxes_(0, 1).swapdims_(0, 1)
    y.as_strided_((2, 2), (1, 2), 1)
    (y * lib.t([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return (tuple(y.shape), gl(y.detach()), gl(x.grad))


@case
def view_in_place_of_leaf(lib: Any) -> Any:
    lib.t(SQUARE, True).t_()


@case
def view_in_place_of_view_of_leaf(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x[:1]
    y.t_()
    (y * lib.t([[1.0], [2.0], [3.0]])).sum().backward()
    return gl(x.grad)


@case
def view_in_place_of_leaf_without_grad_mode(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    with lib.nograd():
        x.t_()
    (x * lib.t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    return (tuple(x.shape), x.is_leaf, x.requires_grad, gl(x.grad))


@case
def view_in_place_of_view(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * 1
    v = y[:, 1:]
    v.t_()
    v.mul_(lib.t([[1.0, 2.0], [3.0, 4.0]]))
    (y * y).sum().backward()
    return (gl(y.detach()), gl(x.grad))


@case
def view_in_place_then_write(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * 1
    y.t_()
    y[0].mul_(10)
    y.mul_(2)
    (y * y).sum().backward()
    return (gl(y.detach()), gl(x.grad))


@case
def view_before_view_in_place(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * 1
    v = y[1]
    y.t_()
    y.mul_(3)
    (v * v).sum().backward()
    return gl(x.grad)


@case
def view_in_place_after_saving(lib: Any) -> Any:
    x = lib.t([[1.0, 2.0], [3.0, 4.0]], True)
    y = x * 1
    z = y * y
    y.t_()
    z.sum().backward()


@case
def constant_view_in_place_after_saving(lib: Any) -> Any:
    x, c = lib.t([[1.0, 2.0], [3.0, 4.0]], True), lib.t([[1.0, 2.0], [3.0, 4.0]])
    z = x * c
    c.t_()
    z.sum().backward()


@case
def view_in_place_keeps_hooks(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * 1
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(tuple(g.shape)))
    y.t_()
    (y * 2).sum().backward()
    return (seen, gl(x.grad))


@case
def view_in_place_twice_differentiable(lib: Any) -> Any:
    x = lib.t(SQUARE, True)
    y = x * x
    y.t_()
    (g,) = lib.ag.grad((y * y).sum(), x, create_graph=True)
    (h,) = lib.ag.grad(g.sum(), x)
    return (gl(g.detach()), gl(h))


@case
def view_in_place_without_grad(lib: Any) -> Any:
    x = lib.t(SQUARE)
    before = x._version
    x.t_()
    return (tuple(x.shape), x._version > before)


def doubling(lib: Any) -> Any:
    class Double(lib.ag.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            ctx.save_for_backward(w)
            return x.mul_(w)

        @staticmethod
        def backward(ctx, g):
            (w,) = ctx.saved_tensors
            return g * w, None

    return Double


@case
def dirty_view(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 3
    v = y[1:]
    z = doubling(lib).apply(v, lib.t(2.0))
    (y * lib.t([1.0, 10.0, 100.0])).sum().backward()
    return (z is v, gl(y.detach()), gl(x.grad))


@case
def dirty_view_used_itself(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 3
    z = doubling(lib).apply(y[1:], lib.t(2.0))
    (z * z).sum().backward()
    return gl(x.grad)


@case
def dirty_view_of_leaf(lib: Any) -> Any:
    doubling(lib).apply(lib.t([1.0, 2.0], True)[1:], lib.t(2.0))


@case
def dirty_view_of_constant(lib: Any) -> Any:
    class Scale(lib.ag.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            ctx.save_for_backward(x.clone())
            return x.mul_(w)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return None, (g * x).sum()

    y, w = lib.t([1.0, 2.0, 3.0]), lib.t(4.0, True)
    Scale.apply(y[:2], w)
    (y * y).sum().backward()
    return (y.requires_grad, gl(w.grad))


@case
def dirty_view_saved_as_output(lib: Any) -> Any:
    class Exp(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.exp_()
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = lib.t([0.5, 1.0, 1.5], True)
    y = x * 1
    Exp.apply(y[:2])
    (g,) = lib.ag.grad((y * y).sum(), x, create_graph=True)
    (h,) = lib.ag.grad(g.sum(), x)
    return ([round(e, 9) for e in gl(g.detach())], [round(e, 9) for e in gl(h)])


@case
def dirty_view_beside_another(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 3
    other = y[:2]
    doubling(lib).apply(y[1:], lib.t(2.0))
    (other * other).sum().backward()
    return gl(x.grad)


@case
def fill_with_gradient(lib: Any) -> Any:
    x, v = lib.t([1.0, 2.0, 3.0], True), lib.t(5.0, True)
    y = x * 1
    y[1:].fill_(v)
    (y * lib.t([1.0, 2.0, 3.0])).sum().backward()
    return (gl(y.detach()), gl(x.grad), gl(v.grad))


@case
def fill_with_float32(lib: Any) -> Any:
    v = lib.m.tensor(5.0, requires_grad=True)
    y = lib.t([1.0, 2.0]).fill_(v)
    y.sum().backward()
    return (str(y.dtype).rsplit(".", 1)[-1], gl(v.grad))


@case
def fill_leaf_with_gradient(lib: Any) -> Any:
    lib.t([1.0, 2.0], True).fill_(lib.t(5.0, True))


@case
def fill_with_a_vector(lib: Any) -> Any:
    lib.t([1.0, 2.0]).fill_(lib.t([5.0, 6.0], True))


def node_of(lib: Any) -> Any:
    class Scaled(lib.ag.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            ctx.save_for_backward(x)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    return Scaled


@case
def grad_fn_is_the_context(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = node_of(lib).apply(x * 1, 3)
    fn = y.grad_fn
    return (
        fn is y.grad_fn,
        fn.factor,
        gl(fn.saved_tensors[0].detach()),
        fn.needs_input_grad,
        type(fn).__name__,
        fn.name(),
        len(fn.next_functions),
        fn.next_functions[0][0] is not None,
        (y * 1).grad_fn.next_functions[0][0] is fn,
        isinstance(fn.metadata, dict),
    )


@case
def grad_fn_can_be_changed(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = node_of(lib).apply(x, 3)
    y.grad_fn.factor = 5
    y.sum().backward()
    return gl(x.grad)


@case
def grad_fn_hooks(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = node_of(lib).apply(x, 3)
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 2, *gi[1:]))
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.sum().backward()
    return gl(x.grad)


@case
def grad_fn_of_saved_output(lib: Any) -> Any:
    class Exp(lib.ag.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = lib.t([1.0], True)
    y = Exp.apply(x)
    (saved,) = y.grad_fn.saved_tensors
    return (saved.requires_grad, saved.grad_fn is y.grad_fn)


@case
def grad_fn_after_the_pass(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = node_of(lib).apply(x, 3)
    y.backward()
    y.grad_fn.saved_tensors  # noqa: B018


@case
def overwritten_context(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 1
    z = node_of(lib).apply(y, 3)
    y.mul_(2)
    try:
        z.grad_fn.saved_tensors  # noqa: B018
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)

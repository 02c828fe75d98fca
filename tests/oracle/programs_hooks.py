"""Hooks of tensors, nodes and saved tensors, and checkpoints."""

from __future__ import annotations

from typing import Any

from torch_programs import case, gl


@case
def h_order(lib: Any) -> Any:
    s = []
    x = lib.t([1.0], True)
    y = x * 2
    y.register_hook(lambda g: (s.append("a"), g * 2)[1])
    y.register_hook(lambda g: s.append(("b", g.item())))
    x.register_hook(lambda g: s.append(("x", g.item())))
    x.register_post_accumulate_grad_hook(lambda p: s.append(("p", p.grad.item())))
    y.backward()
    return (s, gl(x.grad))


@case
def h_remove_in_hook(lib: Any) -> Any:
    s = []
    x = lib.t([1.0], True)
    y = x * 2

    def a(g):
        s.append(1)
        h.remove()

    h = y.register_hook(a)
    y.backward(retain_graph=True)
    y.backward()
    return s


@case
def h_bad_shape(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 2
    y.register_hook(lambda g: lib.m.ones(3, dtype=lib.f64))
    y.backward()


@case
def h_bad_type(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 2
    y.register_hook(lambda g: 3)
    y.backward()


@case
def h_on_const(lib: Any) -> Any:
    lib.t([1.0]).register_hook(lambda g: g)


@case
def h_retain_const(lib: Any) -> Any:
    lib.t([1.0]).retain_grad()


@case
def h_retain_leaf(lib: Any) -> Any:
    x = lib.t([1.0], True)
    x.retain_grad()
    (x * 2).backward()
    return gl(x.grad)


@case
def h_exc(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 2

    def a(g):
        raise KeyError("z")

    y.register_hook(a)
    y.backward()


@case
def h_node_pre(lib: Any) -> Any:
    s = []
    x = lib.t([1.0], True)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    y.grad_fn.register_hook(lambda gi, go: s.append((len(gi), [g.item() for g in go])))
    y.backward()
    return (s[0][1], gl(x.grad))


@case
def h_node_replace(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x.exp()
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 0 + 9,))
    y.backward()
    return gl(x.grad)


@case
def h_modify_inplace(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 2
    y.register_hook(lambda g: g.mul_(2))
    y.backward()
    return gl(x.grad)


@case
def h_grad_hook_on_inputs(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = y * 3
    return gl(lib.ag.grad(z, y)[0])


@case
def h_postacc_nonleaf(lib: Any) -> Any:
    (lib.t([1.0], True) * 2).register_post_accumulate_grad_hook(lambda p: None)


@case
def h_backward_in_hook(lib: Any) -> Any:
    x = lib.t([1.0], True)
    w = lib.t([1.0], True)
    y = x * 2
    y.register_hook(lambda g: (w * 3).backward())
    y.backward()
    return (gl(w.grad), gl(x.grad))


@case
def s_basic(lib: Any) -> Any:
    n = [0, 0]

    def p(t):
        n[0] += 1
        return t

    def u(t):
        n[1] += 1
        return t

    x = lib.t([2.0], True)
    with lib.sth(p, u):
        y = x * x
    y.backward()
    return (n, gl(x.grad))


@case
def s_nested(lib: Any) -> Any:
    s = []
    x = lib.t([2.0], True)
    with lib.sth(lambda t: (s.append("o"), t)[1], lambda t: t):  # noqa: SIM117
        with lib.sth(lambda t: (s.append("i"), t)[1], lambda t: t):
            y = x.exp()
    y.backward()
    return (s, gl(x.grad))


@case
def s_exc_pack(lib: Any) -> Any:
    x = lib.t([2.0], True)

    def p(t):
        raise KeyError("p")

    with lib.sth(p, lambda t: t):
        x.exp()


@case
def s_exc_unpack(lib: Any) -> Any:
    x = lib.t([2.0], True)

    def p(t):
        raise KeyError("p")

    with lib.sth(lambda t: t, p):
        y = x.exp()
    y.backward()


@case
def s_double(lib: Any) -> Any:
    x = lib.t([2.0], True)
    with lib.sth(lambda t: t.clone(), lambda t: t):
        y = x**3
    (g,) = lib.ag.grad(y, x, create_graph=True)
    return gl(lib.ag.grad(g, x)[0])


@case
def c_basic(lib: Any) -> Any:
    x = lib.t([2.0], True)
    n = [0]

    def f(x):
        n[0] += 1
        return x.exp().sin()

    y = lib.ck(f, x)
    y.backward()
    return (round(x.grad.item(), 8), n)


@case
def c_nograd_in(lib: Any) -> Any:
    x = lib.t([2.0])
    return lib.ck(lambda x: x * 2, x).requires_grad


@case
def c_closure(lib: Any) -> Any:
    w = lib.t([3.0], True)
    y = lib.ck(lambda x: x * w * w, lib.t([2.0]))
    y.backward()
    return gl(w.grad)


@case
def c_exc(lib: Any) -> Any:

    def f(x):
        raise KeyError("q")

    lib.ck(f, lib.t([1.0], True))


@case
def c_double(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = lib.ck(lambda x: x**4, x)
    (g,) = lib.ag.grad(y, x, create_graph=True)
    return gl(lib.ag.grad(g, x)[0])


@case
def c_kwargs(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = lib.ck(lambda x, k: x * k, x, k=lib.t([5.0]))
    y.backward()
    return gl(x.grad)


@case
def c_early_stop_partial(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = lib.ck(lambda x: (x.exp(), x.sin()), x)
    y[1].backward()
    return round(x.grad.item(), 8)

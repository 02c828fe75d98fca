"""Modes, graphs and derivatives at corners."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from typing import Any

from torch_programs import case, gl


@case
def sge_fn(lib: Any) -> Any:
    lib.sge(False)
    a = lib.ige()
    lib.sge(True)
    return (a, lib.ige())


@case
def sge_ctx(lib: Any) -> Any:
    with lib.sge(False):
        a = lib.ige()
    return (a, lib.ige())


@case
def sge_decorator(lib: Any) -> Any:

    @lib.sge(False)
    def f():
        return lib.ige()

    return (f(), lib.ige())


@case
def modes_nested_exception(lib: Any) -> Any:
    try:
        with lib.nograd(), lib.enable():
            raise KeyError
    except KeyError:
        pass
    return lib.ige()


@case
def thread_default(lib: Any) -> Any:
    s = []
    with lib.nograd():
        t = threading.Thread(target=lambda: s.append(lib.ige()))
        t.start()
        t.join()
    return s


@case
def recursion_deco(lib: Any) -> Any:

    @lib.nograd()
    def f(n):
        return (lib.ige(), f(n - 1) if n else None)

    return (f(2), lib.ige())


@case
def anomaly_nan(lib: Any) -> Any:
    x = lib.t([0.0], True)
    with lib.an():
        (x.sqrt() * 0).backward()


@case
def gcheck_fail(lib: Any) -> Any:
    x = lib.t([1.0], True)
    lib.gc_(lambda x: x * x.detach(), (x,))


@case
def gcheck_noraise(lib: Any) -> Any:
    x = lib.t([1.0], True)
    return lib.gc_(lambda x: x * x.detach(), (x,), raise_exception=False)


@case
def next_functions(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = x * 2 + x.exp()
    return (
        [n.name().rstrip("0") for n, _ in y.grad_fn.next_functions],
        y.grad_fn.name().rstrip("0"),
    )


@case
def gradedge(lib: Any) -> Any:
    x = lib.t([1.0], True)
    e = lib.G.get_gradient_edge(x)
    return (e.node.name(), e.output_nr)


@case
def grad_edge_as_input(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = x * x
    e = lib.G.get_gradient_edge(y)
    z = y * 3
    return [gl(g) for g in lib.ag.grad(z, [e])]


@case
def grad_edge_as_output(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = x * x
    e = lib.G.get_gradient_edge(y)
    return [gl(g) for g in lib.ag.grad([e], [x], [lib.t([1.0])])]


@case
def retains_grad(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = x * x
    a = y.retains_grad
    y.retain_grad()
    return (a, y.retains_grad, x.retains_grad)


@case
def output_nr(lib: Any) -> Any:
    x = lib.t([[2.0, 1.0]], True)
    a, b = x.max(1)
    return (a.output_nr, b.output_nr, x.output_nr)


@case
def is_leaf(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = x * 2
    return (x.is_leaf, y.is_leaf, y.detach().is_leaf, lib.t([1.0]).is_leaf)


@case
def grad_warn_nonleaf(lib: Any) -> Any:
    x = lib.t([2.0], True)
    y = x * 2
    y.sum().backward()
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        g = y.grad
    return (g, len(w))


@case
def deepcopy_leaf(lib: Any) -> Any:
    x = lib.t([2.0], True)
    (x * 2).backward()
    y = copy.deepcopy(x)
    return (y.requires_grad, gl(y.grad), y.is_leaf)


@case
def deepcopy_nonleaf(lib: Any) -> Any:
    copy.deepcopy(lib.t([2.0], True) * 2)


@case
def pickle_nonleaf(lib: Any) -> Any:
    y = pickle.loads(pickle.dumps(lib.t([2.0], True)))
    return y.requires_grad


@case
def numpy_grad(lib: Any) -> Any:
    lib.t([1.0], True).numpy()


@case
def item_grad(lib: Any) -> Any:
    return lib.t([1.0], True).item()


@case
def float_grad(lib: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(lib.t([1.0], True) * 1)


@case
def complex_backward(lib: Any) -> Any:
    z = lib.m.tensor([1 + 1j], requires_grad=True)
    (z * z).backward()


@case
def complex_grad(lib: Any) -> Any:
    z = lib.m.tensor([1 + 2j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    return gl(z.grad)


@case
def int_index(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    return gl(lib.ag.grad(x[lib.m.tensor([0, 0])].sum(), x)[0])


@case
def where_nan(lib: Any) -> Any:
    x = lib.t([0.0, 1.0], True)
    y = lib.m.where(x > 0, x.log(), lib.m.zeros_like(x))
    y.sum().backward()
    return gl(x.grad)


@case
def max_ties(lib: Any) -> Any:
    x = lib.t([1.0, 1.0], True)
    x.max().backward()
    return gl(x.grad)


@case
def amax_ties(lib: Any) -> Any:
    x = lib.t([1.0, 1.0], True)
    x.amax().backward()
    return gl(x.grad)


@case
def maximum_ties(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = lib.t([1.0], True)
    lib.m.maximum(x, y).backward()
    return (gl(x.grad), gl(y.grad))


@case
def abs0(lib: Any) -> Any:
    x = lib.t([0.0], True)
    x.abs().backward()
    return gl(x.grad)


@case
def norm0(lib: Any) -> Any:
    x = lib.t([0.0, 0.0], True)
    x.norm().backward()
    return gl(x.grad)


@case
def pow0(lib: Any) -> Any:
    x = lib.t([0.0], True)
    (x**0).backward()
    return gl(x.grad)


@case
def prod0(lib: Any) -> Any:
    x = lib.t([0.0, 2.0, 0.0], True)
    x.prod().backward()
    return gl(x.grad)


@case
def clamp_edge(lib: Any) -> Any:
    x = lib.t([0.0, 1.0, 2.0], True)
    x.clamp(0, 1).sum().backward()
    return gl(x.grad)


@case
def backward_empty(lib: Any) -> Any:
    x = lib.m.zeros(0, dtype=lib.f64, requires_grad=True)
    (x * 2).sum().backward()
    return gl(x.grad)


@case
def backward_list(lib: Any) -> Any:
    x = lib.t([1.0], True)
    lib.ag.backward([x * 2, x * 3])
    return gl(x.grad)


@case
def backward_list_mixed(lib: Any) -> Any:
    x = lib.t([1.0], True)
    lib.ag.backward([x * 2, lib.t([3.0])])
    return gl(x.grad)


@case
def zero_dim_grad_broadcast(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    (x * 2).backward(lib.t(1.0))


@case
def grad_dtype(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    (x * 2).backward(lib.m.ones(2))
    return gl(x.grad)


@case
def allow_unused_false_materialize(lib: Any) -> Any:
    x = lib.t([1.0], True)
    z = lib.t([1.0], True)
    return [gl(g) for g in lib.ag.grad(x * 2, [x, z], materialize_grads=True)]


@case
def requires_grad_setter(lib: Any) -> Any:
    x = lib.t([1.0])
    x.requires_grad = True
    y = x * 2
    y.requires_grad = False


@case
def grad_set_del(lib: Any) -> Any:
    x = lib.t([1.0], True)
    (x * 2).backward()
    del x.grad
    return x.grad


@case
def grad_inplace_accum_visible(lib: Any) -> Any:
    x = lib.t([1.0], True)
    (x * 2).backward()
    g = x.grad
    (x * 2).backward()
    return (g is x.grad, gl(g))


@case
def retain_nonfirst(lib: Any) -> Any:
    x = lib.t([[2.0, 1.0]], True)
    a, _b = x.sort()
    a.retain_grad()
    a.sum().backward()
    return gl(a.grad)


@case
def disable_hooks(lib: Any) -> Any:
    with lib.G.disable_saved_tensors_hooks("no"):  # noqa: SIM117
        with lib.G.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

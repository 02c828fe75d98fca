"""Writes into leaves, results and views."""

from __future__ import annotations

from typing import Any

from torch_programs import case, gl


@case
def leaf_view_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    x[:2].mul_(2)


@case
def nonleaf_view(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    y[:2].mul_(2)
    y[1:].add_(y[:1])
    y.sum().backward()
    return gl(x.grad)


@case
def views_of_views(lib: Any) -> Any:
    x = lib.t([[1.0, 2.0], [3.0, 4.0]], True)
    y = x * 1
    v = y.t()
    w = v[0]
    w.mul_(w)
    y.t()[1].exp_()
    (y * y).sum().backward()
    return gl(x.grad)


@case
def view_then_base_write(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    v = y[1:]
    y.mul_(3)
    (v * v).sum().backward()
    return gl(x.grad)


@case
def detach_view_write(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    y.detach()[0].zero_()
    (y * 2).sum().backward()
    return gl(x.grad)


@case
def detach_view_write_saved(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    z = y * y
    y.detach()[0].zero_()
    z.sum().backward()
    return gl(x.grad)


@case
def data_write_saved(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    z = y * y
    y.data[0] = 0
    z.sum().backward()
    return gl(x.grad)


@case
def data_write_leaf(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    x.data.mul_(2)
    (x * x).sum().backward()
    return gl(x.grad)


@case
def data_assign(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    x.data = lib.t([5.0, 6.0, 7.0])
    (x * x).sum().backward()
    return gl(x.grad)


@case
def no_grad_view_write(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    with lib.nograd():
        v = x[:2]
    v.mul_(2)
    return v.tolist()


@case
def no_grad_view_write_nonleaf(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    with lib.nograd():
        v = y[:2]
    v.mul_(2)
    y.sum().backward()
    return gl(x.grad)


@case
def no_grad_write_of_view(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    v = y[:2]
    with lib.nograd():
        v.mul_(2)
    (y * y).sum().backward()
    return gl(x.grad)


@case
def no_grad_write_leaf(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    z = x * 2
    with lib.nograd():
        x.mul_(2)
    z.sum().backward()
    return gl(x.grad)


@case
def no_grad_write_leaf_saved(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    z = x * x
    with lib.nograd():
        x.mul_(2)
    z.sum().backward()
    return gl(x.grad)


@case
def leaf_copy(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = lib.m.zeros(3, dtype=lib.f64)
    y.copy_(x)
    y[0] = 7
    (y * y).sum().backward()
    return gl(x.grad)


@case
def setitem_chain(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    w = lib.t([4.0, 5.0], True)
    y = lib.m.zeros(2, 3, dtype=lib.f64)
    y[0] = x
    y[1, :2] = w
    y[:, 0] *= 2
    (y**2).sum().backward()
    return (gl(x.grad), gl(w.grad))


@case
def setitem_bool(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    y[y > 1.5] = 0
    (y * y).sum().backward()
    return gl(x.grad)


@case
def setitem_self(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    y[1:] = y[:-1] * 1
    (y * y).sum().backward()
    return gl(x.grad)


@case
def setitem_overlap_direct(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 1
    y[:2] = y[:2]
    (y * y).sum().backward()
    return gl(x.grad)


@case
def out_req(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    o = lib.m.zeros(3, dtype=lib.f64)
    lib.m.mul(x, x, out=o)


@case
def out_nograd(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    o = lib.m.zeros(3, dtype=lib.f64)
    with lib.nograd():
        lib.m.mul(x, x, out=o)
    return o.tolist()


@case
def out_saved(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    o = lib.t([1.0, 1.0, 1.0])
    y = x * o
    lib.m.mul(x.detach(), x.detach(), out=o)
    y.sum().backward()
    return gl(x.grad)


@case
def detach_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 2
    y.detach_()
    return (y.requires_grad, y.grad_fn is None)


@case
def detach_inplace_view(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 2
    v = y[0:1]
    v.detach_()
    return v.requires_grad


@case
def requires_grad_nonleaf_false(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0], True)
    y = x * 2
    y.requires_grad_(False)


@case
def requires_grad_int(lib: Any) -> Any:
    lib.m.tensor([1]).requires_grad_()


@case
def write_into_const_view(lib: Any) -> Any:
    b = lib.m.zeros(3, dtype=lib.f64)
    v = b[1:]
    x = lib.t([1.0, 2.0], True)
    v.copy_(x)
    return (v.requires_grad, b.requires_grad, b.is_leaf, [(b * b).sum().backward(), gl(x.grad)][1])


@case
def view_of_const_other_view(lib: Any) -> Any:
    b = lib.m.zeros(3, dtype=lib.f64)
    v = b[1:]
    w = b[:2]
    x = lib.t([1.0, 2.0], True)
    v.copy_(x)
    (w * w).sum().backward()
    return gl(x.grad)


@case
def chunk_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0, 4.0], True)
    y = x * 1
    a, _b = y.chunk(2)
    a.mul_(2)
    (y * y).sum().backward()
    return gl(x.grad)


@case
def expand_inplace(lib: Any) -> Any:
    x = lib.t([1.0], True)
    y = (x * 1).expand(3)
    y.mul_(2)
    y.sum().backward()
    return gl(x.grad)


@case
def transposed_inplace_sub(lib: Any) -> Any:
    x = lib.t([[1.0, 2.0], [3.0, 4.0]], True)
    y = x * 1
    y.t().sub_(y)
    (y**3).sum().backward()
    return gl(x.grad)


@case
def retain_grad_then_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return (gl(y.grad), gl(x.grad))


@case
def hook_then_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = x * 2
    s = []
    y.register_hook(lambda g: s.append(g.tolist()))
    y.mul_(3)
    y.sum().backward()
    return (s, gl(x.grad))


@case
def zero_grad_set(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    (x * x).sum().backward()
    g = x.grad
    x.grad = None
    (x * x).sum().backward()
    return (g is x.grad, gl(x.grad))


@case
def grad_assign_shape(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    x.grad = lib.t([1.0, 2.0, 3.0])


@case
def grad_assign_dtype(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    x.grad = lib.m.ones(2)


@case
def grad_assign_self(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    x.grad = x


@case
def relu_inplace_saved(lib: Any) -> Any:
    x = lib.t([1.0, -2.0], True)
    y = x * 1
    z = y.relu_()
    z.sum().backward()
    return gl(x.grad)


@case
def sigmoid_inplace_then_mul(lib: Any) -> Any:
    x = lib.t([1.0, -2.0], True)
    y = x.sigmoid()
    y.mul_(2)
    y.sum().backward()
    return gl(x.grad)


@case
def exp_inplace_reuse(lib: Any) -> Any:
    x = lib.t([1.0, -2.0], True)
    y = x.exp()
    z = y.clone()
    y.add_(1)
    z.sum().backward()
    return gl(x.grad)


@case
def as_strided_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0, 4.0], True)
    y = x * 1
    lib.m.as_strided(y, (2,), (2,), 1).mul_(5)
    y.sum().backward()
    return gl(x.grad)


@case
def unfold_overlap(lib: Any) -> Any:
    x = lib.t([1.0, 2.0, 3.0, 4.0], True)
    y = (x * 1).unfold(0, 2, 1)
    (y * y).sum().backward()
    return gl(x.grad)


@case
def complex_real_write(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    z = lib.m.zeros(2, dtype=lib.m.complex128)
    z.real.copy_(x)
    z.imag.copy_(x * x)
    (z.abs() ** 2).sum().backward()
    return gl(x.grad)


@case
def swap_inplace(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = x * 1
    y[0], y[1] = (y[1].clone(), y[0].clone())
    (y * lib.t([1.0, 10.0])).sum().backward()
    return gl(x.grad)


@case
def index_put_acc(lib: Any) -> Any:
    x = lib.t([1.0, 2.0], True)
    y = lib.m.zeros(2, dtype=lib.f64)
    y.index_put_((lib.m.tensor([0, 0]),), x, accumulate=True)
    (y * y).sum().backward()
    return gl(x.grad)

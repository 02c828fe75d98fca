"""Sparse tensors against dense ones."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
from plait_core._sparse._coordinates import zero_preserving

EDGES = [[0, 1, 1, 2, 2], [1, 0, 2, 1, 1]]  # (2, 1) occurs twice
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0]
DENSE = [[0, 1, 0], [2, 0, 3], [0, 9, 0]]


def graph(**options: Any) -> pc.SparseTensor:
    return pc.sparse_coo_tensor(pc.tensor(EDGES), pc.tensor(VALUES), (3, 3), **options)


def test_what_it_is() -> None:
    x = graph()
    assert (tuple(x.shape), x.ndim, x.nnz(), x.numel(), x.dtype) == ((3, 3), 2, 5, 9, pc.float32)
    assert x.is_sparse and x.layout is pc.sparse_coo and not x.is_coalesced()
    assert x.to_dense().tolist() == DENSE
    assert x.size(0) == 3 and x.dim() == 2
    assert pc.sparse_coo_tensor(EDGES, VALUES).shape == (3, 3)
    assert pc.sparse_coo_tensor(EDGES, 2, (3, 4)).to_dense().sum().item() == 10


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_it_is_a_tensor_for_isinstance(layout: str) -> None:
    x = getattr(pc.eye(2, dtype=pc.float64), layout)()
    assert isinstance(x, pc.Tensor) and isinstance(x, type(x)) and not pc.is_tensor(x)
    assert type(x) is not pc.Tensor and not isinstance(pc.eye(2), type(x))
    facts = (x.is_cpu, x.is_cuda, x.is_meta, x.is_leaf, x.is_quantized, x.itemsize, x.grad_fn)
    assert facts == (True, False, False, True, False, 8, None)
    assert x.is_floating_point() and not x.is_complex() and x.element_size() == 8
    assert x.nelement() == 4 and x.is_same_size(pc.eye(2)) and not x.is_same_size(pc.eye(3))
    assert x.data.to_dense().tolist() == [[1, 0], [0, 1]]


def test_coalesce() -> None:
    x = graph().coalesce()
    assert x.is_coalesced() and x.coalesce() is x
    assert x.indices().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert x.values().tolist() == [1, 2, 3, 9]
    assert x.to_dense().tolist() == DENSE
    with pytest.raises(RuntimeError, match=r"indices: .* call coalesce\(\) first"):
        graph().indices()
    with pytest.raises(RuntimeError, match=r"values: .* call coalesce\(\) first"):
        graph().values()


def test_there_and_back() -> None:
    dense = pc.tensor([[[0.0, 1.5], [0.0, 0.0]], [[2.0, 0.0], [0.0, -3.0]]])
    x = dense.to_sparse()
    assert x.is_coalesced() and x.nnz() == 3
    assert x.to_dense().tolist() == dense.tolist()
    empty = pc.zeros(2, 3).to_sparse()
    assert empty.nnz() == 0 and empty.to_dense().tolist() == [[0] * 3] * 2
    assert empty.coalesce().nnz() == 0
    assert dense.to_dense() is dense


def test_arithmetic() -> None:
    x, dense = graph(), pc.tensor(DENSE).float()
    other = pc.tensor([[1.0, 0, 0], [0, 0, 0], [0, 1.0, 0]])
    for got, want in (
        (x + other.to_sparse(), dense + other),
        (x - other.to_sparse(), dense - other),
        (x + other, dense + other),
        (other + x, dense + other),
        (other - x, other - dense),
        (x * 3, dense * 3),
        (2.0 * x, dense * 2),
        (x / 2, dense / 2),
        (-x, -dense),
        (x * other, dense * other),
        (x.t(), dense.t()),
        (x.transpose(0, 1), dense.t()),
        (x.double(), dense.double()) if hasattr(x, "double") else (x, dense),
        (x.to(pc.float64), dense.double()),
        (x.sum(0), dense.sum(0)),
        (x.sum(-1), dense.sum(-1)),
        (x.sum(), dense.sum()),
        (pc.sparse.sum(x, (0, 1)), dense.sum()),
        (x.clone(), dense),
    ):
        full = got.to_dense()
        assert full.dtype is want.dtype and full.tolist() == want.tolist()


def test_transposed() -> None:
    dense = pc.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    x = dense.to_sparse()
    assert x.ndimension() == dense.to_sparse_csr().ndimension() == 2
    assert x.mT.to_dense().tolist() == dense.mT.tolist()


def test_products() -> None:
    x, dense = graph(), pc.tensor(DENSE).float()
    other = pc.tensor([[1.0, 2], [3, 4], [5, 6]])
    for got, want in (
        (x @ other, dense @ other),
        (x.mm(other), dense @ other),
        (pc.sparse.mm(x, other), dense @ other),
        (x @ other[:, 0], dense @ other[:, 0]),
        (other.t() @ x, other.t() @ dense),
        (other[:, 1] @ x, other[:, 1] @ dense),
        ((x @ x).to_dense(), dense @ dense),
        (pc.sparse.addmm(other, x, other, beta=2, alpha=3), 2 * other + 3 * (dense @ other)),
    ):
        assert got.tolist() == want.tolist()


def test_mm_takes_both_names_of_extremes() -> None:
    a, b = pc.tensor([[2.0, 3.0], [0.0, 1.0]]).to_sparse(), pc.tensor([[1.0], [-1.0]])
    for name in ("max", "min"):
        assert pc.equal(pc.sparse.mm(a, b, name), pc.sparse.mm(a, b, f"a{name}"))


def test_mm_of_two_dense_matrices_is_their_product() -> None:
    a, b = pc.ones(2, 3), pc.arange(6.0).reshape(3, 2)
    assert pc.equal(pc.sparse.mm(a, b), a @ b)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pc.sparse_coo_tensor([0, 1], [1.0, 2.0]), pc.ShapeError, r"\(sparse_dim, nnz\)"),
        (lambda: pc.sparse_coo_tensor(EDGES, [1.0]), pc.ShapeError, r"`values` must have shape"),
        (lambda: pc.sparse_coo_tensor(EDGES, VALUES, (2, 3)), IndexError, r"\[0, 1\] .* got 2"),
        (lambda: pc.sparse_coo_tensor(EDGES, VALUES, (3,)), pc.ShapeError, "`size` must have 2"),
        (lambda: pc.sparse_coo_tensor([[0.5]], [1.0]), pc.DTypeError, "must be integers"),
        (lambda: pc.sparse_coo_tensor([[-1]], [1.0], (2,)), IndexError, "got -1"),
        (lambda: graph() @ pc.ones(2, 3), pc.ShapeError, r"\(3, 3\) and \(2, 3\)"),
        (lambda: graph().mm(pc.ones(3, 3).double()), pc.DTypeError, "float32 and float64"),
        (lambda: graph() + pc.ones(2, 2), pc.ShapeError, "equal shapes"),
        (lambda: graph().sum(2), IndexError, "`dim` must be in"),
        (lambda: graph().transpose(0, 2), IndexError, "got 2"),
        (lambda: pc.sparse.mm(pc.ones(2, 2), 2), TypeError, "must be SparseTensor"),
        (lambda: graph() * None, TypeError, "unsupported operand"),
        (lambda: pc.tensor(1.0).to_sparse(), pc.ShapeError, "at least one dimension"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_text() -> None:
    assert repr(pc.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,))) == (
        "tensor(indices=tensor([[0, 1]]),\n"
        "       values=tensor([1., 2.]),\n"
        "       size=(3,), nnz=2, layout=plait.sparse_coo)"
    )


def test_dtypes_and_devices() -> None:
    x = pc.eye(2).to_sparse()
    assert x.double().dtype is pc.float64 and x.to(pc.int64).dtype is pc.int64
    assert x.float().is_coalesced() and x.cpu().to_dense().tolist() == x.to_dense().tolist()
    assert x.type() == "plait.float32" and x.type(pc.float16).dtype is pc.float16
    assert len(x) == 2 and x.mv(pc.tensor([2.0, 3.0])).tolist() == [2, 3]


def test_a_tensor_of_a_size_has_no_elements() -> None:
    for x in (pc.sparse_coo_tensor(size=(2, 3)), pc.sparse_coo_tensor((2, 3), dtype=pc.float64)):
        assert x.nnz() == 0 and x.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert x.dtype is pc.float64
    with pytest.raises(TypeError, match="`indices` and `values`, or `size` are required"):
        pc.sparse_coo_tensor(pc.zeros(2, 1, dtype=pc.int64))


def test_what_sparse_tensors_do_not_have_is_said() -> None:
    x = pc.eye(2).to_sparse()
    for call, error, text in (
        (lambda: x.exp(), AttributeError, "no attribute 'exp'; call to_dense"),
        (lambda: x.nothing, AttributeError, "no attribute 'nothing'$"),
        (lambda: bool(x), RuntimeError, "neither true nor false"),
        (lambda: x[:1], TypeError, "takes ints, None"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_operators_ask_sparse_tensors() -> None:
    x, dense = pc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), pc.tensor([[1.0, 2.0], [3.0, 4.0]])
    full = x.to_dense()

    def ask(name: str, *args: Any, **kwargs: Any) -> Any:
        result = getattr(pc, name)(*args, **kwargs)
        return (result.to_dense() if isinstance(result, pc.SparseTensor) else result).tolist()

    assert ask("mm", x, dense) == ask("matmul", x, dense) == (full @ dense).tolist()
    assert ask("mm", dense, x) == ask("matmul", dense, x) == (dense @ full).tolist()
    assert ask("mv", x, dense[0]) == (full @ dense[0]).tolist()
    assert ask("addmm", dense, x, dense, beta=2) == (2 * dense + full @ dense).tolist()
    assert ask("add", dense, x, alpha=2) == (dense + 2 * full).tolist()
    assert ask("sub", x, dense) == (full - dense).tolist()
    assert ask("mul", 2, x) == (2 * full).tolist() and ask("div", x, 2) == (full / 2).tolist()
    assert ask("sum", x, dim=0) == full.sum(0).tolist() and ask("t", x) == full.T.tolist()
    for args, kwargs, text in (
        (("exp", x), {}, "exp: sparse tensors do not have this operator; call to_dense"),
        (("mm", x), {}, "mm: on sparse tensors, .* missing"),
        (("div", dense, x), {}, "div: sparse tensors do not have this operator for Tensor, Sparse"),
    ):
        with pytest.raises(TypeError, match=text):
            ask(*args, **kwargs)


def test_functions_that_keep_zeros() -> None:
    x, dense = graph(), pc.tensor(DENSE).float()
    for name in zero_preserving():
        scaled = x * 0.1  # within the domain of all of them
        for result in (getattr(scaled, name)(), getattr(pc, name)(scaled)):
            assert result.is_coalesced()
            assert pc.allclose(result.to_dense(), getattr(pc, name)(dense * 0.1)), name
    assert (x**2).to_dense().tolist() == (dense**2).tolist()
    assert abs(-x).to_dense().tolist() == dense.tolist()
    assert x.norm().item() == pytest.approx(dense.norm().item())
    assert x.norm(1).item() == 15 and (x.sparse_dim(), x.dense_dim()) == (2, 0)
    with pytest.raises(ValueError, match="`exponent` must be a number above 0"):
        x.pow(0)


def test_softmax_of_stored_values() -> None:
    x = graph()
    full = pc.tensor(DENSE).float()
    for dim in (0, 1, -1):
        want = pc.where(full == 0, float("-inf"), full).softmax(dim)
        result = pc.sparse.softmax(x, dim)
        assert pc.allclose(result.to_dense(), want.nan_to_num(0.0))
        assert pc.allclose(pc.sparse.log_softmax(x, dim).values().exp(), result.values())
    assert pc.sparse.softmax(pc.eye(2, dtype=pc.int64).to_sparse(), 0, dtype=pc.float64).dtype is (
        pc.float64
    )
    with pytest.raises(IndexError, match=r"`dim` must be in \[-2, 1\]"):
        pc.sparse.softmax(x, 2)


def test_rows_and_joints() -> None:
    x, dense = graph(), pc.tensor(DENSE).float()
    for dim, index in ((0, [2, 2, 0]), (1, [1, 0]), (-1, [2]), (0, [])):
        at = pc.tensor(index, dtype=pc.int64)
        assert x.index_select(dim, at).to_dense().tolist() == dense.index_select(dim, at).tolist()
    with pytest.raises(IndexError, match="from 0 to 2"):
        x.index_select(0, pc.tensor([3]))
    for dim in (0, 1):
        assert pc.cat([x, x], dim).to_dense().tolist() == pc.cat([dense, dense], dim).tolist()
    with pytest.raises(TypeError, match="all be sparse"):
        pc.cat([x, dense])  # type: ignore[list-item]
    with pytest.raises(pc.ShapeError, match=r"\(3, 3\) and \(2, 2\)"):
        pc.cat([x, pc.eye(2).to_sparse()])  # type: ignore[list-item]
    picked = (dense + 1).sparse_mask(x)
    assert picked.to_dense().tolist() == pc.where(dense == 0, 0.0, dense + 1).tolist()
    with pytest.raises(pc.ShapeError, match="equal shapes"):
        pc.ones(2).sparse_mask(x)


def test_slices() -> None:
    x, dense = graph(), pc.tensor(DENSE).float()
    mixed = pc.sparse_coo_tensor(pc.tensor([[0, 2, 0]]), pc.arange(6.0).reshape(3, 2), (3, 2))
    for here, there in ((x, dense), (x.coalesce(), dense), (mixed, mixed.to_dense())):
        for key in (0, -1, (slice(None), 1), (..., 0), (2, 1), None, (1, None), (None, ..., 1)):
            part = here[key]
            full = part.to_dense() if part.is_sparse else part
            assert full.tolist() == there[key].tolist()
        assert len(list(here)) == len(here.unbind()) == 3
        assert here.unsqueeze(-1).to_dense().tolist() == there.unsqueeze(-1).tolist()
    assert x.to_sparse_csr()[2].to_dense().tolist() == DENSE[2]
    assert not mixed[0].is_sparse and mixed[:, 1].is_sparse
    with pytest.raises(IndexError, match=r"index 3 .* shape \(3, 3\)"):
        x[3]
    with pytest.raises(TypeError, match="got slice; call to_dense"):
        x[1:]
    with pytest.raises(IndexError, match="too many indices"):
        x[0, 0, 0]


@pytest.mark.parametrize("sparse_dims", [1, 2, 3])
def test_parts_of_a_dimension_are_copies(sparse_dims: int) -> None:
    dense = (pc.arange(24.0) % 5).reshape(2, 3, 4)
    x = dense.to_sparse(sparse_dims)
    for dim in (-3, 0, 1, 2, -1):
        size = dense.shape[dim]
        for start in range(size + 1):
            for length in range(size - start + 1):
                part = x.narrow_copy(dim, start, length)
                assert part.sparse_dim() == sparse_dims
                want = dense.narrow(dim, start, length)
                assert pc.equal(part.to_dense(), want)
                assert pc.equal(pc.narrow_copy(x, dim, start, length).to_dense(), want)
    x.narrow_copy(0, 0, 2)._values().fill_(7)
    assert pc.equal(x.to_dense(), dense)
    for start, length in ((-1, 1), (0, 3), (2, 1), (0, -1), (3, 0)):
        with pytest.raises(ValueError, match="`start`"):
            x.narrow_copy(0, start, length)
    with pytest.raises(IndexError, match="narrow_copy"):
        x.narrow_copy(3, 0, 1)

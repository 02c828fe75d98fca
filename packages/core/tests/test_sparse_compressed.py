"""Compressed sparse layouts, and coordinates with dense dimensions."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

import plait_core as pc
from plait_core._sparse._base import zero_preserving
from plait_core.testing import assert_close

DENSE = [[0, 2, 0, 0], [0, 0, 0, 0], [3, 0, 4, 5], [0, 0, 0, 6]]
LAYOUTS: list[tuple[str, tuple[Any, ...]]] = [
    ("to_sparse_csr", ()),
    ("to_sparse_csc", ()),
    ("to_sparse_bsr", ((2, 1),)),
    ("to_sparse_bsc", ((1, 2),)),
]


def dense() -> Any:
    return pc.tensor(DENSE, dtype=pc.float32)


@pytest.fixture(params=LAYOUTS, ids=lambda case: case[0])
def matrix(request: pytest.FixtureRequest) -> Any:
    name, args = request.param
    return getattr(dense(), name)(*args)


def test_what_it_is(matrix: Any) -> None:
    assert (tuple(matrix.shape), matrix.ndim, matrix.numel()) == ((4, 4), 2, 16)
    assert matrix.size(1) == 4 and len(matrix) == 4 and matrix.dtype is pc.float32
    assert not matrix.is_sparse and matrix.is_sparse_csr == (matrix.layout == pc.sparse_csr)
    assert (matrix.sparse_dim(), matrix.dense_dim()) == (2, 0)
    by_rows = matrix.layout in (pc.sparse_csr, pc.sparse_bsr)
    bounds = matrix.crow_indices() if by_rows else matrix.ccol_indices()
    places = matrix.col_indices() if by_rows else matrix.row_indices()
    assert bounds[-1] == places.shape[0] == matrix.nnz() == matrix.values().shape[0]
    for name in ("ccol_indices", "row_indices") if by_rows else ("crow_indices", "col_indices"):
        with pytest.raises(RuntimeError, match=f"{name}: the layout .* is required"):
            getattr(matrix, name)()


def test_conversions(matrix: Any) -> None:
    assert matrix.to_dense().tolist() == DENSE
    coordinates = matrix.to_sparse()
    assert coordinates.is_coalesced() and coordinates.to_dense().tolist() == DENSE
    for name, args in LAYOUTS:
        result = getattr(matrix, name)(*args)
        assert result.layout == name.removeprefix("to_") and result.to_dense().tolist() == DENSE
        from_coordinates = getattr(coordinates, name)(*args)
        assert_close(result.values(), from_coordinates.values())
    assert matrix.to_sparse(layout=matrix.layout, blocksize=None).to_dense().tolist() == DENSE


def test_arithmetic(matrix: Any) -> None:
    full, other = dense(), pc.arange(8.0).reshape(4, 2)
    for got, want in (
        (matrix @ other, full @ other),
        (matrix.mm(other), full @ other),
        (pc.mm(matrix, other), full @ other),
        (pc.sparse.mm(matrix, other), full @ other),
        (matrix @ other[:, 0], full @ other[:, 0]),
        (matrix.mv(other[:, 0]), full @ other[:, 0]),
        (other.t() @ matrix, other.t() @ full),
        (pc.matmul(other.t(), matrix), other.t() @ full),
        (pc.addmm(other, matrix, other, beta=2), 2 * other + full @ other),
        (pc.sparse.addmm(other, matrix, other, alpha=2), other + 2 * (full @ other)),
        (matrix @ matrix, full @ full),
        (matrix @ full.to_sparse(), full @ full),
        (full.to_sparse() @ matrix, full @ full),
        (matrix + matrix, 2 * full),
        (matrix - full.to_sparse(), 0 * full),
        (full + matrix, 2 * full),
        (matrix * 3, 3 * full),
        (pc.mul(2, matrix), 2 * full),
        (matrix * full, full * full),
        (matrix / 2, full / 2),
        (-matrix, -full),
        (abs(-matrix), full),
        (matrix.t(), full.t()),
        (matrix.T, full.t()),
        (matrix.double(), full.double()),
        (matrix.to(pc.float64), full.double()),
        (matrix.clone(), full),
        (matrix.detach().cpu(), full),
        (pc.sparse.sum(matrix, 0), full.sum(0)),
    ):
        result = got if pc.is_tensor(got) else got.to_dense()
        assert result.dtype is want.dtype and result.tolist() == want.tolist()
    assert matrix.sum() == full.sum() and (matrix * 2).layout == matrix.layout
    assert (matrix + matrix).layout == matrix.layout == (matrix @ matrix).layout


def test_functions_that_keep_zeros(matrix: Any) -> None:
    for name in zero_preserving():
        expected = getattr(pc, name)(dense() * 0.1)
        assert pc.allclose(getattr(matrix * 0.1, name)().to_dense(), expected)
        assert pc.allclose(getattr(pc, name)(matrix * 0.1).to_dense(), expected)


def test_files_of_pytorch(matrix: Any) -> None:
    pytest.importorskip("plait_torch")
    for options in ({}, {"format": "torch"}):
        file = io.BytesIO()
        pc.save({"x": matrix, "layout": matrix.layout}, file, **options)
        file.seek(0)
        result = pc.load(file)
        assert result["x"].layout == matrix.layout
        assert result["layout"] == matrix.layout
        assert_close(result["x"].to_dense(), dense())


def test_a_layout_of_a_layout() -> None:
    for result in (pc.sparse_csr, pc.strided, pc.channels_last):
        assert type(result)(result) == result == result.name
        assert str(type(result)(result)) == f"plait.{result.name}"


def test_copies_and_files(matrix: Any) -> None:
    file = io.BytesIO()
    pc.save(matrix, file)
    file.seek(0)
    for result in (copy.deepcopy(matrix), pc.load(file)):
        assert result.layout == matrix.layout and result.to_dense().tolist() == DENSE
    assert_close(matrix, dense().to_sparse(), check_layout=False)
    with pytest.raises(AssertionError, match="layouts differ"):
        assert_close(matrix, dense().to_sparse())


def test_parts_and_sizes() -> None:
    result = pc.sparse_csr_tensor([0, 0, 2], [0, 2], [1.0, 2.0])
    assert result.to_dense().tolist() == [[0, 0, 0], [1, 0, 2]]
    narrow = pc.tensor([0, 1], dtype=pc.int32)
    reference = pc.sparse_csc_tensor(narrow, pc.tensor([1], dtype=pc.int32), [5.0], (3, 1))
    assert reference.ccol_indices().dtype is pc.int32 and reference.to_dense().tolist() == [
        [0],
        [5],
        [0],
    ]
    blocks = pc.sparse_bsr_tensor([0, 1, 1], [1], [[[1, 2], [3, 4]]], (4, 6), dtype=pc.float64)
    assert blocks.to_dense()[:2, 2:4].tolist() == [[1, 2], [3, 4]] and blocks.dtype is pc.float64
    rows = pc.sparse_csr_tensor([0, 1], [1], [[7.0, 8.0]], (1, 2, 2))
    assert rows.dense_dim() == 1 and rows.to_dense().tolist() == [[[0, 0], [7, 8]]]
    empty = pc.zeros(2, 3).to_sparse_csr()
    assert empty.nnz() == 0 and empty.to_dense().tolist() == [[0] * 3] * 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pc.sparse_csr_tensor([0, 2], [0], [1.0]), ValueError, "rise to the number of"),
        (lambda: pc.sparse_csr_tensor([1, 1], [0], [1.0]), ValueError, "must begin with 0"),
        (
            lambda: pc.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2]),
            ValueError,
            "rise within each row",
        ),
        (lambda: pc.sparse_csc_tensor([0, 2], [1, 1], [1.0, 2]), ValueError, "within each column"),
        (lambda: pc.sparse_csr_tensor([0, 1], [5], [1.0], (1, 3)), IndexError, r"\[0, 2\], got 5"),
        (
            lambda: pc.sparse_csr_tensor([0, 1], [0], [1.0], (2, 3)),
            pc.ShapeError,
            "must have 3 ele",
        ),
        (lambda: pc.sparse_csr_tensor([0, 1], [0], [1.0, 2.0]), pc.ShapeError, "as many as"),
        (lambda: pc.sparse_csr_tensor([0.0], [0], [1.0]), pc.DTypeError, "int32 or int64"),
        (lambda: pc.sparse_csr_tensor([[0, 1]], [[0]], [[1.0]]), pc.ShapeError, "1 dimension"),
        (lambda: pc.sparse_compressed_tensor([0], [], []), ValueError, "`layout` must be one of"),
        (
            lambda: pc.sparse_csr_tensor([0, 1], [0], [1.0], layout=pc.strided),
            ValueError,
            "`layout` must be sparse_csr, got strided",
        ),
        (lambda: pc.ones(3).to_sparse_csr(), pc.ShapeError, "a matrix is required"),
        (lambda: pc.ones(2, 3, 4).to_sparse_csr(), pc.ShapeError, "batches of matrices"),
        (lambda: pc.ones(3, 3).to_sparse_bsr((2, 2)), pc.ShapeError, "two sizes that divide"),
        (lambda: pc.ones(3, 3).to_sparse(layout=pc.sparse_bsr), ValueError, "`blocksize` is requ"),
        (lambda: pc.ones(3, 3).to_sparse(3), pc.ShapeError, r"`sparse_dim` must be in \[1, 2\]"),
        (lambda: pc.eye(2).to_sparse().to_sparse(1), pc.ShapeError, "`sparse_dim` must be 2"),
        (lambda: bool(pc.eye(2).to_sparse_csr()), RuntimeError, "neither true nor false"),
        (lambda: pc.eye(2).to_sparse_csr()[:1], TypeError, "takes ints, None"),
        (lambda: pc.eye(2).to_sparse_csr().exp(), AttributeError, "call to_dense"),
        (lambda: pc.exp(pc.eye(2).to_sparse_csr()), TypeError, "do not have this operator"),
        (lambda: pc.eye(2).to_sparse_csr() + 1, TypeError, "unsupported operand"),
        (
            lambda: pc.sparse.sampled_addmm(pc.eye(2), pc.eye(2), pc.eye(2)),  # type: ignore[arg-type]
            TypeError,
            "must have the layout sparse_csr",
        ),
        (
            lambda: pc.sparse.sampled_addmm(pc.eye(2).to_sparse_csr(), pc.eye(3), pc.eye(2)),
            pc.ShapeError,
            r"\(m, n\), \(m, k\) and \(k, n\)",
        ),
        (
            lambda: pc.sparse.spdiags(pc.ones(2, 2), pc.tensor([1, 1]), (2, 2)),
            ValueError,
            "`offsets` must differ",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def rows() -> Any:
    values = pc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return pc.sparse_coo_tensor([[0, 2, 0]], values, (3, 2))


def test_rows_as_elements() -> None:
    x = rows()
    full = pc.tensor([[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]])
    assert (x.sparse_dim(), x.dense_dim(), x.nnz()) == (1, 1, 3)
    assert x.to_dense().tolist() == full.tolist() and x.coalesce().nnz() == 2
    assert full.to_sparse(1).indices().tolist() == [[0, 2]]
    for got, want in (
        (x + x, 2 * full),
        (x - full, 0 * full),
        (full + x, 2 * full),
        (x * full, full * full),
        (x * full[:, :1], full * full[:, :1]),
        (x.sum(0), full.sum(0)),
        (x.sum(1), full.sum(1)),
        (x.sum((0, 1)), full.sum()),
        (x.index_select(0, pc.tensor([2, 0, 0])), full[pc.tensor([2, 0, 0])]),
        (x.index_select(1, pc.tensor([1])), full[:, 1:]),
        (pc.cat([x, x]), pc.cat([full, full])),
        (x.sparse_mask(x), full),
        (pc.full((3, 2), 7.0).sparse_mask(x), 7 * (full != 0)),
        (x.norm(), full.norm()),
        (x**2, full**2),
    ):
        assert pc.allclose(got.to_dense(), want)
    target = pc.ones(3, 2)
    assert target.add_(x, alpha=2) is target and target.tolist() == (1 + 2 * full).tolist()
    target += x
    target -= x
    target += x
    assert target.tolist() == (1 + 3 * full).tolist()


def test_work_in_place() -> None:
    x = rows()
    assert x.mul_(2) is x and x.to_dense().sum() == 42
    x *= 0.5
    x += rows()
    x.sub_(rows()).neg_()
    assert x.to_dense().sum() == -21 and x.detach_() is x
    assert x.copy_(rows()).to_dense().sum() == 21
    assert x.zero_().nnz() == 0 and x.is_coalesced()
    with pytest.raises(TypeError, match="add_: a number or a sparse tensor"):
        x.add_(pc.ones(3, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: rows().transpose(0, 1), pc.ShapeError, "two sparse or two dense dimensions"),
        (lambda: rows() @ pc.ones(2, 2), pc.ShapeError, "with dense dimensions"),
        (lambda: rows() + rows().to_dense().to_sparse(), pc.ShapeError, "equal numbers of sparse"),
        (lambda: pc.cat([rows(), rows()], 1), pc.ShapeError, "`dim` must be one of them"),
        (
            lambda: pc.sparse_coo_tensor([[0]], [[1.0, 2.0]], (3, 3)),
            pc.ShapeError,
            "must end with the dense dimensions",
        ),
        (lambda: pc.eye(3).add_(pc.eye(2).to_sparse()), TypeError, "do not have this operator"),
    ],
)
def test_errors_of_dense_dimensions(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_products_by_other_reductions() -> None:
    dense = pc.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, -1.0]])
    other = pc.tensor([[1.0, 2.0], [-3.0, 4.0], [5.0, -6.0]])
    want = {
        "sum": [[11, -10], [0, 0], [-14, 18]],
        "mean": [[5.5, -5], [0, 0], [-7, 9]],
        "amax": [[10, 2], [0, 0], [-5, 12]],
        "amin": [[1, -12], [0, 0], [-9, 6]],
    }
    for reduce, values in want.items():
        for sparse in (dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse()):
            assert pc.sparse.mm(sparse, other, reduce).tolist() == values
    sparse = dense.to_sparse_csr()
    with pytest.raises(pc.ArgumentError, match="`reduce` must be sum, mean, amax or amin"):
        pc.sparse.mm(sparse, other, "prod")
    with pytest.raises(TypeError, match="`reduce` must be a str, got int"):
        pc.sparse.mm(sparse, other, 1)  # type: ignore[arg-type]
    with pytest.raises(
        pc.ShapeError, match=r"must have as many columns as `dense` of shape \(2, 2"
    ):
        pc.sparse.mm(sparse, other[:2], "mean")
    with pytest.raises(pc.ShapeError, match="a sparse and a dense matrix are required"):
        pc.sparse.mm(sparse, sparse, "mean")


def test_compressed_tensors_have_the_members_of_tensors_with_coordinates() -> None:
    pytest.importorskip("plait_autograd")
    dense = pc.tensor([[0.0, 2.0], [3.0, 4.0]])
    x = dense.to_sparse_csr()
    assert pc.equal(x.mT.to_dense(), dense.mT)
    assert pc.equal(x.sub(x, alpha=3).to_dense(), dense * -2)
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf
    assert x.nelement() == 4 and x.is_same_size(dense)


def test_wrong_rows_are_a_runtime_error_too() -> None:
    for error in (ValueError, RuntimeError):
        with pytest.raises(error, match="`crow_indices` must begin with 0"):
            pc.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0])

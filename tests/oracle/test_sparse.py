"""Sparse tensors and sparse gradients against PyTorch's: values, texts, files, trained weights."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import plait
import plait_core as pc
from plait import nn

DENSE = [[0.0, 2, 0, 0], [0, 0, 0, 0], [3, 0, 4, 5], [0, 0, 0, 6]]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that its layouts are in beta
        yield


def array(x: Any) -> Any:
    return np.asarray(x.detach().tolist())


def same(ours: Any, theirs: Any, tolerance: float = 1e-12) -> None:
    """Compare tensors, sparse ones by their dense elements."""
    assert str(ours.layout).split(".")[-1] == str(theirs.layout).split(".")[-1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(
        array(ours.to_dense()), array(theirs.to_dense()), rtol=tolerance, atol=tolerance
    )


def both(data: Any, **options: Any) -> tuple[Any, Any]:
    return (
        pc.tensor(data, dtype=pc.float64, **options),
        torch.tensor(data, dtype=torch.float64, **options),
    )


# ---- training


def lookups() -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.integers(0, 12, (5, 3)).tolist() for _ in range(20)]


def trained(library: Any, make: Any, optimizer: str, options: dict[str, Any]) -> Any:
    """Return the weights after 20 steps, and the gradients of the last."""
    start = np.random.default_rng(1)
    table = library.nn.Parameter(library.tensor(start.normal(size=(12, 4))))
    other = library.nn.Parameter(library.tensor(start.normal(size=(4, 2))))
    sparse = getattr(library.optim, optimizer)([table], **options)
    dense = library.optim.SGD([other], lr=0.1)
    for indices in lookups():

        def closure(indices: Any = indices) -> Any:
            sparse.zero_grad()
            dense.zero_grad()
            rows = make(library.nn.functional, library.tensor(indices), table)
            loss = ((rows @ other) ** 2).mean()
            loss.backward()
            return loss

        sparse.step(closure)
        dense.step()
    return table, other


def looked_up(F: Any, indices: Any, table: Any) -> Any:
    return F.embedding(indices, table, sparse=True)


def padded(F: Any, indices: Any, table: Any) -> Any:
    return F.embedding(indices, table, padding_idx=3, sparse=True)


def summed(F: Any, indices: Any, table: Any) -> Any:
    return F.embedding_bag(indices, table, mode="sum", sparse=True, padding_idx=2)


def averaged(F: Any, indices: Any, table: Any) -> Any:
    return F.embedding_bag(indices, table, mode="mean", sparse=True)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "betas": (0.4, 0.7), "eps": 1e-2, "maximize": True}),
    ("LBFGS", {"lr": 0.1, "max_iter": 3}),
]


@pytest.mark.parametrize("make", [looked_up, padded, summed, averaged])
@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS)
def test_training_ends_where_pytorch_s_ends(
    make: Any, optimizer: str, options: dict[str, Any]
) -> None:
    ours = trained(plait, make, optimizer, options)
    theirs = trained(torch, make, optimizer, options)
    for own, other in zip(ours, theirs, strict=True):
        same(own, other, 1e-9)
    same(ours[0].grad, theirs[0].grad, 1e-9)
    assert ours[0].grad._nnz() == theirs[0].grad._nnz()


def gradients(library: Any) -> Any:
    table = library.nn.Parameter(library.ones(4, 2))
    library.nn.functional.embedding(library.tensor([1, 1]), table, sparse=True).sum().backward()
    return table


NAMES = ["Adadelta", "Adafactor", "Adam", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [*((name, {}) for name in [*NAMES, "Muon"]), ("Adagrad", {"weight_decay": 0.1})],
)
def test_other_optimizers_refuse_with_pytorch_s_words(
    optimizer: str, options: dict[str, Any]
) -> None:
    texts = []
    for library in (plait, torch):
        table = gradients(library)
        choice = getattr(library.optim, optimizer)([table], **options)
        with pytest.raises(RuntimeError) as caught:
            choice.step()
        texts.append(str(caught.value))
        assert (table == 1).all()
    assert texts[0] == texts[1]


def test_errors_of_sparse_adam_and_of_clipping() -> None:
    for library in (plait, torch):
        dense = library.nn.Parameter(library.ones(2))
        dense.sum().backward()
        with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
            library.optim.SparseAdam([dense]).step()
        for options in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.5)}):
            with pytest.raises(ValueError, match="Invalid"):
                library.optim.SparseAdam([dense], **options)
        with pytest.raises(ValueError, match="requires dense parameter tensors"):
            library.optim.SparseAdam([library.eye(2).to_sparse()])
        with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported"):
            library.optim.SGD([gradients(library)], lr=0.1, weight_decay=0.1).step()
        clip = library.nn.utils
        for call in (
            lambda clip=clip, library=library: clip.clip_grad_norm_([gradients(library)], 1.0),
            lambda clip=clip, library=library: clip.clip_grad_value_([gradients(library)], 1.0),
        ):
            with pytest.raises(NotImplementedError):
                call()
        F, table = library.nn.functional, library.ones(2, 2, requires_grad=True)
        with pytest.raises(ValueError, match="max mode does not support sparse weights"):
            F.embedding_bag(library.tensor([[0]]), table, mode="max", sparse=True)
        scaled = F.embedding(library.tensor([0]), table, sparse=True, scale_grad_by_freq=True)
        with pytest.raises(RuntimeError, match="not supported with sparse gradients"):
            scaled.sum().backward()


# ---- gradients


def test_gradients_add_up_as_pytorch_s_do() -> None:
    kinds = []
    for library in (plait, torch):
        F, seen = library.nn.functional, []
        table = library.nn.Parameter(library.tensor(np.arange(8.0).reshape(4, 2)))
        table.register_hook(seen.append)

        def look(
            *indices: int,
            library: Any = library,
            F: Any = F,
            table: Any = table,
        ) -> Any:
            return F.embedding(library.tensor(indices), table, sparse=True)

        look(0, 2).sum().backward()
        look(2, 3).sum().backward()
        steps = [table.grad.clone()]  # PyTorch adds to the same object, plait makes another
        (look(1, 1) * look(1, 2)).sum().backward()
        steps.append(table.grad.coalesce())
        table.sum().backward()  # a dense one
        steps.append(table.grad.clone())
        look(0).sum().backward()
        steps.append(table.grad)
        tied = library.nn.Parameter(library.tensor(np.arange(8.0).reshape(4, 2)))
        rows = F.embedding(library.tensor([1, 3]), tied, sparse=True)
        (rows @ tied.t()).sum().backward()  # both in one pass
        scaled = library.nn.Parameter(library.tensor(np.arange(8.0).reshape(4, 2)))
        F.embedding(library.tensor([1, 3]), scaled * 2, sparse=True).sum().backward()
        kinds.append([*steps, *seen, tied.grad, scaled.grad])
    for own, other in zip(*kinds, strict=True):
        if hasattr(own, "coalesce") != hasattr(other, "is_sparse"):
            assert bool(getattr(own, "is_sparse", False)) == other.is_sparse
        same(own, other)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_gives_a_sparse_gradient(dim: int) -> None:
    results = []
    for library in (plait, torch):
        x = library.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
        index = library.tensor([[0, 1], [1, 0]])
        result = library.gather(x, dim, index, sparse_grad=True)
        (result * result).sum().backward()
        assert x.gather(dim, index, sparse_grad=False).grad_fn is not None
        results.append(x.grad)
    assert results[0]._indices().tolist() == results[1]._indices().tolist()
    same(*results)


def test_products_and_their_gradients() -> None:
    results = []
    for library in (plait, torch):
        sparse = library.tensor(DENSE, dtype=library.float64).to_sparse().requires_grad_()
        dense = library.tensor(
            np.arange(8.0).reshape(4, 2), dtype=library.float64, requires_grad=True
        )
        result = library.sparse.mm(sparse, dense)
        (result * result).sum().backward()
        twice = library.sparse.mm(sparse.detach(), sparse.detach())
        mixed = library.sparse.addmm(library.ones_like(dense), sparse, dense, beta=2, alpha=3)
        results.append([result, sparse.grad, dense.grad, twice, mixed, sparse @ dense])
    for own, other in zip(*results, strict=True):
        same(own, other)


# ---- layouts

CONVERSIONS: list[tuple[str, tuple[Any, ...], tuple[str, ...]]] = [
    ("to_sparse", (), ("indices", "values")),
    ("to_sparse", (1,), ("indices", "values")),
    ("to_sparse_csr", (), ("crow_indices", "col_indices", "values")),
    ("to_sparse_csc", (), ("ccol_indices", "row_indices", "values")),
    ("to_sparse_bsr", ((2, 2),), ("crow_indices", "col_indices", "values")),
    ("to_sparse_bsr", ((1, 2),), ("crow_indices", "col_indices", "values")),
    ("to_sparse_bsc", ((2, 1),), ("ccol_indices", "row_indices", "values")),
]


@pytest.mark.parametrize(("name", "args", "parts"), CONVERSIONS)
def test_conversions_have_pytorch_s_parts(name: str, args: Any, parts: Any) -> None:
    for source in (lambda x: x, lambda x: x.to_sparse(), lambda x: x.to_sparse_csr()):
        if name == "to_sparse" and args and source(pc.eye(2)).layout != plait.strided:
            continue
        ours, theirs = (getattr(source(x), name)(*args) for x in both(DENSE))
        same(ours, theirs)
        assert ours._nnz() == theirs._nnz()
        for part in parts:
            own, other = getattr(ours, part)(), getattr(theirs, part)()
            assert own.tolist() == other.tolist() and str(own.dtype)[6:] == str(other.dtype)[6:]
        assert (ours.sparse_dim(), ours.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())


@pytest.mark.parametrize(("name", "args", "parts"), CONVERSIONS)
def test_texts_are_pytorch_s(name: str, args: Any, parts: Any) -> None:
    for change in (
        lambda x: x,
        lambda x: x.double(),
        lambda x: x.requires_grad_(),
        lambda x: x.detach() * 2,
        lambda x: x[:0] if name == "to_sparse" else x,
    ):
        ours = repr(getattr(change(pc.tensor(DENSE)), name)(*args))
        theirs = repr(getattr(change(torch.tensor(DENSE)), name)(*args))
        theirs = theirs.replace("dtype=torch.", "dtype=").replace("torch.", "plait.")
        start = theirs.find("grad_fn=<")  # nodes have names of their own
        end = len(theirs) if start < 0 else start
        if "dtype=" in ours:  # PyTorch's name is longer, and lines break elsewhere
            ours, theirs = (" ".join(text.split()) for text in (ours, theirs))
        assert ours[:end].rstrip() == theirs[:end].rstrip()


@pytest.mark.parametrize(("name", "args", "parts"), CONVERSIONS)
def test_files_go_both_ways(name: str, args: Any, parts: Any) -> None:
    ours, theirs = (getattr(x, name)(*args) for x in both(DENSE))
    file = io.BytesIO()
    torch.save({"x": theirs}, file)
    file.seek(0)
    same(pc.load(file)["x"], theirs)
    for options in ({}, {"format": "torch"}):
        file = io.BytesIO()
        pc.save({"x": ours}, file, **options)
        file.seek(0)
        same(pc.load(file)["x"], theirs)
        if options:
            file.seek(0)
            same(ours, torch.load(file)["x"])


def test_dense_dimensions() -> None:
    data = np.arange(24.0).reshape(3, 2, 4) % 7 * (np.arange(3) % 2).reshape(3, 1, 1)
    indices = [[0, 2, 0], [1, 0, 1]]
    values = np.arange(12.0).reshape(3, 4)
    for library_pair in (both(data.tolist()),):
        ours, theirs = (x.to_sparse(2) for x in library_pair)
        same(ours, theirs)
        assert ours.indices().tolist() == theirs.indices().tolist()
    own = pc.sparse_coo_tensor(indices, pc.tensor(values), (3, 2, 4))
    other = torch.sparse_coo_tensor(indices, torch.tensor(values), (3, 2, 4))
    dense = [library.tensor(np.arange(24.0).reshape(3, 2, 4)) for library in (pc, torch)]
    for run in (
        lambda x, d: x.coalesce(),
        lambda x, d: x * 3,
        lambda x, d: x + x,
        lambda x, d: d + x,
        lambda x, d: x.coalesce() * d,
        lambda x, d: x.transpose(0, 1),
        lambda x, d: x.index_select(0, type(d)([2, 0]).long()),
        lambda x, d: x.index_select(2, type(d)([3, 0]).long()),
        lambda x, d: d.sparse_mask(x.coalesce()),
        lambda x, d: -x,
        lambda x, d: x.coalesce().abs(),
        lambda x, d: x.clone().mul_(2),
        lambda x, d: x.clone().zero_(),
        lambda x, d: d.clone().add_(x, alpha=2),
    ):
        same(run(own, dense[0]), run(other, dense[1]))
    for dims in (0, 1, 2, (0, 1), (0, 2), (1, 2), (-1, 0), (0, 1, 2), None):
        results = [
            library.sparse.sum(x) if dims is None else library.sparse.sum(x, dims)
            for library, x in ((pc, own), (torch, other))
        ]
        same(*results)


def test_functions_of_the_module() -> None:
    generator = np.random.default_rng(2)
    a, b, reference = generator.normal(size=(4, 3)), generator.normal(size=(3, 4)), both(DENSE)
    ours, theirs = (
        library.sparse.sampled_addmm(
            x.to_sparse_csr(), library.tensor(a), library.tensor(b), beta=0.5, alpha=2.0
        )
        for library, x in ((pc, reference[0]), (torch, reference[1]))
    )
    same(ours, theirs)
    diagonals = generator.normal(size=(3, 4))
    for offsets in ([0, 1, -1], [2, -3, 0], [-1, 3, -2]):
        for shape in ((4, 4), (3, 5), (6, 4)):  # torch's is wrong for fewer columns
            for layout in (None, "sparse_csr", "sparse_csc", "sparse_coo"):
                own, other = (
                    library.sparse.spdiags(
                        library.tensor(diagonals),
                        library.tensor(offsets),
                        shape,
                        layout and getattr(library, layout),
                    )
                    for library in (pc, torch)
                )
                same(own, other)


def test_compressed_arithmetic() -> None:
    for name in ("to_sparse_csr", "to_sparse_csc"):
        ours, theirs = (getattr(x, name)() for x in both(DENSE))
        factor = [library.tensor(np.arange(8.0).reshape(4, 2)) for library in (pc, torch)]
        for run in (
            lambda x, d: x @ d,
            lambda x, d: x.t(),
            lambda x, d: x * 2,
            lambda x, d: -x,
            lambda x, d: x.abs(),
            lambda x, d: x.float(),
            lambda x, d: x.clone(),
            lambda x, d: x.sum(),
            lambda x, d: x.to_sparse(),
            lambda x, d: x @ d[:, 0],
        ):
            same(run(ours, factor[0]), run(theirs, factor[1]), 1e-6)
    ours, theirs = (x.to_sparse_csr() for x in both(DENSE))
    same(ours + ours, theirs + theirs)
    leaf, other = (x.to_sparse_csr().requires_grad_() for x in both(DENSE))
    for matrix, library in ((leaf, pc), (other, torch)):
        (matrix @ library.tensor(np.arange(8.0).reshape(4, 2))).sum().backward()
    # torch's gradient has all elements
    assert leaf.grad.values().tolist() == other.grad[other.detach().to_dense() != 0].tolist()


def test_modules_print_and_copy_as_pytorch_s() -> None:
    for options in ({"sparse": True}, {"sparse": True, "padding_idx": 1}, {"max_norm": 1.0}):
        assert repr(nn.Embedding(4, 2, **options)) == repr(torch.nn.Embedding(4, 2, **options))

"""Names of `torch` that libraries use beside operators and modules."""

from __future__ import annotations

import importlib
import pickle
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest

import plait
import plait_torch


def test_torch_holds_itself(torch: Any) -> None:
    assert torch.torch is torch and torch.torch.Tensor is plait.Tensor
    assert "plait" in torch.__config__.show()


def test_modules_in_which_libraries_search_hold_their_classes(torch: Any) -> None:
    activations = vars(importlib.import_module("torch.nn.modules.activation"))
    assert activations["Tanh"] is torch.nn.Tanh and activations["SiLU"] is torch.nn.SiLU
    assert vars(torch.optim)["Adam"] is torch.optim.Adam


# ---- lists of tensors


@pytest.mark.parametrize(
    ("name", "others", "expected"),
    [
        ("add", (2,), [[3.0, 6.0], [11.0]]),
        ("mul", ([2.0, 3.0],), [[2.0, 8.0], [27.0]]),
        ("sqrt", (), [[1.0, 2.0], [3.0]]),
        ("neg", (), [[-1.0, -4.0], [-9.0]]),
        ("clamp_max", (4,), [[1.0, 4.0], [4.0]]),
        ("clamp_min", (4,), [[4.0, 4.0], [9.0]]),
        ("maximum", ([2.0, 10.0],), [[2.0, 4.0], [10.0]]),
        ("lerp", ("self", 0.5), [[1.0, 4.0], [9.0]]),
        ("addcmul", ("self", "self", 2.0), [[3.0, 36.0], [171.0]]),
        ("addcdiv", ("self", "self", [1.0, 2.0]), [[2.0, 5.0], [11.0]]),
        ("pow", (2,), [[1.0, 16.0], [81.0]]),
    ],
)
def test_one_call_for_a_list(torch: Any, name: str, others: Any, expected: Any) -> None:
    tensors = [plait.tensor([1.0, 4.0]), plait.tensor([9.0])]
    arguments = [[t.clone() for t in tensors] if each == "self" else each for each in others]
    out = getattr(torch, f"_foreach_{name}")(tensors, *arguments)
    assert [each.tolist() for each in out] == expected
    assert tensors[0].tolist() == [1, 4]
    assert getattr(torch, f"_foreach_{name}_")(tensors, *arguments) is None
    assert [each.tolist() for each in tensors] == expected


def test_lists_of_other_lengths_are_refused(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"_foreach_add: lists of one length .* 1 and 2"):
        torch._foreach_add([plait.ones(1)], [plait.ones(1), plait.ones(1)])
    assert [float(x) for x in torch._foreach_norm([plait.tensor([3.0, 4.0])])] == [5]
    factors = plait.tensor([2.0, 3.0])
    one = plait.ones(1)
    out = torch._foreach_addcmul([one, one], [one, one], [one, one], factors)
    assert [float(x) for x in out] == [3, 4]
    assert not hasattr(torch, "_foreach_norm_") and not hasattr(torch, "_foreach_nothing")
    assert torch._foreach_zero_([one]) is None and one.tolist() == [0]


# ---- marks for compilers, tracers and exporters


def test_marks_return_their_argument(torch: Any) -> None:
    import torch.fx
    from torch.jit.annotations import BroadcastingList2
    from torch.onnx.symbolic_helper import parse_args

    def double(x: Any, size: BroadcastingList2[int] = 1) -> Any:  # type: ignore[type-arg]
        return x * 2

    assert torch.fx.wrap(double) is double and torch.jit._overload(double) is double
    assert parse_args("v")(double) is double
    assert not isinstance(double, torch.fx.Proxy)
    assert torch._C._get_tracing_state() is None
    with pytest.raises(plait_torch.MissingModule, match="no graph"):
        importlib.import_module("torch.jit.mobile")


def test_conditions_hold_or_raise(torch: Any) -> None:
    torch._assert(True, "never")
    torch._check(True)
    with pytest.raises(AssertionError, match="sizes"):
        torch._assert(plait.zeros(1) > 0, "sizes")
    for name, kind in [
        ("_check", RuntimeError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_index", IndexError),
    ]:
        with pytest.raises(kind, match="told"):
            getattr(torch, name)(False, lambda: "told")
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)


def test_futures(torch: Any) -> None:
    import torch.futures

    future = torch.futures.Future()
    seen: list[int] = []
    future.add_done_callback(lambda done: seen.append(done.value()))
    failing = future.then(lambda done: 1 // (done.value() - 3))
    with pytest.raises(RuntimeError, match="not ready yet"):
        future.value()
    future.set_result(3)
    assert seen == [3] and future.wait() == 3
    with pytest.raises(RuntimeError, match="already"):
        future.set_result(4)
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    assert torch.jit.wait(torch.jit.fork(lambda x: x + 1, 1)) == 2
    assert torch.futures.wait_all([future]) == [3]


# ---- dtypes and layouts that no tensor has


def test_absent_dtypes_compare_and_are_refused(torch: Any) -> None:
    four = torch.quint4x2
    sizes = {torch.float32: 4, four: 1, torch.qint8: 1}
    assert sizes[four] == 1 and four is torch.quint4x2 and repr(four) == "torch.quint4x2"
    assert plait.ones(1).dtype != four and not isinstance(four, torch.dtype)
    assert plait.ones(1).layout != torch.sparse_csr
    assert torch.finfo(torch.float8_e5m2).eps == 0.25 and torch.finfo(torch.float32).bits == 32
    assert pickle.loads(pickle.dumps(four)) is four
    with pytest.raises(TypeError):
        plait.ones(1).to(four)
    with pytest.raises(plait_torch.MissingName, match=r"torch\.quint4x2"):
        four.itemsize  # noqa: B018
    with pytest.raises(TypeError):
        torch.finfo(torch.qint8)


# ---- operators by name


def test_operators_of_a_program(torch: Any) -> None:
    @torch.library.custom_op("libraries::cube", mutates_args=())
    def cube(x: plait.Tensor, factor: float = 1.0) -> plait.Tensor:
        return x**3 * factor

    x = plait.tensor([2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="libraries::cube: no derivative"):
        cube(x).sum().backward()

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    torch.library.register_autograd(
        "libraries::cube",
        lambda ctx, g: (g * 3 * ctx.saved_tensors[0] ** 2 * ctx.factor, None),
        setup_context=setup,
    )
    assert cube.register_fake(len) is len
    out = torch.ops.libraries.cube(x, 2.0)
    out.sum().backward()
    assert out.tolist() == [16] and x.grad.tolist() == [24]
    assert torch.ops.libraries.cube.default is cube
    assert not hasattr(torch.ops.libraries, "square")
    with pytest.raises(OSError, match="plait_abi"):
        torch.ops.load_library("/nowhere.so")


def test_libraries_of_operators(torch: Any) -> None:
    library = torch.library.Library("libraries_two", "DEF")
    name = library.define("twice(Tensor x) -> Tensor")
    library.impl(name, lambda x: x * 2, "CompositeImplicitAutograd")
    x = plait.ones(1, requires_grad=True)
    torch.ops.libraries_two.twice(x).backward()
    assert x.grad.tolist() == [2]
    with pytest.raises(ValueError, match="namespace::name"):
        torch.library.custom_op("nameless", len, mutates_args=())


def test_rules_of_an_operator(torch: Any) -> None:
    @torch.library.custom_op("libraries::scaled", mutates_args=())
    def scaled(x: plait.Tensor, factor: float) -> plait.Tensor:
        return torch.from_numpy(x.numpy() * factor)

    scaled.register_fake(lambda x, factor: torch.empty_like(x))
    assert scaled(torch.ones(2, 3, device="meta"), 2.0).shape == (2, 3)
    seen = []

    @torch.library.register_vmap("libraries::scaled")
    def of_samples(info: Any, in_dims: Any, x: plait.Tensor, factor: float) -> Any:
        seen.append((info.batch_size, in_dims))
        return scaled(x, factor), in_dims[0]

    assert torch.vmap(lambda x: scaled(x, 2.0))(torch.ones(3, 1)).tolist() == [[2.0]] * 3
    assert seen == [(3, (0, None))]
    torch.library.register_autocast(scaled, "cpu", torch.float16)
    with torch.autocast("cpu"):
        assert scaled(torch.ones(2), 2.0).dtype == torch.float16
        assert scaled(torch.ones(2, dtype=torch.float64), 2.0).dtype == torch.float64
    assert scaled(torch.ones(2), 2.0).dtype == torch.float32


def test_an_operator_that_is_only_defined(torch: Any) -> None:
    torch.library.define("libraries::later", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="libraries::later: no function"):
        torch.ops.libraries.later(torch.ones(1))


def test_inner_names_are_keys_and_calls(torch: Any) -> None:
    aten = torch.ops.aten
    table = {aten.add.Tensor: 1, aten.clone.default: 2}
    assert table[aten.add.Tensor] == 1 and aten.add is not aten.sub
    assert aten.add.Tensor(plait.ones(1), plait.ones(1)).tolist() == [2]
    x = plait.arange(5)
    assert aten.slice.Tensor(x, 0, 1, 3).tolist() == [1, 2]
    assert aten.index.Tensor(x, [plait.tensor([4, 0])]).tolist() == [4, 0]
    assert aten.view.default(x, (5, 1)).shape == (5, 1)
    with pytest.raises(NotImplementedError, match=r"aten\._to_nowhere"):
        aten._to_nowhere.default(plait.ones(1))


# ---- trees


def test_trees_of_a_programs_own_containers(torch: Any) -> None:
    from torch.utils import _pytree as pytree

    class Both:
        def __init__(self, one: Any, two: Any) -> None:
            self.one, self.two = one, two

    pytree.register_pytree_node(
        Both, lambda both: ([both.one, both.two], "kept"), lambda parts, kept: Both(*parts)
    )
    tree = {
        "a": Both(1, [2]),
        "b": deque([3], maxlen=2),
        "c": defaultdict(list, d=4),
        "e": OrderedDict(f=(5,)),
    }
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5] and spec.num_leaves == 5
    again = pytree.tree_unflatten([10 * x for x in leaves], spec)
    assert again["a"].two == [20] and again["b"] == deque([30]) and again["b"].maxlen == 2
    assert again["c"]["new"] == [] and again["c"]["d"] == 40
    assert isinstance(again["e"], OrderedDict) and again["e"]["f"] == (50,)
    whole = pytree.tree_leaves(tree, is_leaf=lambda x: isinstance(x, Both))
    assert len(whole) == 4 and whole[0] is tree["a"]
    assert pytree.tree_all(lambda x: x > 0, tree) and not pytree.tree_any(lambda x: x > 5, tree)


# ---- attention by functions of positions


def rows(shape: Any, seed: int) -> Any:
    values = np.random.RandomState(seed).randn(*shape)
    return plait.from_numpy(values).requires_grad_()


def test_flex_attention_is_masked_attention(torch: Any) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (rows((2, 3, 5, 4), seed) for seed in range(3))
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 5, 5)
    out = flex_attention(q, k, v, block_mask=mask)
    expected = plait.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    plait.testing.assert_close(out, expected)
    got = plait.autograd.grad(out.sin().sum(), [q, k, v])
    for one, two in zip(got, plait.autograd.grad(expected.sin().sum(), [q, k, v]), strict=True):
        plait.testing.assert_close(one, two)
    assert mask.sparsity() == pytest.approx(40) and mask.to_dense().shape == (1, 1, 1, 1)


def test_masks_of_masks(torch: Any) -> None:
    from torch.nn.attention.flex_attention import and_masks, create_mask, noop_mask, or_masks

    def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return q >= kv

    def near(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (q - kv).abs() <= 1

    both = create_mask(and_masks(causal, near, noop_mask), None, None, 3, 3)[0, 0]
    assert both.tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    either = create_mask(or_masks(causal, near), None, None, 3, 3)
    assert either.shape == (1, 1, 3, 3) and int(either.sum()) == 8


def test_flex_attention_changes_scores(torch: Any) -> None:
    from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

    q, k, v = rows((1, 4, 3, 2), 0), rows((1, 2, 5, 2), 1), rows((1, 2, 5, 6), 2)
    slopes = plait.tensor([0.5, 1.0, 1.5, 2.0], dtype=plait.float64)

    def biased(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return score - slopes[h] * (q - kv).abs()

    out, lse = flex_attention(q, k, v, biased, enable_gqa=True, return_lse=True, scale=1.0)
    distance = (plait.arange(3)[:, None] - plait.arange(5)).abs()
    scores = q @ k.repeat_interleave(2, 1).mT - slopes[:, None, None] * distance
    plait.testing.assert_close(out, scores.softmax(-1) @ v.repeat_interleave(2, 1))
    plait.testing.assert_close(lse, scores.logsumexp(-1))
    # the mask lets this query see no key
    mask = create_block_mask(lambda b, h, q, kv: q > kv, 1, 1, 3, 5)
    hidden, aux = flex_attention(
        q, k, v, block_mask=mask, enable_gqa=True, return_aux=AuxRequest(lse=True)
    )
    assert (hidden[:, :, 0] == 0).all() and (aux.lse[:, :, 0] == -np.inf).all()
    assert aux.max_scores is None
    hidden.sum().backward()
    assert plait.isfinite(q.grad).all()
    with pytest.raises(ValueError, match="enable_gqa"):
        flex_attention(q, k, v)
    with pytest.raises(ValueError, match="4 dimensions"):
        flex_attention(q[0], k, v)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(torch: Any, length: int, reverse: bool) -> None:
    from torch._higher_order_ops.associative_scan import associative_scan

    gates, tokens = rows((2, length), 0), rows((2, length), 1)

    def combine(one: Any, two: Any) -> Any:
        return one[0] * two[0], one[1] * two[0] + two[1]

    states = associative_scan(combine, (gates, tokens), dim=1, reverse=reverse)[1]
    state, expected = plait.zeros(2, dtype=plait.float64), []
    for i in range(length)[:: -1 if reverse else 1]:
        state = state * gates[:, i] + tokens[:, i]
        expected.append(state)
    plait.testing.assert_close(states, plait.stack(expected[:: -1 if reverse else 1], 1))
    states.sum().backward()
    assert (tokens.grad[:, -1 if reverse else 0] != 0).all()
    assert length == 1 or plait.isfinite(gates.grad).all()


# ---- storages, devices and files


def test_bytes_of_files(torch: Any, tmp_path: Any) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    storage = torch.UntypedStorage.from_file(str(path), nbytes=16)
    assert storage.untyped() is storage and storage.nbytes() == 16 and storage[3] == 0
    part = torch.asarray(storage[4:12], dtype=torch.uint8).view(dtype=torch.float32)
    assert part.tolist() == [1, 2]
    part.mul_(5)
    assert path.read_bytes()[4:8] == np.float32(1).tobytes()  # the file stays as it was
    shared = torch.UntypedStorage.from_file(path, shared=True, nbytes=20)
    shared[16:20].fill_(7)
    assert path.read_bytes()[16:] == bytes([7] * 4)
    with pytest.raises(ValueError, match="21 bytes are required"):
        torch.UntypedStorage.from_file(path, nbytes=21)


def test_what_is_not_here_is_named_all_the_same(torch: Any) -> None:
    from torch.distributed.tensor import DTensor
    from torch.nn.parallel.scatter_gather import scatter
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    assert isinstance(iter(plait.utils.data.DataLoader([1])), _BaseDataLoaderIter)
    assert not isinstance(plait.ones(1), DTensor | torch.SymInt)
    with pytest.raises(RuntimeError, match=r"plait\.cuda\.is_available"):
        torch.cuda.Stream()
    with torch.cuda.stream(None):
        pass
    with pytest.raises(NotImplementedError, match="scatter: a process computes on one device"):
        scatter(plait.ones(2), [0])
    from torch.distributed.optim import ZeroRedundancyOptimizer

    with pytest.raises(ValueError, match="no process group"):
        ZeroRedundancyOptimizer([plait.ones(1)], optimizer_class=plait.optim.SGD, lr=0.1)
    assert torch.utils.model_zoo.load_url is torch.hub.load_state_dict_from_url
    assert torch.hub.get_dir().endswith("hub") and torch.sym_max(2, 3) == 3


def test_models_that_others_would_quantize(torch: Any) -> None:
    x = plait.tensor([1.0, -2.0])
    assert torch.ao.quantization.QuantStub()(x) is x
    assert torch.nn.quantized.FloatFunctional().mul(x, x).tolist() == [1, 4]
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        torch.ao.quantization.prepare(torch.nn.Linear(1, 1))


def test_older_words_of_methods(torch: Any) -> None:
    x = plait.tensor([[2.0, 1.0], [4.0, 1.0]])
    for LU, pivots in (x.lu(), torch.lu(x)):
        P, L, U = plait.lu_unpack(LU, pivots)
        plait.testing.assert_close(P @ L @ U, x)
    assert [p.tolist() for p in x.split(split_size=[1, 1], dim=1)] == [[[2], [4]], [[1], [1]]]
    assert len(x.split(1)) == 2 and len(torch.lu(x, get_infos=True)) == 3


def test_a_step_of_an_optimizer_around_another(torch: Any) -> None:
    class Around(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def step(self) -> None:
            self.inner.step()

    weight = plait.nn.Parameter(plait.ones(1))
    weight.grad = plait.ones(1)
    Around(torch.optim.SGD([weight], lr=0.5)).step()
    assert weight.tolist() == [0.5]


# ---- writes that no history records


def test_a_function_that_fills_a_table_row_by_row(torch: Any) -> None:
    class Fill(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, table: Any, value: Any, row: int) -> Any:
            ctx.row = row
            table.data[row] = value
            return table

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad[ctx.row], None

    x = plait.tensor([1.0, 2.0], requires_grad=True)
    first = table = Fill.apply(plait.empty(3, 2), x, 0)
    for row in (1, 2):
        table = Fill.apply(table, table[row - 1] * 2, row)
    table.sum().backward()
    assert table.tolist() == [[1, 2], [2, 4], [4, 8]] and x.grad.tolist() == [7, 7]
    assert (first * 2).tolist() == [[2, 4], [4, 8], [8, 16]]  # as PyTorch: data is not checked


def test_a_function_keeps_a_sparse_tensor(torch: Any) -> None:
    class Product(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, indices: Any, values: Any, dense: Any) -> Any:
            matrix = torch.sparse_coo_tensor(indices, values, (2, 2))
            ctx.save_for_backward(dense, matrix, None)
            return matrix @ dense

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            dense, matrix, nothing = ctx.saved_tensors
            assert nothing is None and matrix.is_sparse and matrix.shape == (2, 2)
            rows, columns = matrix._indices()
            values = (grad[rows] * dense[columns]).sum(-1)
            return None, values, matrix.t() @ grad

    indices = plait.tensor([[0, 1], [1, 0]])
    values = plait.tensor([2.0, 3.0], requires_grad=True)
    dense = plait.tensor([[1.0], [10.0]], requires_grad=True)
    Product.apply(indices, values, dense).sum().backward()
    assert values.grad.tolist() == [10, 1] and dense.grad.tolist() == [[3], [2]]

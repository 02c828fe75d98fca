"""`plait_torch`: names that the most used libraries take from PyTorch, by what they compute."""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import numpy as np
import pytest

Point = namedtuple("Point", "x y")


def test_products_of_bytes_are_exact(torch: Any) -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.int8, np.uint8):
        info = np.iinfo(dtype)
        a = rng.integers(info.min, info.max + 1, (20, 300), dtype=dtype)
        b = rng.integers(-128, 128, (300, 8), dtype=np.int8)
        result = torch._int_mm(torch.from_numpy(a), torch.from_numpy(b))
        assert result.dtype == torch.int32
        assert np.array_equal(result.numpy(), a.astype(np.int32) @ b.astype(np.int32))
    for out in (torch.zeros(40, 300, dtype=torch.int32), torch.zeros(result.shape)):
        with pytest.raises(RuntimeError, match=r"_int_mm: `out` must have the dtype int32"):
            torch._int_mm(torch.from_numpy(a), torch.from_numpy(b), out=out)
    with pytest.raises(RuntimeError, match="_int_mm: int8 or uint8, and int8"):
        torch._int_mm(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int8))
    with pytest.raises(RuntimeError, match=r"_int_mm: shapes .* got \(20, 300\) and \(20, 300\)"):
        torch._int_mm(torch.from_numpy(a), torch.from_numpy(a.view(np.int8)))


def test_grouped_products(torch: Any) -> None:
    grouped_mm = torch.nn.functional.grouped_mm
    a, b = torch.randn(6, 4, requires_grad=True), torch.randn(3, 4, 5)
    offs = torch.tensor([2, 2, 5], dtype=torch.int32)
    result = grouped_mm(a, b, offs=offs)
    expected = torch.cat([a[:2] @ b[0], a[2:5] @ b[2], torch.zeros(1, 5)])
    assert torch.allclose(result, expected) and torch._grouped_mm is grouped_mm
    result.sum().backward()
    assert torch.allclose(a.grad[3], b[2].sum(1)) and a.grad[5].abs().sum() == 0
    a = a.detach()
    along = grouped_mm(a.t(), torch.ones(6, 2), offs=offs)
    assert along.shape == (3, 4, 2) and torch.allclose(along[2][:, 0], a[2:5].sum(0))
    assert along[1].abs().sum() == 0
    wide = grouped_mm(b, torch.ones(5, 6), offs=offs)
    assert wide.shape == (4, 6) and torch.allclose(wide[:, 4], b[2].sum(1))
    assert torch.allclose(grouped_mm(b, b.mT), b @ b.mT)
    for wrong in ({}, {"offs": torch.tensor([1, 9, 9])}, {"offs": torch.tensor([3])}):
        with pytest.raises(RuntimeError, match="grouped_mm: `offs`"):
            grouped_mm(a, b, **wrong)


def test_derivative_of_softmax_and_rows_of_csr(torch: Any) -> None:
    x, grad = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    y = x.softmax(1)
    y.backward(grad)
    result = torch._softmax_backward_data(grad, y.detach(), 1, torch.float32)
    assert torch.allclose(result, x.grad, atol=1e-6)
    matrix = (torch.arange(12).reshape(3, 4) % 3).float()
    csr = matrix.to_sparse_csr()
    pairs = torch._convert_indices_from_csr_to_coo(
        csr.crow_indices(), csr.col_indices(), out_int32=True
    )
    assert pairs.dtype == torch.int32 and pairs.tolist() == matrix.nonzero().t().tolist()
    turned = torch._convert_indices_from_csr_to_coo(
        csr.crow_indices(), csr.col_indices(), transpose=True
    )
    assert turned.dtype == torch.int64 and turned.flip(0).tolist() == pairs.tolist()


def test_structures_as_text(torch: Any) -> None:
    tree = torch.utils._pytree
    values = {"a": [1, (2, 3)], "b": None}
    text = tree.treespec_dumps(tree.tree_structure(values))
    leaf = '{"type": null, "context": null, "children_spec": []}'
    # as PyTorch 2.13 writes it
    assert text == (
        '[1, {"type": "builtins.dict", "context": "[\\"a\\", \\"b\\"]", "children_spec": '
        '[{"type": "builtins.list", "context": "null", "children_spec": '
        f'[{leaf}, {{"type": "builtins.tuple", "context": "null", "children_spec": '
        f"[{leaf}, {leaf}]}}]}}, {leaf}]}}]"
    )
    values = [
        OrderedDict(a=1),
        deque([1, 2], maxlen=4),
        defaultdict(int, {"a": 1}),
        torch.Size([2]),
        Point(1, 2),
    ]
    leaves, spec = tree.tree_flatten(values)
    again = tree.treespec_loads(tree.treespec_dumps(spec))
    assert again == spec
    back = tree.tree_unflatten(leaves, again)
    assert back[1].maxlen == 4 and back[2].default_factory is int and back[4] == Point(1, 2)
    with pytest.raises(ValueError, match="protocol 1 is required; got 2"):
        tree.treespec_dumps(spec, 2)
    with pytest.raises(NotImplementedError, match=r"no_such\.Kind is not registered"):
        tree.treespec_loads(json.dumps([1, {"type": "no_such.Kind", "context": "null"}]))
    flatten = torch.fx._pytree.tree_flatten_spec
    spec = tree.tree_structure({"a": 1, "b": deque([2, 3])})
    assert flatten({"b": deque([5, 6]), "a": 4}, spec) == [4, 5, 6]
    with pytest.raises(RuntimeError, match="tree_flatten_spec: TreeSpec"):
        flatten({"b": deque([5]), "a": 4}, spec)


def test_settings_and_errors_of_compilers(torch: Any) -> None:
    config = torch._dynamo.config
    for change in (config.patch("a_setting", 1), config.patch({"a_setting": 1})):
        with change:
            assert config.a_setting == 1
        assert not hasattr(config, "a_setting")

    @config.patch(a_setting=2)
    def ask() -> int:
        return config.a_setting

    assert ask() == 2 and not hasattr(config, "a_setting")
    errors = torch._dynamo.exc
    assert issubclass(errors.Unsupported, errors.TorchDynamoException)
    assert issubclass(errors.BackendCompilerFailed, RuntimeError)
    inside = torch._C
    before = inside._jit_can_fuse_on_cpu()
    inside._jit_override_can_fuse_on_cpu(not before)
    assert inside._jit_can_fuse_on_cpu() is not before
    inside._jit_override_can_fuse_on_cpu(before)
    with torch.backends.cudnn.flags(enabled=False):
        assert not inside._get_cudnn_enabled()
    assert inside._get_cudnn_enabled() and not inside._has_xpu
    with torch.no_grad():
        assert not inside.is_grad_enabled()
    cuda = torch.backends.cuda
    assert not cuda.can_use_flash_attention(cuda.SDPAParams(0, 0, 0, None, 0.0, False, False))
    assert not torch.backends.mps.is_macos_or_newer(14, 0)
    assert not torch.backends.nnpack.is_available()
    with pytest.raises(RuntimeError, match="get_ctx"):
        torch.library.get_ctx()


def test_tensors_of_other_classes_and_their_text(torch: Any) -> None:
    class Named(torch.Tensor):
        pass

    result = torch._tensor._rebuild_from_type_v2(torch.ones, Named, (2,), ({"a": 1}, {"b": 2}))
    assert type(result) is Named and (result.a, result.b) == (1, 2) and result.tolist() == [1, 1]
    text = torch._tensor_str
    with text.printoptions(precision=1):
        assert repr(torch.tensor([0.25])) == "tensor([0.2])"
    assert repr(torch.tensor([0.25])) == "tensor([0.2500])"
    for x in (torch.ones(2), torch.ones(2, dtype=torch.int8), torch.ones(1, requires_grad=True)):
        contents = text._tensor_str(x, len("tensor("))
        assert text._str_intern(x, tensor_contents=contents) == repr(x)
    assert text._str_intern(result, tensor_contents="...") == "Named(...)"
    x = torch.zeros(4)
    assert torch._C._is_alias_of(x[:2], x[2:]) and not torch._C._is_alias_of(x, x.clone())
    raw = np.array([1, 250], np.uint8).tobytes()
    assert torch.ByteTensor(torch.ByteStorage._from_buffer(raw)).tolist() == [1, 250]


def test_masks_and_casts(torch: Any) -> None:
    functional = torch.nn.functional
    mask = torch.tensor([True, False])
    arguments = ("mask", functional._none_or_dtype(torch.ones(1)), "other", torch.float32)
    with pytest.warns(UserWarning, match="mask is of"):
        result = functional._canonical_mask(mask, *arguments)
    assert result.tolist() == [-float("inf"), 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert functional._canonical_mask(result, *arguments) is result
    assert functional._none_or_dtype(None) is None
    with pytest.raises(AssertionError, match="mask must be bool or floating point"):
        functional._canonical_mask(mask.int(), *arguments)
    cast = torch.amp.autocast_mode._cast
    values = {"a": (torch.ones(1), torch.ones(1).double()), "b": [torch.ones(1).int(), 3]}
    result = cast(values, "cpu", torch.bfloat16)
    assert [x.dtype for x in result["a"]] == [torch.bfloat16, torch.float64]
    assert result["b"][0].dtype == torch.int32 and result["b"][1] == 3
    x = values["a"][0]
    assert torch.cuda.amp.autocast_mode._cast(x, torch.float16) is x


def test_blocks_of_a_mask(torch: Any) -> None:
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask

    counts = torch.tensor([[[1, 2, 0]]], dtype=torch.int32)
    indices = torch.tensor([[[[0, 1, 2], [2, 0, 1], [0, 1, 2]]]], dtype=torch.int32)
    mask = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=2)
    assert mask.shape == (1, 1, 6, 6)
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 0, 1], [0, 0, 0]]]]
    causal = BlockMask.from_kv_blocks(
        torch.ones(1, 1, 2, dtype=torch.int32),
        torch.tensor([[[[0, 1], [1, 0]]]]),
        torch.tensor([[[0, 1]]]),
        torch.tensor([[[[0, 1], [0, 1]]]]),
        BLOCK_SIZE=2,
        mask_mod=lambda b, h, q, kv: q >= kv,
        seq_lengths=(4, 3),
    )
    same = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 4, 3, BLOCK_SIZE=2)
    assert torch.equal(causal._mask, same._mask)
    with pytest.raises(ValueError, match="both given or both None"):
        BlockMask.from_kv_blocks(counts, indices, counts)


def test_checkpoints_and_modules_in_the_hosts_memory(torch: Any) -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper

    layer, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    layer(x).square().sum().backward()
    expected, layer.weight.grad = layer.weight.grad, None
    wrapped = offload_wrapper(layer)
    wrapped(x).square().sum().backward()
    assert torch.allclose(layer.weight.grad, expected) and set(wrapped.state_dict()) == {
        "weight",
        "bias",
    }
    layer.weight.grad = None
    calls = []

    def run(x: Any) -> Any:
        calls.append(torch.is_grad_enabled())
        return layer(x).square().sum()

    function = torch.utils.checkpoint.CheckpointFunction
    function.apply(run, True, x.clone().requires_grad_()).backward()
    assert torch.allclose(layer.weight.grad, expected) and len(calls) == 2


def test_levels_and_caches(torch: Any) -> None:
    from torch.autograd import forward_ad
    from torch.nn.utils import parametrize

    assert forward_ad._current_level == -1
    with forward_ad.dual_level():
        assert forward_ad._current_level == 0
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    assert parametrize._cache_enabled == 0
    with parametrize.cached():
        with parametrize.cached():
            first = layer.weight
        assert parametrize._cache_enabled == 1 and layer.weight is first
    assert parametrize._cache_enabled == 0 and layer.weight is not first and not parametrize._cache


def test_groups_of_optimizers_and_pipes(torch: Any) -> None:
    a, b = torch.ones(1), torch.ones(1).double()
    group = torch.optim.Optimizer._group_tensors_by_device_and_dtype
    groups = group([[a, b, a], [b, b, b]], with_indices=True)
    assert [indices for _, indices in groups.values()] == [[0, 2], [1]]
    devices = torch.optim.optimizer._get_capturable_supported_devices()
    assert "cuda" in devices and "xla" in devices and "cpu" not in devices
    settings = torch.utils.data.graph_settings
    pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(100))
    with pytest.warns(UserWarning, match="no pipe shuffles"):
        shuffled = settings.apply_shuffle_settings(pipe, shuffle=True)
    assert sorted(shuffled) == list(range(100)) and list(shuffled) != list(range(100))
    assert list(settings.apply_shuffle_settings(shuffled.map(int), shuffle=False)) == list(pipe)
    assert settings.apply_shuffle_settings(pipe) is pipe


def test_names_of_settings(torch: Any) -> None:
    assert torch.onnx.TrainingMode.TRAINING == 2
    assert torch.onnx.OperatorExportTypes.ONNX_ATEN_FALLBACK == 2
    assert torch.profiler.profiler._default_schedule_fn(3) == torch.profiler.ProfilerAction.RECORD
    assert [each.name for each in torch.distributed.pipelining.SplitPoint] == ["BEGINNING", "END"]
    assert torch.export.Dim.AUTO is torch.export.dynamic_shapes.Dim.AUTO is not None
    with pytest.raises(NotImplementedError, match=r"torch\.export\.draft_export"):
        torch.export.draft_export(torch.nn.ReLU(), (torch.ones(1),))
    with torch.xpu.device(None):
        pass
    with pytest.raises(RuntimeError, match="no component for xpu"), torch.xpu.device(0):
        pass
    assert list(torch.hub.tqdm([1, 2], disable=True)) == [1, 2]
    assert len(torch.distributed.distributed_c10d._pg_map) == 0
    assert torch.sparse.HalfTensor(torch.tensor([[0], [1]]), torch.ones(1)).dtype == torch.float16


def test_the_larger_of_an_int_and_a_float_is_a_float(torch: Any) -> None:
    for result, expected in (
        (torch.sym_max(2, 1.0), 2.0), (torch.sym_min(1, 2.0), 1.0), (torch.sym_max(1, 2), 2),
    ):  # fmt: skip
        assert (result, type(result)) == (expected, type(expected))

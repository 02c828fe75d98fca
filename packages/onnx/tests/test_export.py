"""`plait_onnx.export`: names, sizes, writes, control flow, files, refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest

import plait_core as pc
import plait_nn as nn
import plait_onnx
from plait_abi import operator
from plait_graph import cond, while_loop
from plait_nn import functional as F
from plait_onnx._export import OPSETS

sys.path.insert(0, str(Path(__file__).parent))
from run_model import check, kinds


def network() -> nn.Module:
    layers = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(36, 2)).eval()


# ---- names, sizes, metadata ----------------------------------------------------------------------


def test_a_network_keeps_its_layers_and_names() -> None:
    model = network()
    proto = check(model, (pc.randn(2, 3, 8, 8),))
    expected = ["Conv", "BatchNormalization", "Relu", "MaxPool", "Reshape", "Gemm"]
    assert kinds(proto) == expected
    weights = {tensor.name: tuple(tensor.dims) for tensor in proto.graph.initializer}
    own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    own.pop("1.num_batches_tracked")
    assert own.items() <= weights.items()
    assert [entry.name for entry in proto.graph.input] == ["input"]
    assert [entry.name for entry in proto.graph.output] == ["output"]


def test_inputs_and_outputs_have_the_given_names_and_free_sizes() -> None:
    options: dict[str, Any] = {"dynamic": {"input": {0: "n"}}, "metadata": {"author": "me"}}
    options |= {"input_names": ["image"], "output_names": ["scores"]}
    proto = check(network(), (pc.randn(2, 3, 8, 8),), (pc.randn(5, 3, 8, 8),), **options)
    (image,), (scores,) = proto.graph.input, proto.graph.output
    assert (image.name, scores.name) == ("image", "scores")
    dims = image.type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["n", 3, 8, 8]
    assert scores.type.tensor_type.shape.dim[0].dim_param == "n"
    said = {entry.key: entry.value for entry in proto.metadata_props}
    assert said["author"] == "me" and "1.running_mean" in said["plait.buffers"].split("\n")


def test_names_that_do_not_fit_are_refused() -> None:
    x = pc.ones(2)
    for names in ({"input_names": ["a", "b"]}, {"output_names": ["a", "b"]}):
        with pytest.raises(ValueError, match="2 names"):
            plait_onnx.export(lambda x: x + 1, (x,), **names)
    with pytest.raises(ValueError, match="must differ"):
        plait_onnx.export(lambda x, y: x + y, (x, x + 1), input_names=["a", "a"])
    with pytest.raises(ValueError, match="of an input and of an output"):
        plait_onnx.export(lambda x: x + 1, (x,), input_names=["a"], output_names=["a"])
    with pytest.raises(ValueError, match=r"`opset` must be 17 to \d\d, got 3"):
        plait_onnx.export(lambda x: x + 1, (x,), opset=3)


def test_expressions_in_free_sizes() -> None:
    def function(x: Any) -> Any:
        n = x.shape[0]
        half = x[: n // 2]
        return (
            *(x.view(n * 2, -1), x.reshape(-1, 2), x / n, pc.arange(n), pc.zeros(n, 3), half),
            *(x.flatten(), x.expand(2, n, 6), x.std(0), x.repeat(2, 1), x.mean(), x.roll(1, 0)),
            *(pc.cat([x, half]), pc.eye(n), x.unfold(1, 2, 2), x.var(), F.pad(x, (1, 0))),
        )

    check(function, (pc.randn(4, 6),), (pc.randn(9, 6),), dynamic={"x": {0: "n"}})


def test_results_in_containers() -> None:
    def function(x: Any, y: Any) -> Any:
        return {"a": x, "b": (y + 1, None, [x * 2, x * 2])}

    model = plait_onnx.export(function, (pc.ones(2), pc.zeros(2)))
    names = [entry.name for entry in model.to_proto().graph.output]
    assert len(names) == len(set(names)) == 4
    with pytest.raises(TypeError, match="a result is int"):
        plait_onnx.export(lambda x: (x, 3), (pc.ones(2),))


@pytest.mark.parametrize("opset", OPSETS)
def test_each_opset(opset: int) -> None:
    def function(x: Any) -> Any:
        rows = F.gelu(x), F.gelu(x, approximate="tanh"), x.amax(1), x.sum(), x.std(0), x.sort()[0]
        return (*rows, F.layer_norm(x, (6,)), F.group_norm(x[None], 2), F.mish(x), x.cumsum(1))

    model = check(function, (pc.randn(4, 6),), opset=opset)
    assert [each.version for each in model.opset_import] == [opset]
    assert ("Gelu" in kinds(model)) == (opset >= 20)


def test_what_an_opset_lacks_is_refused() -> None:
    x = pc.tensor([1, 2])
    with pytest.raises(NotImplementedError, match="bitwise_and of integers needs opset 18, got 17"):
        plait_onnx.export(lambda x: x & 1, (x,), opset=17)
    check(lambda x: x & 1, (x,), opset=18)


# ---- writes and views ----------------------------------------------------------------------------


def test_writes_reach_all_views_of_the_memory() -> None:
    def function(x: Any, cache: Any) -> Any:
        cache = cache.clone()
        part = cache[:, 1:3]
        whole = cache.view(-1)
        part.copy_(x)
        turned = part.transpose(0, 1)
        turned[0] += 1
        cache[:, ::2] *= 2
        return cache, part * 2, turned, whole + 1

    args = pc.randn(2, 2), pc.randn(2, 5)
    check(function, args)
    sizes = {"x": {0: "n"}, "cache": {0: "n"}}
    check(function, args, (pc.randn(7, 2), pc.randn(7, 5)), dynamic=sizes)


def test_writes_to_arguments_and_buffers_stay_in_the_model() -> None:
    count = pc.zeros(2)

    def function(x: Any) -> Any:
        count.add_(1)
        x.mul_(2)
        return x + count

    model = plait_onnx.export(function, (pc.ones(2),)).to_proto()
    before = float(count[0])
    run = onnx.reference.ReferenceEvaluator(model)
    results = [run.run(None, {"x": np.ones(2, np.float32)})[0].tolist() for _ in range(2)]
    assert results == [[2 + before + 1] * 2] * 2 and float(count[0]) == before


def test_writes_with_indices_and_masks() -> None:
    def function(x: Any, rows: Any) -> Any:
        y = x.clone()
        y[rows, 1] = 7
        y[x > 1] = 0
        y[:, rows] += 1
        z = x.clone()
        z.index_put_((rows, rows), x[0, :2], accumulate=True)
        return y, z, x[rows][:, rows], x[:, None, rows], x.index_fill(1, rows, 3)

    check(function, (pc.randn(3, 4), pc.tensor([0, 2])))


# ---- values decide -------------------------------------------------------------------------------


def test_branches_and_loops() -> None:
    def branch(x: Any) -> Any:
        return cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    def loop(x: Any) -> Any:
        step, start = 2 * pc.ones(3), pc.tensor(0)
        return while_loop(lambda n, x: x.sum() < 100, lambda n, x: (n + 1, x * step), (start, x))

    assert kinds(check(branch, (pc.ones(3),), (-pc.ones(3),)))[-1] == "If"
    assert kinds(check(loop, (pc.ones(3),), (pc.full((3,), 50.0),)))[-1] == "Loop"


def test_classes_as_rows_of_zeros_and_a_one() -> None:
    proto = check(lambda x: F.one_hot(x, 5) * 2, (pc.tensor([1, 4, 0]),), (pc.tensor([2, 2, 3]),))
    assert "Equal" in kinds(proto) and "Gather" not in kinds(proto)


def test_results_whose_sizes_depend_on_values() -> None:
    def function(x: Any) -> Any:
        chosen = x[x > 0]
        return chosen * 2, x.nonzero(), x.masked_select(x < 0), chosen.sum(), x[x[:, 0] > 0, 1:]

    check(function, (pc.randn(4, 5),), (pc.randn(4, 5),), (pc.randn(4, 5),))


def test_boxes_that_are_kept() -> None:
    def function(boxes: Any, scores: Any) -> Any:
        kept = operator("nms")(boxes, scores, 0.5)
        return boxes[kept], scores[kept]

    x = pc.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 4, 4]])
    few = x, pc.tensor([0.5, 0.9, 0.7])
    all_of_them = x + pc.tensor([[0.0], [5.0], [9.0]]), few[1]
    check(function, few, all_of_them)


# ---- layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True, "bias": False}])
def test_recurrent_layers(kind: str, options: dict[str, Any]) -> None:
    layer = getattr(nn, kind)(5, 6, batch_first=True, **options).eval()
    args = pc.randn(3, 4, 5), pc.randn(2, 4, 5)
    model = check(layer, args[:1], args[1:], dynamic={"input": {0: "n"}})
    assert (kind in kinds(model)) == (kind != "RNN")


def test_packed_sequences_are_refused() -> None:
    layer = nn.GRU(3, 4)

    def function(x: pc.Tensor) -> Any:
        return layer(nn.utils.rnn.pack_padded_sequence(x, [3, 2]))[0].data

    with pytest.raises(NotImplementedError, match="GRU: ONNX has no packed sequences; export"):
        plait_onnx.export(function, (pc.randn(3, 2, 3),))


def test_regions_are_pooled() -> None:
    def largest(x: pc.Tensor, rows: pc.Tensor) -> Any:
        return operator("roi_pool")(x, rows, 0.5, 2, 2)[0]

    args = (pc.randn(1, 2, 8, 8), pc.tensor([[0.0, 0.0, 0.0, 10.0, 10.0]]))
    assert [node.op_type for node in plait_onnx.export(largest, args).to_proto().graph.node] == [
        "MaxRoiPool"
    ]
    with pytest.raises(NotImplementedError, match="places of the largest elements of roi_pool"):
        plait_onnx.export(lambda *each: operator("roi_pool")(*each, 0.5, 2, 2), args)


def test_resizing_and_pooling() -> None:
    def function(x: Any) -> Any:
        return (
            F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True),
            F.adaptive_avg_pool2d(x, 3),
            F.adaptive_max_pool2d(x, 2),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.max_pool2d(x, 2, return_indices=True),
            F.conv_transpose2d(x, pc.ones(3, 4, 3, 3), stride=2, padding=1, output_padding=1),
            F.conv3d(x[:, None], pc.ones(2, 1, 2, 2, 2)),
        )

    check(function, (pc.randn(2, 3, 8, 8),))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_attention() -> None:
    def function(q: Any, mask: Any) -> Any:
        attend = F.scaled_dot_product_attention
        return attend(q, q, q, is_causal=True), attend(q, q, q, attn_mask=mask), attend(q, q, q)

    mask = pc.tensor([[True, False, True], [False, False, False], [True, True, True]])
    check(function, (pc.randn(2, 3, 8), mask))


# ---- files ---------------------------------------------------------------------------------------


def test_weights_beside_the_file(tmp_path: Path) -> None:
    layer = nn.Linear(40, 30)
    x = pc.randn(2, 40)
    path = tmp_path / "layer.onnx"
    plait_onnx.export(layer, (x,), path, external_data=True)
    assert path.stat().st_size < 1000
    assert (tmp_path / "layer.onnx.data").stat().st_size >= 4 * 30 * 41
    assert sorted(each.name for each in tmp_path.iterdir()) == ["layer.onnx", "layer.onnx.data"]
    onnx.checker.check_model(str(path), full_check=True)
    (output,) = onnx.reference.ReferenceEvaluator(str(path)).run(None, {"input": x.numpy()})
    np.testing.assert_allclose(output, layer(x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_a_model_shares_the_weights_of_the_module() -> None:
    layer = nn.Linear(2, 2)
    model = plait_onnx.export(layer, (pc.ones(1, 2),))
    assert model.weights["weight"].data_ptr() == layer.weight.data_ptr()


def test_weights_beyond_a_message_are_refused_as_a_message(monkeypatch: Any) -> None:
    model = plait_onnx.export(nn.Linear(2, 2), (pc.ones(1, 2),))
    monkeypatch.setattr("plait_onnx._model._LARGEST", 10)
    with pytest.raises(ValueError, match="the weights have 24 bytes"):
        model.to_proto()


# ---- refusals ------------------------------------------------------------------------------------


def special(x: Any) -> Any:
    return pc.lgamma(x) + 1


def test_a_refusal_names_the_operator_and_the_line() -> None:
    line = special.__code__.co_firstlineno + 1
    text = rf"lgamma: ONNX has no such operator.*test_export\.py, line {line}, special"
    with pytest.raises(NotImplementedError, match=text):
        plait_onnx.export(special, (pc.ones(2),))


def test_constants_are_computed_instead() -> None:
    table = pc.rand(3) + 1
    model = check(lambda x: x * pc.lgamma(table) + pc.arange(3.0), (pc.ones(3),))
    assert kinds(model) == ["Mul", "Add"]


def test_complex_numbers_are_refused() -> None:
    x = pc.ones(2, dtype=pc.complex64)
    with pytest.raises(NotImplementedError, match="complex numbers"):
        plait_onnx.export(lambda x: x * 2, (x,))

"""Models of ONNX files as modules: names, gradients, graphs, functions, files beside the model."""

import math
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import plait_autograd
import plait_core as pc
import plait_graph
import plait_nn
import plait_onnx


def model_of(text, **arrays):
    """Return a model from onnx's text, with arrays as initializers."""
    model = parser.parse_model(text)
    for name, array in arrays.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


HEADER = '<ir_version: 9, opset_import: ["" : 20]>'
PERCEPTRON = (
    HEADER
    + """ net (float[N, 4] x) => (float[N, 2] y) {
    h = Gemm <transB = 1> (x, fc1_weight, fc1_bias)
    a = Relu(h)
    y = Gemm <transB = 1> (a, fc2_weight, fc2_bias)
}"""
)


def perceptron():
    rng = np.random.default_rng(0)
    shapes = {"fc1.weight": (8, 4), "fc1.bias": (8,), "fc2.weight": (2, 8), "fc2.bias": (2,)}
    model = parser.parse_model(PERCEPTRON)
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = name.replace("_", ".", 1)
    for name, shape in shapes.items():
        array = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model, {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def test_what_was_no_parameter_is_none(tmp_path: pathlib.Path) -> None:
    net = plait_nn.Sequential(plait_nn.Linear(4, 4), plait_nn.BatchNorm1d(4), plait_nn.LSTM(4, 3))
    x = pc.ones(2, 4)
    plait_onnx.export(net.eval(), (x,), tmp_path / "net.onnx")
    again = plait_onnx.load(tmp_path / "net.onnx")
    assert all(name in dict(net.named_parameters()) for name, _ in again.named_parameters())
    scaled = plait_onnx.load(plait_onnx.export(lambda x: x * 0.125 + 1, (x,)).to_proto())
    assert not list(scaled.parameters()) and scaled(x).tolist() == [[1.125] * 4] * 2


def test_names_and_training():
    model, arrays = perceptron()
    module = plait_onnx.load(model.SerializeToString())
    assert set(module.state_dict()) == set(arrays)
    assert {n for n, _ in module.named_parameters()} == set(arrays)
    x = pc.randn(5, 4)
    hidden = np.maximum(x.numpy() @ arrays["fc1.weight"].T + arrays["fc1.bias"], 0)
    expected = hidden @ arrays["fc2.weight"].T + arrays["fc2.bias"]
    np.testing.assert_allclose(module(x).detach().numpy(), expected, rtol=1e-5, atol=1e-5)
    before = (module(x) ** 2).mean()
    before.backward()
    with plait_autograd.no_grad():
        for parameter in module.parameters():
            parameter -= 0.01 * parameter.grad
    assert (module(x) ** 2).mean() < before


def test_compiles_and_saves(tmp_path):
    module = plait_onnx.load(perceptron()[0])
    x = pc.randn(3, 4)
    with plait_autograd.no_grad():
        expected = module(x)
        compiled = plait_graph.compile(module, frozen=True)
        for _ in range(4):
            assert pc.allclose(compiled(x), expected)
        path = str(tmp_path / "net.safetensors")
        plait_graph.export(module, (x,), path, dynamic=[{0: "batch"}])
        many = pc.randn(7, 4)
        assert pc.allclose(plait_graph.load(path)(many), module(many), atol=1e-6)


SIZES = (
    HEADER
    + """ net (float[N, C, L] x) => (float[N, M] y) {
    shape = Shape(x)
    zero = Constant <value = int64[1] {0}> ()
    n = Gather <axis = 0> (shape, zero)
    rest = Constant <value = int64[1] {-1}> ()
    both = Concat <axis = 0> (n, rest)
    y = Reshape(x, both)
}"""
)


def test_sizes_stay_free(tmp_path):
    """Sizes that a model computes from sizes are no tensors, so that a graph keeps them free."""
    module = plait_onnx.load(model_of(SIZES))
    path = str(tmp_path / "sizes.safetensors")
    plait_graph.export(module, (pc.randn(2, 3, 4),), path, dynamic=[{0: "n", 2: "l"}])
    x = pc.randn(5, 3, 6)
    assert pc.equal(plait_graph.load(path)(x), x.reshape(5, 18))


BRANCH = (
    HEADER
    + """ net (bool c, float[N] x) => (float[N] y) {
    y = If (c) <
        then_branch = twice () => (float[N] a) { a = Add(x, x) },
        else_branch = same () => (float[N] b) { b = Neg(x) }
    >
}"""
)


def test_branch_in_a_graph():
    module = plait_onnx.load(model_of(BRANCH))
    x = pc.tensor([1.0, 2.0])
    compiled = plait_graph.compile(module, frozen=True)
    for _ in range(3):
        assert compiled(pc.tensor(True), x).tolist() == [2.0, 4.0]
        assert compiled(pc.tensor(False), x).tolist() == [-1.0, -2.0]
    assert module(True, x).tolist() == [2.0, 4.0]  # a number is known ahead


LOOP = (
    HEADER
    + """ net (int64 n, float[N] x) => (float[N] y) {
    yes = Constant <value = bool {1}> ()
    y = Loop (n, yes, x) <
        body = once (int64 i, bool go, float[N] v) => (bool still, float[N] w) {
            still = Identity(go)
            w = Add(v, v)
        }
    >
}"""
)


def test_loop_in_a_graph():
    module = plait_onnx.load(model_of(LOOP))
    x = pc.tensor([1.0, 3.0])
    compiled = plait_graph.compile(module, frozen=True)
    with plait_autograd.no_grad():
        for count in (3, 2, 0, 5):
            expected = (x * 2**count).tolist()
            assert module(pc.tensor(count), x).tolist() == expected
            assert compiled(pc.tensor(count), x).tolist() == expected


def test_functions_of_the_model():
    text = """<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
    net (float[N] x) => (float[N] y) {
        z = own.scaled <factor = 3.0> (x)
        y = own.scaled (z)
    }
    <opset_import: ["" : 20], domain: "own">
    scaled <factor: float = 2.0> (v) => (w) {
        f = Constant <value_float: float = @factor> ()
        w = Mul(v, f)
    }"""
    assert plait_onnx.load(model_of(text))(pc.tensor([1.0])).tolist() == [6.0]


def test_defaults_and_names_of_inputs():
    text = HEADER + " net (float[1] x, float[1] w) => (float[1] y) { y = Sub(x, w) }"
    module = plait_onnx.load(model_of(text, w=np.array([5.0], np.float32)))
    assert module(pc.tensor([7.0])).tolist() == [2.0]
    assert module(x=pc.tensor([7.0]), w=pc.tensor([1.0])).tolist() == [6.0]
    with pytest.raises(plait_onnx.ModelError, match="input 'x' is missing"):
        module()
    with pytest.raises(plait_onnx.ModelError, match="no input 'z'"):
        module(pc.tensor([7.0]), z=1)


def test_statistics_are_no_parameters():
    text = HEADER + (
        " net (float[N, 2] x) => (float[N, 2] y)"
        " { y = BatchNormalization(x, scale, shift, mean, var) }"
    )
    ones = {name: np.ones(2, np.float32) for name in ("scale", "shift", "mean", "var")}
    module = plait_onnx.load(model_of(text, **ones))
    assert {n for n, _ in module.named_parameters()} == {"scale", "shift"}
    assert {n for n, _ in module.named_buffers()} == {"mean", "var"}


def test_lstm_by_operator_and_by_steps():
    """The operator for whole sequences gives what the steps give."""
    rng = np.random.default_rng(1)
    arrays = {
        "w": rng.standard_normal((2, 12, 4)).astype(np.float32),
        "r": rng.standard_normal((2, 12, 3)).astype(np.float32),
        "b": rng.standard_normal((2, 24)).astype(np.float32),
    }
    x = pc.randn(5, 2, 4)
    results = []
    for clip in ("", "clip = 1e9,"):  # a limit, even if it is far away, takes the steps
        text = HEADER + (
            " net (float[T, N, 4] x) => (float y, float h, float c) { y, h, c = LSTM "
            f'<hidden_size = 3, {clip} direction = "bidirectional"> (x, w, r, b) }}'
        )
        results.append(plait_onnx.load(model_of(text, **arrays))(x))
    for one, other in zip(*results, strict=True):
        assert pc.allclose(one, other, atol=1e-6)


def external_model(location, offset=None, length=None):
    tensor = TensorProto(name="w", dims=[3], data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length}
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    text = HEADER + " net (float[3] x) => (float[3] y) { y = Add(x, w) }"
    model = model_of(text)
    model.graph.initializer.append(tensor)
    return model


def test_external_data(tmp_path):
    values = np.arange(8, dtype=np.float32)
    values.tofile(tmp_path / "weights.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(external_model("weights.bin", 8, 12).SerializeToString())
    module = plait_onnx.load(path)
    assert module(pc.zeros(3)).tolist() == [2.0, 3.0, 4.0]
    with plait_autograd.no_grad():
        module.w += 1  # the file stays as it is
    assert np.fromfile(tmp_path / "weights.bin", np.float32).tolist() == values.tolist()
    with pytest.raises(plait_onnx.ModelError, match="pass `folder`"):
        plait_onnx.load(path.read_bytes())
    assert plait_onnx.load(path.read_bytes(), folder=tmp_path)(pc.zeros(3)).tolist()[0] == 2.0


@pytest.mark.parametrize(
    ("location", "offset", "length", "text"),
    [
        ("../weights.bin", 0, 12, "outside the model's folder"),
        ("/etc/hostname", 0, 12, "outside the model's folder"),
        ("", 0, 12, "outside the model's folder"),
        ("link.bin", 0, 12, "outside the model's folder"),
        ("none.bin", 0, 12, "is not a file"),
        (".", 0, 12, "is not a file"),
        ("weights.bin", -4, 12, "must be a number"),
        ("weights.bin", "9" * 30, 12, "must be a number"),
        ("weights.bin", 24, 12, "beyond"),
        ("weights.bin", 0, 16, "needs 12 bytes"),
    ],
)
def test_external_data_that_does_not_fit(tmp_path, location, offset, length, text):
    folder = tmp_path / "model"
    folder.mkdir()
    np.zeros(8, np.float32).tofile(tmp_path / "weights.bin")
    np.zeros(8, np.float32).tofile(folder / "weights.bin")
    (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    path = folder / "model.onnx"
    path.write_bytes(external_model(location, offset, length).SerializeToString())
    with pytest.raises(plait_onnx.ModelError, match=text):
        plait_onnx.load(path)


def test_packed_integers():
    """Elements of 4 bits are unpacked to bytes."""
    values = np.array([-8, 7, 3, -1, 0], np.int8)
    tensor = helper.make_tensor("q", TensorProto.INT4, [5], values.tolist())
    text = HEADER.replace("20", "21") + (
        " net (float s) => (float[5] y) { y = DequantizeLinear(q, s) }"
    )
    model = model_of(text)
    model.graph.initializer.append(tensor)
    module = plait_onnx.load(model)
    assert module.q.dtype == pc.int8
    assert module(pc.tensor(0.5)).tolist() == (values * 0.5).tolist()


def test_generated_names_do_not_clash():
    """Names that a module has already, or that are parts of others, become attributes, too."""
    names = ["forward", "a", "a.b", "a.b.c", ".", "training", "x/y:0", "." * 50]
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Sum", [*names, "in"], ["out"])],
            "net",
            [helper.make_tensor_value_info("in", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1])],
            [numpy_helper.from_array(np.array([1.0], np.float32), name) for name in names],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )
    onnx.checker.check_model(model)
    module = plait_onnx.load(model)
    assert len(list(module.parameters())) == len(names)
    assert module(pc.zeros(1)).item() == len(names)
    other = plait_onnx.load(model)
    other.load_state_dict({k: v * 2 for k, v in module.state_dict().items()})
    assert math.isclose(other(pc.zeros(1)).item(), 2 * len(names))

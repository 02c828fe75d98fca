"""Files that are damaged or forged: clear errors, no crash, memory within the limit.

With ``--slow`` there are more mutants; PLAIT_ONNX_FUZZ=n makes n times as many of these.
"""

import contextlib
import os
import random
import resource
import signal
import sys

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper, parser

import plait_autograd
import plait_core as pc
import plait_onnx
from plait_onnx import _dtypes

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from onnx_cases import SLOW, elements_in, is_of_default_domain, node_cases, tensor_of

MUTANTS = 60  # of each model
SLOW_MUTANTS = 2000 * int(os.environ.get("PLAIT_ONNX_FUZZ", "1"))
LIMIT = 1 << 22
HEADER = '<ir_version: 9, opset_import: ["" : 20]>'


def net(nodes, inputs=("x",), outputs=("y",), initializers=(), opset=20, **more):
    def values(names):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]

    graph = helper.make_graph(
        nodes,
        "net",
        values(inputs),
        values(outputs),
        [numpy_helper.from_array(np.asarray(a), name) for name, a in initializers],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)


def node(op, inputs="x", outputs="y", **attributes):
    names = [name.strip("-") for name in inputs.split()]  # a dash: left out
    return helper.make_node(op, names, outputs.split(), name="n", **attributes)


def nested(depth):
    """Return a model with branches in branches."""

    def graph(name, nodes, output):
        return helper.make_graph(
            nodes, name, [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        )

    inner = graph("g", [helper.make_node("Identity", ["x"], ["z"])], "z")
    for i in range(depth):
        other = graph("e", [helper.make_node("Neg", ["x"], ["e"])], "e")
        branch = helper.make_node("If", ["c"], [f"z{i}"], then_branch=inner, else_branch=other)
        inner = graph("g", [branch], f"z{i}")
    inner.node[0].output[0] = "y"
    return net(list(inner.node), ("x", "c"))


def calls(count, last):
    """Return a model whose functions call each other, twice each."""
    model = net([helper.make_node("f0", ["x"], ["y"], domain="own")])
    model.opset_import.append(helper.make_opsetid("own", 1))
    for i in range(count):
        inner = f"f{i + 1}" if i + 1 < count else last
        body = [
            helper.make_node(inner, ["a"], ["b"], domain="own"),
            helper.make_node(inner, ["b"], ["c"], domain="own"),
        ]
        model.functions.append(
            helper.make_function("own", f"f{i}", ["a"], ["c"], body, list(model.opset_import))
        )
    return model


def wrong_data(**fields):
    model = net([node("Add", "x w")], initializers=[("w", np.ones(4, np.float32))])
    for key, value in fields.items():
        if key == "dims":
            del model.graph.initializer[0].dims[:]
            model.graph.initializer[0].dims.extend(value)
        else:
            setattr(model.graph.initializer[0], key, value)
    return model


def with_attribute(name, kind):
    model = net([node("Softmax")])
    attribute = model.graph.node[0].attribute.add()
    attribute.name, attribute.type = name, kind
    return model


F1 = np.ones(1, np.float32)
REFUSED = {
    "a cycle": (net([node("Add", "x b", "a"), node("Neg", "a", "b")], outputs=("a",)), "'b' is no"),
    "itself": (net([node("Add", "x y")]), "'y' is not a graph input"),
    "no name": (net([node("Neg")], inputs=("x", "")), "input of the graph has no name"),
    "no such input": (net([node("Neg", "z")]), r"node 'n' \(Neg\): input 'z' is not a graph input"),
    "no such output": (net([node("Neg", "x", "z")]), "output 'y': no node"),
    "two definitions": (net([node("Neg"), node("Abs")]), r"node 'n' \(Abs\).*defined twice"),
    "no such operator": (net([node("Magic")]), r"\(Magic\).*no such operator"),
    "no such domain": (net([node("Neg", domain="a.b")]), "imports no opset of the domain 'a.b'"),
    "opset of the future": (net([node("Neg")], opset=9999), "opset 9999 is unknown"),
    "opset 0": (net([node("Neg")], opset=0), "opset 0 is unknown"),
    "too many inputs": (net([node("Neg", "x x")]), "1 to 1 inputs"),
    "too few inputs": (net([node("Add")]), "2 to 2 inputs"),
    "no attribute": (net([node("Cast")]), "'to' is missing"),
    "unknown attribute": (net([node("Neg", alpha=1.0)]), "no attribute 'alpha'"),
    "another kind": (with_attribute("axis", AttributeProto.STRINGS), "'axis' must be"),
    "strings": (net([node("Cast", to=TensorProto.STRING)]), "strings cannot be represented"),
    "no element type": (net([node("Cast", to=99)]), "number 99"),
    "deep": (calls(60, "f60"), "nested more than"),
    "recursion": (calls(5, "f0"), "calls itself"),
    "less data": (wrong_data(raw_data=b"123"), "needs 16 bytes, it has 3"),
    "a negative size": (wrong_data(dims=[-4]), "shape is invalid"),
    "a huge size": (wrong_data(dims=[1 << 62, 1 << 62]), "shape is invalid"),
    "a large size": (wrong_data(dims=[1 << 40]), "bytes, it has 16"),
    "no type": (wrong_data(data_type=0), "UNDEFINED"),
    "another type": (wrong_data(data_type=77), "number 77"),
    "kernel of 0": (net([node("MaxPool", kernel_shape=[0, 0])]), "must be positive"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_when_loaded(what):
    model, text = REFUSED[what]
    with pytest.raises(plait_onnx.ModelError, match=text):
        plait_onnx.load(model.SerializeToString())


def test_branches_in_branches():
    module = plait_onnx.load(nested(25).SerializeToString())
    assert module(pc.ones(1), True).item() == 1
    assert module(pc.ones(1), False).item() == -1


def large(op, *arrays, inputs="x", **attributes):
    names = [f"i{k}" for k in range(len(arrays))]
    initializers = list(zip(names, map(np.asarray, arrays), strict=True))
    made = node(op, " ".join([*inputs.split(), *names]), **attributes)
    return net([made], initializers=initializers)


HUGE = np.array([1 << 20, 1 << 20])
LARGE = {
    "ConstantOfShape": large("ConstantOfShape", HUGE, inputs=""),
    "Expand": large("Expand", HUGE),
    "Tile": large("Tile", np.array([1 << 40])),
    "Range": large("Range", np.array(0), np.array(1 << 60), np.array(1), inputs=""),
    "Range of numbers": large("Range", F1[0], np.float32(1e30), np.float32(1e-30), inputs=""),
    "Pad": large("Pad", np.array([0, 1 << 50])),
    "Resize": large("Resize", F1[:0], np.array([1e8], np.float32)),
    "OneHot": large("OneHot", np.array(1 << 50), np.array([0.0, 1.0], np.float32)),
    "RandomNormal": large("RandomNormal", inputs="", shape=[1 << 30, 1 << 30]),
    "HannWindow": large("HannWindow", np.array(1 << 50), inputs=""),
    "Resize to nothing": large("Resize", F1[:0], F1[:0], np.array([-1])),
    "a negative shape": large("ConstantOfShape", np.array([-5, 3]), inputs=""),
    "Loop": parser.parse_model(
        HEADER
        + """ net (float[N] x) => (float y, float z) {
        n = Constant <value = int64 {4611686018427387904}> ()
        yes = Constant <value = bool {1}> ()
        y, z = Loop (n, yes, x) <
            body = b (int64 i, bool go, float[N] v) => (bool still, float[N] w, float[N] u) {
                still = Identity(go)
                w = Identity(v)
                u = Expand(v, size)
            }
        >
    }""".replace(
            "u = Expand(v, size)", "u = Concat <axis = 0> (v, v, v, v, v, v, v, v, v, v, v, v)"
        )
    ),
}


LARGE |= {
    "a place of OneHot": large(
        "OneHot", np.array(3), np.array([0.0, 1.0], np.float32), axis=-(1 << 31)
    ),
    "Col2Im": large("Col2Im", np.array([1 << 31, 1]), np.array([1 << 31, 1])),
    "LpPool": large("LpPool", kernel_shape=[1 << 40] * 2, pads=[1 << 40] * 4),
    "Conv": large("Conv", np.ones((1, 4, 1, 1), np.float32), pads=[1 << 20] * 4),
    "MaxUnpool": large("MaxUnpool", np.array([0]), kernel_shape=[1], strides=[1 << 50]),
    "LRN": large("LRN", size=1 << 40),
    "nothing, but wide": large("ConstantOfShape", np.array([0, 1 << 40]), inputs=""),
}
SHAPES = {"Loop": (5000,), "LpPool": (1, 1, 4, 4), "Conv": (1, 4, 4, 4), "LRN": (1, 4, 4)}


@pytest.mark.parametrize("what", LARGE)
def test_large_results_are_refused(what):
    with pytest.raises(plait_onnx.ModelError, match=r"^(the model: )?node "):
        plait_onnx.load(LARGE[what], limit=LIMIT)(pc.ones(*SHAPES.get(what, (4,))))


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 100, b"\xff" * 100, b"GIF89a", b'{"a": 1}', b"\x0a" * 1000]
)
def test_no_models(data, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    with pytest.raises(plait_onnx.ModelError, match=r"bad\.onnx"):
        plait_onnx.load(path)


# ---- mutants -------------------------------------------------------------------------------------


def seeds():
    rng = np.random.default_rng(0)

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    yield (
        net(
            [
                node("Conv", "x w b", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
                node("Relu", "c", "r"),
                node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
                node("Flatten", "p", "f"),
                node("Gemm", "f v", "g", transB=1),
                node("Softmax", "g", "y", axis=-1),
            ],
            initializers=[("w", floats(4, 3, 3, 3)), ("b", floats(4)), ("v", floats(5, 16))],
        ),
        (1, 3, 8, 8),
    )
    yield net(
        [
            node("Shape", "x", "s"),
            node("Slice", "s zero one", "n"),
            node("Concat", "n rest", "t", axis=0),
            node("Reshape", "x t", "r"),
            node("Transpose", "r", "u", perm=[1, 0]),
            node("Expand", "u wide", "e"),
            node("ReduceSum", "e one", "q", keepdims=0),
            node("Pad", "q pads", "y"),
        ],
        initializers=[
            ("zero", np.array([0])), ("one", np.array([1])), ("rest", np.array([-1])),
            ("wide", np.array([3, 1, 2])), ("pads", np.array([0, 1, 0, 1])),
        ],
    ), (2, 3, 4)  # fmt: skip
    yield net(
        [
            node("LSTM", "x w r b", "l h c", hidden_size=3),
            node("Squeeze", "l one", "q"),
            node("TopK", "q two", "v i", axis=2),
            node("Gather", "q i", "g", axis=0),
            node("Resize", "g - - sizes", "y", mode="linear"),
        ],
        initializers=[
            ("w", floats(1, 12, 4)), ("r", floats(1, 12, 3)), ("b", floats(1, 24)),
            ("one", np.array([1])), ("two", np.array([2])), ("sizes", np.array([5, 2, 3, 4, 3])),
        ],
    ), (5, 2, 4)  # fmt: skip
    loop = parser.parse_model(
        HEADER
        + """ net (float[N] x) => (float[N] y, float z) {
        n = Constant <value = int64 {3}> ()
        yes = Constant <value = bool {1}> ()
        y, z = Loop (n, yes, x) <
            body = b (int64 i, bool go, float[N] v) => (bool still, float[N] w, float[N] u) {
                still = Identity(go)
                w = Add(v, v)
                u = Neg(w)
            }
        >
    }"""
    )
    yield loop, (3,)


NUMBERS = [0, 1, -1, 2, 7, 1 << 31, -(1 << 31), (1 << 62), -(1 << 63), (1 << 63) - 1, 40000]


def flipped(data, rng):
    """Return the bytes with some of them changed, left out or repeated."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place] = rng.randrange(256)
        elif kind == 2:
            del data[place : place + rng.randrange(1, 8)]
        else:
            data[place:place] = data[place : place + rng.randrange(1, 8)]
        if not data:
            break
    return bytes(data) if rng.random() < 0.9 else bytes(data[: rng.randrange(len(data) + 1)])


def rewritten(model, rng):
    """Return the model with another name, number, operator, shape or order somewhere."""
    mutant = onnx.ModelProto()
    mutant.CopyFrom(model)
    graph = mutant.graph
    changed = []  # tensors whose data do not fit any more
    for _ in range(rng.choice([1, 1, 2, 3])):
        target = rng.choice(graph.node)
        kind = rng.randrange(8)
        names = [name for n in graph.node for name in (*n.input, *n.output)] + ["", "x"]
        if kind == 0 and target.input:
            target.input[rng.randrange(len(target.input))] = rng.choice(names)
        elif kind == 1 and target.output:
            target.output[rng.randrange(len(target.output))] = rng.choice(names)
        elif kind == 2 and target.attribute:
            attribute = rng.choice(target.attribute)
            attribute.i = rng.choice(NUMBERS)
            attribute.f = rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
            if attribute.ints:
                attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
        elif kind == 3 and graph.initializer:
            tensor = rng.choice(graph.initializer)
            if tensor.data_type != TensorProto.INT64 or tensor in changed:
                continue
            array = numpy_helper.to_array(tensor).copy()
            if array.size:
                array.reshape(-1)[rng.randrange(array.size)] = rng.choice(NUMBERS)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        elif kind == 4 and graph.initializer:
            tensor = rng.choice(graph.initializer)
            changed.append(tensor)
            if tensor.dims:
                tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)
            tensor.data_type = rng.choice([tensor.data_type, rng.randrange(30)])
        elif kind == 5:
            target.op_type = rng.choice([n.op_type for n in graph.node] + OPERATORS)
        elif kind == 6:
            i, j = rng.randrange(len(graph.node)), rng.randrange(len(graph.node))
            one = onnx.NodeProto()
            one.CopyFrom(graph.node[i])
            graph.node[i].CopyFrom(graph.node[j])
            graph.node[j].CopyFrom(one)
        else:
            mutant.opset_import[0].version = rng.randrange(1, 29)
    return mutant.SerializeToString()


OPERATORS = sorted(s.name for s in onnx.defs.get_all_schemas() if s.domain == "")


class TooLong(BaseException):
    """A mutant runs on; that it can be interrupted is enough."""


def attempt(data, inputs):
    """Load a file, and run it; return whether it did."""
    try:
        module = plait_onnx.load(data, limit=LIMIT)
        with plait_autograd.no_grad():
            module(*inputs)
    except (plait_onnx.ModelError, MemoryError):
        return False
    except TooLong:
        return False
    return True


@contextlib.contextmanager
def watched(most_kib=400_000):
    """Run mutants: memory stays within some results; the function bounds the time of one."""

    def stop(*_):
        raise TooLong

    def limited(data, inputs):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            try:
                return attempt(data, inputs)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except TooLong:  # it came when the attempt was over
            return False

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGALRM, stop)
    try:
        yield limited
    finally:
        signal.signal(signal.SIGALRM, previous)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < most_kib


def check_mutants(kind, count):
    """Each mutant of a model runs, or gives the error of this package."""
    ran = failed = 0
    with watched() as attempt_one:
        for number, (model, shape) in enumerate(seeds()):
            rng = random.Random(f"{kind} {number}")
            data = model.SerializeToString()
            inputs = [pc.ones(*shape)]
            assert attempt(data, inputs)
            for _ in range(count):
                mutant = flipped(data, rng) if kind == "bytes" else rewritten(model, rng)
                done = attempt_one(mutant, inputs)
                ran, failed = ran + done, failed + (not done)
    assert ran > 10
    assert failed > 100


@pytest.mark.parametrize("kind", ["bytes", "messages"])
def test_mutants(kind):
    check_mutants(kind, MUTANTS)


@pytest.mark.slow
@pytest.mark.timeout(3600 if "PLAIT_ONNX_FUZZ" in os.environ else 900)
@pytest.mark.parametrize("kind", ["bytes", "messages"])
def test_many_mutants(kind):
    check_mutants(kind, SLOW_MUTANTS)


# ---- mutants of nodes ----------------------------------------------------------------------------


def other_value(value, rng):
    """Return an input with other integers, or another shape or dtype."""
    if isinstance(value, list):
        return [other_value(part, rng) for part in value][: rng.randrange(len(value) + 1)]
    tensor = tensor_of(value)
    if tensor is None or not tensor.numel():
        return tensor
    kind = rng.randrange(6)
    flat = tensor.reshape(-1)
    if kind == 0 or (kind < 4 and not tensor.is_floating_point() and tensor.dtype != pc.bool):
        array = flat.to(pc.int64).clone()
        array[rng.randrange(flat.numel())] = rng.choice(NUMBERS)
        return array.to(tensor.dtype).reshape(tensor.shape)
    if kind == 1:
        return flat[: rng.randrange(flat.numel())]
    if kind == 2:
        return tensor.unsqueeze(rng.randrange(tensor.ndim + 1))
    if kind == 3 and tensor.ndim:
        return tensor.narrow(rng.randrange(tensor.ndim), 0, 0)
    if kind == 4:
        return tensor.to(rng.choice([pc.float32, pc.int64, pc.bool, pc.float64, pc.uint8]))
    return tensor[0] if tensor.ndim else tensor.reshape(1)


def check_mutants_of_nodes(cases, count):
    """Each operator, with attributes and inputs that do not fit, runs or gives a clear error."""
    ran = 0
    with watched() as attempt_one:
        for case in cases:
            types = elements_in(case.model)
            if not is_of_default_domain(case.model) or not types <= set(_dtypes.DTYPES):
                continue
            for number in range(count):
                rng = random.Random(f"{case.name} {number}")
                model = onnx.ModelProto()
                model.CopyFrom(case.model)
                attributes = [a for node in model.graph.node for a in node.attribute]
                if attributes and rng.random() < 0.5:
                    attribute = rng.choice(attributes)
                    if attribute.type == AttributeProto.INT:
                        attribute.i = rng.choice(NUMBERS)
                    elif attribute.type == AttributeProto.FLOAT:
                        attribute.f = rng.choice([-1.0, 1e30, float("nan"), float("inf")])
                    elif attribute.ints:
                        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
                inputs = [tensor_of(value) for value in case.data_sets[0][0]]
                if inputs and rng.random() < 0.8:
                    place = rng.randrange(len(inputs))
                    inputs[place] = other_value(case.data_sets[0][0][place], rng)
                attempt_one(model, inputs)
                ran += 1
    return ran


def test_mutants_of_nodes():
    assert check_mutants_of_nodes(node_cases(SLOW)[::16], 1) > 75


@pytest.mark.slow
@pytest.mark.timeout(3600 if "PLAIT_ONNX_FUZZ" in os.environ else 900)
def test_many_mutants_of_nodes():
    assert check_mutants_of_nodes(node_cases(), SLOW_MUTANTS // 400) > 1500

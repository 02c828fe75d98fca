import dataclasses
from collections import Counter, OrderedDict, defaultdict, namedtuple
from types import MappingProxyType

import numpy as np
import pytest
from array_library import StandardTensor, Tensor

import plait_data
from plait_data import collate, default_collate, default_convert

Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass(frozen=True)
class Sample:
    image: object
    label: int

    def __post_init__(self):
        if not isinstance(self.label, int):
            raise TypeError("a sample has one label")


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64", "bool", "complex64", "U3"])
def test_arrays_stack(shape, dtype):
    samples = [np.full(shape, i).astype(dtype) for i in (0, 1, 2)]
    batch = default_collate(samples)
    assert type(batch) is np.ndarray
    assert batch.dtype == dtype
    np.testing.assert_array_equal(batch, np.stack(samples))


def test_strided_arrays_stack():
    x = np.arange(24).reshape(2, 3, 4)
    samples = [x[0].T, x[1].T[::-1]]
    np.testing.assert_array_equal(default_collate(samples), np.stack(samples))


def test_a_batch_is_a_copy():
    x = np.zeros(3)
    default_collate([x])[:] = 1
    assert not x.any()


@pytest.mark.parametrize("kind", [Tensor, StandardTensor])
def test_tensors_of_another_library_stay_in_it(kind):
    batch = default_collate([kind([1, 2]), kind([3, 4])])
    assert type(batch) is kind
    assert batch.values.tolist() == [[1, 2], [3, 4]]


def test_a_library_without_stack():
    class Lonely:
        shape = (1,)
        __module__ = "nowhere"

        def __dlpack__(self):
            raise AssertionError

    with pytest.raises(TypeError, match=r"must offer `stack`; nowhere.*Lonely has none"):
        default_collate([Lonely()])


@pytest.mark.parametrize(
    ("samples", "dtype"),
    [
        ([1, 2], "int64"),
        ([1.0, 2], "float64"),
        ([1.0, True, np.float32(0.5)], "float64"),
        ([1, 2.5], "float64"),
        ([1, True, np.uint64(3)], "int64"),
        ([-(2**63), 2**63 - 1], "int64"),
        ([True, 2], "int64"),
        ([True, False], "bool"),
        ([1j, 2], "complex128"),
        ([np.float32(1), np.float32(2)], "float32"),
        ([np.uint8(1)], "uint8"),
        ([np.datetime64("2020-01-01")], "datetime64[D]"),
    ],
)
def test_numbers(samples, dtype):
    batch = default_collate(samples)
    assert batch.dtype == dtype
    assert batch.tolist() == [np.asarray(sample).astype(dtype).tolist() for sample in samples]
    assert batch.flags.owndata and batch.flags.writeable


def test_strings_stay_lists():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_sequences_become_lists():
    for samples in ([(1, "a"), (2, "b")], [[1, "a"], [2, "b"]]):
        numbers, names = default_collate(samples)
        assert numbers.tolist() == [1, 2]
        assert names == ["a", "b"]


def test_namedtuples_keep_their_type():
    batch = default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(batch, Point)
    assert batch.x.tolist() == [1, 3]
    assert batch.y.dtype == "float64"


def test_dataclasses_keep_their_type():
    batch = default_collate([Sample(np.zeros(2), 1), Sample(np.ones(2), 2)])
    assert isinstance(batch, Sample)
    assert batch.image.shape == (2, 2)
    assert batch.label.tolist() == [1, 2]


@pytest.mark.parametrize(
    "make", [dict, OrderedDict, lambda d: defaultdict(list, d), MappingProxyType]
)
def test_mappings_keep_their_type(make):
    samples = [make({"x": i, "name": str(i)}) for i in range(3)]
    batch = default_collate(samples)
    assert type(batch) is type(samples[0])
    assert batch["x"].tolist() == [0, 1, 2]
    assert batch["name"] == ["0", "1", "2"]
    assert samples[0]["x"] == 0
    if isinstance(batch, defaultdict):
        assert batch["new"] == []


def test_nested():
    batch = default_collate([{"a": [Point(1, (2, "x"))]}, {"a": [Point(3, (4, "y"))]}])
    assert batch["a"][0].y[0].tolist() == [2, 4]
    assert batch["a"][0].y[1] == ["x", "y"]


@pytest.mark.parametrize(
    ("samples", "error", "text"),
    [
        ([], ValueError, "`batch` must hold at least one sample"),
        ([None, None], TypeError, "sample is a builtins.NoneType"),
        ([{"a": (1, None)}], TypeError, r"sample\['a'\]\[1\] is a builtins.NoneType"),
        ([np.zeros(2), np.zeros(3)], ValueError, r"one shape .* got \(2,\), \(3,\)"),
        ([np.zeros((2, 3)), np.zeros((3, 2))], ValueError, r"got \(2, 3\), \(3, 2\)"),
        ([Point(1, np.zeros(2)), Point(1, np.zeros(1))], ValueError, r"sample\.y must have one"),
        ([np.zeros(2), [0, 0]], TypeError, "sample must be an array in each .* list, ndarray"),
        ([(1, 2), (1,)], ValueError, "sample must have one length .* got 1, 2"),
        ([(1, 2), 3], ValueError, "sample must have one length .* got 2, int"),
        ([{"a": 1}, {"b": 1}], ValueError, r"same keys .* got \['a'\] and \['b'\]"),
        ([{"a": 1, "b": 2}, {"a": 1}], ValueError, r"got \['a', 'b'\] and \['a'\]"),
        ([Counter("a"), Counter("b")], ValueError, r"got \['a'\] and \['b'\]"),
        ([{"a": 1}, Counter("b")], ValueError, r"got \['a'\] and \['b'\]"),
        ([{"a": 1}, 3], ValueError, r"same keys .* got \['a'\] and int"),
        ([1, "a"], TypeError, "sample must be a number"),
        ([1, None], TypeError, "sample must be a number"),
        ([1.0, "a"], TypeError, "sample must be a number"),
        ([1, [2]], TypeError, "sample must be a number"),
        ([np.float32(1), None], TypeError, "sample must be a number .* NoneType, float32"),
        ([1.0, None], TypeError, "sample must be a number .* got NoneType, float"),
        ([1.0, "2.5"], TypeError, "sample must be a number .* got float, str"),
        ([1.0, 10**400], TypeError, "sample must be a number that fits 64 bits"),
        ([2**70, 1], TypeError, "sample must be a number that fits 64 bits"),
        ([2**63], TypeError, "sample must be a number that fits 64 bits"),
        ([1, 2**63], TypeError, "sample must be a number that fits 64 bits"),
        ([1, np.uint64(2**63)], TypeError, "number that fits 64 bits .* got int, uint64"),
        ([np.uint64(2**63 + 1), 1], TypeError, "number that fits 64 bits .* got int, uint64"),
    ],
)
def test_errors(samples, error, text):
    with pytest.raises(error, match=f"default_collate: .*{text}"):
        default_collate(samples)


def test_the_converter_gets_the_result_of_collation():
    plait_data.set_batch_converter(Tensor)
    batch = default_collate([(np.zeros(2), 1, "a", np.array("b"), Tensor([1]))] * 3)
    image, label, name, text, tensor = batch
    assert isinstance(image, Tensor)
    assert image.shape == (3, 2)
    assert isinstance(label, Tensor)
    assert label.values.dtype == "int64"
    assert name == ["a"] * 3
    assert isinstance(text, np.ndarray)  # no library has tensors of text
    assert isinstance(tensor.values, np.ndarray)
    assert tensor.shape == (3, 1)


def test_convert_argument_goes_before_the_registered_one():
    plait_data.set_batch_converter(Tensor)
    assert isinstance(default_collate([1, 2], convert=np.asarray), np.ndarray)
    assert plait_data.set_batch_converter(None) is Tensor
    assert isinstance(default_collate([1, 2]), np.ndarray)
    with pytest.raises(TypeError, match="`converter` must be a function"):
        plait_data.set_batch_converter("torch")


def test_converter_shares_memory():
    calls = []
    batch = default_collate([np.zeros(2)], convert=lambda a: calls.append(a) or a)
    assert batch is calls[0]


def test_registered_types(monkeypatch):
    monkeypatch.setattr(collate, "_registered", {})
    collate.register(set, lambda samples: set.union(*samples))

    class MoreSpecific(set):
        pass

    assert default_collate([({1},), ({2},)]) == [{1, 2}]
    assert default_collate([MoreSpecific({1}), MoreSpecific({3})]) == {1, 3}
    with pytest.raises(TypeError, match="`kind` must be a type"):
        collate.register("set", list)


def test_default_convert_keeps_everything_but_arrays():
    x = np.arange(3)
    data = {"x": x, "p": Point(x, 2), "s": Sample(x, 1), "l": (x, "text", b"b", None), "n": 1.5}
    assert default_convert(data) is data
    out = default_convert(data, convert=Tensor)
    assert out["x"].values is x
    assert out["p"].x.values is x
    assert out["p"].y == 2
    assert out["s"].image.values is x
    assert out["s"].label == 1
    assert isinstance(out["l"], list)
    assert out["l"][1:] == ["text", b"b", None]
    assert out["n"] == 1.5
    assert data["x"] is x
    assert data["s"].image is x
    assert default_convert(np.float32(2), convert=Tensor).shape == ()

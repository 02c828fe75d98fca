"""dtype, device and Generator objects."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import plait_abi
from plait_abi import binding

NOT_OF_NUMPY = ("bfloat16", "float8")
NUMPY_NAMES = [d.name for d in binding.dtypes if not d.name.startswith(NOT_OF_NUMPY)]


@pytest.mark.parametrize("name", NUMPY_NAMES)
def test_dtype_and_numpy_convert_both_ways(name: str) -> None:
    ours, theirs = plait_abi.dtype(name), np.dtype(name)
    assert np.dtype(ours) == theirs
    assert ours.itemsize == theirs.itemsize
    assert ours.is_floating_point == (theirs.kind == "f")
    assert ours.is_complex == (theirs.kind == "c")
    assert plait_abi.dtype(theirs) is ours
    assert plait_abi.dtype(theirs.type) is ours


def test_a_dtype_is_one_object() -> None:
    for kind in binding.dtypes:
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert plait_abi.dtype(kind.name) is kind
    assert plait_abi.dtype("float32") != plait_abi.dtype("float64")
    assert repr(plait_abi.dtype("float32")) == "plait.float32"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (complex, "complex128"),
        ("long", "int64"),
    ],
)
def test_dtype_accepts_python_types_and_old_names(value: object, name: str) -> None:
    assert plait_abi.dtype(value).name == name


@pytest.mark.parametrize("value", ["float31", 3, None, str, np.dtype("datetime64[s]")])
def test_dtype_refuses_the_rest(value: object) -> None:
    with pytest.raises(plait_abi.DTypeError, match="the name of a dtype is required"):
        plait_abi.dtype(value)


def test_dtype_refuses_foreign_byte_order() -> None:
    with pytest.raises(plait_abi.DTypeError, match="byte order"):
        plait_abi.dtype(np.dtype(">f4"))


def test_bfloat16_has_no_numpy_dtype_without_ml_dtypes() -> None:
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(plait_abi.DTypeError, match="ml_dtypes"):
            _ = plait_abi.dtype("bfloat16").dtype
    else:
        assert plait_abi.dtype("bfloat16").dtype == np.dtype(ml_dtypes.bfloat16)


def test_device_text_equality_and_hash() -> None:
    cpu, second = plait_abi.device("cpu"), plait_abi.device("cuda:1")
    assert (str(cpu), repr(cpu), cpu.index) == ("cpu", "device(type='cpu')", None)
    assert (str(second), second.type, second.index) == ("cuda:1", "cuda", 1)
    assert second == plait_abi.device("cuda", 1) != plait_abi.device("cuda")
    assert {cpu, plait_abi.device(cpu)} == {cpu}
    assert pickle.loads(pickle.dumps(second)) == second
    assert cpu != "cpu"


@pytest.mark.parametrize("type", ["cpu", "meta"])
def test_a_number_of_a_device_that_has_none_is_shown(type: str) -> None:
    plain, first, second = (plait_abi.device(type + text) for text in ("", ":0", ":64"))
    assert (plain.index, first.index, second.index) == (None, 0, 64)
    assert (str(second), repr(second)) == (f"{type}:64", f"device(type='{type}', index=64)")
    assert second == plait_abi.device(second) == plait_abi.device(type, 64) != first != plain
    assert len({plain, first, second, plait_abi.device(type, 64)}) == 3
    assert pickle.loads(pickle.dumps(second)) == second
    assert plain.__dlpack_device__() == second.__dlpack_device__()


@pytest.mark.parametrize("name", ["mps", "xla", "xpu", "hpu", "mtia", "ipu", "privateuseone"])
def test_devices_without_a_number_are_names(name: str) -> None:
    first, second = plait_abi.device(name), plait_abi.device(f"{name}:1")
    assert (str(first), first.type, second.index) == (f"{name}:0", name, 1)
    assert first == plait_abi.device(name, 0) != second == plait_abi.device(second)
    assert {first, second, plait_abi.device("cuda")} == {second, plait_abi.device("cuda"), first}
    assert pickle.loads(pickle.dumps(second)) == second
    with pytest.raises(NotImplementedError, match=f"for the device {name}:1 is"), second:
        raise AssertionError
    with pytest.raises(NotImplementedError, match=r"^set_default_device: no component"):
        plait_abi.set_default_device(first)
    assert plait_abi.get_default_device() == plait_abi.device("cpu")


@pytest.mark.parametrize(
    "text", ["", "gpu", "mps:", "xpu:x", "cuda:", "cuda:x", "cuda:-1", "cpu:1:2", "cuda:99999"]
)
def test_device_refuses_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match="device: "):
        plait_abi.device(text)


def test_device_refuses_other_types() -> None:
    with pytest.raises(TypeError, match="a string is required, got float"):
        plait_abi.device(3.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no accelerator with the number 3"):
        plait_abi.device(3)


@pytest.mark.parametrize("seed", [0, 5, 2**64 - 1])
def test_generator_states_are_sent_and_returned(seed: int) -> None:
    generator = plait_abi.Generator().manual_seed(seed)
    assert generator.initial_seed() == seed
    copy = pickle.loads(pickle.dumps(generator))
    assert copy.get_state() == generator.get_state() == (seed, 0)
    copy.set_state((3, 9))
    assert copy.get_state() == (3, 9)


def test_generator_seeds() -> None:
    generator = plait_abi.Generator()
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed()
    with pytest.raises(ValueError, match=r"manual_seed: `seed` must be in"):
        generator.manual_seed(2**64)
    with pytest.raises(TypeError, match=r"manual_seed: `seed` must be an int, got str"):
        generator.manual_seed("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="get_state"):
        generator.set_state("x")  # type: ignore[arg-type]


def test_exceptions_are_caught_as_numpys_and_pytorchs() -> None:
    assert issubclass(plait_abi.ShapeError, (ValueError, RuntimeError))
    assert issubclass(plait_abi.ShapeError, RuntimeError)
    assert issubclass(plait_abi.DTypeError, TypeError)
    assert issubclass(plait_abi.DTypeError, RuntimeError)
    assert issubclass(plait_abi.OutOfMemoryError, MemoryError)
    assert issubclass(plait_abi.OutOfMemoryError, RuntimeError)
    error = plait_abi.ShapeError("text")
    assert pickle.loads(pickle.dumps(error)).args == ("text",)

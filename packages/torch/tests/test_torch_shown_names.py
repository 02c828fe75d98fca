"""`plait_torch._shown_names`: names of classes and functions, and pickles, are PyTorch's."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import pathlib
import pickle
import subprocess
import sys
import typing
import warnings
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest

import plait
import plait_torch
from plait_abi import Operator
from plait_abi.binding import Function
from plait_abi.origins import module_of

_CLASS = "_VariableFunctionsClass."


def _recorded() -> Iterator[tuple[str, str, str, str]]:
    """Yield module, name, and the module and qualified name that PyTorch's object says."""
    text = pathlib.Path(__file__).with_name("torch_homes.json").read_text(encoding="utf-8")
    for module, homes in json.loads(text).items():
        for home, entries in homes.items():
            for entry in entries.split():
                name, _, qualname = entry.partition("=")
                qualname = qualname.replace("*", _CLASS + name) if qualname else name
                yield module, name, module if home == "." else home, qualname


def _thing(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except (ImportError, NotImplementedError):  # of a package that is not installed
        return None


def _accepted(value: Any, home: str, qualname: str) -> set[tuple[str, str]]:
    if not isinstance(value, Operator):
        qualname = qualname.removeprefix(_CLASS)
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return {(home, value.__qualname__)}
    return {(home, qualname)}


# of functions for which PyTorch has many names, and of objects that only raise errors
_SHARED = ("plait_torch._named_only", "plait_torch._refusal")


def test_every_class_and_function_says_what_pytorchs_says(torch: Any) -> None:
    """An object that stands for several of PyTorch's says what one of them says."""
    things: dict[int, tuple[Any, set[tuple[str, str]], set[str]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, name, home, qualname in _recorded():
            value = _thing(module, name)
            if not isinstance(value, (type, FunctionType, Function, Operator)):
                continue
            own = module_of(value)
            if own.startswith("plait") and own not in _SHARED:
                _, accepted, names = things.setdefault(id(value), (value, set(), set()))
                names.add(name)
                # the second where PyTorch's name means another object of plait's
                accepted |= {*_accepted(value, home, qualname), (module, name)}
    assert len(things) > 1500
    wrong = [
        f"{value.__module__}.{value.__qualname__}, not {sorted(accepted)}"
        for value, accepted, names in things.values()
        if (value.__module__, value.__qualname__) not in accepted
        # one function that stands for several has a name of its own
        and (len(names) == 1 or value.__name__ in names)
    ]
    assert not wrong, "call tools/shown_names.py:\n" + "\n".join(wrong)


def test_texts_of_types(torch: Any) -> None:
    x = torch.zeros(2)
    assert repr(type(x)) == "<class 'torch.Tensor'>" and torch.typename(x) == "torch.FloatTensor"
    assert type(x).__module__.split(".")[0] == "torch"
    assert torch.typename(torch.nn.Linear(1, 1)) == "torch.nn.modules.linear.Linear"
    assert type(torch.max(x, 0)).__module__ == "torch.return_types"
    assert torch.add.__qualname__ == "_VariableFunctionsClass.add" and torch.add.__name__ == "add"
    assert torch.nn.functional.linear.__module__ == "torch._C._nn"


def test_names_are_plaits_again_without_torch() -> None:
    things = (plait.Tensor, plait.nn.Linear, plait.einsum, plait.add, plait.dtype)
    before = [(each.__module__, each.__qualname__) for each in things]
    result = plait.zeros(1).max(0)
    text, annotations = repr(type(result)), plait.nn.Module.__annotations__
    with plait_torch.installed():
        assert all(each.__module__.startswith("torch") for each in things)
        assert {module_of(each).partition("_")[0] for each in things} == {"plait"}
    assert [(each.__module__, each.__qualname__) for each in things] == before
    assert not any(module.startswith("torch") for module, _ in before)
    assert repr(type(result)) == text and "torch" not in text
    assert plait.nn.Module.__annotations__ is annotations


def test_modules_that_are_imported_later_get_names() -> None:
    program = (
        "import sys, plait_torch\n"
        "plait_torch.install()\n"
        "import torch\n"
        "assert 'plait_nn.distributions.normal' not in sys.modules\n"
        "import plait.distributions\n"
        "kind = sys.modules['plait_nn.distributions.normal'].Normal\n"
        "print(kind, torch.distributions.Normal is kind)\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert shown.stdout == "<class 'torch.distributions.normal.Normal'> True\n", shown.stderr


def test_inspect_and_annotations(torch: Any) -> None:
    layer, attention = torch.nn.Linear, torch.nn.MultiheadAttention
    assert inspect.getmodule(layer) is sys.modules["torch.nn.modules.linear"]
    assert inspect.getsource(layer).startswith("class Linear(")
    assert inspect.getsource(attention).startswith("class MultiheadAttention(")  # a second file
    assert inspect.getsource(torch.einsum).startswith("def einsum(")

    class Model(torch.nn.Module):
        width: int

    hints = typing.get_type_hints(Model)
    assert hints["width"] is int and hints["training"] is bool


def test_modules_of_names_that_pytorch_defines_elsewhere(torch: Any) -> None:
    from torch.nn.parallel.data_parallel import DataParallel
    from torch.optim.sparse_adam import SparseAdam

    assert DataParallel is torch.nn.DataParallel and SparseAdam is torch.optim.SparseAdam
    assert inspect.isfunction(torch.nn.parallel.data_parallel)  # and not the module
    with pytest.raises(ImportError):
        importlib.import_module("torch.optim.sparse_adamw")


def _round_trip(value: Any, protocol: int = 4) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def test_pickles_name_what_pytorch_has(torch: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.tag = "a"
    things = [
        x, x.t(), parameter, torch.float32, torch.strided, torch.channels_last, torch.Size([2]),
        torch.device("cpu"), torch.add, torch.nn.functional.linear, torch.linalg.solve,
        torch.einsum, torch.nn.functional.conv2d, torch.Tensor, torch.nn.Linear,
        torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), x.max(0), x.storage(),
        torch.empty(2, device="meta"), torch.nn.LSTM(2, 3), torch.ones(2, dtype=torch.bfloat16),
    ]  # fmt: skip
    for thing in things:
        for protocol in (2, 5):
            text = pickle.dumps(thing, protocol)
            assert b"plait" not in text, thing
            again = pickle.loads(text)
            assert type(again) is type(thing)
    a, b = _round_trip((x, x[1:]))
    b.fill_(7)
    assert a[1].tolist() == [7.0, 7.0, 7.0]  # one storage
    again = _round_trip(parameter)
    assert again.tag == "a" and isinstance(again, torch.nn.Parameter) and again.requires_grad
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(2)
    optimizer.step()
    text = pickle.dumps(optimizer)
    assert b"plait" not in text
    again = pickle.loads(text)
    assert again.state[again.param_groups[0]["params"][0]]["step"] == 1
    again.step()


def test_pickles_of_plaits_own_form_stay_readable() -> None:
    parameter = plait.nn.Parameter(plait.ones(2))
    text = pickle.dumps([parameter, plait.float32, plait.nn.Linear])
    assert b"torch" not in text
    with plait_torch.installed():
        assert pickle.loads(text)[1:] == [plait.float32, plait.nn.Linear]


def test_files_of_modules_are_read_by_their_names(torch: Any, tmp_path: pathlib.Path) -> None:
    """Also by a process where `torch` does not mean plait: no module of torch is imported."""
    path = tmp_path / "model.pt"
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.LSTM(2, 2)), path)
    with torch.serialization.safe_globals([torch.nn.Sequential, torch.nn.Linear, torch.nn.LSTM]):
        assert type(torch.load(path)[0]) is torch.nn.Linear
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules"):
        torch.load(path)
    program = (
        f"import sys, plait; model = plait.load({str(path)!r}, weights_only=False)\n"
        "print(type(model[0]) is plait.nn.Linear, 'torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert shown.stdout == "True False\n", shown.stderr


def test_sizes_of_storages_count_their_bytes(torch: Any) -> None:
    for make in (lambda n: torch.ones(n).untyped_storage(), lambda n: torch.ones(n).storage()):
        assert sys.getsizeof(make(100)) - sys.getsizeof(make(0)) == 400

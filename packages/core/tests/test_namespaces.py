"""The modules that operators make by their prefix."""

from __future__ import annotations

import importlib
import pickle

import pytest

import plait_abi
import plait_core as pc
from plait_ops import specs
from plait_ops.spec import NAMESPACES


@pytest.mark.parametrize("space", NAMESPACES)
def test_every_operator_of_the_prefix_is_there(space: str) -> None:
    module = importlib.import_module(f"plait_core.{space}")
    assert module is getattr(pc, space)
    for spec in specs.all():
        base, _, short = spec.schema.base.partition("_")
        if base != space or not short:
            continue
        assert "method" not in spec.variants, f"{spec.name} is a method"
        assert spec.schema.base not in vars(pc)
        if spec.internal:
            assert short not in module.__all__
        else:
            assert short in module.__all__
            result = getattr(module, short)
            assert isinstance(result, plait_abi.Operator)
            assert result.__name__ == spec.schema.base
            assert pickle.loads(pickle.dumps(result)).__name__ == result.__name__


def test_no_operator_with_a_prefix_is_a_method() -> None:
    assert not [
        name for name in vars(pc.Tensor) if name.startswith(("linalg_", "fft_", "special_"))
    ]


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match=r"'plait_core\.linalg' has no attribute 'nothing'"):
        _ = pc.linalg.nothing


def test_errors_of_linear_algebra_are_a_class() -> None:
    assert issubclass(pc.linalg.LinAlgError, pc.PlaitError)
    assert pc.linalg.LinAlgError is not pc.PlaitError
    with pytest.raises(pc.linalg.LinAlgError, match="singular"):
        pc.linalg.inv(pc.zeros(2, 2))


def test_functions_do_not_bind_to_instances() -> None:
    class Layer:
        function = pc.exp
        method = pc.Tensor.exp

    x = pc.tensor([0.0, 1.0])
    assert Layer().function(x).tolist() == pc.exp(x).tolist() == x.exp().tolist()
    assert isinstance(Layer.function, plait_abi.Operator)
    assert isinstance(Layer.method, plait_abi.OperatorMethod)
    with pytest.raises(TypeError, match="`self` must be a Tensor, got Layer"):
        Layer().method()


def test_function_and_method_give_one_class_of_results() -> None:
    x = pc.tensor([[2.0, 1.0], [1.0, 3.0]])
    assert type(pc.max(x, 0)) is type(x.max(0)) is not tuple
    assert type(x.sort()) is type(pc.sort(x)) is not tuple


def test_methods_pickle() -> None:
    for method in (pc.Tensor.exp, pc.Tensor.add_):
        again = pickle.loads(pickle.dumps(method))
        assert type(again) is plait_abi.OperatorMethod and again.__name__ == method.__name__

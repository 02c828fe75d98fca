import copy
import gc
import pickle

import pytest

import plait_core as pc
import plait_nn as nn


def test_a_parameter_shares_the_memory_of_its_data():
    data = pc.ones(2)
    parameter = nn.Parameter(data)
    data.fill_(3.0)
    assert parameter.tolist() == [3.0, 3.0]
    assert parameter.requires_grad and not data.requires_grad
    assert parameter.is_leaf


def test_it_has_no_history():
    source = pc.ones(2).requires_grad_()
    parameter = nn.Parameter(source * 2)
    assert parameter.is_leaf and parameter.grad_fn is None


def test_types():
    parameter = nn.Parameter(pc.ones(2))
    assert isinstance(parameter, pc.Tensor) and type(parameter) is nn.Parameter
    assert type(parameter * 2) is pc.Tensor
    assert type(parameter.detach()) is pc.Tensor
    with pytest.raises(TypeError, match="Parameter: `data` must be a Tensor; got list"):
        nn.Parameter([1.0])


def test_without_gradient_and_without_data():
    assert not nn.Parameter(pc.ones(2), requires_grad=False).requires_grad
    assert not nn.Parameter(pc.arange(2), requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)


def test_integers_cannot_require_grad():
    with pytest.raises(RuntimeError, match=r"(?i)float"):
        nn.Parameter(pc.arange(2))


def test_identity_survives():
    layer = nn.Linear(2, 2)
    number = id(layer.weight)
    gc.collect()
    assert id(layer.weight) == number
    assert next(layer.parameters()) is layer.weight
    layer.weight.tag = "mine"
    assert layer.weight.tag == "mine"


@pytest.mark.parametrize("trainable", [True, False])
def test_deepcopy_and_pickle(trainable):
    parameter = nn.Parameter(pc.tensor([1.0, 2.0]), requires_grad=trainable)
    for twin in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(twin) is nn.Parameter
        assert twin.requires_grad is trainable
        twin.detach().fill_(9.0)
        assert parameter.tolist() == [1.0, 2.0]
    first, second = copy.deepcopy([parameter, parameter])
    assert first is second


def test_repr():
    text = repr(nn.Parameter(pc.ones(2)))
    assert text.startswith("Parameter containing:\ntensor([1., 1.]")


def test_a_subclass_keeps_its_class():
    class Special(nn.Parameter):
        pass

    layer = nn.Linear(1, 1)
    layer.weight = Special(pc.ones(1, 1))
    assert type(copy.deepcopy(layer).weight) is Special


def test_data_may_be_replaced():
    parameter = nn.Parameter(pc.ones(2))
    parameter.data = pc.zeros(3)
    assert parameter.tolist() == [0.0] * 3
    assert type(parameter) is nn.Parameter and parameter.requires_grad


def test_what_waits_for_its_shape_can_be_pickled_and_copied():
    layer = nn.LazyLinear(3, dtype=pc.float64)
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        assert isinstance(other.weight, nn.UninitializedParameter)
        assert other(pc.ones(2, 5, dtype=pc.float64)).shape == (2, 3)
        assert type(other.weight) is nn.Parameter
    buffer = nn.UninitializedBuffer(dtype=pc.int64, persistent=False)
    for other in (pickle.loads(pickle.dumps(buffer)), copy.deepcopy(buffer)):
        assert isinstance(other, nn.UninitializedBuffer)
        other.materialize((2, 3))
        assert (other.dtype, other.persistent, tuple(other.shape)) == (pc.int64, False, (2, 3))

from collections import OrderedDict

import pytest

import plait_core as pc
import plait_nn as nn


def layers(count):
    return [nn.Linear(2, 2) for _ in range(count)]


def test_sequential_chains():
    a, b = layers(2)
    net = nn.Sequential(a, nn.ReLU(), b)
    x = pc.randn(3, 2)
    assert net(x).tolist() == b(pc.relu(a(x))).tolist()
    assert nn.Sequential()(x) is x
    assert len(net) == 3 and list(net) == [a, net[1], b]


def test_sequential_with_names():
    net = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
    assert [n for n, _ in net.named_children()] == ["first", "second"]
    assert net.first is net[0]
    assert isinstance(nn.Sequential({"a": nn.ReLU()}).a, nn.ReLU)
    del net[0]
    assert [n for n, _ in net.named_children()] == ["second"]


def test_sequential_indexing():
    a, b, c = layers(3)
    net = nn.Sequential(a, b, c)
    assert net[-1] is c
    assert list(net[1:]) == [b, c] and type(net[1:]) is nn.Sequential
    net[1] = nn.Identity()
    assert isinstance(net[1], nn.Identity)
    del net[1]
    assert list(net) == [a, c]
    assert [n for n, _ in net.named_children()] == ["0", "1"]
    del net[:1]
    assert list(net) == [c]
    with pytest.raises(IndexError, match=r"Sequential: index must be in \[-1, 0\]; got 3"):
        net[3]
    with pytest.raises(TypeError):
        net["0"]


def test_sequential_grows():
    a, b, c, d = layers(4)
    net = nn.Sequential(a).append(b).extend([d])
    assert net.insert(2, c) is net
    assert list(net) == [a, b, c, d]
    assert net.pop(-1) is d
    assert list(net + nn.Sequential(d)) == [a, b, c, d]
    with pytest.raises(TypeError, match="only a Sequential can be added; got list"):
        _ = net + [d]  # noqa: RUF005
    with pytest.raises(IndexError, match=r"index must be in \[-3, 3\]; got 4"):
        net.insert(4, d)


def test_module_list():
    a, b, c, d = layers(4)
    container = nn.ModuleList([a, c])
    container.insert(1, b)
    container += [d]
    assert list(container) == [a, b, c, d] and len(container) == 4
    assert (
        container[-1] is d
        and list(container[1:3]) == [b, c]
        and type(container[1:3]) is nn.ModuleList
    )
    assert container.pop() is d and container.pop(0) is a
    container[0] = d
    assert list(container) == [d, c]
    del container[0]
    assert [n for n, _ in container.named_parameters()] == ["0.weight", "0.bias"]
    assert list(container + [a]) == [c, a]  # noqa: RUF005
    assert len(list(nn.ModuleList([a, a]))) == 2
    with pytest.raises(IndexError, match="ModuleList: index must be in"):
        container[1]
    with pytest.raises(TypeError, match="must come as an iterable; got int"):
        container.extend(3)
    with pytest.raises(TypeError, match="ModuleList: int is not a Module subclass"):
        container.append(3)
    with pytest.raises(NotImplementedError, match=r"\[ModuleList\] is missing the required"):
        container(pc.ones(1))


def test_module_dict():
    a, b, c = layers(3)
    container = nn.ModuleDict({"a": a})
    container["b"] = b
    container.update([("c", c)])
    assert list(container) == list(container.keys()) == ["a", "b", "c"]
    assert list(container.values()) == [a, b, c] and dict(container.items()) == {
        "a": a,
        "b": b,
        "c": c,
    }
    assert container["b"] is container.b is b
    assert "a" in container and "z" not in container and len(container) == 3
    assert container.pop("a") is a
    del container["b"]
    assert len(list(container.parameters())) == 2
    container.update(nn.ModuleDict({"c": a}))
    assert container["c"] is a
    container.clear()
    assert len(container) == 0
    with pytest.raises(KeyError, match="attribute 'update' already exists"):
        container["update"] = a
    with pytest.raises(TypeError, match="as a mapping or as pairs; got int"):
        container.update(3)
    with pytest.raises(ValueError, match="element 0 must be a"):
        container.update([(a, b, c)])


def test_parameter_list():
    container = nn.ParameterList([pc.ones(1), nn.Parameter(pc.zeros(2))])
    container.append(pc.ones(3))
    container += [pc.ones(4)]
    assert [tuple(p.shape) for p in container] == [(1,), (2,), (3,), (4,)]
    assert all(isinstance(p, nn.Parameter) for p in container)
    assert len(container) == 4 and container[-1].shape == (4,)
    assert [tuple(p.shape) for p in container[1:3]] == [(2,), (3,)]
    container[0] = pc.zeros(7)
    assert [n for n, _ in container.named_parameters()] == ["0", "1", "2", "3"]
    assert container[0].shape == (7,)
    with pytest.raises(IndexError, match="ParameterList: index must be in"):
        container[4]
    container.append(3)
    assert container[4] == 3 and len(container) == 5 and len(list(container.parameters())) == 4
    assert "(4): Object of type: int" in repr(container)
    with pytest.raises(RuntimeError, match="should not be called"):
        container()
    with pytest.raises(TypeError, match="must come as an iterable; got Tensor"):
        container.extend(pc.ones(2))


def test_parameter_dict():
    container = nn.ParameterDict({"a": pc.ones(1)})
    container["b"] = pc.ones(2)
    assert (
        list(container) == list(container.keys()) == ["a", "b"]
        and "a" in container
        and len(container) == 2
    )
    assert container.a is container["a"] and container.pop("a").shape == (1,)
    assert [tuple(p.shape) for p in container.values()] == [(2,)]
    del container["b"]
    assert list(container.items()) == []
    container.update([("x", pc.ones(3)), ("y", 5)])
    assert isinstance(container["x"], nn.Parameter) and container.y == 5
    assert container.get("z", 7) == 7 and container.setdefault("z", 8) == 8
    assert list(reversed(container)) == ["z", "y", "x"] and container.popitem() == ("z", 8)
    other = container.copy() | container.fromkeys(["w"], 3)
    assert list(other) == ["x", "y", "w"] and other["x"] is container["x"]
    with pytest.raises(TypeError, match="cannot be used as a key"):
        container[3] = pc.ones(1)
    container.clear()
    assert len(container) == 0 and list(container.parameters()) == []


def test_containers_have_a_state():
    net = nn.ModuleDict({"a": nn.ModuleList(layers(2)), "b": nn.ParameterList([pc.ones(1)])})
    assert list(net.state_dict()) == ["a.0.weight", "a.0.bias", "a.1.weight", "a.1.bias", "b.0"]


def test_a_sequence_is_repeated_and_extended():
    first = nn.Linear(2, 2)
    model = nn.Sequential(first, nn.ReLU())
    assert [type(m).__name__ for m in model * 2] == ["Linear", "ReLU"] * 2
    assert (2 * model)[2] is first and len(model) == 2
    model *= 2
    assert len(model) == 4 and model[2] is first
    same = model
    model += nn.Sequential(nn.Tanh())
    assert model is same and len(model) == 5
    with pytest.raises(TypeError, match="Sequential: it can be repeated an integer"):
        model * 1.5
    with pytest.raises(ValueError, match="Sequential: it can be repeated once or more; got 0"):
        model * 0


def test_names_of_modules_by_index_for_subclasses() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    assert [layers._get_abs_string_index(i) for i in (0, 1, -1)] == ["0", "1", "1"]
    with pytest.raises(IndexError, match="ModuleList"):
        layers._get_abs_string_index(2)

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn


class Scale(nn.Module):
    def __init__(self, size=2):
        super().__init__()
        self.factor = nn.Parameter(pc.full((size,), 2.0))
        self.register_buffer("offset", pc.ones(size))
        self.register_buffer("scratch", pc.zeros(size), persistent=False)

    def forward(self, x):
        return x * self.factor + self.offset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Scale()
        self.head = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    def forward(self, x):
        return self.head(self.first(x))


def test_members_are_found_by_kind():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "first.factor",
        "head.0.weight",
        "head.0.bias",
    ]
    assert [n for n, _ in net.named_buffers()] == ["first.offset", "first.scratch"]
    assert [n for n, _ in net.named_children()] == ["first", "head"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "head", "head.0", "head.1"]
    assert len(list(net.parameters())) == 3
    assert list(net.parameters(recurse=False)) == []
    assert next(net.named_parameters(prefix="net"))[0] == "net.first.factor"
    assert len(list(net.modules())) == 5
    assert next(net.children()) is net.first
    assert len(list(net.buffers())) == 2


def test_shared_members_appear_once():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert [n for n, _ in net.named_modules()] == ["", "0", "1"]
    assert [n for n, _ in net.named_children()] == ["0", "1"]
    tied = nn.Linear(2, 2)
    tied.weight = shared.weight
    assert len(list(nn.Sequential(shared, tied).parameters())) == 3


def test_call_gives_forward_its_arguments():
    class Add(nn.Module):
        def forward(self, x, y=1, *, z=0):
            return x + y + z

    assert Add()(1) == 2
    assert Add()(1, 2, z=3) == 6
    with pytest.raises(TypeError, match="unexpected keyword"):
        Add()(1, w=2)


def test_forward_must_be_defined():
    class Nothing(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"Module \[Nothing\] is missing the required"):
        Nothing()(1)


def test_super_init_must_come_first():
    class Late(nn.Module):
        def __init__(self, member):
            self.member = member

    with pytest.raises(AttributeError, match=r"Late: cannot assign parameters before Module"):
        Late(nn.Parameter(pc.zeros(1)))
    with pytest.raises(AttributeError, match=r"Late: cannot assign module before Module.__init__"):
        Late(nn.ReLU())
    with pytest.raises(AttributeError, match=r"Late must call super\(\).__init__\(\) first"):
        Late(1)(2)


def test_a_missing_attribute_is_named():
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'tail'") as caught:
        _ = Net().tail
    assert caught.value.name == "tail"
    assert not hasattr(Net(), "tail")


def test_registered_names_take_only_their_kind():
    scale = Scale()
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'factor'"):
        scale.factor = pc.zeros(2)
    with pytest.raises(TypeError, match=r"as child module 'first' \(Module or None expected"):
        Net().first = 3
    with pytest.raises(TypeError, match="Scale: cannot assign 'list' as buffer 'offset'"):
        scale.offset = [1]
    scale.factor = None
    assert scale.factor is None
    assert list(scale.parameters()) == []
    scale.factor = nn.Parameter(pc.zeros(1))
    assert len(list(scale.parameters())) == 1
    fresh = pc.zeros(2)
    scale.offset = fresh
    assert dict(scale.named_buffers())["offset"] is fresh
    scale.offset = None
    assert scale.offset is None


def test_a_name_changes_its_kind():
    net = nn.Module()
    net.x = 1
    net.x = nn.Parameter(pc.zeros(1))
    assert [n for n, _ in net.named_parameters()] == ["x"]
    with pytest.raises(TypeError, match="cannot assign 'ReLU' as parameter 'x'"):
        net.x = nn.ReLU()
    del net.x
    net.x = nn.ReLU()
    assert list(net.parameters()) == []
    assert isinstance(net.x, nn.ReLU)
    net.x = nn.Parameter(pc.zeros(1))
    assert list(net.children()) == [] and len(list(net.parameters())) == 1
    del net.x
    assert not hasattr(net, "x")
    net.x = 5
    assert net.x == 5
    del net.x
    with pytest.raises(AttributeError):
        del net.x


@pytest.mark.parametrize("register", ["register_parameter", "register_buffer", "add_module"])
def test_bad_names_are_refused(register):
    net = nn.Module()
    net.taken = 1
    with pytest.raises(KeyError, match=r"name can.*t contain"):
        getattr(net, register)("a.b", None)
    with pytest.raises(KeyError, match=r"name can.*t be empty string"):
        getattr(net, register)("", None)
    with pytest.raises(KeyError, match="attribute 'taken' already exists"):
        getattr(net, register)("taken", None)
    with pytest.raises(TypeError, match=r"name should be a string. Got int"):
        getattr(net, register)(1, None)
    with pytest.raises(
        TypeError, match=r"cannot assign 'str' object to|str is not a Module subclass"
    ):
        getattr(net, register)("x", "value")


def test_writes_to_the_dicts_reach_the_attributes():
    layer = nn.Linear(2, 2)
    fresh = nn.Parameter(pc.zeros(2, 2))
    layer._parameters["weight"] = fresh
    assert layer.weight is fresh
    layer._parameters.update(bias=None)
    assert layer.bias is None
    assert layer._parameters.pop("weight") is fresh
    assert not hasattr(layer, "weight")
    assert layer._parameters.pop("weight", 3) == 3
    with pytest.raises(KeyError):
        layer._parameters.pop("weight")
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    net._modules.popitem()
    assert len(net) == 1
    net._modules |= {"1": nn.Sigmoid()}
    assert isinstance(net.get_submodule("1"), nn.Sigmoid)
    assert net._modules.setdefault("1", nn.ReLU()) is net[1]
    net._modules.clear()
    assert len(net) == 0


def test_members_by_path():
    net = Net()
    assert net.get_submodule("") is net
    assert net.get_submodule("head.0") is net.head[0]
    assert net.get_parameter("head.0.bias") is net.head[0].bias
    assert net.get_buffer("first.offset") is net.first.offset
    with pytest.raises(AttributeError, match="Sequential has no attribute `7`"):
        net.get_submodule("head.7")
    with pytest.raises(AttributeError, match=r"`offset` is not an nn.Parameter"):
        net.get_parameter("first.offset")
    with pytest.raises(AttributeError, match="`factor` is not a buffer"):
        net.get_buffer("first.factor")


def test_modes():
    net = Net()
    assert net.training and net.head[1].training
    assert net.eval() is net
    assert not net.training and not net.head[1].training
    net.train()
    assert net.head[0].training
    with pytest.raises(ValueError, match="training mode is expected to be boolean; got int"):
        net.train(1)


def test_apply_visits_children_first():
    calls = []
    net = Net()
    assert net.apply(lambda module: calls.append(type(module).__name__)) is net
    assert calls == ["Scale", "Linear", "ReLU", "Sequential", "Net"]


def test_conversion_keeps_the_parameters_identity():
    net = Net()
    before = list(net.parameters())
    assert net.double() is net
    assert all(a is b for a, b in zip(net.parameters(), before, strict=True))
    assert {p.dtype for p in net.parameters()} == {pc.float64}
    assert net.first.offset.dtype == pc.float64
    assert net(pc.ones(1, 2, dtype=pc.float64)).dtype == pc.float64
    net.to(pc.float32)
    assert net.head[0].weight.dtype == pc.float32
    assert net.to(pc.zeros(1, dtype=pc.float64)).first.offset.dtype == pc.float64
    assert net.to("cpu", pc.float32).first.factor.dtype == pc.float32
    assert net.to(device="cpu").cpu().float() is net
    assert net.half().first.factor.dtype == pc.float16
    assert net.bfloat16().first.offset.dtype == pc.bfloat16


def test_conversion_leaves_integers_alone():
    net = nn.Module()
    net.register_buffer("count", pc.zeros(1, dtype=pc.int64))
    net.register_buffer("mean", pc.zeros(1))
    net.to(pc.float64)
    assert net.count.dtype == pc.int64
    assert net.mean.dtype == pc.float64
    assert net.type(pc.float32).count.dtype == pc.float32


def test_to_refuses_unsupported_arguments():
    with pytest.raises(TypeError, match="`dtype` must be floating point or complex"):
        Net().to(pc.int64)
    with pytest.raises(TypeError, match="unexpected keyword `colour`"):
        Net().to(colour="red")


def test_conversion_takes_the_gradient_along():
    layer = nn.Linear(2, 1)
    layer(pc.ones(1, 2)).sum().backward()
    assert layer.double().weight.grad.dtype == pc.float64
    layer(pc.ones(1, 2, dtype=pc.float64)).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), [[2.0, 2.0]])


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(pc.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_requires_grad():
    net = Net()
    assert all(p.requires_grad for p in net.parameters())
    assert net.requires_grad_(False) is net
    assert not any(p.requires_grad for p in net.parameters())
    assert not net(pc.ones(1, 2)).requires_grad


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["deepcopy", "pickle"],
)
def test_copies_are_complete_and_independent(duplicate):
    net = Net().eval()
    twin = duplicate(net)
    x = pc.ones(1, 2)
    assert twin(x).tolist() == net(x).tolist()
    assert not twin.training
    assert [n for n, _ in twin.named_buffers()] == [n for n, _ in net.named_buffers()]
    assert twin.first.factor is dict(twin.named_parameters())["first.factor"]
    assert twin.first.factor.requires_grad
    twin.first.factor.detach().zero_()
    assert net.first.factor.tolist() == [2.0, 2.0]
    twin.first._parameters["factor"] = None
    assert twin.first.factor is None


def test_shared_members_stay_shared_in_a_copy():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin[1].weight is twin[0].weight


def test_a_subclass_may_restore_itself():
    twin = pickle.loads(pickle.dumps(Restores()))
    assert twin.layer.weight.shape == (1, 1)
    assert [n for n, _ in twin.named_parameters()] == ["layer.weight", "layer.bias"]
    twin.layer = nn.ReLU()
    assert isinstance(twin.layer, nn.ReLU)


class Restores(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def __getstate__(self):
        return self.__dict__.copy()

    def __setstate__(self, state):
        self.__dict__.update(state)


def test_a_module_is_freed_at_once():
    net = Net()
    watch = [weakref.ref(net), weakref.ref(net.first)]
    gc.disable()
    try:
        del net
        assert [w() for w in watch] == [None, None]
    finally:
        gc.enable()


def test_a_subclass_may_have_properties():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self._value = 4

        @property
        def value(self):
            return self._value / 2

        @value.setter
        def value(self, new):
            self._value = new

    half = Half()
    half.value = 10
    assert half.value == 5


def test_to_a_memory_format():
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2)).to(memory_format=pc.channels_last)
    assert net[0].weight.is_contiguous(memory_format=pc.channels_last)
    assert net[1].weight.is_contiguous()


class _Adds(nn.Module):
    """Returns the sum of what it is given."""

    def forward(self, *args, **kwargs):
        return sum(args) + sum(kwargs.values())


def test_calls_pass_any_number_of_arguments():
    module = _Adds()
    for count in (0, 1, 7, 8, 9, 30):
        numbers = list(range(count))
        assert module(*numbers) == sum(numbers)
        assert module(*numbers, a=100, b=20) == sum(numbers) + 120
    with pytest.raises(TypeError, match="forward"):
        nn.Identity()()


def test_calls_use_attributes_that_are_assigned_later():
    class Doubles(nn.Module):
        def forward(self, x):
            return 2 * x

    class Child(Doubles):
        def __call__(self, x):
            return 100 + int(super().__call__(x))

    module, child = Doubles(), Child()
    assert (module(3), child(3)) == (6, 106)
    module.forward = lambda x: 5 * x
    assert module(3) == 15
    del module.forward
    Doubles.forward = lambda self, x: 7 * x
    assert (module(3), child(3)) == (21, 121)
    Doubles.forward = staticmethod(lambda x: 9 * x)
    assert module(3) == 27
    Doubles.__call__ = lambda self, x: -x
    assert (module(3), child(3)) == (-3, 97)
    del Doubles.__call__
    assert module(3) == 27


def test_calls_run_hooks_that_are_added_and_removed():
    module, calls = _Adds(), []
    handle = module.register_forward_hook(lambda *each: calls.append(each[-1]))
    assert module(1, 2) == 3
    handle.remove()
    assert module(3, 4) == 7 and calls == [3]
    for_all = nn.register_module_forward_hook(lambda *each: calls.append(each[-1]))
    try:
        assert module(5) == 5
    finally:
        for_all.remove()
    assert module(6) == 6 and calls == [3, 5]
    nn.Module.__call__(module, 1)


def test_errors_of_calls_keep_their_notes_and_context():
    class Fails(nn.Module):
        def forward(self):
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("second") from error

    with pytest.raises(ValueError, match="second") as caught:
        nn.Sequential(Fails())[0]()
    assert isinstance(caught.value.__cause__, KeyError)
    if hasattr(caught.value, "__notes__"):
        assert caught.value.__notes__ == ["in module Fails: Fails()"]

    class Endless(nn.Module):
        def forward(self):
            self()

    with pytest.raises(RecursionError):
        Endless()()


def test_a_call_needs_init():
    class Hasty(nn.Module):
        def __init__(self):
            pass

        def forward(self): ...

    with pytest.raises(
        AttributeError, match="has no attribute '_backward_hooks'; Hasty must call super"
    ):
        Hasty()()

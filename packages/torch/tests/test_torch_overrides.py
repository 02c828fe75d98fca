"""``__torch_function__``, ``__torch_dispatch__``, their modes, and `torch.overrides`."""

from __future__ import annotations

import copy
import inspect
import threading
import warnings
from typing import Any

import pytest

import plait
import plait.nn.functional as F
import plait_torch
from plait import nn
from plait_torch import _asking_functions


def test_without_the_finder_nothing_is_called() -> None:
    class Loud(plait.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any) -> Any:
            raise AssertionError("asked")

    x = plait.ones(2).as_subclass(Loud)
    assert type(x + 1) is plait.Tensor and F.softmax(x, 0).tolist() == [0.5, 0.5]
    assert not hasattr(plait.Tensor, "__torch_function__") and not _asking_functions.are_asking()


def test_functions_in_python_change_only_while_classes_override_them(torch: Any) -> None:
    function, code, signature = F.pad, F.pad.__code__, inspect.signature(F.pad)
    with torch.overrides.BaseTorchFunctionMode():
        assert F.pad is function and F.pad.__code__ is not code
        assert inspect.signature(F.pad) == signature and F.pad.__name__ == "pad"
        assert F.pad(plait.ones(1), (1, 1)).tolist() == [0, 1, 0]
    assert F.pad.__code__ is code and "__signature__" not in F.pad.__dict__

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func.__name__

    assert F.pad(plait.ones(1).as_subclass(Own), (1, 1)) == "pad" and F.pad.__code__ is not code
    plait_torch.uninstall()
    assert F.pad.__code__ is code
    plait_torch.install()


def test_a_foreign_class_is_called_by_operators_and_then_by_functions(torch: Any) -> None:
    class Lazy:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return torch.overrides.resolve_name(func)

    lazy = Lazy()
    assert torch.exp(lazy) == "torch.exp" and torch.cat([plait.ones(1), lazy]) == "torch.cat"
    assert plait.ones(1) * lazy == "torch.mul" or plait.ones(1) * lazy == "torch.Tensor.mul"
    assert F.softplus(lazy) == "torch._C._nn.softplus"
    assert F.mse_loss(lazy, plait.ones(1)) == "torch.nn.functional.mse_loss"
    assert torch.linalg.solve(lazy, plait.ones(1)) == "torch.linalg.solve"


def test_modes_belong_to_threads_and_nest(torch: Any) -> None:
    class Names(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            self.names: list[str] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def elsewhere() -> None:
        (plait.ones(2) + 1).sum()

    with Names() as outer, Names() as inner:
        assert torch.overrides._get_current_function_mode_stack() == [outer, inner]
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert F.relu(plait.ones(1)).item() == 1
    assert outer.names == inner.names == ["ones", "relu", "item"]
    with pytest.raises(RuntimeError, match="there is none"):
        outer.__exit__(None, None, None)
    with Names() as mode, pytest.raises(plait.ShapeError):
        plait.ones(2) @ plait.ones(3)
    assert mode.names == ["ones", "ones", "matmul"]


def test_without_an_answer(torch: Any) -> None:
    class Nothing:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for .*exp.*Nothing"):
        torch.exp(Nothing())
    with pytest.raises(TypeError, match="no argument has __torch_function__"):
        torch.overrides.handle_torch_function(abs, (3,), 3)


def test_predicates_and_lists(torch: Any) -> None:
    overrides = torch.overrides
    x = plait.ones(1)
    sub = x.as_subclass(type("Sub", (torch.Tensor,), {}))
    assert overrides.has_torch_function_unary(sub)
    assert overrides.has_torch_function_variadic(x, sub) and not overrides.has_torch_function((x,))
    assert not overrides.has_torch_function((nn.Parameter(x),))
    with overrides.BaseTorchFunctionMode():
        assert overrides.has_torch_function((x,))
    with torch._C.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((sub,))
    assert overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert overrides.resolve_name(torch.Tensor.numel) == "torch.Tensor.numel"
    assert overrides.resolve_name(len) is None
    groups = overrides.get_overridable_functions()
    assert torch.exp in groups[torch] and F.pad in groups[torch.nn.functional]
    assert not overrides.get_ignored_functions() & set(groups[torch])
    assert overrides.get_testing_overrides()[torch.exp](x) == -1
    assert {torch.Tensor.grad.__get__} < overrides.get_default_nowrap_functions()


def test_results_keep_class_and_history(torch: Any) -> None:
    class Plain(torch.Tensor):
        pass

    x = plait.tensor([1.0, 2.0], requires_grad=True)
    y = F.softmax(x.as_subclass(Plain) * 2, 0)
    assert type(y) is Plain and type(y.sum()) is Plain
    y[0].backward()
    assert x.grad[0].item() == pytest.approx(0.2099871)
    values = y.max(0)
    assert type(values.values) is Plain and type(values).__name__ == "max"
    assert type(plait.ones(1).as_subclass(Plain).new_zeros(2)) is Plain


def test_parameters_of_a_class(torch: Any) -> None:
    class Plain(torch.Tensor):
        pass

    p = nn.Parameter(plait.ones(2).as_subclass(Plain))
    assert type(p) is Plain and isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf
    assert not isinstance(plait.ones(2).as_subclass(Plain), nn.Parameter)
    assert isinstance(nn.Parameter(plait.ones(1)), nn.Parameter)
    assert not isinstance(plait.ones(1), nn.Parameter)
    layer = nn.Linear(2, 1)
    layer.weight = nn.Parameter(layer.weight.detach().as_subclass(Plain))
    assert type(layer.weight) is Plain and len(list(layer.parameters())) == 2
    layer(plait.ones(1, 2)).sum().backward()
    plait.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer.weight.grad is not None


class Held(plait.Tensor):
    """A wrapper subclass that keeps what it wraps."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return plait.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner: Any) -> None:
        self.inner = inner.detach()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        bare = [each.inner if isinstance(each, Held) else each for each in args]
        out = func(*bare, **(kwargs or {}))
        return Held(out) if isinstance(out, plait.Tensor) else out

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Held(inner["inner"])


def test_wrappers(torch: Any) -> None:
    Held.__torch_function__ = torch._C._disabled_torch_function_impl
    x = Held(plait.tensor([1.0, 2.0]))
    y = x * 3 + plait.ones(2)
    assert type(y) is Held and y.inner.tolist() == [4, 7] and y.shape == (2,)
    assert y.sum().item() == 11 and float(y[0]) == 4 and bool(y.sum() > 0)
    twin = copy.deepcopy(x)
    assert type(twin) is Held and twin.inner.tolist() == [1, 2] and twin.inner is not x.inner
    from torch.utils import _python_dispatch as dispatch

    assert dispatch.is_traceable_wrapper_subclass(x)
    double = dispatch.transform_subclass(x, lambda name, inner: inner * 2)
    assert double.inner.tolist() == [2, 4]
    add_ = torch.ops.aten.add_.Tensor
    assert dispatch.return_and_correct_aliasing(add_, (x, 1), {}, y) is x
    with pytest.raises(RuntimeError, match="__torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))
    del Held.__torch_function__


def test_gradients_through_wrappers(torch: Any) -> None:
    Held.__torch_function__ = torch._C._disabled_torch_function_impl
    x = Held(plait.tensor([1.0, 2.0]))
    x.requires_grad_()
    y = (x * x).sum()
    y.backward()
    assert type(x.grad) is Held and x.grad.inner.tolist() == [2, 4]
    del Held.__torch_function__


def test_dispatch_modes_nest_and_see_classes_of_arguments(torch: Any) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

    class Note(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append(f"{func}{[t.__name__ for t in types]}")
            return func(*args, **(kwargs or {}))

    x = plait.ones(2)
    with Note() as outer, Note() as inner:
        x * 2
        with _disable_current_modes():
            x * 3
        x.add_(1)
        plait.exp(x, out=plait.empty(2))
    expected = ["aten.mul.Tensor[]", "aten.add_.Tensor[]", "aten.empty.default[]", "aten.exp.out[]"]
    assert [each.replace("empty.memory_format", "empty.default") for each in outer.seen] == expected
    assert outer.seen == inner.seen

    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    with Refuse(), pytest.raises(TypeError, match=r"aten\.mul\.Tensor.*Refuse"):
        x * 2
    assert (x * 2).tolist() == [4, 4]


def test_operations_are_counted(torch: Any) -> None:
    from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 16, 5))
    x = plait.ones(2, 3, 6, 6)
    with FlopCounterMode(display=False) as counter:
        y = model(x)
        conv, product = 2 * 2 * 16 * 4 * 27, 2 * 2 * 64 * 5
        assert counter.get_total_flops() == conv + product
        y.sum().backward()
    assert counter.get_total_flops() == conv * 2 + product * 3
    counts = counter.get_flop_counts()
    assert sum(counts["Sequential.0"].values()) == conv * 2
    assert sum(counts["Sequential.2"].values()) == product * 3
    assert "Sequential.2" in counter.get_table()
    aten = torch.ops.aten
    mapping = {aten.exp: lambda shape, out_shape=None: 7}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        x.exp()
    assert counter.get_total_flops() == 7 and register_flop_formula(aten.relu) is not None


def test_calls_arrive_with_pytorch_s_overloads(torch: Any) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Notes(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append((str(func), len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    seen: list[Any] = []
    x, at = torch.tensor([4, 6, 5]), torch.tensor([2, 0])
    with Notes():
        assert x[...].data_ptr() == x.data_ptr()
    assert seen.pop() == ("aten.alias.default", 1, [])
    with Notes():
        parts = (x[at], x.narrow(0, 1, 2), x.sort(stable=True)[1], x.sort()[1], x.sort(0, True)[0])
    assert [part.tolist() for part in parts] == [[5, 4], [6, 5], [0, 2, 1], [0, 2, 1], [6, 5, 4]]
    assert seen == [
        ("aten.index.Tensor", 2, []),
        ("aten.slice.Tensor", 4, []),
        ("aten.sort.stable", 1, ["descending", "dim", "stable"]),
        ("aten.sort.default", 1, []),
        ("aten.sort.default", 3, []),
    ]
    assert torch.ops.aten.index.Tensor(torch.eye(3), [None, at]).tolist()[0] == [0, 1]


def test_masks_arrive_whole(torch: Any) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Notes(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            shown = [None if i is None else (i.dtype, *i.shape) for i in args[1]]
            seen.append((str(func), tuple(args[0].shape), shown))
            return func(*args, **(kwargs or {}))

    seen: list[Any] = []
    x = torch.arange(24.0).reshape(2, 3, 4)
    rows, tables, at = torch.tensor([True, False]), x[0] > 5, torch.tensor([1, 0, 1])
    flags = torch.bool
    cases = (
        (rows, [(flags, 2)]),
        ((slice(None), tables), [None, (flags, 3, 4)]),
        (x > 3, [(flags, 2, 3, 4)]),
        ((rows, at[:1]), [(flags, 2), (torch.int64, 1)]),
        ([True, False], [(flags, 2)]),
        (rows.byte(), [(flags, 2)]),
        ((..., at), [None, None, (torch.int64, 3)]),
    )
    for key, shown in cases:
        for value in (None, 1.0, torch.tensor(2.0), torch.full((1,), 3.0)):
            y, expected = x.clone(), x.clone()
            with Notes(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # masks of uint8
                if value is None:
                    y = y[key]
                else:
                    y[key] = value
            if value is None:
                expected = expected[key]
            else:
                expected[key] = value
            assert torch.equal(y, expected)
            name = "index.Tensor" if value is None else "index_put_.default"
            assert seen == [(f"aten.{name}", (2, 3, 4), shown)], key
            seen.clear()


def test_an_index_that_a_class_makes_is_another_call(torch: Any) -> None:
    class Picked(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append([str(func), *(each.dtype for each in args[1])])
            plain = args[0].as_subclass(torch.Tensor) + 0
            return plain[torch.tensor([2, 0])] if func is torch.ops.aten.index.Tensor else plain

    seen: list[Any] = []
    x = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    mask = torch.tensor([False, True, True])
    with torch.no_grad():
        y = x.detach().as_subclass(Picked)
    assert y[mask].tolist() == [7.0, 5.0]
    assert seen == [["aten.index.Tensor", torch.bool]]
    # and derivatives take masks as before
    x[mask].sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_an_operator_that_refuses_a_dtype_is_not_tried_otherwise(torch: Any) -> None:
    class Own(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    x = torch.tensor([1, 2]).as_subclass(Own)
    with pytest.raises(RuntimeError, match="can't be cast"):
        x -= 2.5
    assert x.tolist() == [1, 2]


def test_schemas(torch: Any) -> None:
    aten = torch.ops.aten
    schema = aten.add.Tensor._schema
    assert (schema.name, schema.overload_name) == ("aten::add", "Tensor")
    assert [each.name for each in schema.arguments] == ["self", "other", "alpha"]
    assert schema.arguments[2].kwarg_only and schema.arguments[2].default_value == 1
    assert not schema.is_mutable and aten.add_.Tensor._schema.is_mutable
    assert aten.mm.default.name() == "aten::mm" and aten.transpose.int.is_view
    assert repr(aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    assert torch._ops.OpOverload is type(aten.mm.default)
    assert aten.sum.dim_IntList.overloadpacket is aten.sum and "default" in aten.mm.overloads()


def test_what_is_missing_says_so(torch: Any) -> None:
    with (
        pytest.raises(NotImplementedError, match="_DisableTorchDispatch"),
        torch._C._DisableTorchDispatch(),
    ):
        pass
    with pytest.raises(NotImplementedError, match="keys of modes"):
        torch.utils._python_dispatch.TorchDispatchMode(_dispatch_key="FAKE")


@pytest.mark.parametrize("disabled", ["nowhere", "here", "above"])
def test_a_product_of_matrices_arrives_before_shapes_are_compared(
    torch: Any, disabled: str
) -> None:
    class Above(torch.Tensor):
        if disabled == "above":
            __torch_function__ = torch._C._disabled_torch_function_impl

    class Edges(Above):
        if disabled == "here":
            __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            assert func is torch.ops.aten.mm.default
            return torch.full((3,), 7.0)

    edges = torch.zeros(2, 5).as_subclass(Edges)
    x = torch.ones(3, 4)
    for product in (edges @ x, torch.matmul(edges, x), edges.matmul(x), torch.mm(edges, x)):
        assert product.tolist() == [7, 7, 7]


def test_a_parameter_may_call_the_inherited_torch_function(torch: Any) -> None:
    seen = []

    class Packed(torch.nn.Parameter):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = Packed(torch.ones(3))
    parts = torch.chunk(x, 3)
    assert [part.tolist() for part in parts] == [[1], [1], [1]] and seen == [torch.chunk]
    x.data = torch.zeros(3)
    assert (x + 1).tolist() == [1, 1, 1] and seen[-1] is torch.Tensor.add

"""`torch.compile` and `torch.compiler`: what is compiled, what is refused, and what stays."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import pytest

import plait
from plait_torch import _compiler


@pytest.fixture(name="compiled")
def compiled_functions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was given to the compiler, which counts and calls."""
    functions: list[Any] = []

    def compile_(function: Any) -> Any:
        functions.append(function)
        return function

    monkeypatch.setattr(_compiler, "_compile", compile_)
    monkeypatch.setattr(_compiler, "_is_there", lambda: True)
    return functions


def test_functions_compile_at_their_first_call(torch: Any, compiled: list[Any]) -> None:
    def double(x: Any) -> Any:
        "Twice the tensor."
        return x * 2

    result = torch.compile(double, fullgraph=True, dynamic=False)
    assert not compiled and result.__doc__ == double.__doc__ and result.__wrapped__ is double
    assert result(torch.ones(2)).tolist() == result(torch.ones(2)).tolist() == [2.0, 2.0]
    assert compiled == [double]
    again = torch.compile(result, mode="max-autotune")
    assert again._torchdynamo_orig_callable is double and again(3) == 6
    torch.compiler.reset()
    assert result(3) == 6 and compiled == [double] * 3

    class Model:
        @torch.compile(options={"triton.cudagraphs": True})
        def call(self, x: Any) -> Any:
            return self, x

    model = Model()
    assert model.call(3) == (model, 3)


def test_modules_compile_in_a_wrapper_or_in_place(torch: Any, compiled: list[Any]) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 1))
    x = torch.ones(3, 2)
    wrapper = torch.compile(module)
    assert torch.equal(wrapper(x), module(x)) and compiled == [module]
    for other in (copy.deepcopy(wrapper), pickle.loads(pickle.dumps(wrapper))):
        assert torch.equal(other(x), module(x)) and compiled[-1] is other._orig_mod is not module
    wrapper._orig_mod = replaced = torch.nn.Linear(2, 1)
    assert torch.equal(wrapper(x), replaced(x)) and compiled[-1] is replaced
    del compiled[:]
    module[0].compile(mode="reduce-overhead")
    module[0].compile()
    seen: list[Any] = []
    module[0].register_forward_hook(lambda *_: seen.append(1))
    assert module(x).shape == (3, 1) and len(compiled) == len(seen) == 1
    assert list(module.state_dict()) == ["0.weight", "0.bias"]
    other = copy.deepcopy(module)
    assert "forward" not in vars(other[0]) and torch.equal(other(x), module(x))
    with torch.no_grad():
        other[0].weight.zero_()
    assert not torch.equal(other(x), module(x))


def test_the_method_of_modules_is_undone(torch: Any) -> None:
    import plait_torch

    assert plait.nn.Module.compile is _compiler._compile_in_place
    plait_torch.uninstall()
    try:
        module = plait.nn.Linear(2, 1)
        module.compile()
        assert "forward" not in vars(module)
    finally:
        plait_torch.install()


def test_what_stays_as_it_is(torch: Any, compiled: list[Any]) -> None:
    def f(x: Any) -> Any:
        return x

    class Callable:
        def __call__(self, x: Any) -> Any:
            return x + 1

    assert torch.compile(f, disable=True) is f and torch.compile(len) is len
    assert torch.compile(f, backend="eager") is f and torch.compile(Callable) is Callable
    assert torch.compile(backend="aot_eager")(f) is f
    module = torch.compile(torch.nn.Linear(1, 1), backend="eager")
    assert module(torch.ones(1, 1)).shape == (1, 1) and not compiled
    assert torch.compile(Callable())(1) == 2 == torch.compile(functools.partial(f))(2)
    assert len(compiled) == 2
    with torch.compiler.set_stance("force_eager"):
        assert torch.compile(f)(3) == 3

    @torch.compiler.set_stance("force_eager")
    def eagerly() -> Any:
        return torch.compile(f)(3)

    assert eagerly() == 3 and len(compiled) == 2
    assert torch.compile(f)(3) == 3 and len(compiled) == 3
    assert torch.compiler.list_backends() == ["cudagraphs", "inductor"]
    assert not torch.compiler.is_compiling() and not torch.compiler.is_dynamo_compiling()


def test_functions_about_compiling_that_change_nothing(torch: Any) -> None:
    def f(x: Any) -> Any:
        return x + 1

    names = torch.compiler
    assert names.nested_compile_region(f) is f and names.nested_compile_region()(f) is f
    assert names.substitute_in_graph(len, skip_signature_check=True)(f) is f
    assert names.save_cache_artifacts() is None and names.load_cache_artifacts(b"") is None


def test_functions_of_arrays(torch: Any) -> None:
    def split(x: Any, *, by: int) -> Any:
        assert type(x).__module__ == "numpy"
        return {"half": x / by, "by": by}

    result = torch.compile(torch.compiler.wrap_numpy(split))(torch.tensor([2.0]), by=2)
    assert result["half"].tolist() == [1.0] and result["by"] == 2


def test_refusals(torch: Any) -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        return graph

    with pytest.raises(NotImplementedError, match="the backend backend is a function"):
        torch.compile(len, backend=backend)
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match=r"'tvm'; plait has 'cudagraphs'"):
        torch.compile(len, backend="tvm")
    with pytest.raises(RuntimeError, match=r"Unrecognized mode=fast, should be one of: default"):
        torch.compile(len, mode="fast")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(len, mode="default", options={})
    with pytest.raises(TypeError, match="unexpected keyword argument 'fast'"):
        torch.compile(len, fast=True)
    with pytest.raises(TypeError, match="a function or a module is required, got int"):
        torch.compile(3)
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance 'slow'"):
        torch.compiler.set_stance("slow")


def losses(torch: Any, wrap: Any) -> list[float]:
    """Train a small model, behind what `wrap` makes of it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
    )
    call, result = wrap(model), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(6):
        x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(call(x), y)
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


def test_a_compiled_model_trains_as_it_does(torch: Any) -> None:
    def in_place(model: Any) -> Any:
        model.compile()
        return model

    expected = losses(torch, lambda model: model)
    assert losses(torch, torch.compile) == losses(torch, in_place) == expected


def test_python_runs_at_each_call(torch: Any) -> None:
    signs: list[bool] = []

    def f(x: Any, n: int) -> Any:
        y = torch.sin(x) * n
        signs.append(bool(y.sum() > 0))
        return y + 1 if signs[-1] else y - 1

    compiled, x = torch.compile(f), torch.randn(5)
    for n in (1, 2, -2, 0, 1, -1):
        assert torch.equal(compiled(x, n), f(x, n)) and signs[-1] is signs[-2]
    assert len(signs) == 12 and True in signs and False in signs


def test_a_bound_method_of_a_compiled_function_keeps_its_object(torch: Any) -> None:
    class Doubling(torch.nn.Module):
        @torch.compile
        def forward(self, x: Any) -> Any:
            return x * 2

    model = Doubling()
    assert torch.compile(model.forward)(torch.ones(1)).item() == 2

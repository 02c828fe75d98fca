"""Hooks and states of modules: the same program on both libraries, and what it noted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch

import plait

Program = Callable[[Any], Any]
PROGRAMS: list[Program] = []

pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
    pytest.mark.filterwarnings("ignore:Using a non-full backward hook:FutureWarning"),
]


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


def lists(value: Any) -> Any:
    """Tensors as lists, within tuples."""
    if isinstance(value, (tuple, list)):
        return [lists(each) for each in value]
    return value if value is None else value.tolist()


def layer(lib: Any) -> Any:
    result = lib.nn.Linear(2, 2)
    with lib.no_grad():
        result.weight.copy_(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        result.bias.copy_(lib.tensor([0.5, -0.5]))
    return result


@program
def gradients_of_inputs_and_results(lib: Any) -> Any:
    seen: list[Any] = []
    model = lib.nn.Sequential(layer(lib), lib.nn.ReLU(), layer(lib))
    for module in model.modules():
        module.register_full_backward_hook(
            lambda m, i, o: seen.append((type(m).__name__, lists(i), lists(o)))
        )
    x = lib.tensor([[1.0, -1.0]], requires_grad=True)
    model(x).sum().backward()
    return seen, lists(x.grad), [lists(p.grad) for p in model.parameters()]


@program
def hooks_replace_gradients(lib: Any) -> Any:
    module = layer(lib)
    module.register_full_backward_hook(lambda m, i, o: (i[0] * 2,))
    module.register_full_backward_hook(lambda m, i, o: (i[0] + 1,))
    module.register_full_backward_hook(lambda m, i, o: (i[0] * 10,), prepend=True)
    module.register_full_backward_pre_hook(lambda m, o: (o[0] * 3,))
    module.register_full_backward_pre_hook(lambda m, o: (o[0] + 1,))
    x = lib.ones(1, 2, requires_grad=True)
    module(x).sum().backward()
    return lists(x.grad), lists(module.weight.grad)


@program
def several_inputs_and_results(lib: Any) -> Any:
    class Two(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, a: Any, n: int, b: Any, c: Any) -> Any:
            return a * n, b * 2, a.detach(), "text"

    seen: list[Any] = []
    module = Two()
    module.register_full_backward_hook(lambda m, i, o: seen.append((lists(i), lists(o[:3]), o[3])))
    a, b = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    first, second, third, _ = module(a, 3, b, None)
    first.sum().backward(retain_graph=True)
    second.sum().backward()
    return seen, third.requires_grad, lists(a.grad), lists(b.grad)


@program
def no_input_requires_grad(lib: Any) -> Any:
    seen: list[Any] = []
    module = layer(lib)
    module.register_full_backward_hook(lambda m, i, o: seen.append((lists(i), lists(o))))
    module(lib.ones(1, 2)).sum().backward()
    with lib.no_grad():
        module(lib.ones(1, 2, requires_grad=True))
    return seen


@program
def wrong_numbers_of_gradients(lib: Any) -> Any:
    kinds = []
    for name in ("register_full_backward_hook", "register_full_backward_pre_hook"):
        module = layer(lib)
        getattr(module, name)(lambda *_: (None, None))
        try:
            module(lib.ones(1, 2, requires_grad=True)).sum().backward()
        except RuntimeError:
            kinds.append(name)
    return kinds


@program
def kinds_do_not_mix(lib: Any) -> Any:
    module, count = layer(lib), 0
    module.register_full_backward_hook(lambda *_: None)
    try:
        module.register_backward_hook(lambda *_: None)
    except RuntimeError:
        count += 1
    module = layer(lib)
    module.register_backward_hook(lambda *_: None)
    try:
        module.register_full_backward_hook(lambda *_: None)
    except RuntimeError:
        count += 1
    return count


@program
def hook_of_the_last_operator(lib: Any) -> Any:
    seen: list[Any] = []
    module = lib.nn.ReLU()
    module.register_backward_hook(lambda m, i, o: seen.append((lists(i), lists(o))))
    x = lib.tensor([1.0, -1.0], requires_grad=True)
    module(x).sum().backward()
    return seen


@program
def double_backward(lib: Any) -> Any:
    seen: list[Any] = []

    class Cube(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return x * x * x

    module = Cube()
    module.register_full_backward_hook(lambda m, i, o: seen.append((lists(i), lists(o))))
    x = lib.tensor([2.0], requires_grad=True)
    (gradient,) = lib.autograd.grad(module(x), x, create_graph=True)
    (second,) = lib.autograd.grad(gradient, x)
    return seen, lists(second)


@program
def handles_remove(lib: Any) -> Any:
    seen: list[int] = []
    module = layer(lib)
    first = module.register_full_backward_hook(lambda *_: seen.append(1))
    module.register_full_backward_hook(lambda *_: seen.append(2))
    first.remove()
    module(lib.ones(1, 2, requires_grad=True)).sum().backward()
    return seen, len(module._backward_hooks)


@program
def hooks_of_all_modules(lib: Any) -> Any:
    place = lib.nn.modules.module if lib is torch else lib.nn
    seen: list[Any] = []
    handles = [
        place.register_module_forward_pre_hook(lambda m, a: seen.append(("pre", type(m).__name__))),
        place.register_module_forward_hook(lambda m, a, o: seen.append(("post", lists(o)))),
        place.register_module_full_backward_hook(lambda m, i, o: seen.append(("back", lists(i)))),
        place.register_module_full_backward_pre_hook(lambda m, o: seen.append(("first", lists(o)))),
    ]
    model = lib.nn.Sequential(layer(lib), lib.nn.ReLU())
    model[0].register_forward_hook(lambda m, a, o: seen.append("own"))
    model(lib.ones(1, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    model(lib.ones(1, 2, requires_grad=True)).sum().backward()
    return seen


@program
def hooks_of_registrations(lib: Any) -> Any:
    place = lib.nn.modules.module if lib is torch else lib.nn
    seen: list[Any] = []
    handles = [
        getattr(place, f"register_module_{kind}_registration_hook")(
            lambda m, name, value, kind=kind: seen.append((type(m).__name__, kind, name))
        )
        for kind in ("parameter", "buffer", "module")
    ]
    lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.Linear(2, 2, bias=False))
    for handle in handles:
        handle.remove()
    lib.nn.Linear(2, 2)
    return seen


@program
def state_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    model = lib.nn.Sequential(layer(lib), layer(lib))
    model[1].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))

    def post(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        seen.append((sorted(state), prefix, dict(metadata)))
        state[prefix + "more"] = lib.ones(1)

    model[1].register_state_dict_post_hook(post)
    model.register_state_dict_post_hook(post)
    state = model.state_dict()
    return seen, list(state), {k: dict(v) for k, v in state._metadata.items()}


@program
def load_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    model = lib.nn.Sequential(layer(lib), layer(lib))

    def rename(
        module: Any, state: Any, prefix: str, metadata: Any, strict: bool, *rest: Any
    ) -> None:
        seen.append((prefix, dict(metadata).get("version"), strict))
        state[prefix + "weight"] = state.pop(prefix + "kernel")

    def forgive(module: Any, keys: Any) -> None:
        seen.append((type(module).__name__, list(keys.missing_keys), lists(model[1].weight)))
        keys.missing_keys.clear()

    model[1].register_load_state_dict_pre_hook(rename)
    model.register_load_state_dict_post_hook(forgive)
    state = OrderedDict(model.state_dict())
    del state["0.bias"]
    state["1.kernel"] = state.pop("1.weight") * 2
    result = model.load_state_dict(state)
    return seen, list(result.missing_keys), lists(model[1].weight), "1.kernel" in state


@program
def extra_state(lib: Any) -> Any:
    class Counts(lib.nn.Module):  # type: ignore[name-defined, misc]
        n = 0

        def get_extra_state(self) -> Any:
            return {"n": self.n}

        def set_extra_state(self, state: Any) -> None:
            self.n = state["n"]

    model = lib.nn.Sequential(Counts(), lib.nn.ReLU())
    model[0].n = 7
    state = model.state_dict()
    other = lib.nn.Sequential(Counts(), lib.nn.ReLU())
    other.load_state_dict(state)
    missing = lib.nn.Sequential(Counts()).load_state_dict({}, strict=False).missing_keys
    plain = lib.nn.Sequential(lib.nn.ReLU()).load_state_dict(state, strict=False)
    return state, other[0].n, missing, plain.unexpected_keys


@program
def submodules_are_set(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Sequential(lib.nn.ReLU()))
    model.set_submodule("0.0", lib.nn.Tanh())
    model.set_submodule("0.new", lib.nn.Sigmoid())
    errors = []
    for target, strict in (("", False), ("0.other", True), ("1.x", False)):
        try:
            model.set_submodule(target, lib.nn.ReLU(), strict=strict)
        except (ValueError, AttributeError) as error:
            errors.append(type(error).__name__)
    return repr(model), errors


@program
def meta_to_empty(lib: Any) -> Any:
    model = lib.nn.Sequential(
        lib.nn.Linear(2, 3, device="meta"), lib.nn.BatchNorm1d(3, device="meta")
    )
    model.to_empty(device="cpu")
    return [(str(t.device), tuple(t.shape)) for t in [*model.parameters(), *model.buffers()]]


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: run.__name__)
def test_both_note_the_same(run: Program) -> None:
    assert run(plait) == run(torch)


def test_no_public_method_is_missing() -> None:
    """All of torch's but those of hardware that plait knows nothing of."""
    ours, theirs = dir(plait.nn.Module), dir(torch.nn.Module)
    missing = {name for name in theirs if not name.startswith("_")} - set(ours)
    assert missing == {"T_destination", "ipu", "mtia", "xpu"}

"""Names that exist only for imports of libraries: their use raises an error with the name."""

from __future__ import annotations

import builtins
import importlib
from enum import Enum
from typing import Any

import pytest

from plait_torch import _dir_names, _named_only
from plait_torch._missing import advice

NAMES = [(place, name) for place, names in _named_only.NAMES.items() for name in names.split()]


def module_of(place: str) -> Any:
    return importlib.import_module(f"torch.{place}".rstrip("."))


@pytest.mark.parametrize("place", _named_only.places())
def test_each_module_has_its_names(torch: Any, place: str) -> None:
    module = module_of(place)
    refuses = place in {*_named_only.NAMES, *_named_only.ENUMS, *_named_only.VALUES}
    assert not place or not refuses or advice(f"torch.{place}")
    own = _named_only.NAMES.get(place, "").split()
    for table in (_named_only.ENUMS, _named_only.ERRORS, _named_only.VALUES):
        own += table.get(place, {})
    assert all(hasattr(module, name) for name in own) and len(own) == len(set(own))
    listed = _dir_names.of(f"torch.{place}")
    assert {name for name in own if listed is None or name in listed} <= set(dir(module))


def test_every_use_raises_an_error_with_the_name(torch: Any) -> None:
    for place, name in NAMES:
        thing = getattr(getattr(_named_only, place or "torch"), name)
        if getattr(module_of(place), name) is not thing:
            assert "distributed" in place  # the package for several processes has it
        with pytest.raises(NotImplementedError, match=name) as refused:
            thing()
        text = str(refused.value)
        assert text.startswith("torch.") and len(text.partition("; ")[2]) > 20, text
        if isinstance(thing, type):
            assert not isinstance(torch.ones(1), thing) and thing.__name__ == name
            assert issubclass(type("Own", (thing,), {}), thing)
        else:
            assert thing.__name__ == name


def test_classes_are_the_same_everywhere(torch: Any) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel as One
    from torch.distributed.fsdp.fully_sharded_data_parallel import (
        FullyShardedDataParallel as Two,
    )

    assert One is Two and torch.distributed.TCPStore is torch.distributed.distributed_c10d.TCPStore
    assert torch.distributed.DeviceMesh is torch.distributed.device_mesh.DeviceMesh
    with pytest.raises(ImportError, match=r"torch\.distributed\.fsdp\.nothing is not available"):
        from torch.distributed.fsdp import nothing  # noqa: F401


def test_settings_and_errors(torch: Any) -> None:
    for place, table in _named_only.ENUMS.items():
        module = module_of(place)
        for name, members in table.items():
            kind = getattr(module, name)
            assert issubclass(kind, Enum) and [each.name for each in kind] == members.split()
    for place, errors in _named_only.ERRORS.items():
        module = module_of(place)
        for name, base in errors.items():
            error = getattr(module, name)
            kind = (
                getattr(module, base) if base in errors else getattr(builtins, base, RuntimeError)
            )
            assert issubclass(error, kind)
    with pytest.raises(torch.distributed.DistError):
        raise torch.distributed.DistBackendError("told")
    world = torch.distributed.distributed_c10d._world
    assert world.default_pg is None and world.pg_map == {}
    assert torch.distributed.distributed_c10d.default_pg_timeout.total_seconds() == 1800
    from torch.distributed.checkpoint.stateful import Stateful

    assert isinstance(torch.nn.Linear(1, 1), Stateful) and not isinstance(3, Stateful)
    assert torch.distributed.Backend.default_device_backend_map["cpu"] == "gloo"


def test_modules_that_compute_again(torch: Any) -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        ActivationWrapper,
        CheckpointImpl,
        CheckpointWrapper,
        apply_activation_checkpointing,
        checkpoint_wrapper,
    )

    calls = []

    class Layer(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            calls.append(1)
            return super().forward(x).tanh()

    torch.manual_seed(0)
    model = torch.nn.Sequential(Layer(3, 3), torch.nn.Sequential(Layer(3, 3)), torch.nn.Tanh())
    x = torch.randn(2, 3)
    model(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    names, state = [name for name, _ in model.named_parameters()], model.state_dict()
    model.zero_grad()
    calls.clear()
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Layer))
    assert isinstance(model[0], CheckpointWrapper) and isinstance(model[1][0], ActivationWrapper)
    assert isinstance(model[0]._checkpoint_wrapped_module, Layer) and model[0].in_features == 3
    model(x).sum().backward()
    assert len(calls) == 4  # two forward passes of each
    assert all(torch.equal(p.grad, w) for p, w in zip(model.parameters(), expected, strict=True))
    assert [name for name, _ in model[0].named_parameters()] == ["weight", "bias"]
    assert list(model.state_dict()) == names == list(state)
    model.load_state_dict({name: torch.ones_like(value) for name, value in state.items()})
    assert (model[1][0].weight == 1).all()

    seen = []
    wrapped = checkpoint_wrapper(
        torch.nn.ModuleList([Layer(1, 1)]),
        CheckpointImpl.REENTRANT,
        lambda module, *args, **options: seen.append((args, options)),
        debug=True,
    )
    wrapped(1)
    assert seen == [((1,), {"debug": True})] and isinstance(wrapped[0], Layer)
    with pytest.raises(NotImplementedError, match="must define it"):
        ActivationWrapper(Layer(1, 1))(x)
    with pytest.raises(NotImplementedError, match="check_fn"):
        apply_activation_checkpointing(model, auto_wrap_policy=print)
    with pytest.raises(AttributeError):
        _ = model[0].nothing

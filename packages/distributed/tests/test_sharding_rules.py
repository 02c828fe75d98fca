"""Sharding rules are those of operators' definitions: no list of names, and each rule in code."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
from plait_abi import binding
from plait_distributed.device_mesh import DeviceMesh, init_device_mesh
from plait_distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    _rules,
    distribute_tensor,
)
from plait_ops import specs

Ranks = Callable[..., list[Any]]


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    dist.init_process_group(init_method=f"shm:{secrets.token_hex(8)}", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_rules_in_code_are_those_that_definitions_name() -> None:
    named = {spec.name for spec in specs.all() if spec.sharding[:1] == "C"}
    assert set(_rules._CODE) == named and len(named) == 6


def test_every_rule_of_a_definition_is_found() -> None:
    for spec in specs.all():
        operator = binding.operator(spec.name)
        assert operator.sharding[0] == (spec.sharding or None), spec
        names = [name for name, _ in _rules._parameters(operator.schemas[0])]
        assert names == [each.name for each in spec.schema.arguments], spec


def test_terms_of_a_sum_pass_linear_operators_alone(mesh: DeviceMesh) -> None:
    x, y = (DTensor.from_local(pc.ones(2), mesh, [Partial()]) for _ in range(2))
    for result in (
        x + y,
        x - y,
        -x,
        x * 2,
        x / 2,
        x * pc.tensor(2.0),
        x.clone(),
        pc.add(x, y, alpha=2),
    ):
        assert result.placements == (Partial(),)
    # 1 would be added on each rank; a sum of rounded terms is not the rounded sum
    for call in (
        lambda: x + 1,
        lambda: x - 1,
        lambda: 1 - x,
        lambda: x * y,
        lambda: pc.div(x, 2, rounding_mode="floor"),
        lambda: x.exp(),
        lambda: x + pc.tensor(1.0),
    ):
        with pytest.raises(NotImplementedError, match="there is no rule for DTensors"):
            call()


def test_elements_meet_along_named_dimensions(mesh: DeviceMesh) -> None:
    x = DTensor.from_local(pc.ones(2, 3), mesh, [Shard(0)])
    for result in (x.softmax(1), pc.log_softmax(x, dim=-1), pc.special.softmax(x, axis=1)):
        assert result.placements == (Shard(0),)
    for call in (lambda: x.softmax(0), lambda: pc.softmax(x, axis=-2)):
        with pytest.raises(NotImplementedError, match="there is no rule for DTensors"):
            call()
    whole = DTensor.from_local(pc.ones(2, 3), mesh, [Replicate()])
    assert whole.softmax(0).placements == (Replicate(),)


def test_all_functions_of_elements_compute_on_parts(mesh: DeviceMesh) -> None:
    x = DTensor.from_local(pc.tensor([0.25, 0.5]), mesh, [Shard(0)])
    for name in ("erfc", "log2", "hardtanh", "lgamma", "logit", "arcsin"):
        operator = binding.operator(name)
        if operator.sharding[0]:
            assert operator(x).placements == (Shard(0),), name


def _place_tensor(whole: pc.Tensor, mesh: DeviceMesh, place: Placement) -> DTensor:
    """Return a tensor that ranks hold as a placement says."""
    if isinstance(place, Partial):  # terms: twice the tensor, and what is too much
        term = whole * 2 if dist.get_rank() == 0 else -whole
        return DTensor.from_local(term, mesh, [place])
    return distribute_tensor(whole, mesh, [place])


def _calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    dims: list[dict[str, Any]] = [{}, {"dim": ()}, *({"dim": d} for d in (0, 1, -1, (0, 1)))]
    for options in [*dims, {"keepdim": True}, *({**d, "keepdim": True} for d in dims[1:])]:
        for name in ("sum", "mean", "amax", "amin", "max", "min", "norm"):
            yield name, (), options
    for name, dim in itertools.product(("sum", "mean", "amax", "max"), (0, 1)):
        yield name, (dim,), {}
    for order in (0, 1, 2, 3, -1, float("inf"), float("-inf"), "fro"):
        yield "norm", (order,), {}
    for name in ("sum", "mean", "norm"):
        yield name, (), {"dtype": pc.float64}
    for name in ("normal_", "uniform_", "bernoulli_"):
        yield name, (), {}
    for dtype in (pc.float64, pc.int32, pc.bool):
        yield "to", (dtype,), {}


def _wrong_reductions(rank: int) -> list[str]:
    mesh, wrong, right = init_device_mesh("cpu", (2,)), [], 0
    wholes = [
        pc.tensor([[-3.0, 1.5, 0.25], [2.0, -0.5, 4.0], [7.0, -6.0, 0.75]]),
        pc.tensor([[-3.0, 1.5, 0.25]]),  # the second rank may have nothing
        pc.full((1, 2), float("-inf")),
        pc.tensor([[3, -1], [2, 5], [0, 4]]),
        pc.tensor([[True, False]]),
        pc.full((4, 20), 3000.0, dtype=pc.float16),  # their sum is more than the largest half
    ]
    for whole, (name, args, options) in itertools.product(wholes, _calls()):

        def call(x: Any, name: str = name, args: Any = args, options: Any = options) -> Any:
            pc.manual_seed(5)
            return getattr(x, name)(*args, **options)

        try:
            want = call(whole.clone())
        except (TypeError, RuntimeError) as error:
            want = error
        has_terms = whole.dtype != pc.bool and bool((whole.abs() < 100).all())
        for place in (Replicate(), Shard(0), Shard(1), Partial()):
            if isinstance(place, Partial) and not has_terms:
                continue
            try:
                result = call(_place_tensor(whole, mesh, place))
            except NotImplementedError:
                continue
            except (TypeError, RuntimeError) as error:
                if not isinstance(want, Exception):
                    wrong.append(f"{name} {args} {options} of {whole.tolist()}, {place}: {error}")
                continue
            parts = result if isinstance(result, tuple) else (result,)
            wants = want if isinstance(want, tuple) else (want,)
            for part, each in zip(parts, wants, strict=True):
                same = isinstance(each, pc.Tensor) and part.shape == each.shape
                if not same or not pc.allclose(part.full_tensor(), each, equal_nan=True):
                    wrong.append(f"{name} {args} {options} of {whole.tolist()}, {place}: {part}")
            right += 1
    return wrong if right > 500 else [f"only {right} calls have rules"]


def test_reductions_of_parts_are_those_of_the_whole(ranks: Ranks) -> None:
    for wrong in ranks(2, _wrong_reductions):
        assert not wrong


def _forms(rank: int) -> None:
    mesh = init_device_mesh("cpu", (2,))
    x = distribute_tensor(pc.tensor([[1.0, -2.0], [3.0, 4.0]]), mesh, [Shard(0)])
    with pytest.raises(NotImplementedError, match="where: there is no rule"):
        pc.where(x > 0)
    into = pc.zeros_like(x)
    assert pc.exp(x, out=into) is into
    assert pc.equal(into.full_tensor(), x.full_tensor().exp())
    number = distribute_tensor(pc.tensor(2.0), mesh, [Replicate()])
    assert number.softmax(0).full_tensor() == 1


def test_other_forms_of_an_operator_have_no_rule_by_its_name(ranks: Ranks) -> None:
    ranks(2, _forms)

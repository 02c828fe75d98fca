"""Sharding rules are those of operators' definitions: no list of names, and each rule in code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import plait_core as pc
import plait_distributed as dist
from plait_abi import binding
from plait_distributed.device_mesh import DeviceMesh, init_device_mesh
from plait_distributed.tensor import DTensor, Partial, Replicate, Shard, _rules
from plait_ops import specs


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    dist.init_process_group(init_method="shm:sharding-rules", rank=0, world_size=1)
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
    for made in (
        x + y,
        x - y,
        -x,
        x * 2,
        x / 2,
        x * pc.tensor(2.0),
        x.clone(),
        pc.add(x, y, alpha=2),
    ):
        assert made.placements == (Partial(),)
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
    for made in (x.softmax(1), pc.log_softmax(x, dim=-1), pc.special.softmax(x, axis=1)):
        assert made.placements == (Shard(0),)
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

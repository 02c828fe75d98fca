"""`FullyShardedDataParallel`: its strategies and states, against one process."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_distributed.checkpoint import get_model_state_dict
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel as FSDP,  # noqa: N817
    MixedPrecision,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictType as Kind,
)
from plait_distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from plait_distributed.tensor import DTensor

SMALL = functools.partial(size_based_auto_wrap_policy, min_num_params=30)


def net() -> Any:
    return nn.Sequential(
        nn.Linear(5, 7), nn.Sequential(nn.Tanh(), nn.Linear(7, 7)), nn.Linear(7, 3)
    )


def batches(size: int) -> Any:
    pc.manual_seed(3)
    return pc.randn(3, 2 * size, 5)


def train(model: Any, data: Any, max_norm: float | None = None) -> list[float]:
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    norms = []
    for batch in data:
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        if isinstance(model, FSDP):
            norms.append(model.clip_grad_norm_(max_norm or 1e9).item())
        else:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm or 1e9).item())
        optimizer.step()
    return norms


@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD"])
@pytest.mark.parametrize("policy", [None, ModuleWrapPolicy({nn.Linear}), SMALL])
def test_it_is_one_process(ranks: Any, strategy: str, policy: Any) -> None:
    size = 4 if strategy == "HYBRID_SHARD" else 2
    pc.manual_seed(0)
    one = net()
    norms = train(one, batches(size), 0.1)

    def work(rank: int) -> Any:
        pc.manual_seed(rank)
        mesh = init_device_mesh("cpu", (2, 2)) if size == 4 else None
        kind = ShardingStrategy[strategy]
        model = FSDP(net(), None, kind, None, policy, sync_module_states=True, device_mesh=mesh)
        own = train(model, batches(size)[:, 2 * rank : 2 * rank + 2], 0.1)
        n_elements = sum(p.to_local().numel() for p in model.parameters())
        return {name: x.numpy() for name, x in model.state_dict().items()}, own, n_elements

    total = sum(p.numel() for p in one.parameters())
    for state, own, n_elements in ranks(size, work):
        assert own == pytest.approx(norms, rel=1e-4)
        assert (n_elements == total) if strategy == "NO_SHARD" else (n_elements < 0.7 * total)
        assert list(state) == list(one.state_dict())
        for name, x in one.state_dict().items():
            assert abs(state[name] - x.numpy()).max() < 1e-5


def test_states(ranks: Any) -> None:
    def work(rank: int) -> None:
        pc.manual_seed(rank)
        model = FSDP(net(), auto_wrap_policy={nn.Linear}, sync_module_states=True)
        optimizer = optim.Adam(model.parameters())
        whole = model.state_dict()
        with FSDP.state_dict_type(model, Kind.SHARDED_STATE_DICT):
            parts = model.state_dict()
        with FSDP.state_dict_type(
            model, Kind.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)
        ):
            assert bool(model.state_dict()) == (rank == 0)
        assert all(isinstance(x, DTensor) for x in parts.values())
        assert list(parts) == list(whole) == list(get_model_state_dict(model))
        for state in (whole, parts):
            other = FSDP(net())
            other.load_state_dict(state)
            for name, x in other.state_dict().items():
                assert (x == whole[name]).all()
        model(pc.ones(2, 5)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        state = FSDP.optim_state_dict(model, optimizer)
        assert set(state["state"]) == set(whole)
        assert state["state"]["2.bias"]["exp_avg"].shape == (3,)
        others = optim.Adam(model.parameters())
        others.load_state_dict(FSDP.optim_state_dict_to_load(model, others, state))
        again = FSDP.optim_state_dict(model, others)["state"]
        assert (again["2.bias"]["exp_avg"] == state["state"]["2.bias"]["exp_avg"]).all()
        by_number = FSDP.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_ID, model)
        names = list(whole)
        assert sorted(by_number["state"]) == list(range(len(names)))
        assert by_number["param_groups"][0]["params"] == list(range(len(names)))
        for i, name in enumerate(names):
            assert by_number["state"][i] is state["state"][name]
        named = FSDP.rekey_optim_state_dict(
            by_number, OptimStateKeyType.PARAM_NAME, model, optim=optimizer
        )
        assert set(named["state"]) == set(names)
        assert named["param_groups"][0]["params"] == sorted(names)
        with FSDP.summon_full_params(model), pa.no_grad():
            assert model.module[0].weight.shape == (7, 5)
            assert not isinstance(model.module[0].weight, DTensor)
            model.module[0].weight.fill_(2)
        assert (model.state_dict()["0.weight"] == 2).all()

    ranks(2, work)


def test_no_sync_and_halves(ranks: Any) -> None:
    def work(rank: int) -> Any:
        pc.manual_seed(0)
        dtypes = MixedPrecision(pc.bfloat16, pc.float32)
        model = FSDP(net(), auto_wrap_policy={nn.Linear}, mixed_precision=dtypes)
        x = pc.ones(1, 5) * (rank + 1)
        with model.no_sync():
            model(x).sum().backward()
        assert all(p.grad is None for p in model.parameters())
        y = model(x)
        y.sum().backward()
        assert y.dtype is pc.bfloat16
        return model.module[2].bias.grad.full_tensor().tolist()

    assert ranks(2, work) == [[2.0] * 3] * 2


@pytest.mark.usefixtures("alone")
def test_errors() -> None:
    with pytest.raises(ValueError, match="HYBRID_SHARD needs a `device_mesh`"):
        FSDP(net(), sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    with pytest.raises(NotImplementedError, match="LOCAL_STATE_DICT"):
        FSDP.set_state_dict_type(FSDP(net()), Kind.LOCAL_STATE_DICT)

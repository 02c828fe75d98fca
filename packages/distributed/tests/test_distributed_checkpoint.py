"""Checkpoints of several ranks: resharding, crashes, damage, exact resume."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_distributed.checkpoint as dcp
import plait_nn as nn
import plait_optim as optim
from plait_distributed.checkpoint import CheckpointException, StateDictOptions
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.fsdp import fully_shard
from plait_distributed.tensor import DTensor, Shard, distribute_tensor


def net() -> Any:
    return nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.3), nn.ReLU(), nn.Linear(7, 5))


def built(sharded: bool = True) -> tuple[Any, Any]:
    model = net()
    if sharded:
        fully_shard(model[0])
        fully_shard(model)
    return model, optim.AdamW(model.parameters(), lr=0.05)


def train(model: Any, optimizer: Any, steps: range) -> None:
    for _ in steps:
        model(pc.randn(4, 5)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def state_of(model: Any, optimizer: Any) -> dict[str, Any]:
    own, its = dcp.get_state_dict(model, optimizer)
    rank = dist.get_rank() if dist.is_initialized() else 0
    return {"model": own, "optimizer": its, f"generator {rank}": pc.get_rng_state(), "step": 3}


def whole(model: Any) -> list[Any]:
    return [
        (p.full_tensor() if isinstance(p, DTensor) else p).detach().numpy()
        for p in model.parameters()
    ]


def test_it_goes_on_exactly(ranks: Any, tmp_path: Path) -> None:
    """Dropout and data are those of the generator, which each rank saves under its own name."""

    def work(rank: int) -> Any:
        pc.manual_seed(rank)
        model, optimizer = built()
        train(model, optimizer, range(3))
        dcp.save(state_of(model, optimizer), checkpoint_id=tmp_path)
        train(model, optimizer, range(2))
        want = whole(model)
        pc.manual_seed(99)
        model, optimizer = built()
        state = {**state_of(model, optimizer), "step": 0}
        dcp.load(state, checkpoint_id=tmp_path)
        assert state["step"] == 3
        dcp.set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        pc.set_rng_state(state[f"generator {rank}"])
        train(model, optimizer, range(2))
        return [(a == b).all() for a, b in zip(whole(model), want, strict=True)]

    assert all(all(result) for result in ranks(2, work))


def test_another_number_of_ranks(ranks: Any, tmp_path: Path) -> None:
    def save(rank: int) -> Any:
        pc.manual_seed(0)
        model, optimizer = built()
        train(model, optimizer, range(2))
        own, its = dcp.get_state_dict(model, optimizer)
        dcp.save({"model": own, "optimizer": its}, checkpoint_id=tmp_path)
        options = StateDictOptions(full_state_dict=True)
        state = dcp.get_optimizer_state_dict(model, optimizer, options=options)["state"]
        return whole(model), {name: s["exp_avg"].numpy() for name, s in state.items()}

    want, moments = ranks(4, save)[0]

    def load(rank: int, sharded: bool = True) -> Any:
        model, optimizer = built(sharded)
        own, its = dcp.get_state_dict(model, optimizer)
        state = {"model": own, "optimizer": its}
        dcp.load(state, checkpoint_id=tmp_path)
        dcp.set_state_dict(model, optimizer, model_state_dict=own, optim_state_dict=its)
        named = dict(model.named_parameters())
        results = {name: optimizer.state[p]["exp_avg"] for name, p in named.items()}
        assert {s["step"] for s in optimizer.state.values()} == {2}
        results = {k: v.full_tensor() if sharded else v for k, v in results.items()}
        return whole(model), {name: x.numpy() for name, x in results.items()}

    for parameters, results in [*ranks(3, load), *ranks(2, load), load(0, False)]:
        for own, other in zip(parameters, want, strict=True):
            assert (own == other).all()
        for name, other in moments.items():
            assert (results[name] == other).all()


def test_full_states(ranks: Any) -> None:
    pc.manual_seed(4)
    one, its = built(False)
    train(one, its, range(2))
    state, others = dcp.get_state_dict(one, its)

    def work(rank: int) -> Any:
        model, optimizer = built()
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        first = rank == 0
        dcp.set_state_dict(
            model,
            optimizer,
            model_state_dict=state if first else {},
            optim_state_dict=others if first else {"state": {}, "param_groups": []},
            options=options,
        )
        back = StateDictOptions(full_state_dict=True, cpu_offload=True)
        own, its = dcp.get_state_dict(model, optimizer, options=back)
        if not first:
            assert own == its == {}
            return None
        for name, value in state.items():
            assert (own[name] == value).all()
        for name, each in others["state"].items():
            assert (its["state"][name]["exp_avg_sq"] == each["exp_avg_sq"]).all()
        return True

    assert ranks(2, work)[0]


def test_in_the_background(ranks: Any, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(pc.arange(5.0), mesh, [Shard(0)])
        saves = []
        for i in range(3):
            saves.append(dcp.async_save({"x": x, "i": i}, checkpoint_id=tmp_path / str(i)))
            x.add_(1)
            dist.all_reduce(pc.ones(1000))  # collectives of the program go on
        for i, each in enumerate(saves):
            each.result(20)
            state = {"x": x.detach().clone(), "i": None}
            dcp.load(state, checkpoint_id=tmp_path / str(i))
            assert state["i"] == i
            assert (state["x"].full_tensor() == pc.arange(5.0) + i).all()
        dist.barrier()

    ranks(2, work)


def test_a_crash_leaves_the_old_checkpoint(outcomes: Any, ranks: Any, tmp_path: Path) -> None:
    def save(value: float, die: bool) -> Any:
        def work(rank: int) -> None:
            if die and rank == 1:
                replace = os.replace

                def replace_and_die(*args: Any) -> None:
                    replace(*args)
                    os.kill(os.getpid(), signal.SIGKILL)

                os.replace = replace_and_die  # type: ignore[assignment]
            mesh = init_device_mesh("cpu", (2,))
            x = distribute_tensor(pc.full((4,), value), mesh, [Shard(0)])
            dcp.save({"x": x}, checkpoint_id=tmp_path)

        return work

    def load() -> float:
        state = {"x": pc.zeros(4)}
        dcp.load(state, checkpoint_id=tmp_path)
        return state["x"].mean().item()

    lost, killed = outcomes(2, save(1.0, True))
    assert killed is None
    assert isinstance(lost, Exception)
    with pytest.raises(CheckpointException, match=r"\.metadata"):
        load()
    ranks(2, save(2.0, False))
    assert load() == 2.0
    outcomes(2, save(3.0, True))
    assert load() == 2.0
    ranks(2, save(4.0, False))
    assert load() == 4.0
    assert len(list(tmp_path.iterdir())) == 3  # two shards and the index: nothing is left behind


def test_an_error_of_one_rank_is_one_of_all(outcomes: Any, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        dcp.save({f"x {rank}": object() if rank else 1}, checkpoint_id=tmp_path)

    for result in outcomes(2, work):
        assert isinstance(result, CheckpointException)
        assert "save: rank 1: CheckpointError" in str(result)
    assert not list(tmp_path.iterdir())

    def differ(rank: int) -> None:
        dcp.save({"x": pc.ones(2 + rank)}, checkpoint_id=tmp_path)

    for result in outcomes(2, differ):
        assert "x is of shape (3,)" in str(result)


def test_damage_is_found(tmp_path: Path) -> None:
    dcp.save({"x": pc.arange(1000), "y": [1, "two"]}, checkpoint_id=tmp_path)
    state = {"x": pc.zeros(1000, dtype=pc.int64), "y": None}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["y"] == [1, "two"]
    assert (state["x"] == pc.arange(1000)).all()
    [shard] = tmp_path.glob("*.safetensors")
    content = bytearray(shard.read_bytes())
    content[-5] ^= 1
    shard.write_bytes(content)
    with pytest.raises(CheckpointException, match="load: rank 0: CheckpointError"):
        dcp.load(state, checkpoint_id=tmp_path)
    shard.unlink()
    with pytest.raises(CheckpointException, match=r"No such file|not be opened"):
        dcp.load(state, checkpoint_id=tmp_path)


def test_what_is_missing(tmp_path: Path) -> None:
    dcp.save({"a": {"b": pc.ones(2)}}, checkpoint_id=tmp_path)
    with pytest.raises(CheckpointException, match=r"a\.c is missing in the checkpoint"):
        dcp.load({"a": {"c": pc.ones(2)}}, checkpoint_id=tmp_path)
    with pytest.raises(CheckpointException, match=r"shape \(2,\) in the checkpoint, and \(3,\)"):
        dcp.load({"a": {"b": pc.ones(3)}}, checkpoint_id=tmp_path)
    state = {"a": {"b": pc.zeros(2), "c": 1}}
    dcp.load(state, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert state["a"]["c"] == 1
    assert state["a"]["b"].sum().item() == 2
    writer = dcp.FileSystemWriter(tmp_path, overwrite=False)
    with pytest.raises(CheckpointException, match="`overwrite` is False"):
        dcp.save({"a": 1}, storage_writer=writer)
    with pytest.raises(CheckpointException, match="two entries"):
        dcp.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)


def test_lists_that_occur_often_are_visited_once(alone: None, tmp_path: Path) -> None:
    value: Any = [1.5]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(CheckpointException, match="occurs several times"):
        dcp.save({"value": value}, checkpoint_id=tmp_path / "checkpoint")

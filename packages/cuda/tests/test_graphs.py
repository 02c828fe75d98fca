"""Work that is recorded once and done again (plait.cuda.CUDAGraph)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from emulation_control import run_program

import plait_core as pc

cuda = pc.cuda


def record(function: Any, **words: Any) -> tuple[Any, Any]:
    """Return a graph of a function's work and the function's result."""
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **words):
        result = function()
    return graph, result


def test_a_graph_reads_what_its_tensors_hold() -> None:
    x = pc.ones(1000, device="cuda")
    graph, y = record(lambda: (x * 2 + 1).exp().log())
    for value in (3.0, -2.0):
        x.fill_(value)
        graph.replay()
        assert pc.allclose(y.cpu(), pc.full((1000,), 2 * value + 1), atol=1e-4)


def test_memory_of_a_graph_is_not_given_to_others() -> None:
    x = pc.ones(1 << 16, device="cuda")
    graph, y = record(lambda: (x + 1) * 3)
    others = [pc.zeros(1 << 16, device="cuda") for _ in range(20)]
    graph.replay()
    assert float(y.cpu().min()) == 6.0
    assert all(float(each.cpu().abs().max()) == 0 for each in others)
    segments = [each for each in cuda.memory_snapshot(0) if each["is_private"]]
    assert segments
    del y
    graph.reset()
    cuda.empty_cache()
    assert len([each for each in cuda.memory_snapshot(0) if each["is_private"]]) < len(segments)


def test_two_graphs_share_a_pool() -> None:
    pool = cuda.graph_pool_handle()
    x = pc.ones(100, device="cuda")
    first, y = record(lambda: x + 1, pool=pool)
    second, z = record(lambda: y * 5, pool=first.pool())
    x.fill_(3)
    first.replay()
    second.replay()
    assert z.cpu().tolist() == [20.0] * 100


def test_random_numbers_differ_from_run_to_run_and_follow_the_seed() -> None:
    cuda.manual_seed(7)
    graph, x = record(lambda: pc.rand(64, device="cuda"))
    y = pc.empty(64, device="cuda")
    cuda.manual_seed(3)
    graph.replay()
    first = x.cpu()
    graph.replay()
    second = x.cpu()
    assert not pc.equal(first, second)
    cuda.manual_seed(3)
    y.uniform_()
    assert pc.equal(y.cpu(), first)  # the numbers that a call outside of a graph draws
    y.uniform_()
    assert pc.equal(y.cpu(), second)
    cuda.manual_seed(4)
    graph.replay()
    assert not pc.equal(x.cpu(), first)


def test_two_draws_of_one_graph_differ() -> None:
    cuda.manual_seed(1)
    graph, (x, y) = record(lambda: (pc.rand(8, device="cuda"), pc.rand(8, device="cuda")))
    graph.replay()
    assert not pc.equal(x.cpu(), y.cpu())


def test_a_stream_that_joins_must_be_waited_for() -> None:
    x, other = pc.ones(10, device="cuda"), cuda.Stream()

    def fork(join: bool) -> Any:
        here = cuda.current_stream()
        other.wait_stream(here)
        with cuda.stream(other):
            y = x * 4
        if join:
            here.wait_stream(other)
        return y

    graph, y = record(lambda: fork(True))
    x.fill_(2)
    graph.replay()
    assert y.cpu().tolist() == [8.0] * 10
    with pytest.raises(RuntimeError, match="was not waited for"):
        record(lambda: fork(False))
    assert (x + 1).cpu().tolist() == [3.0] * 10


def test_what_cannot_be_recorded_is_an_error_and_the_device_goes_on() -> None:
    x = pc.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        record(lambda: (x + 1).sum().item())
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        cuda.CUDAGraph().replay()
    with pytest.raises(RuntimeError, match="without `begin`"):
        cuda.CUDAGraph().capture_end()
    with pytest.raises(ValueError, match="default stream cannot be recorded"):
        cuda.CUDAGraph().capture_begin()
    graph, _ = record(lambda: x + 1)
    with pytest.raises(RuntimeError, match="already been captured"):
        graph.capture_begin()
    assert not cuda.is_current_stream_capturing()
    assert (x + 1).cpu().tolist() == [2.0] * 3


def test_the_first_backward_pass_of_a_program_is_recorded() -> None:
    run_program("""
        x = plait.ones(1000, device="cuda", requires_grad=True)
        graph = plait.cuda.CUDAGraph()
        with plait.cuda.graph(graph):
            (x * 2).sum().backward()
        graph.replay()
        assert x.grad.cpu().tolist() == [2.0] * 1000
    """)


def test_backward_passes_stay_in_the_stream_of_the_forward_pass() -> None:
    for n in (1, 2, 3, 5, 8, 13):  # nodes of several sizes, whose memory served others
        shape = (2,) * min(n, 5)
        plain = [pc.ones(shape, requires_grad=True) for _ in range(n)]
        pc.stack([each * 2 for each in plain]).sum().backward()
        del plain
        xs = [pc.ones(shape, device="cuda", requires_grad=True) for _ in range(n)]
        graph, _ = record(lambda: pc.stack([each * 3 for each in xs]).sum().backward())  # noqa: B023
        graph.replay()
        assert all(float(each.grad.cpu().max()) == 3.0 for each in xs if each.grad is not None)


def test_a_graph_runs_on_its_device() -> None:
    run_program(
        """
        x = plait.ones(4, device="cuda:1")
        with plait.cuda.device(1):
            graph = plait.cuda.CUDAGraph()
            with plait.cuda.graph(graph):
                y = x * 2
        x.fill_(4)
        graph.replay()  # of cuda:1, while cuda:0 is the current device
        assert y.cpu().tolist() == [8.0] * 4 and plait.cuda.current_device() == 0
        """,
        PLAIT_CUDA_DEVICES="2",
    )


def test_pinned_memory_that_a_graph_copies_is_not_given_to_others() -> None:
    graph, x = record(lambda: pc.tensor([1.0, 2.0]).pin_memory().to("cuda", non_blocking=True) * 1)
    others = [pc.tensor([8.0, 9.0]).pin_memory() for _ in range(4)]
    graph.replay()
    assert x.cpu().tolist() == [1.0, 2.0]
    target = pc.zeros(4, device="cuda")
    source = pc.ones(4).pin_memory()
    address = source.data_ptr()
    part = target[1:]
    graph, _ = record(partial(part.copy_, source[1:], non_blocking=True))
    del source
    others += [pc.full((4,), 7.0).pin_memory() for _ in range(4)]
    graph.replay()
    assert target.cpu().tolist() == [0.0, 1.0, 1.0, 1.0]
    assert all(each.data_ptr() != address for each in others)
    graph.reset()
    assert pc.empty(4).pin_memory().data_ptr() == address


def test_steps_that_count_on_the_host_are_not_recorded() -> None:
    optim = pytest.importorskip("plait_optim")

    def train(kind: Any, **options: Any) -> tuple[list[float], list[float]]:
        results = []
        for recorded in (False, True):
            x = pc.ones(4, device="cuda", requires_grad=True)
            x.grad = pc.full((4,), 0.5, device="cuda")
            optimizer = kind([x], lr=0.1, **options)
            optimizer.step()  # makes the state
            graph = record(optimizer.step)[0] if recorded else None
            for _ in range(3):
                graph.replay() if graph else optimizer.step()
            results.append(x.detach().cpu().tolist())
        return results[0], results[1]

    capturable = {"capturable": True}
    for kind, options in (
        (optim.SGD, {"momentum": 0.9}),
        (optim.RMSprop, {}),
        (optim.Adam, {**capturable, "amsgrad": True}),
        (optim.AdamW, capturable),
        (optim.Adamax, capturable),
    ):
        eager, again = train(kind, **options)
        assert eager == again, kind
    with pytest.raises(RuntimeError, match=r"AdamW: its step depends on.*with capturable=True"):
        train(optim.AdamW)
    with pytest.raises(RuntimeError, match="NAdam: its step depends on the number of steps"):
        train(optim.NAdam)


def test_a_first_step_is_not_recorded() -> None:
    optim = pytest.importorskip("plait_optim")
    x = pc.ones(4, device="cuda", requires_grad=True)
    x.grad = pc.ones(4, device="cuda")
    optimizer = optim.Adam([x], capturable=True)
    with pytest.raises(RuntimeError, match="Adam: a graph would make the state anew each time"):
        record(optimizer.step)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_a_recorded_training_has_the_losses_of_steps_one_by_one(name: str) -> None:
    nn, optim = pytest.importorskip("plait_nn"), pytest.importorskip("plait_optim")
    pytest.importorskip("plait_autograd")
    pc.manual_seed(0)
    data = [(pc.randn(16, 6).to("cuda"), pc.randint(0, 3, (16,)).to("cuda")) for _ in range(6)]
    state: Any = None
    losses: list[list[float]] = []
    for recorded in (False, True):
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)).to("cuda")
        if state is None:
            state = {key: value.clone() for key, value in model.state_dict().items()}
        model.load_state_dict(state)
        optimizer = getattr(optim, name)(model.parameters(), lr=0.02, capturable=recorded)
        x, y = data[0][0].clone(), data[0][1].clone()

        def step() -> Any:
            optimizer.zero_grad(set_to_none=False)  # noqa: B023
            loss = nn.functional.cross_entropy(model(x), y)  # noqa: B023
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss

        losses.append([float(step()) for _ in range(2)])
        graph, loss = record(step) if recorded else (None, None)
        for inputs, targets in data * 3:
            x.copy_(inputs)
            y.copy_(targets)
            if graph is None:
                loss = step()
            else:
                graph.replay()
            losses[-1].append(float(loss.detach().cpu()))
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][-13]  # of the same inputs, twelve steps before

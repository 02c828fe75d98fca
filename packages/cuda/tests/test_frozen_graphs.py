"""Compiled functions of plait-graph: on a device their steps are recorded and done again."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emulation_control import Emulation, run_program

import plait_core as pc

autograd = pytest.importorskip("plait_autograd")
nn = pytest.importorskip("plait_nn")
optim = pytest.importorskip("plait_optim")
plait_graph = pytest.importorskip("plait_graph")

cuda = pc.cuda
functional = nn.functional
emulation = Emulation()
COUNTERS = ("graph_launches", "launches", "copies")


def compile(function: Any) -> Any:
    return plait_graph.compile(function, frozen=True)


def count(call: Callable[[], Any]) -> tuple[int, ...]:
    """Return how often a call launched graphs, launched kernels and copied."""
    before = [emulation.get(name) for name in COUNTERS]
    call()
    return tuple(emulation.get(name) - at for name, at in zip(COUNTERS, before, strict=True))


def randn(*shape: int) -> Any:
    return pc.randn(*shape).to("cuda")


class Perceptron(nn.Module):
    sizes, classes = (8, 6), 3

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.last(self.first(x).tanh())


class Convolutions(nn.Module):
    sizes, classes = (4, 3, 8, 8), 5

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.dropout, self.last = nn.Dropout(0.3), nn.Linear(64, 5)

    def forward(self, x: Any) -> Any:
        x = functional.max_pool2d(self.norm(self.convolution(x)).relu(), 2)
        return self.last(self.dropout(x.flatten(1)))


class Transformer(nn.Module):
    sizes, classes = (2, 8), 11

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(11, 16), nn.LayerNorm(16)
        self.qkv, self.project = nn.Linear(16, 48), nn.Linear(16, 16)
        self.wide, self.last = nn.Linear(16, 32), nn.Linear(32, 11)

    def forward(self, x: Any) -> Any:
        x = self.tokens((x.abs() * 5).long())
        parts = self.qkv(self.norm(x)).reshape(2, 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(2, 8, 16))
        return self.last(functional.gelu(self.wide(x)))[:, -1]


MODELS = [Perceptron, Convolutions, Transformer]


def training(kind: Any, optimizer: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """Return a model, its optimizer and a step of its training."""
    pc.manual_seed(0)
    model = kind().to("cuda")
    own = optimizer(model.parameters())

    def step(x: Any, y: Any) -> Any:
        own.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        own.step()
        return loss

    return model, own, step


def batches(kind: Any, n: int) -> list[tuple[Any, Any]]:
    pc.manual_seed(5)
    size = kind.sizes[0]
    return [
        (randn(*kind.sizes).tanh(), pc.randint(0, kind.classes, (size,)).to("cuda"))
        for _ in range(n)
    ]


def state_of(model: Any) -> list[Any]:
    tensors = [*model.state_dict().values(), *(p.grad for p in model.parameters())]
    return [tensor.cpu().tolist() for tensor in tensors]


def compare(kind: Any, optimizer: Callable[[Any], Any], change: Any = None) -> tuple[Any, Any]:
    """Return a compiled step and the counters of its last run, whose bits are those of eager
    steps.
    """
    results = []
    for compiled in (False, True):
        model, own, step = training(kind, optimizer)
        call, losses, counters = compile(step) if compiled else step, [], (0,)
        cuda.manual_seed(3)
        for i, batch in enumerate(batches(kind, 8)):
            counters = count(lambda: losses.append(call(*batch)))  # noqa: B023
            if change is not None:
                change(i, model, own)
        results.append(([each.item() for each in losses], state_of(model)))
    assert results[0] == results[1]
    return call, counters


@pytest.mark.parametrize("kind", MODELS)
def test_a_step_is_one_launch(kind: Any) -> None:
    step, (graphs, kernels, _) = compare(
        kind, lambda parameters: optim.AdamW(parameters, lr=0.01, capturable=True)
    )
    draws = any(node.op.startswith("dropout") for node in step.graphs()[0].nodes)
    # a graph that draws random numbers gets its offset from small fills
    assert graphs == 1 and kernels == (4 if draws else 0), step.device_graphs()
    assert "\n" not in step.device_graphs()[0]


def test_a_number_that_counts_stays_outside() -> None:
    step, (graphs, kernels, _) = compare(Perceptron, lambda params: optim.Adam(params, lr=0.01))
    assert (graphs, kernels) == (1, 1)
    assert "adam_step: the number adam.0.step changes" in step.device_graphs()[0]


def test_a_learning_rate_that_changes_stays_outside_from_then_on() -> None:
    def change(i: int, _: Any, optimizer: Any) -> None:
        if i == 5:
            optimizer.param_groups[0]["lr"] = 0.5

    step, (graphs, _, _) = compare(
        Perceptron, lambda params: optim.SGD(params, lr=0.1, momentum=0.9), change
    )
    assert graphs == 1
    assert "sgd_step: the number sgd.0.lr changes" in step.device_graphs()[0]


def test_weights_that_others_write_and_move() -> None:
    def change(i: int, model: Any, _: Any) -> None:
        with autograd.no_grad():
            if i == 5:
                model.last.bias += 1
            if i == 6:
                model.last.weight.data = model.last.weight.data * 2

    step, (graphs, _, _) = compare(Perceptron, lambda params: optim.SGD(params, lr=0.1), change)
    assert graphs == 0 and "not recorded yet" in step.device_graphs()[0]


def test_a_write_of_a_graph_is_seen_by_the_engine() -> None:
    w = pc.ones(3, device="cuda")

    def step(x: Any) -> Any:
        w.add_(x)
        return (w * 2).exp()

    call, x = compile(step), pc.ones(3, device="cuda", requires_grad=True)
    with autograd.no_grad():
        for _ in range(5):
            call(x)
        assert "1 graph of" in call.device_graphs()[0]
    y = (x * w).sum()
    with autograd.no_grad():
        call(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_model_in_inference_computes_constants_anew() -> None:
    pc.manual_seed(1)
    model = Convolutions().to("cuda").eval()
    call, x = compile(model), randn(4, 3, 8, 8)
    with autograd.no_grad():
        for i in range(8):
            results = [call(x), model(x)]
            assert pc.equal(*[each.cpu() for each in results])
            if i == 5:
                model.norm.running_var.mul_(2)
                model.norm.weight.fill_(0.5)
        assert count(lambda: call(x)) == (1, 0, 2)


def test_gradients_of_a_compiled_model() -> None:
    results = []
    for compiled in (False, True):
        pc.manual_seed(0)
        model = Perceptron().to("cuda")
        call = compile(model) if compiled else model
        for x, y in batches(Perceptron, 6):
            for parameter in model.parameters():
                parameter.grad = None
            functional.cross_entropy(call(x), y).backward()
        results.append([p.grad.cpu().tolist() for p in model.parameters()])
    assert results[0] == results[1]
    assert all("1 graph of" in text for text in call.device_graphs())


def test_results_of_earlier_runs_stay() -> None:
    double = compile(lambda x: ((x + x).exp(), x.sum()))
    x = pc.ones(3, device="cuda")
    results = []
    for i in range(7):
        x.fill_(i)
        results.append(double(x))
    assert "1 graph of" in double.device_graphs()[0]
    for i, (y, total) in enumerate(results):
        assert pc.equal(y, pc.full((3,), 2.0 * i, device="cuda").exp()) and total.item() == 3 * i


def test_operators_that_wait_are_called_between_graphs() -> None:
    def function(x: Any) -> Any:
        y = (x * 2).exp() + 1
        chosen = (y * y).masked_select(y > 2).sum()
        return (y.log() + 1) * 3, chosen

    call = compile(function)
    for i in range(7):
        x = randn(4, 5) + i
        for result, reference in zip(call(x), function(x), strict=True):
            assert pc.equal(result.cpu(), reference.cpu())
    text = call.device_graphs()[0]
    assert "masked_select: its results are new tensors in each run" in text
    assert count(lambda: call(x))[0] >= 1, text


def test_a_branch_is_called_between_graphs() -> None:
    def function(x: Any) -> Any:
        y = (x * 2).exp() + 1
        z = plait_graph.cond(y.sum() > 40, lambda t: (t * 2).sin(), lambda t: t - 1, (y,))
        return (z + 1) * 3 + y

    call = compile(function)
    for i in range(8):
        x = randn(4, 5) * (0.2 + i % 3)
        assert pc.equal(call(x).cpu(), function(x).cpu())
    assert "2 graphs of" in call.device_graphs()[0]
    assert "cond: how often its operators run" in call.device_graphs()[0]


def test_inputs_that_are_written_or_far_apart_or_on_the_host() -> None:
    def function(x: Any, total: Any) -> Any:
        y = (x.exp() + 1).log() * 2
        total.add_(y)
        return (y * y).tanh()

    call, total = compile(function), pc.zeros(4, device="cuda")
    expected = pc.zeros(4, device="cuda")
    for _ in range(7):
        x = randn(4)
        assert pc.equal(call(x, total).cpu(), function(x, expected).cpu())
    assert pc.equal(total.cpu(), expected.cpu())
    assert "add: the program writes to the input" in call.device_graphs()[0]
    whole = pc.zeros(2, 1 << 22, device="cuda")
    columns = whole[:, :2]
    call = compile(lambda x: (x + 1).exp().log())
    for i in range(6):
        whole.fill_(i)
        assert call(columns).cpu().flatten().tolist() == pytest.approx([i + 1.0] * 4)
    assert "lie far apart" in call.device_graphs()[0]


def test_an_input_in_memory_that_the_step_writes() -> None:
    results = []
    for compiled in (False, True):
        weight = pc.ones(4, device="cuda")
        other = pc.full((4,), 3.0, device="cuda")

        def step(x: Any) -> Any:
            weight.add_(1)  # noqa: B023
            return (x * 2).exp()

        call = compile(step) if compiled else step
        results.append([call(x).cpu().tolist() for x in [other] * 5 + [weight] * 3 + [other] * 2])
    assert results[0] == results[1]


def test_runs_of_several_streams_follow_each_other() -> None:
    emulation.set("delay_us", 200)
    try:
        pc.manual_seed(2)
        model = Perceptron().to("cuda")
        call = compile(model)
        streams = [cuda.current_stream(), cuda.Stream(), cuda.Stream()]
        xs = [randn(8, 6) for _ in range(12)]
        results = []
        with autograd.no_grad():
            for i, x in enumerate(xs):
                given = x.clone()
                streams[i % 3].wait_stream(streams[0])
                with cuda.stream(streams[i % 3]):
                    results.append(call(given))
                del given  # its memory is not given to others before the stream has read it
                pc.full((8, 6), 9.0, device="cuda")
            cuda.synchronize()
            assert "1 graph of" in call.device_graphs()[0]
            assert all(pc.equal(y, model(x)) for x, y in zip(xs, results, strict=True))
    finally:
        emulation.set("delay_us", 0)


def test_threads_call_one_program() -> None:
    model = Perceptron().to("cuda")
    call, x = compile(model), randn(8, 6)
    with autograd.no_grad():
        expected = call(x).cpu()
        for _ in range(5):
            call(x)
    results: list[Any] = []

    def run() -> None:
        with autograd.no_grad(), cuda.stream(cuda.Stream()):
            results.extend(call(x).cpu() for _ in range(10))

    cuda.synchronize()
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 30 and all(pc.equal(each, expected) for each in results)


def test_a_graph_of_the_user_records_the_operators() -> None:
    call = compile(lambda x: functional.dropout(x * 2, 0.5))
    x = pc.ones(64, device="cuda")
    for _ in range(6):
        call(x)
    assert "1 graph of" in call.device_graphs()[0]
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = call(x)
    x.fill_(3)
    results = []
    for _ in range(2):
        graph.replay()
        results.append(y.cpu())
    assert {*results[0].tolist()} == {0.0, 12.0} and not pc.equal(*results)


@pytest.fixture
def revived() -> Iterator[None]:
    yield
    emulation.set("alloc_fails_in", 0)
    emulation.set("launch_fails_in", 0)


@pytest.mark.usefixtures("revived")
def test_a_recording_that_fails_leaves_a_run_of_calls() -> None:
    call = compile(lambda x: ((x * 2).exp() + 1).log())
    x = randn(100)
    expected = ((x * 2).exp() + 1).log().cpu()
    for i in range(6):
        if i == 4:  # the recording
            emulation.set("launch_fails_in", 3)
        assert pc.equal(call(x).cpu(), expected)
    assert "log" in call.device_graphs()[0] or "exp" in call.device_graphs()[0]


def private_bytes() -> int:
    return sum(each["nbytes"] for each in cuda.memory_snapshot(0) if each["is_private"])


def test_memory_goes_with_the_function() -> None:
    gc.collect()
    cuda.empty_cache()
    before = cuda.memory_allocated(), emulation.get("live_bytes")
    model, optimizer, step = training(
        Convolutions, lambda params: optim.AdamW(params, capturable=True)
    )
    call = compile(step)
    for batch in batches(Convolutions, 6):
        call(*batch)
    assert "1 graph of" in call.device_graphs()[0]
    del model, optimizer, step, call, batch
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    assert (cuda.memory_allocated(), emulation.get("live_bytes")) == before


def test_a_file_on_the_device(tmp_path: Any) -> None:
    model = Perceptron().to("cuda")
    x = randn(8, 6)
    plait_graph.export(model, (x,), str(tmp_path / "model.safetensors"))
    run = plait_graph.load(str(tmp_path / "model.safetensors"))
    for _ in range(4):
        assert pc.equal(run(x), model(x))
    assert count(lambda: run(x)) == (1, 0, 2)


def test_another_device() -> None:
    run_program(
        """
        from plait_graph import compile
        call = compile(lambda x: (x * 2).exp() + 1, frozen=True)
        for i in range(6):
            x = plait.full((5,), float(i), device="cuda:1")
            assert plait.equal(call(x), (x * 2).exp() + 1)
        assert call.device_graphs()[0].startswith("cuda:1: 1 graph of"), call.device_graphs()
        assert plait.cuda.current_device() == 0
        """,
        PLAIT_CUDA_DEVICES="2",
    )

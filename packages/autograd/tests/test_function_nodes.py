"""The grad_fn of a Function's result: its context, which does not keep the graph alive."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import plait_autograd as pa
import plait_core as pc


class Scaled(pa.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def test_it_is_the_context():
    x = leaf(1, 2)
    y = Scaled.apply(x * 1, 3)
    fn = y.grad_fn
    assert fn is y.grad_fn and fn is (y + 1).grad_fn.next_functions[0][0]
    assert isinstance(fn, pa.FunctionContext) and type(fn).__name__ == "ScaledBackward"
    assert fn.factor == 3 and fn.saved_tensors[0].tolist() == [1, 2]
    assert fn.needs_input_grad == (True, False)
    assert fn.name() == "ScaledBackward" and "grad_fn=<ScaledBackward>" in repr(y)
    assert [node and node.name() for node, _ in fn.next_functions] == ["MulBackward"]
    fn.metadata["key"] = 1
    assert y.grad_fn.metadata == {"key": 1}
    fn.factor = 5
    y.sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_backward_gets_the_same_object():
    calls = []

    class Recorder(Scaled):
        @staticmethod
        def backward(ctx, g):
            calls.append(ctx)
            assert ctx.next_functions[0][0].name() == "AccumulateGrad"
            return g, None

    y = Recorder.apply(leaf(1), 2)
    fn = y.grad_fn
    y.backward()
    assert calls == [fn]


def test_functions_have_classes_of_their_own():
    class Other(Scaled):
        pass

    a, b = (each.apply(leaf(1), 2).grad_fn for each in (Scaled, Other))
    assert type(a) is not type(b) and type(b).__name__ == b.name() == "OtherBackward"


def test_hooks():
    x = leaf(1, 2)
    y = Scaled.apply(x, 3)
    first = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2, *inputs[1:]))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [60, 60]
    first.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [30, 30]


def test_a_context_does_not_keep_the_graph():
    x = leaf(1)
    y = Scaled.apply(x * 1, 3)
    fn = y.grad_fn
    context = weakref.ref(fn)
    del y
    with pytest.raises(RuntimeError, match="ScaledBackward: the call's results are gone"):
        fn.next_functions  # noqa: B018
    with pytest.raises(RuntimeError, match="results are gone"):
        fn.register_hook(print)
    assert fn.factor == 3 and fn.name() == "ScaledBackward"
    del fn
    gc.collect()
    assert context() is None


def test_an_edge_keeps_the_graph():
    x = leaf(1, 2)
    y = Scaled.apply(x, 3)
    edge = pa.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    del y
    assert edge.node.next_functions[0][0].name() == "AccumulateGrad"
    pa.backward(edge, pc.ones(2, dtype=pc.float64))
    assert x.grad.tolist() == [3, 3]


def test_a_context_of_no_recorded_call_has_no_node():
    contexts = []

    class Keeper(Scaled):
        @staticmethod
        def forward(ctx, x, factor):
            contexts.append(ctx)
            return x * factor

    Keeper.apply(pc.ones(1), 2)
    with pytest.raises(TypeError, match="a Node is required, got KeeperBackward"):
        contexts[0].next_functions  # noqa: B018


def test_saved_outputs_have_their_history_outside_of_passes():
    class Exp(pa.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Exp.apply(leaf(1))
    (saved,) = y.grad_fn.saved_tensors
    assert saved.requires_grad and saved.grad_fn is y.grad_fn


def test_an_attribute_called_name_does_not_hide_the_name():
    class Named(Scaled):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.name = "own"
            return x * factor

    y = Named.apply(leaf(1), 2)
    assert y.grad_fn.name == "own" and "grad_fn=<NamedBackward>" in repr(y)
    assert "NamedBackward" in pa.graph.to_dot(y)


def test_contexts_are_read_while_their_graphs_are_freed():
    x, stop, contexts = leaf(1), threading.Event(), []

    def read():
        while not stop.is_set():
            for context in contexts[-3:]:
                try:
                    assert context.next_functions[0][0].name() == "AccumulateGrad"
                except RuntimeError as error:
                    assert "results are gone" in str(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for i in range(3000):
            y = Scaled.apply(x, i)
            contexts.append(y.grad_fn)
            if i % 2:
                y.backward()
            del y, contexts[:-3]
    finally:
        stop.set()
        thread.join()

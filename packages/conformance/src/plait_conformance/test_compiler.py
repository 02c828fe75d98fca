"""Role ``compiler``: programs of graphs compute what the operators compute one by one."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from plait_conformance._graphs import GRAPHS, Compiler, GraphProgram


@pytest.fixture(params=GRAPHS, ids=str)
def program(request: pytest.FixtureRequest, compiler: Compiler) -> GraphProgram:
    """A graph that the compiler takes, with its weights and inputs."""
    result = GraphProgram(compiler, request.param)
    if result.run.compiler != compiler.name:
        pytest.skip(f"{compiler} declines the graph")
    return result


def test_it_takes_a_graph(compiler: Compiler) -> None:
    names = {GraphProgram(compiler, graph).run.compiler for graph in GRAPHS}
    assert compiler.name in names, f"{compiler} declines all graphs of the kit"


def test_results(program: GraphProgram) -> None:
    for seed in range(4):
        inputs = program.inputs(seed)
        program.check(program.call(inputs), inputs)


def test_results_stay_as_they_are(program: GraphProgram) -> None:
    first = program.inputs(0)
    results = program.call(first)
    program.call(program.inputs(1))
    program.check(results, first, advance=False)


def test_weights_change_between_runs(program: GraphProgram) -> None:
    if not program.weights:
        pytest.skip("the graph has no weights")
    program.call(program.inputs(0))
    program.reset()
    for weight in program.run.weights.values():
        weight.add_(0.25)
    inputs = program.inputs(1)
    program.check(program.call(inputs), inputs, shift=0.25)


def test_inputs_of_other_shapes_are_refused(program: GraphProgram) -> None:
    inputs = program.inputs(0)
    wrong = [np.concatenate([each, each]) for each in inputs]
    for bad in (wrong, inputs[:-1], [each.astype(np.float64) for each in inputs]):
        with pytest.raises(Exception, match=r"."):
            program.call(bad)
    program.reset()
    program.check(program.call(inputs), inputs)


def test_several_threads_at_once(compiler: Compiler) -> None:
    raised: list[BaseException] = []

    def work(graph: Any) -> None:
        try:
            own = GraphProgram(compiler, graph)
            for seed in range(10):
                inputs = own.inputs(seed)
                own.check(own.call(inputs), inputs)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(graph,)) for graph in (*GRAPHS, *GRAPHS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_one_program_on_several_threads(program: GraphProgram) -> None:
    if program.writes:
        pytest.skip("the graph writes to its weights")
    raised: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            inputs = program.inputs(seed)
            for _ in range(10):
                program.check(program.call(inputs), inputs, advance=False)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]

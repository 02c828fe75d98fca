"""Numbers of optimizers, which change from run to run: how a graph has them."""

from __future__ import annotations

from typing import Any

from plait_graph import _graph
from plait_graph._capture import Json, Recording, Step


class OptimizerNumbers:
    """The numbers of the steps in a recording, as numbers of a graph.

    Numbers of the step, of all parameters of one call, become ``adam.0.step``; an option of the
    group, such as ``lr``, becomes ``adam.0.lr``; what an optimizer computes for each step in Python
    becomes ``nadam.0.mu_product``.

    Args:
        recording: its nodes are changed: references take the place of the numbers.

    Attributes:
        computed: names of numbers that only Python can compute for the next step.
    """

    def __init__(self, recording: Recording) -> None:
        self.entries: list[Json] = []
        self._options: list[tuple[str, dict[str, Any], str, int | None]] = []
        self._counts: list[tuple[str, Any, dict[str, Any], list[dict[str, Any]]]] = []
        self._rows: list[tuple[str, Any, dict[str, Any], dict[str, Any], int]] = []
        self.computed: list[str] = []
        if len({id(step.optimizer) for step in recording.steps}) < len(recording.steps):
            raise NotImplementedError(
                "compile: an optimizer makes two steps in one call; compile one step"
            )
        for number, step in enumerate(recording.steps):
            prefix = f"{type(step.optimizer).__name__.lower()}.{number}"
            self._add(prefix, step, recording.nodes[step.begin : step.end])

    def _add(self, prefix: str, step: Step, nodes: list[Json]) -> None:
        calls = [node for node in nodes if node["op"].endswith("_step")]
        if len(calls) != len(step.groups):
            return
        for i, (node, (group, params)) in enumerate(zip(calls, step.groups, strict=True)):
            states = [step.optimizer.state[p] for p in params]
            name = f"{prefix}.{i}" if len(calls) > 1 else prefix
            self._add_call(name, node, step.optimizer, group, states)

    def _add_call(
        self,
        prefix: str,
        node: Json,
        optimizer: Any,
        group: dict[str, Any],
        states: list[dict[str, Any]],
    ) -> None:
        counts = all("step" in state for state in states)
        scalars = iter(enumerate(getattr(optimizer, "scalars", ())))
        steps: list[int] = []
        for i, argument in enumerate(_graph.argument_names(node["op"])):
            value = node["in"][i]
            if argument == "steps" and counts:
                steps = value
                names = _names(f"{prefix}.step", value, steps)
                for name, now in dict(zip(names, value, strict=True)).items():
                    # the next run makes the step behind the one that was recorded
                    self.entries.append({"name": name, "value": now + 1, "step": 1})
                    owners = [s for s, own in zip(states, names, strict=True) if own == name]
                    self._counts.append((name, optimizer, group, owners))
                node["in"][i] = [f"%{name}" for name in names]
            elif type(value) is float:
                node["in"][i] = self._add_option(prefix, argument, value, group)
            elif isinstance(value, list) and value and type(value[0]) is float:
                column, scalar = next(scalars, (-1, ""))
                if not (counts and scalar):
                    continue
                names = _names(f"{prefix}.{scalar}", value, steps)
                for name, now, state in zip(names, value, states, strict=True):
                    if name not in self.computed:
                        self.computed.append(name)
                        self.entries.append({"name": name, "value": now, "step": 0.0})
                        self._rows.append((name, optimizer, group, state, column))
                node["in"][i] = [f"%{name}" for name in names]

    def _add_option(self, prefix: str, name: str, value: float, group: dict[str, Any]) -> Any:
        key, index = name, None
        if name in ("beta1", "beta2"):
            key, index = "betas", int(name == "beta2")
        now = group.get(key)
        if index is not None and now is not None:
            now = now[index]
        if now is None or float(now) != value:
            return value
        full = f"{prefix}.{name}"
        self.entries.append({"name": full, "value": value, "step": 0.0})
        self._options.append((full, group, key, index))
        return f"%{full}"

    def put(self, program: Any) -> None:
        """Give a program the numbers that the optimizers have now."""
        for name, group, key, index in self._options:
            value = group[key] if index is None else group[key][index]
            program.set_number(name, float(value))
        for name, _, _, states in self._counts:
            program.set_number(name, int(states[0]["step"]) + 1)
        for name, optimizer, group, state, column in self._rows:
            row = optimizer.numbers(group, state, int(state["step"]) + 1)
            program.set_number(name, row[column])

    def count(self) -> None:
        """Count a step, behind a run."""
        for _, optimizer, group, states in self._counts:
            for state in states:
                step = int(state["step"]) + 1
                if hasattr(optimizer, "count"):
                    optimizer.count(group, state, step)
                else:
                    state["step"] = step


def _names(name: str, values: list[Any], steps: list[int]) -> list[str]:
    """Return the name of each parameter's number: one for all, if they stay equal."""
    if len(set(values)) == 1 and len(set(steps)) == 1:
        return [name] * len(values)
    return [f"{name}.{k}" for k in range(len(values))]

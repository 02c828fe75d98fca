"""primitives.md: the kernels that a device needs, in the order of what each adds."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence

from plait_ops import lower
from plait_ops.emit.pages import public_name
from plait_ops.lower import ir
from plait_ops.spec import Composite, Operator, View

__all__ = ["Order", "emit", "kernels_of", "order", "primitives"]

RUNTIME = ("copy_", "cast", "clone", "fill_")
"""The primitives that the runtime itself calls."""

WORDS = {"to_dtype": ("cast",), "sum_to": ("sum", "view"), "conjugate": ("conj",)}
"""Words that call operators."""

STEPS = (20, 50, 100)
"""The numbers of kernels whose share of all operators is written above the table."""


def primitives(operators: Iterable[Operator]) -> list[Operator]:
    """Return the operators that no others compute: those that need a kernel."""
    return [
        each
        for each in operators
        if each.decompose_function is None and not isinstance(each, (Composite, View))
    ]


def _calls(operator: Operator) -> set[str]:
    """Return the identifiers of the operators that a decomposition calls in any of its cases."""
    names: set[str] = set()
    for node in ir.walk(lower.decompose(operator).body):
        if isinstance(node, ir.OperatorCall):
            is_plain = node.operator == "div" and len(node.arguments) == 2  # no `rounding_mode`
            names.add("true_divide" if is_plain else node.operator)
        elif isinstance(node, ir.Call):
            names.update(WORDS.get(node.function, ()))
    return names


def kernels_of(operators: Sequence[Operator]) -> dict[str, frozenset[str]]:
    """Return the primitives that a call of each operator may need, by its name."""
    by_identifier = {each.identifier: each for each in operators}
    needs: dict[str, frozenset[str]] = {}

    def visit(operator: Operator) -> frozenset[str]:
        if operator.name not in needs:
            needs[operator.name] = frozenset()  # of a decomposition that calls its own operator
            if operator.decompose_function is not None:
                parts = [visit(by_identifier[name]) for name in sorted(_calls(operator))]
                needs[operator.name] = frozenset().union(*parts)
            elif not isinstance(operator, View):
                needs[operator.name] = frozenset({operator.name})
        return needs[operator.name]

    for operator in operators:
        visit(operator)
    return needs


class Order:
    """The primitives in the order of their gain.

    Among the sets of kernels that some operator still waits for, the next one lets most operators
    run for each kernel in it. Within a set, the kernel comes first that most operators wait for.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.needs = kernels_of(operators)
        self.total = len(operators)
        self.names: list[str] = []
        self.unlocked: dict[str, list[str]] = {}
        """The operators that run from each kernel on; without it they do not."""
        self.at_start = sorted(name for name, needs in self.needs.items() if not needs)
        missing = {name: needs for name, needs in self.needs.items() if needs}
        missing = self._take(
            [name for name in RUNTIME if self.needs.get(name) == frozenset({name})], missing
        )
        while missing:
            missing = self._take(self._best(missing), missing)

    def _take(
        self, names: Sequence[str], missing: dict[str, frozenset[str]]
    ) -> dict[str, frozenset[str]]:
        """Add kernels; return what operators wait for then."""
        for name in names:
            self.names.append(name)
            missing = {each: needs - {name} for each, needs in missing.items()}
            self.unlocked[name] = sorted(each for each, needs in missing.items() if not needs)
            missing = {each: needs for each, needs in missing.items() if needs}
        return missing

    @staticmethod
    def _best(missing: dict[str, frozenset[str]]) -> list[str]:
        waiting: collections.Counter[frozenset[str]] = collections.Counter(missing.values())
        demand = collections.Counter(name for needs in missing.values() for name in needs)

        def gain(kernels: frozenset[str]) -> tuple[float, int, list[str]]:
            running = sum(n for needs, n in waiting.items() if needs <= kernels)
            return -running / len(kernels), -running, sorted(kernels)

        best: frozenset[str] = min(waiting, key=gain)
        return sorted(best, key=lambda name: (-demand[name], name))

    def running(self, kernels: int) -> int:
        """Return how many operators run with the first `kernels` kernels."""
        return len(self.at_start) + sum(len(self.unlocked[each]) for each in self.names[:kernels])

    def percent(self, kernels: int) -> int:
        """Return the share of `running` among all operators, rounded down."""
        return 100 * self.running(kernels) // self.total


def order(operators: Sequence[Operator]) -> Order:
    """Return the order in which a new device gains most from its kernels."""
    return Order(operators)


def _sentence(ranked: Order) -> str:
    steps = [n for n in (*STEPS, len(ranked.names)) if n <= len(ranked.names)]
    shares = ", ".join(f"{ranked.percent(n)} % with {n}" for n in steps)
    return (
        f"There are {ranked.total} operators, and {len(ranked.names)} of them are primitives. "
        f"{ranked.percent(0)} % of all operators are views and run without any kernel; "
        f"{shares}."
    )


def _others(ranked: Order, name: str, public: dict[str, str]) -> str:
    """Return the operators that a kernel lets run beside its own, as text."""
    names = [f"`{public[each]}`" for each in ranked.unlocked[name] if each != name]
    return ", ".join(names)


def emit(operators: Sequence[Operator]) -> dict[str, str]:
    """Return the page, by name."""
    ranked = order(operators)
    public = {each.name: public_name(each) for each in operators}
    family = {each.name: each.family for each in operators}
    uses = {
        name: sum(name in needs for needs in ranked.needs.values()) - 1 for name in ranked.names
    }
    rows = [
        f"| {i} | [`{public[name]}`]({family[name]}.md) | {uses[name]} | {ranked.percent(i)} | "
        f"{_others(ranked, name, public)} |"
        for i, name in enumerate(ranked.names, 1)
    ]
    topics: dict[str, list[str]] = {}
    for name in ranked.names:
        topics.setdefault(family[name].partition("/")[0], []).append(name)
    by_topic = [
        f"| {topic} | {len(names)} | " + ", ".join(f"`{public[name]}`" for name in names) + " |"
        for topic, names in sorted(topics.items())
    ]
    return {
        "primitives.md": f"{HEAD}\n{_sentence(ranked)}\n\n{TABLE}"
        + "\n".join(rows)
        + f"\n\n{TOPICS}"
        + "\n".join(by_topic)
        + "\n"
    }


HEAD = """# Kernels that a device needs

A device needs kernels for the *primitives* alone. Other operators are calls of primitives, which
their definitions write down, or views. A kernel for such an operator may be faster, but none is
required. The order of this table lets most operators run early. An operator counts as running if
every operator that it may call has a kernel, for all dtypes and options that it has.

- **Used by**: how many other operators need this kernel.
- **Percent**: of all operators, those that run with the kernels up to this row.
- **Operators that run now**: those that need this kernel and rows above.

The runtime itself calls the kernels of the first four rows.
"""
TABLE = (
    "| Number | Kernel | Used by | Percent | Operators that run now |\n"
    "| --- | --- | --- | --- | --- |\n"
)
TOPICS = """## By topic

| Topic | Primitives | Names |
| --- | --- | --- |
"""

"""The parts of a model's step: the profiler's times, by groups of operators, beside the roofline.

    python benchmarks/operator_groups.py resnet50 --threads 2
    python benchmarks/operator_groups.py gpt2 --mode inference --batch 1
    python benchmarks/operator_groups.py --page docs/benchmarks/floors.md

A row is a group, as "convolution 1x1, by weight". ``floor`` is the time that its operations need at
the rate of multiply-adds in registers, or its bytes at the bandwidth of memory, whichever is
longer, each operator by itself (see hardware_peak.py); ``reached`` is floor over time. A Winograd
convolution does fewer operations than its definition, and what is in a cache moves faster than
memory: both can reach more than 100 %. Operators whose operations are not counted have no floor.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import figures
from hardware_peak import hardware_peak
from models import MODELS, PAPER, fill

import plait
from plait.profiler import profile

sys.path.insert(0, str(Path(__file__).resolve().parent / "table1"))

from machine import description

__all__ = ["Group", "group_of", "grouped", "main", "page", "picture", "profiled", "table"]

PASSES = {"_input": "by input", "_weight": "by weight"}
PLAIN = (
    (r"batch_norm", "batch norm"),
    (r"layer_norm|group_norm", "layer norm"),
    (r"pool", "pooling"),
    (r"lstm|gru", "LSTM"),
    (r"attention", "attention"),
    (r"^(linear|addmm|mm|bmm|matmul|baddbmm|mv|addmv)", "matrix product"),
    (r"relu|hardtanh|gelu|tanh|sigmoid|clamp", "activation"),
    (r"embedding", "embedding"),
    (r"softmax|cross_entropy|softplus|reduce_loss|nll", "softmax and loss"),
    (r"(sgd|adam|adamw)_step|optimizer_state", "optimizer"),
    (r"^(copy_|clone|dense|cat|stack|contiguous)", "copies"),
    (r"^(zeros|ones|full|empty)", "filling memory"),
    (r"^(add|sub|mul|div|true_divide|sum|mean|neg|rsub)", "sums and elementwise"),
)


PAGE = """# Where a step goes, and how far it is from its floor

`python3 tools/run.py table1 -- --profile --page docs/benchmarks/floors.md` wrote this page on
{date}, on {machine}, with {threads} threads. Measured there just before: {flops:.0f} GFLOP/s of
float32 multiply-adds in registers, {bandwidth:.0f} GB/s in a large copy.

A row is a group of operators in one step. Its *floor* is the time that its operations need at that
rate, or its bytes at that bandwidth, whichever is longer, each operator by itself; *reached* is
floor over time. Winograd's convolutions do fewer operations than their definition, and what is in a
cache moves faster than memory: both can reach more than 100 %. Operators whose operations are not
counted have no floor. The profiler itself costs a few microseconds a row of calls.

```{{image}} {picture}
:alt: groups of operators below the roofline
```
"""


@dataclass
class Group:
    """A group of operators in one step. Times are in milliseconds."""

    name: str
    count: float = 0.0
    time: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    floor: float = 0.0


def group_of(signature: str) -> str:
    """Return the group of an operator by its signature in a profile, as
    ``conv2d(float32[1, 3, 8, 8], float32[4, 3, 3, 3], None, (1, 1), (1, 1), (1, 1), 1)``.
    """
    name = re.split(r"[ (]", signature, maxsplit=1)[0]
    if "conv" in name:
        return _convolution(name, signature)
    backward = "backward" in name or " (backward)" in signature
    for pattern, group in PLAIN:
        if re.search(pattern, name):
            return f"{group}, backward" if backward else group
    return "rest"


def _convolution(name: str, signature: str) -> str:
    which = next((text for end, text in PASSES.items() if name.endswith(end)), "forward")
    shapes = re.findall(r"\[([\d, ]+)\]|\(([\d, ]+)\)", signature.replace("(backward)", ""))
    sizes = [tuple(map(int, (a or b).split(","))) for a, b in shapes]
    weights = [size for size in sizes[1:] if len(size) == 4]
    if "transpose" in name or not weights:
        return f"{name.split('_backward')[0]}, {which}"
    # the gradient by the input has the input's shape behind the weight's, that by the weight has
    # the weight's shape behind the input's
    weight = sizes[2] if which == "by weight" and len(sizes) > 2 else weights[0]
    stride = next((size for size in sizes if len(size) == 2), (1, 1))
    groups = re.search(r", (\d+)(, '.*|, [^,]*)?\)$", signature)
    if groups and int(groups.group(1)) > 1:
        kind = "depthwise" if weight[1] == 1 else "with groups"
    elif weight[2:] == (3, 3) and stride == (1, 1):
        kind = "3x3"
    elif weight[2:] == (1, 1):
        kind = "1x1"
    else:
        kind = "other"
    return f"convolution {kind}, {which}"


def grouped(averages: Iterable[Any], steps: int, peak: Any) -> list[Group]:
    """Sum averages by signature up to groups of one step, those that take longest first."""
    groups: dict[str, Group] = {}
    for average in averages:
        if average.category == "operator":
            name = group_of(average.key)
        elif average.category == "backward":
            name = "backward pass itself"
        elif "Optimizer.step" in average.key:
            name = "optimizer"
        else:
            continue
        group = groups.setdefault(name, Group(name))
        group.count += average.count / steps
        group.time += average.self_cpu_time_total / 1e3 / steps
        group.flops += average.self_flops / steps
        group.bytes += average.self_bytes / steps
        longest = max(average.self_flops / peak.flops, average.self_bytes / peak.bandwidth)
        group.floor += longest * 1e3 / steps
    return sorted(groups.values(), key=lambda group: -group.time)


def profiled(model: str, mode: str, batch: int, threads: int, steps: int) -> list[Group]:
    """Run a model with plait, and return the groups of its mean step."""
    plait.set_num_threads(threads)
    peak = hardware_peak(threads)
    choice = MODELS[model]
    network = fill(plait, choice.build(plait))
    data = [plait.from_numpy(array) for array in choice.data(batch)]
    if mode == "inference":
        network.eval()
        inputs = data[:-1] if choice.trained else data

        def step() -> None:
            with plait.no_grad():
                network(*inputs)
    else:
        optimizer = choice.optimizer(plait, network.parameters())

        def step() -> None:
            optimizer.zero_grad()
            choice.loss(plait, network(*data[:-1]), data[-1]).backward()
            optimizer.step()

    step()
    step()
    with profile() as recording:
        for _ in range(steps):
            step()
    return grouped(recording.key_averages(by="signature"), steps, peak)


def table(groups: list[Group]) -> str:
    """Return the groups as text."""
    total = sum(group.time for group in groups)
    lines = [
        f"{'group':32s} {'calls':>7s} {'ms':>9s} {'share':>6s} {'floor ms':>9s} {'reached':>8s}"
        f" {'GFLOP/s':>8s} {'GB/s':>6s}"
    ]
    for group in [*groups, _sum(groups)]:
        seconds = max(group.time, 1e-9) / 1e3
        lines.append(
            f"{group.name:32s} {group.count:7.0f} {group.time:9.2f} {group.time / total:6.1%}"
            f" {group.floor:9.2f} {group.floor / max(group.time, 1e-9):8.0%}"
            f" {group.flops / seconds / 1e9:8.1f} {group.bytes / seconds / 1e9:6.1f}"
        )
    return "\n".join(lines)


def page(
    tables: list[tuple[str, str]], peak: Any, threads: int, machine: str, date: str, picture: str
) -> str:
    """Return the page with a table for each of the titles."""
    head = PAGE.format(
        date=date,
        machine=machine,
        threads=threads,
        flops=peak.flops / 1e9,
        bandwidth=peak.bandwidth / 1e9,
        picture=picture,
    )
    return head + "".join(f"\n## {title}\n\n```text\n{text}\n```\n" for title, text in tables)


def picture(drawn: list[tuple[str, list[Group]]], peak: Any, path: Path) -> None:
    """Draw each model's groups: operations a byte, operations a second, and the roof above them.

    A point's area is the group's share of the step.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    down = (len(drawn) + 1) // 2
    figure, axes = pyplot.subplots(
        down, 2, figsize=(11, 4 * down), squeeze=False, layout="constrained", sharey=True
    )
    intensities = [2.0 ** (i / 4) for i in range(-12, 49)]
    for axis, (title, groups) in zip(axes.flat, drawn, strict=False):
        roof = [min(peak.flops, x * peak.bandwidth) / 1e9 for x in intensities]
        axis.loglog(intensities, roof, color="black", linewidth=1)
        total = sum(group.time for group in groups)
        visible = [g for g in groups if g.flops and g.bytes and g.time > 0.01 * total]
        for group in visible:
            axis.scatter(
                group.flops / group.bytes,
                group.flops / group.time / 1e6,
                s=20 + 1500 * group.time / total,
                alpha=0.5,
                label=f"{group.name} ({group.time / total:.0%})",
            )
        axis.set_title(title)
        axis.set_xlabel("operations a byte")
        axis.set_ylabel("GFLOP/s")
        legend = axis.legend(fontsize="x-small", loc="lower right")
        for handle in legend.legend_handles:
            handle.set_sizes([20])
    for axis in axes.flat[len(drawn) :]:
        axis.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figures.save(figure, path)
    pyplot.close(figure)


def _sum(groups: list[Group]) -> Group:
    total = Group("all")
    for group in groups:
        for name in ("count", "time", "flops", "bytes", "floor"):
            setattr(total, name, getattr(total, name) + getattr(group, name))
    return total


def main(arguments: list[str] | None = None) -> None:
    """Read the flags, profile the models, and print a table for each."""
    parser = argparse.ArgumentParser("benchmarks/operator_groups.py", description=__doc__)
    parser.add_argument("models", nargs="*", default=PAPER, metavar="MODEL")
    parser.add_argument("--mode", choices=("training", "inference"), default="training")
    parser.add_argument("--batch", type=int, help="samples of a step; the model's own by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--picture", type=Path, help="draw the groups under the roofline, SVG")
    parser.add_argument("--page", type=Path, help="write a page of both modes, with the picture")
    flags = parser.parse_args(arguments)
    for name in flags.models:
        if name not in MODELS:
            parser.error(f"unknown model {name!r}, there are {', '.join(MODELS)}")
    required = [(name, flags.mode) for name in flags.models]
    if flags.page:
        required = [(name, "training") for name in flags.models]
        required += [
            (name, "inference") for name in MODELS if MODELS[name].images or name not in PAPER
        ]
        flags.picture = flags.picture or flags.page.with_suffix(".svg")
    drawn: list[tuple[str, list[Group]]] = []
    tables: list[tuple[str, str]] = []
    for name, request in required:
        mode = request if MODELS[name].trained else "inference"
        batch = flags.batch or MODELS[name].batch
        groups = profiled(name, mode, batch, flags.threads, flags.steps)
        title = f"{MODELS[name].title}, {mode}, batch of {batch}"
        tables.append((title, table(groups)))
        print(f"\n{title}, {flags.threads} threads\n{tables[-1][1]}", flush=True)
        drawn.append((title, groups))
    peak = hardware_peak(flags.threads)
    if flags.picture:
        picture(drawn, peak, flags.picture)
    if flags.page:
        date = datetime.date.today().isoformat()
        text = page(tables, peak, flags.threads, _machine(), date, flags.picture.name)
        flags.page.write_text(text)


def _machine() -> str:
    result = description()
    return (
        f"{result['processor']} ({result['instruction sets']}), {result['processors']} processors, "
        f"{result['memory']}"
    )


if __name__ == "__main__":
    main()

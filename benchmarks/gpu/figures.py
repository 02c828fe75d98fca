"""Figures 1 and 2 of PyTorch's paper, recorded on this device, and their pictures.

Figure 1 shows how the host puts the first operators of ResNet-50 into the queue of the device, and
when the device runs them. Figure 2 shows the memory of the caching allocator in the first training
step and in later ones.
"""

from __future__ import annotations

import importlib
import pathlib
import time
from collections.abc import Callable
from typing import Any

import figures
from models import MODELS, fill

from gpu.models import training
from gpu.sides import Options, Side

__all__ = ["PICTURES", "draw", "run"]

PICTURES = {"timeline": "gpu_timeline.svg", "memory": "gpu_memory.svg"}
"""The files of the pictures, by their part of a record."""

LAYERS = 6
"""So many layers of ResNet-50, from the input on, are in the timeline."""

RECORDINGS = 7
"""How often these layers run for the timeline."""

STEPS = 4
"""Training steps in the picture of memory."""

COLOURS = (
    *("#8fb4e8", "#f2b48a", "#93d0a5", "#d9a3c7", "#e3cf82", "#a8a2e0"),
    *("#86cdd0", "#ea9a9a", "#b5cf7d", "#c9ab8c"),
)
GREY, DARK, RED = "#cdd3dc", "black", "#c0504d"


def run(options: Options) -> dict[str, Any]:
    """Return what the pictures show, times in microseconds and memory in bytes."""
    side = Side("plait", importlib.import_module("plait"))
    return {"timeline": timeline(side, options), "memory": memory(side, options)}


def timeline(side: Side, options: Options) -> dict[str, Any]:
    """Return the host's calls and the device's work of the first layers of ResNet-50.

    Of a few recordings it is the shortest: other programs of the machine disturbed it least.
    """
    library, model = side.library, MODELS["resnet50"]
    sizes, shapes = ({"width": 1 / 16}, {"size": 8}) if options.small else ({}, {})
    network = fill(library, model.build(library, **sizes)).to(options.device)
    batch, *_ = model.data(2 if options.small else 8, **shapes)
    x = library.from_numpy(batch).to(options.device)
    layers = library.nn.Sequential(*list(network)[:LAYERS])
    for _ in range(3):
        layers(x)
    side.synchronize()
    recordings = [record(side, lambda: layers(x)) for _ in range(RECORDINGS)]
    return min(recordings, key=lambda each: float(each["works"][-1][2]))


def record(side: Side, work: Callable[[], Any]) -> dict[str, Any]:
    """Return the events of some work, and the row of the device in `profile.device_queues`."""
    from plait_profiler import profile

    with profile() as prof:
        work()
        side.synchronize()
    return {**events(prof.recording()), "queue": dict(prof.device_queues()[0])}


def events(recording: Any) -> dict[str, Any]:
    """Return the calls of a recording, the device's work, and the depth of its queue.

    A call is an outermost operator with work on the device: its name, begin and end. Work is the
    number of its call, its begin and its end. The depth is a list of times and numbers.
    """
    import numpy as np

    from plait_profiler._device_queue import queue_depths
    from plait_profiler._recording import Kind
    from plait_profiler._tree import tree_of

    tree = tree_of(recording)
    outermost = tree.outermost(tree.kind == Kind.OP)
    known = tree.launched_by >= 0
    rows, launched_by = tree.device_rows[known], outermost[tree.launched_by[known]]
    calls = np.unique(launched_by)
    calls = calls[np.argsort(tree.start[calls], kind="stable")]
    number = {int(call): place for place, call in enumerate(calls)}
    first = int(tree.start[calls].min())

    def times(row: int) -> list[float]:
        begin = (int(tree.start[row]) - first) / 1e3
        return [round(begin, 3), round(begin + int(tree.duration[row]) / 1e3, 3)]

    ((at, depth),) = queue_depths(recording).values()
    return {
        "calls": [
            [recording.signatures[int(tree.signature[call])].name, *times(call)] for call in calls
        ],
        "works": [
            [number[int(call)], *times(row)] for row, call in zip(rows, launched_by, strict=True)
        ],
        "depth": [
            [round((int(t) - first) / 1e3, 3), int(n)] for t, n in zip(at, depth, strict=True)
        ],
    }


def memory(side: Side, options: Options) -> dict[str, Any]:
    """Return the allocator's counters during training steps, each from an idle device on."""
    cuda = side.library.cuda
    network, step = training(side, "resnet50", "float32", options)
    points: list[list[int]] = []

    def look(*_: Any) -> None:
        counters = cuda.memory_stats()
        names = "allocated_bytes.all.current", "reserved_bytes.all.current"
        points.append([*(counters[name] for name in names), counters["segment.all.allocated"]])

    for parameter in network.parameters():
        parameter.register_post_accumulate_grad_hook(look)
    steps = []
    with side.library.nn.register_module_forward_hook(look, only_watches=True):
        for _ in range(STEPS):
            side.synchronize()
            points.clear()
            look()
            begin = time.perf_counter()
            step()
            returned = time.perf_counter()
            look()
            side.synchronize()
            steps.append(
                {
                    "host_seconds": returned - begin,
                    "seconds": time.perf_counter() - begin,
                    "requests": points[-1][2] - points[0][2],
                    "points": [point[:2] for point in (*points[:-1:4], points[-1])],
                }
            )
    return {"steps": steps}


def draw(result: dict[str, Any], folder: pathlib.Path, device: str) -> None:
    """Draw both pictures of a record into a folder; ``device`` is what their titles name."""
    for name, picture in (("timeline", _draw_timeline), ("memory", _draw_memory)):
        figures.save(picture(result[name], device), folder / PICTURES[name])


def _new_figure(height: float, rows: tuple[float, ...]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.subplots(len(rows), 1, sharex=True, height_ratios=rows, squeeze=False)[:, 0]
    for axis in axes:
        axis.spines[["right", "top"]].set_visible(False)
    return figure, axes


def _draw_timeline(part: dict[str, Any], device: str) -> Any:
    from matplotlib.patches import Patch

    calls, works = part["calls"], part["works"]
    figure, (axis, queue) = _new_figure(3.8, (3, 1))
    names = list(dict.fromkeys(name for name, *_ in calls))
    colour = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    axis.broken_barh([(0, calls[-1][2])], (2, 0.8), facecolor=GREY)
    for name, begin, end in calls:
        axis.broken_barh([(begin, end - begin)], (2, 0.8), facecolor=colour[name])
    for call, begin, end in works:
        axis.broken_barh([(begin, end - begin)], (0, 0.8), facecolor=colour[calls[call][0]])
    seen: set[int] = set()
    for call, begin, _ in works:
        if call not in seen:  # one arrow to the first work of each call
            arrow = {"arrowstyle": "-|>", "color": DARK, "linewidth": 0.5, "shrinkA": 0}
            axis.annotate("", (begin, 0.8), (calls[call][1], 2), arrowprops=arrow)
        seen.add(call)
    axis.set_yticks([2.4, 0.4], ["host", "device"])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_title(f"The first operators of ResNet-50 on {device}", fontsize="medium")
    patches = [Patch(color=colour[name], label=name) for name in names]
    patches.append(Patch(color=GREY, label="Python"))
    figure.legend(handles=patches, loc="outside lower center", ncols=4, frameon=False)
    times, depths = zip(*part["depth"], strict=True)
    queue.fill_between(times, depths, step="post", color=GREY, linewidth=0)
    queue.step(times, depths, where="post", color=DARK, linewidth=0.8)
    queue.set(ylabel="queue depth", xlabel="time (µs)", ylim=(0, None))
    queue.set_xlim(0, max(end for *_, end in works))
    return figure


def _draw_memory(part: dict[str, Any], device: str) -> Any:
    figure, (axis,) = _new_figure(3.4, (1,))
    scale, unit = (2**30, "GiB") if part["steps"][-1]["points"][-1][1] >= 2**30 else (2**20, "MiB")
    used: list[float] = []
    reserved: list[float] = []
    places: list[float] = []
    for number, step in enumerate(part["steps"]):
        points = step["points"]
        places += [number + each / (len(points) - 1) for each in range(len(points))]
        used += [a / scale for a, _ in points]
        reserved += [b / scale for _, b in points]
    axis.fill_between(places, used, step="post", color=COLOURS[0], label="tensors", linewidth=0)
    axis.step(places, reserved, where="post", color=DARK, linestyle="--", label="reserved")
    grown = [i for i in range(1, len(places)) if reserved[i] > reserved[i - 1]]
    axis.plot(
        [places[i] for i in grown],
        [reserved[i] for i in grown],
        linestyle="",
        marker="^",
        color=RED,
        label="the driver is asked for memory",
    )
    top = 1.2 * max(reserved)
    for number, step in enumerate(part["steps"]):
        axis.axvline(number, color=GREY, linewidth=0.8)
        text = f"requests: {step['requests']}"
        axis.text(number + 0.5, top, text, ha="center", va="top", fontsize="small")
    labels = [f"step {number + 1}" for number in range(len(part["steps"]))]
    axis.set_xticks([number + 0.5 for number in range(len(labels))], labels)
    axis.tick_params(axis="x", length=0)
    axis.set(xlim=(0, len(labels)), ylim=(0, top), ylabel=f"memory ({unit})")
    axis.set_title(f"Memory in training steps of ResNet-50 on {device}", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure

"""The memory of one operator beside its input: plait and PyTorch.

    python benchmarks/bench_operator_memory.py [--families reduction/ sorting/] [--page PAGE.md]
    python benchmarks/bench_operator_memory.py --keep FOLDER    goes on where a run has ended
    python benchmarks/bench_operator_memory.py --only "" --operators fmin cat    figures of some

Every operator that PyTorch has by the same name is called on 8 MB in each dtype that both
libraries take: the calls are those of the operators' test data, whose arrays are repeated. An
operator is called as a function, in place and with ``out=``, and, if it has a derivative, forward
and backward. What a call takes is the largest resident size during the call less the one before it,
by the kernel's own counter, so results count too. A family of definitions is measured in a process
of its own. The page lists the calls that take over 1.25 times PyTorch's memory and 1 MB, and how
many were compared.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import gc
import importlib
import json
import pathlib
import resource
import subprocess
import sys
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["cases"]

MEGABYTE = 1 << 20
INPUT = 8 * MEGABYTE
SIZES = {"float32": 4, "bfloat16": 2, "uint8": 1}
FLOATING = ("float32", "bfloat16")
SAMPLES, WAYS = 2, 1  # samples of an operator, ways to enlarge each
FACTOR, MARGIN = 1.25, 1.0  # of PyTorch's peak; MB
TRIALS = (1 << 8, 1 << 12, 1 << 15)  # elements, before the whole input
SECONDS, LARGEST = 1.5, 128 * MEGABYTE  # that the whole call may be expected to take
LIMIT = 12 << 30  # bytes of addresses
M_MMAP_THRESHOLD = -3  # of malloc.h


@dataclasses.dataclass
class Call:
    """A call of one library: the function, and its arguments for a number of elements."""

    library: Any
    function: Callable[..., Any]
    arguments: Callable[[Any, int], tuple[list[Any], dict[str, Any]]]
    form: str


class Unfit(Exception):
    """A call that is not measured, with the reason."""


def functions(library: Any, base: str, form: str) -> Iterator[Callable[..., Any]]:
    """Yield what may be the operator in the library."""
    name = base + "_" if form == "in place" else base
    places = [(library, name)]
    for space in ("linalg", "fft", "special"):
        if name.startswith(space + "_"):
            places.insert(0, (getattr(library, space), name.removeprefix(space + "_")))
    places.append((library.nn.functional, name))
    places.append((library.Tensor, name))
    for holder, attribute in places:
        result = getattr(holder, attribute, None)
        if result is not None:
            yield result


def stored(array: Any, dtype: str) -> Any:
    """Return an array's numbers in a dtype; bfloat16 begins as float32, which NumPy has."""
    import numpy as np

    if array.dtype.kind == "f" and dtype not in FLOATING:
        array = np.nan_to_num(array, nan=0.0, posinf=1.0, neginf=0.0).clip(-100, 100)
    if dtype in ("uint8", "bool"):
        array = np.abs(array)
    return np.array(array, "float32" if dtype == "bfloat16" else dtype)


def arguments_of(sample: Any, how: Any, dtype: str) -> Callable[[Any, int], Any]:
    """Return the function from a library and a number of elements to arguments."""
    from plait_ops.promotion import ANY
    from plait_ops.samples.large import as_dtype, repeat

    small = as_dtype(sample, lambda array, selection: stored(array, dtype) if selection else array)

    def arguments(library: Any, elements: int) -> tuple[list[Any], dict[str, Any]]:
        def tensor(array: Any, selection: bool) -> Any:
            result = library.from_numpy(array)
            return result.to(library.bfloat16) if selection and dtype == "bfloat16" else result

        def named(value: Any) -> Any:
            return getattr(library, value) if isinstance(value, str) and value in ANY else value

        call = as_dtype(repeat(small, how, elements), tensor)
        return [named(x) for x in call.args], {k: named(x) for k, x in call.kwargs.items()}

    return arguments


def tensors(value: Any) -> list[Any]:
    """Return the tensors in a result."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in tensors(each)]
    return [value] if hasattr(value, "element_size") else []


def resident(field: str) -> float:
    """Megabytes by /proc."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


def prepared(call: Call, elements: int) -> Callable[[], Any]:
    """Return the call without arguments: those exist before it is measured."""
    args, kwargs = call.arguments(call.library, elements)
    if call.form == "out=":
        result = call.function(*args, **kwargs)
        kwargs["out"] = result if hasattr(result, "element_size") else tuple(result)
    if call.form != "backward":
        return lambda: call.function(*args, **kwargs)
    leaves = [x for x in tensors([args, kwargs]) if x.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    result = [x for x in tensors(call.function(*args, **kwargs)) if x.requires_grad]
    if not result:
        raise Unfit("no gradient")
    factor = call.library.ones_like(result[0].detach())
    del result

    def both_passes() -> Any:
        results = call.function(*args, **kwargs)
        next(x for x in tensors(results) if x.requires_grad).backward(factor)
        gradients = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        return gradients

    return both_passes


def measure_call(call: Call, elements: int) -> tuple[float, float, int, list[Any]]:
    """Return the megabytes that a call takes at most, with its result; its seconds; the bytes and
    the shapes of its results.
    """
    run = prepared(call, elements)
    if elements > TRIALS[-1]:
        gc.collect()
    if call.library.__name__ == "plait":
        call.library.empty_cache()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the largest size begins anew
    start = time.process_time()
    result = run()
    seconds = time.process_time() - start
    most = resident("VmHWM")
    results = [x for x in tensors(result) if x is not None]
    size = sum(x.numel() * x.element_size() for x in results)
    return most - before, seconds, size, [tuple(x.shape) for x in results]


def compared(calls: list[Call], elements: int) -> list[float]:
    """Return the megabytes of the same call in each library; `Unfit` with a reason."""
    last: list[tuple[float, int]] = []
    for trial in TRIALS:
        figures = [measure_call(each, trial) for each in calls]
        if figures[0][3] != figures[1][3]:
            raise Unfit("other shapes")
        now = [(max(seconds, 1e-5), max(size, 1)) for _, seconds, size, _ in figures]
        for (seconds, size), (least, smallest) in zip(now, last, strict=False):
            step = trial // TRIALS[TRIALS.index(trial) - 1]
            left = elements / trial
            speed = 2 if seconds > 0.05 and seconds > least * step * 3 else 1
            if seconds > 0.002 and seconds * left**speed > SECONDS:
                raise Unfit("slow")
            growth = 2 if size > smallest * step * 4 else 1
            if size * left**growth > LARGEST:
                raise Unfit("large")
        last = now
    return [round(measure_call(each, elements)[0], 1) for each in calls]


def pairs(base: str, form: str) -> Iterator[list[tuple[Any, Any]]]:
    """Yield pairs of a library and its function."""
    libraries = [importlib.import_module(side) for side in ("plait", "torch")]
    ours, theirs = (list(functions(each, base, form)) for each in libraries)
    for a in ours:
        for b in theirs:
            yield [(libraries[0], a), (libraries[1], b)]


def measured(base: str, form: str, arguments: Any, elements: int) -> list[float]:
    """Return the figures of both libraries, by the first functions that take the call."""
    reason: Exception = Unfit("no such function")
    for pair in pairs(base, form):
        calls = [Call(library, function, arguments, form) for library, function in pair]
        try:
            for each in calls:
                measure_call(each, TRIALS[0])  # the first call loads what it needs
            return compared(calls, elements)
        except Unfit as error:
            if str(error) in ("slow", "large"):
                raise
            reason = error
        except Exception as error:  # not for this dtype, or other parameters
            reason = error
    raise reason


def forms(spec: Any) -> Iterator[str]:
    """Yield the forms of an operator's calls."""
    yield "function"
    if spec.inplace:
        yield "in place"
    if spec.out:
        yield "out="
    if spec.differentiable or spec.composite:
        yield "backward"


def text_of(spec: Any, arguments: Any) -> str:
    """Return the call with shapes, as the page shows it."""
    import plait

    def shown(value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(shown, value)) + "]"
        return "x".join(map(str, value.shape)) or "0-d" if hasattr(value, "shape") else repr(value)

    args, kwargs = arguments(plait, INPUT // 4)
    words = [shown(x) for x in args] + [f"{k}={shown(x)}" for k, x in kwargs.items()]
    return f"{spec.schema.base}({', '.join(words)})"


def measure_sample(spec: Any, sample: Any, first: bool) -> None:
    """Print a line for each call of a sample that both libraries take."""
    from plait_ops.promotion import group
    from plait_ops.samples.large import enlargements

    result = 0
    for how in enlargements(sample):
        fitted = False
        text = ""
        for dtype, itemsize in SIZES.items():
            if dtype not in group(spec.dtypes):
                continue
            arguments = arguments_of(sample, how, dtype)
            for form in forms(spec):
                if form in ("in place", "out=") and not (first and result == 0 and not fitted):
                    continue
                if form == "backward" and dtype not in FLOATING:
                    continue
                elements = INPUT // itemsize if how.arrays else INPUT // 4
                if form == "backward":
                    elements //= 2
                try:
                    used = measured(spec.schema.base, form, arguments, elements)
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}".split("\n")[0][:100]
                    line = [spec.name, "", dtype, form, None, reason]
                    print(json.dumps(line), flush=True)
                    if form == "function":
                        break
                    continue
                text = text or text_of(spec, arguments)
                print(json.dumps([spec.name, text, dtype, form, used, ""]), flush=True)
            fitted = fitted or bool(text)
        result += fitted
        if result == (WAYS if len(how.arrays) > 1 and sum(how.arrays) < len(how.arrays) else 1):
            return


def measure(family: str, names: list[str]) -> None:
    """Print a line for each call of the operators of a folder or a family, or of those named."""
    from plait_ops import specs
    from plait_ops.samples import load
    from plait_ops.samples.large import distinct_samples

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 16)  # malloc gives back what is freed
    for side in ("plait", "torch"):
        importlib.import_module(side).set_num_threads(1)  # times decide what is measured
    selection = [
        each for each in specs.all() if each.family.startswith(family) and not each.internal
    ]
    selection = [each for each in selection if not names or each.name in names]
    load()
    gc.freeze()  # collections look at what is made from here on
    for spec in selection:
        if not any(pairs(spec.schema.base, "function")):
            continue
        for at, sample in enumerate(distinct_samples(spec, SAMPLES)):
            measure_sample(spec, sample, at == 0)


Line = tuple[str, str, str, str, list[float] | None, str]


def families() -> list[str]:
    """Return the families of definitions, in the order of their folders."""
    from plait_ops import specs

    return sorted({each.family for each in specs.all() if not each.internal})


def lines_of(family: str, baseline: pathlib.Path | None) -> list[Line]:
    """Return the lines of one family, measured in a process of its own unless they were kept."""
    file = baseline / f"{family.replace('/', '_')}.jsonl" if baseline else None
    if file and file.exists():
        text = file.read_text()
    else:
        command = [sys.executable, __file__, "--only", family]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{family}: exit status {done.returncode}\n{done.stderr}", file=sys.stderr)
            return []
        text = done.stdout
        if file:
            file.write_text(text)
    return [tuple(json.loads(line)) for line in text.splitlines()]


def table(rows: list[tuple[str, str, str, float, float]]) -> str:
    """Return the table of calls in Markdown, a row for the worst call of each operator."""
    worst: dict[str, tuple[str, str, str, float, float]] = {}
    dtypes: dict[str, set[str]] = {}
    for row in rows:
        name, _, dtype, ours, theirs = row
        dtypes.setdefault(name, set()).add(dtype)
        if name not in worst or ours - theirs > worst[name][3] - worst[name][4]:
            worst[name] = row
    lines = ["| operator | dtypes | plait MB | torch MB | call |", "|---|---|--:|--:|---|"]
    for name, text, _, ours, theirs in sorted(worst.values(), key=lambda each: each[4] - each[3]):
        kinds = ", ".join(sorted(dtypes[name]))
        lines.append(f"| {name} | {kinds} | {ours:.1f} | {theirs:.1f} | `{text}` |")
    return "\n".join(lines)


FORMS = {
    "function": "Functions",
    "in place": "In place",
    "out=": "With a target, `out=`",
    "backward": "Forward and backward",
}


def left_out(selection: list[str], lines: list[Line]) -> str:
    """Return the public operators without figures, by reason."""
    from plait_ops import specs

    seen = {line[0] for line in lines}
    measured = {line[0] for line in lines if line[4] is not None}
    reasons: dict[str, list[str]] = {}
    for spec in specs.all():
        if spec.internal or spec.family not in selection or spec.name in measured:
            continue
        if spec.name not in seen:
            reason = "PyTorch has no function of that name, or no sample can grow"
        elif any(line[0] == spec.name and line[5].startswith("Unfit") for line in lines):
            reason = "results that are far larger than inputs, or seconds"
        else:
            reason = (
                "a sample that is repeated is no valid call of both (sizes among the arguments, "
                "singular matrices, other parameters)"
            )
        reasons.setdefault(reason, []).append(f"`{spec.name}`")
    text = [f"- {reason}: {', '.join(names)}." for reason, names in reasons.items()]
    return "\n".join(
        textwrap.fill(each, 98, subsequent_indent="  ", break_on_hyphens=False) for each in text
    )


def page(selection: list[str], baseline: pathlib.Path | None) -> str:
    """Return the page: what takes more than PyTorch, and the counts."""
    lines = [line for family in selection for line in lines_of(family, baseline)]
    figures = [line for line in lines if line[4] is not None]
    if selection == families():
        scope = f"All {len(selection)} families of definitions were measured."
    else:
        names = ", ".join(selection)
        scope = textwrap.fill(f"Families that were measured (no others): {names}.", 98)
    parts = []
    for form, title in FORMS.items():
        of_form = [(n, t, d, *used) for n, t, d, f, used, _ in figures if f == form and used]
        over = [row for row in of_form if row[3] > FACTOR * row[4] + MARGIN]
        less = [row for row in of_form if row[4] > FACTOR * row[3] + MARGIN]
        count = len({row[0] for row in of_form})
        parts.append(
            f"## {title}\n\n{len(of_form)} calls of {count} operators: {len(over)} take more than "
            f"that limit, and {len(less)} of PyTorch take that much more than ours.\n\n"
            f"{table(over)}\n"
        )
    reasons = Counter(line[5] for line in lines if line[5].startswith("Unfit"))
    return f"""# Memory of single operators

`benchmarks/bench_operator_memory.py` wrote the tables of this page: what a call on
{INPUT // MEGABYTE} MB takes at most beside its input, its result included, with one thread. The
limit is {FACTOR} times PyTorch's memory and {MARGIN:.0f} MB. A row is an operator, with the worst
of its calls. Forward and backward begin with {INPUT // MEGABYTE // 2} MB. An operator that PyTorch
does not have by that name is not here, and {reasons["Unfit: slow"] + reasons["Unfit: large"]} calls
were left out because they would have taken seconds, or made far larger results than inputs.
{scope}

{REASONS}
## Without figures

{left_out(selection, lines)}

{chr(10).join(parts)}"""


REASONS = """## Why they take more

- *Composites* (losses, `histc`, `histogram`, `trapezoid`, `isin`, `cov`, `quantile`, windows,
  `logit`, `pairwise_distance`, `nansum`): steps make whole tensors, one or two at a time. PyTorch
  has one kernel for the whole.
- *bfloat16*: what cannot be cut into slices is widened to float32 as a whole: one row of `softmax`
  or `median`, matrix products (`addmm`, `bmm`, `vdot`), draws (`normal_`, `dropout`),
  `batch_norm`, `var` and its gradient, and additions to places (`put`, `index_reduce`), which are
  rounded once. So is one block of rows at a time where they can be cut.
- *Fourier transforms* of real numbers: the input is cast to complex first, and each dimension has a
  result of its own. Integers are transformed in float64.
- *In place, comparisons*: the bool result is made, then cast into the target.
- *With `out=`*: a result whose memory is laid out otherwise, or that is made in several steps
  (decompositions of matrices, `nonzero`, `index_copy`, sums of another dtype), is copied.
- *Gradients of views, `cat`, `stack` and `repeat`*: a leaf's gradient has memory of its own.
  PyTorch's is a view of the gradient that the caller gave, which a later write changes too.
- *Gradients of `index_put`, `index_copy`, `index_fill`, `put` and `scatter`*: of several values for
  one place only the last has a gradient; which one that was needs an int32 for each place. PyTorch
  gives all of them one.
- *Gradients of losses, `glu`, `logit`, `prod`, scans, attention*: a factor of the shape of the
  input is made beside the result.
- *Linear algebra*: copies in the order of LAPACK, and results that the caller does not ask for.
"""


def cases() -> Iterator[Any]:
    """None: there is a page alone."""
    return iter(())


def main() -> None:
    """Measure one family, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="print the figures of one family or folder")
    parser.add_argument("--operators", nargs="*", default=[], help="of those, the ones to measure")
    parser.add_argument("--families", nargs="*", default=[""], help="how their names begin")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder of figures, to go on with")
    parser.add_argument("--page", type=pathlib.Path)
    flags = parser.parse_args()
    if flags.only is not None:
        return measure(flags.only, flags.operators)
    if flags.keep:
        flags.keep.mkdir(parents=True, exist_ok=True)
    text = page([x for x in families() if x.startswith(tuple(flags.families))], flags.keep)
    if flags.page:
        flags.page.write_text(text)
    print(text)


if __name__ == "__main__":
    main()

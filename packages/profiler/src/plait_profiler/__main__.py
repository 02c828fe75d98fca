"""Run a program under a profile and print where its time went.

python -m plait_profiler [options] script.py [arguments of the script]
python -m plait_profiler [options] -m module [arguments]
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from plait_profiler._averages import SORT_KEYS
from plait_profiler._profile import profile
from plait_profiler._recorded import ENDINGS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program that the arguments name; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m plait_profiler", description=__doc__)
    parser.add_argument("--sort", default="self_cpu_time_total", help="the table's order")
    parser.add_argument("--rows", type=int, default=30, help="the table's length")
    parser.add_argument("--shapes", action="store_true", help="one line for each input shape")
    parser.add_argument("--lines", action="store_true", help="one line for each line of code")
    parser.add_argument("--memory", action="store_true", help="record memory")
    parser.add_argument("--trace", metavar="FILE", help="write a timeline: .json, .pftrace, .html")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module")
    parser.add_argument("program", help="a script, or a module with -m")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="the program's own arguments")
    options = parser.parse_args(arguments)
    # checked before the program runs, so that its events are not lost
    if options.sort.replace("cuda", "device") not in SORT_KEYS:
        parser.error(f"argument --sort: must be one of {', '.join(SORT_KEYS)}")
    if options.trace and not options.trace.endswith(ENDINGS):
        parser.error(f"argument --trace: FILE must end in one of {', '.join(ENDINGS)}")
    prof = profile(
        record_shapes=options.shapes,
        profile_memory=options.memory,
        with_stack=options.lines,
        with_flops=True,
    )
    try:
        return _run(prof, options.program, options.rest, options.module)
    finally:  # also of a program that failed or was interrupted
        _report(prof, options)


def _report(prof: profile, options: argparse.Namespace) -> None:
    averages = prof.key_averages(
        group_by_input_shape=options.shapes, group_by_stack_n=1 if options.lines else 0
    )
    print(averages.table(sort_by=options.sort, row_limit=options.rows))
    if options.trace:
        prof.export(options.trace)


def _run(prof: profile, program: str, rest: list[str], is_module: bool) -> int:
    before = sys.argv, sys.path[0]
    sys.argv = [program, *rest]
    sys.path[0] = "" if is_module else str(Path(program).resolve().parent)
    try:
        with prof:
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.path[0] = before
    return 0


if __name__ == "__main__":
    sys.exit(main())

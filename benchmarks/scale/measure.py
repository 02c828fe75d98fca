"""Real ranks on hosts of this machine: messages between two, and programs against the simulator."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hosts import dropped, hosts
from model import ALGORITHMS, STRATEGIES, Cluster, Link, Work, play, program
from models import MODELS

__all__ = ["again", "cluster_of", "measure"]

RATE = "50mbit"
TIMES = 5
# Computing that only sleeps: 2 MiB of gradients in eight layers.
STAND_IN = Work([256 << 10] * 8, [0.015] * 8, [0.04] * 8, 0.04)
LIMITS = (256 << 10, 1 << 20)
LINKS = {"1 Gbit/s": ("1gbit", "512kb"), "this machine": (None, "")}
SIMULATED = ("resnet50", "vgg19")
PAGES = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
LAYOUTS = ((2, 1), (4, 1), (8, 1), (2, 2), (4, 2))  # hosts, ranks of a host


def _run(
    count: int,
    each: int,
    provider: str,
    orders: Sequence[dict[str, Any]],
    rate: str | None = RATE,
    burst: str = "8kb",
) -> list[Any]:
    """Start ranks on hosts, and return the answers of rank 0."""
    ranks = Path(__file__).with_name("ranks.py")
    # a name for each host: ranks of one name would share memory
    named = 'hostname $0 && exec "$@"'
    with tempfile.TemporaryDirectory() as folder, hosts(count, rate, burst) as result:
        file = Path(folder, "orders.json")
        file.write_text(json.dumps(list(orders)))
        where = f"tcp://{result[0][1]}:29500/{secrets.token_hex(4)}"
        environment = {"PLAIT_JOB_SECRET": secrets.token_hex(16), **os.environ}
        started = [
            subprocess.Popen(
                [
                    *("ip", "netns", "exec", result[rank // each][0], "unshare", "--uts"),
                    *("sh", "-c", named, result[rank // each][0], sys.executable, str(ranks)),
                    *(str(rank), str(count * each), provider, where, str(each), str(file)),
                ],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(count * each)
        ]
        try:
            text = started[0].communicate(timeout=900)[0]
            for process in started:
                process.wait(timeout=30)
        finally:
            for process in started:
                process.kill()
    return list(json.loads(text.splitlines()[-1]))


def cluster_of(row: dict[str, Any]) -> Cluster:
    """The cluster that a row of measurements describes."""
    messages, inner = row["messages"], row["inner"]
    within = Link(messages["sizes"], inner, inner, inner, 0.0)
    return Cluster(Link(**messages), lambda nbytes, _: within.time(nbytes), row["each"])


def again(row: dict[str, Any], case: dict[str, Any]) -> float:
    """Simulate a case that was measured."""
    ranks = row["hosts"] * row["each"]
    steps = program(STAND_IN, case["strategy"], case["limit"], ranks)
    return play(cluster_of(row), steps, ranks, case["algorithm"])


def _cases(count: int, each: int) -> list[dict[str, Any]]:
    results = []
    for limit in LIMITS:
        for strategy in STRATEGIES:
            for algorithm in ALGORITHMS if strategy == "ddp" else ("exchange",):
                if (algorithm == "hierarchical") != (each > 1):
                    continue
                results.append({"strategy": strategy, "algorithm": algorithm, "limit": limit})
    return results


def _links(provider: str) -> dict[str, Any]:
    """Measure the messages that larger clusters are simulated with."""
    results = {}
    for name, limit in LINKS.items():
        messages, inner = _run(2, 2, provider, [{"what": "messages"}, {"what": "inner"}], *limit)
        results[name] = {"messages": messages, "inner": inner, "each": 2}
    return results


def _models() -> dict[str, Any]:
    """The models' layers; times are those of docs/benchmarks, by each layer's multiplications."""
    import plait

    results = {}
    for name in SIMULATED:
        model = MODELS[name]
        network = model.build(plait)
        *inputs, _ = (plait.from_numpy(x) for x in model.data(1))
        nbytes: list[float] = []
        products: list[float] = []

        def note(module: Any, _: Any, out: Any, a: list[float] = nbytes, b: Any = products) -> None:
            a.append(4.0 * sum(p.numel() for p in module.parameters()))
            b.append(module.weight.numel() * out.numel() / out.shape[1] if out.ndim else 0.0)

        layers = [m for m in network.modules() if getattr(m, "weight", None) is not None]
        handles = [layer.register_forward_hook(note) for layer in layers]
        with plait.no_grad():
            network.eval()(*inputs)
        for handle in handles:
            handle.remove()
        whole, step = _measured_step(name)
        parts = [x / sum(products) * (whole - step) / 3 for x in products]
        results[f"{model.title}, batch {model.batch} a rank"] = {
            "nbytes": nbytes,
            "forward": parts,
            "backward": [2 * x for x in parts],
            "step": step,
            "state": 1.0,  # momentum
        }
    return results


def _measured_step(name: str) -> tuple[float, float]:
    """Seconds of a training step, and of its optimizer, from the pages of table 1 and of floors."""
    stored = [json.loads(path.read_text()) for path in (PAGES / "table1").glob("*.json")]
    records = max(stored, key=lambda each: each["date"])["records"]
    step = next(
        statistics.median(r["seconds"])
        for r in records
        if r["peer"] == "plait"
        and r["case"]["model"] == name
        and r["case"]["section"] == "training"
        and r["case"]["threads"] == 2
    )
    part = (PAGES / "floors.md").read_text().partition(f"## {MODELS[name].title}, training")[2]
    row = re.search(r"^optimizer +\d+ +([\d.]+)", part, re.MULTILINE)
    assert row is not None, "floors.md has a row for the optimizer of each model"
    return step, float(row[1]) / 1e3


def measure(provider: str) -> dict[str, Any]:
    """Measure all layouts; each has its own table of messages, taken in the same run."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "provider": provider,
        "links": _links(provider),
        "models": _models(),
        "check": check(provider),
    }


def check(provider: str) -> dict[str, Any]:
    """Run programs on real ranks, and simulate them."""
    rows = []
    before_all = dropped()
    for count, each in LAYOUTS:
        cases = _cases(count, each)
        orders: list[dict[str, Any]] = [{"what": "messages"}, {"what": "inner"}]
        for case in cases:
            steps = program(STAND_IN, case["strategy"], case["limit"], count * each)
            orders.append({"what": "steps", "program": steps, "times": TIMES, **case})
        orders.append({"what": "messages"})
        answers = _run(count, each, provider, orders)
        before, inner, *real, after = answers
        messages = {**before, "gap": min(before["gap"], after["gap"])}
        for key in ("times", "one_way", "gathered"):
            messages[key] = [min(a, b) for a, b in zip(before[key], after[key], strict=True)]
        row = {"hosts": count, "each": each, "messages": messages, "inner": inner}
        for case, seconds in zip(cases, real, strict=True):
            case["real"] = seconds
            simulated = again(row, case)
            print(
                f"{count} hosts of {each}: {case['strategy']:6}{case['algorithm']:13}"
                f"{case['limit'] >> 10:5} KiB  real {1e3 * seconds:7.1f} ms"
                f"  simulated {1e3 * simulated:7.1f} ms  {100 * (simulated / seconds - 1):+.0f} %",
                flush=True,
            )
        rows.append({**row, "cases": cases})
    return {"rate": RATE, "times": TIMES, "rows": rows, "dropped": dropped() - before_all}

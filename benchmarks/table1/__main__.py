"""Table 1 of PyTorch's paper, on this machine: plait, PyTorch and others in turns.

    python benchmarks/table1 --quick
    python benchmarks/table1 --models resnet50 vgg19 --peers plait torch --sections training avx2
    python benchmarks/table1 --docs

Sections: training, inference, one-thread, avx2, neighbour, batches. Each library gets a virtual
environment in the folder of ``--environments``, made when it is needed; ``--python NAME=PATH``
names one that exists. Records are added to the file of ``--json`` as they are measured, those of
the same case replaced, and ``--only-page`` measures nothing. With ``--docs`` they join those that
docs/benchmarks/table1 has of this processor, whose page and picture are drawn anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import processor_pages  # noqa: E402
from figures import to_json  # noqa: E402
from machine import description  # noqa: E402
from models import MODELS, PAPER  # noqa: E402
from page import markdown  # noqa: E402
from peers import PEERS, Peer  # noqa: E402
from picture import draw  # noqa: E402
from places import python_of  # noqa: E402
from summary import by_case, mean_ratio, ratio, summary  # noqa: E402
from turns import Case, Record, run_case  # noqa: E402

__all__ = ["cases_of", "main", "merged"]

SECTIONS = ("training", "inference", "one-thread", "avx2", "neighbour", "batches")
CLOSE = ("plait", "torch", "torch tuned")
"""The sides of all sections; others are in the first two alone."""
BATCHES = (1, 2, 4, 8, 16, 32, 64)
BATCH_MODELS = ("resnet50", "mobilenet")


def main(arguments: list[str] | None = None) -> None:
    """Read the flags, run the sections, and write the records and the page."""
    flags = _parser().parse_args(arguments)
    values = dict(text.split("=", 1) for text in flags.python)
    machine, date, records = _read(flags.json)
    if flags.docs:
        stored = processor_pages.read("table1")
        of_docs = [Record.from_values(each) for each in stored.get("records", [])]
        records = merged(of_docs, records)
        machine, date = machine or stored.get("machine", {}), date or stored.get("date", "")
    if not flags.only_page:
        rounds = flags.rounds or (3 if flags.quick else 7)
        sections = flags.sections or (SECTIONS[:2] if flags.quick else SECTIONS)
        peers = flags.peers or (CLOSE if flags.quick else tuple(PEERS))
        pythons: dict[str, str] = {"plait": sys.executable, **values}
        machine = description()
        for section in sections:
            for case in cases_of(section, flags.models, flags.threads):
                sides = _sides(case, peers, pythons, flags.environments)
                result = run_case(case, sides, rounds)
                _report(case, result)
                records = merged(records, result)
                date = datetime.date.today().isoformat()
                _write(flags.json, machine, date, records)
    if flags.page:
        picture = flags.picture or flags.page.with_suffix(".svg")
        drawn = draw(records, picture)
        relative = os.path.relpath(picture, flags.page.parent) if drawn else None
        flags.page.parent.mkdir(parents=True, exist_ok=True)
        flags.page.write_text(markdown(records, machine, date, relative))
        print(f"wrote {flags.page}")
    if flags.docs:
        picture = processor_pages.this_processor().file("table1", ".svg")
        picture.parent.mkdir(parents=True, exist_ok=True)
        page = markdown(records, machine, date, picture.name if draw(records, picture) else None)
        listed = [record.values() for record in records]
        members = {"machine": machine, "date": date, "records": listed}
        processor_pages.write("table1", page, headline(records), members)


def headline(records: list[Record]) -> str:
    """Return what the index of pages says: plait's time over PyTorch's in training steps."""
    parts = []
    for peer in ("torch", "torch tuned"):
        ratios = [
            ratio(sides["plait"], sides[peer])
            for sides in by_case(records, "training").values()
            if "plait" in sides and peer in sides
        ]
        if not math.isnan(mean := mean_ratio(ratios)):
            parts.append(f"{mean:.2f} of {peer}'s time")
    return f"training steps: {', '.join(parts)}" if parts else ""


def _parser() -> argparse.ArgumentParser:
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser("benchmarks/table1", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="plait and PyTorch alone, 3 turns")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, metavar="SECTION")
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--peers", nargs="+", choices=PEERS, metavar="PEER")
    parser.add_argument("--rounds", type=int, help="turns of each side (default 7)")
    parser.add_argument("--threads", type=int, default=threads, help="default: all processors")
    parser.add_argument("--environments", type=Path, default=Path(".nox/table1-peers"))
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--json", type=Path, default=Path("results/table1.json"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks/table1")
    parser.add_argument("--picture", type=Path, help="default: beside the page, as .svg")
    parser.add_argument("--only-page", action="store_true", help="of the records that are there")
    return parser


def cases_of(section: str, models: list[str] | None, threads: int) -> list[Case]:
    """Return the cases of a section, for the models that were chosen or for its own."""
    if section == "batches":
        selection = [name for name in models or BATCH_MODELS if MODELS[name].images]
        return [
            Case(f"batches-{mode}", name, mode, batch, threads)
            for mode in ("inference", "training")
            for name in selection
            for batch in BATCHES
        ]
    mode = "inference" if section == "inference" else "training"
    names = models or (MODELS if mode == "inference" else PAPER)
    return [
        Case(
            *(section, name, mode, MODELS[name].batch),
            threads=1 if section == "one-thread" else threads,
            avx2=section == "avx2",
            neighbour=section == "neighbour",
        )
        for name in names
        if mode == "inference" or MODELS[name].trained
    ]


def _sides(
    case: Case, peers: tuple[str, ...], pythons: dict[str, str], folder: Path
) -> list[tuple[Peer, str]]:
    """Return the sides of a case with their Pythons; rows of one environment share it."""
    selection = [name for name in peers if case.section in SECTIONS[:2] or name in CLOSE]
    for name in selection:
        peer = PEERS[name]
        if name not in pythons:
            pythons[name] = pythons.get(peer.place) or python_of(peer, folder.resolve())
    return [(PEERS[name], pythons[name]) for name in selection]


def merged(old: list[Record], new: list[Record]) -> list[Record]:
    """Return the old records with the new ones, which replace those of the same case and side."""
    known = {(record.case, record.peer): record for record in [*old, *new]}
    return list(known.values())


def _report(case: Case, records: list[Record]) -> None:
    """Print a case's medians."""
    parts = []
    for record in records:
        if record.seconds:
            result = summary(record.seconds)
            parts.append(f"{record.peer} {result.median * 1e3:.1f} ms ± {result.spread:.0%}")
        else:
            parts.append(f"{record.peer} N/A ({record.missing})")
    title = f"{MODELS[case.model].title}, {case.section}, batch of {case.batch}"
    print(f"{title}: {'; '.join(parts)}", flush=True)


def _read(path: Path) -> tuple[dict[str, str], str, list[Record]]:
    """Return the machine, the date and the records of a file, or nothing of one that is not."""
    if not path.exists():
        return {}, "", []
    values = json.loads(path.read_text())
    records = [Record.from_values(record) for record in values["records"]]
    return values["machine"], values["date"], records


def _write(path: Path, machine: dict[str, str], date: str, records: list[Record]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = [record.values() for record in records]
    values = {"machine": machine, "date": date, "records": listed}
    path.write_text(to_json(values))


if __name__ == "__main__":
    main()

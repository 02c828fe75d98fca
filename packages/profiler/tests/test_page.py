"""The HTML page: its data, and what Chromium shows of it at three widths."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
import synthetic

from plait_profiler._blocks import memory_changes
from plait_profiler._page import export_html
from plait_profiler._recording import ROW, Context, Kind, Recording, Signature
from plait_profiler._tracks import backward_arrows

WIDTHS = (400, 900, 1600)
needs_browser = pytest.mark.skipif(chromium.browser() is None, reason="there is no Chromium here")


def data(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and columns of a page."""
    text = path.read_text("utf-8")
    facts = json.loads(re.search(r'<script id="facts"[^>]*>(.*?)</script>', text, re.S)[1])
    packed = re.search(r'<script id="columns"[^>]*>(.*?)</script>', text, re.S)[1]
    whole, columns, at = zlib.decompress(base64.b64decode(packed)), {}, 0
    for name, column in facts["columns"].items():
        count, width = column["count"], column["bytes"]
        octets = np.frombuffer(whole, np.uint8, count * width, at).reshape(width, count)
        columns[name] = sum(
            (octets[place].astype(np.uint64) << np.uint64(8 * place) for place in range(width)),
            np.zeros(count, np.uint64),
        )
        at += count * width
    assert at == len(whole)
    return facts, columns


def test_the_columns(tmp_path: Path) -> None:
    recording = synthetic.recording(2000, processes=2)
    export_html(recording, tmp_path / "page.html")
    facts, columns = data(tmp_path / "page.html")
    rows = recording.rows
    spans = rows[(rows["kind"] & (Kind.ALLOC | Kind.FREE | Kind.MARK)) == 0]
    assert len(columns["gap"]) == len(spans) == sum(track["count"] for track in facts["tracks"])
    result = []
    first = 0
    for track in facts["tracks"]:
        here = slice(first, first + track["count"])
        starts = np.cumsum(columns["gap"][here]) + np.uint64(recording.begin)
        names = [facts["signatures"][number]["name"] for number in columns["signature"][here]]
        kinds = [facts["kinds"][str(kind)] for kind in columns["kind"][here]]
        lengths = columns["duration"][here].tolist()
        result += list(zip(starts.tolist(), lengths, names, kinds, strict=True))
        first += track["count"]
    expected = [
        (int(row["start"]), int(row["duration"]), name, Kind(row["kind"]).name.lower())
        for row in spans
        for name in [recording.signatures[row["signature"]].name]
    ]
    assert sorted(result) == sorted(expected)
    assert len(columns["backwardFrom"]) == len(backward_arrows(recording)[0])


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    export_html(synthetic.recording(100), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert not re.search(r"<(link|img|iframe)\b|@import|\bsrc=|url\(", text)


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    name = "</script><b>{{columns}}<!-- \ud800"
    rows = np.zeros(1, ROW)
    rows["kind"] = Kind.RANGE
    recording = Recording(rows, [Signature(name, Kind.RANGE)], [Context(name, name)])
    export_html(recording, tmp_path / "page.html", title=name)
    facts, _ = data(tmp_path / "page.html")
    assert facts["signatures"][0]["name"] == name.replace("\ud800", "?")


@pytest.fixture(scope="module")
def recording() -> Recording:
    return synthetic.recording(3000, processes=2)


@pytest.fixture(scope="module")
def page(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    if chromium.browser() is None:
        pytest.skip("there is no Chromium here")
    path = tmp_path_factory.mktemp("page") / "page.html"
    export_html(recording, path, title="A net & its </title>")
    with chromium.open_page(path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _from_the_begin(request: pytest.FixtureRequest) -> Iterator[None]:
    """Show all before each test; there must be no error behind it."""
    opened = request.getfixturevalue("page") if "page" in request.fixturenames else None
    if opened is not None:
        opened.resize(900, 800)
        opened.value("shown.actions.search(''), shown.actions.select(null), shown.view.all()")
        opened.value("document.activeElement.blur(), scrollTo(0, 0)")
    yield
    if opened is not None:
        assert opened.errors == []


def settled(page: chromium.Page) -> None:
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def colours(page: chromium.Page, canvas: str) -> int:
    """Return how many colours a canvas has."""
    return int(
        page.value(
            f"""(() => {{ const canvas = document.getElementById("{canvas}");
            const {{ width, height }} = canvas;
            const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
            return new Set(new Uint32Array(pixels.buffer)).size; }})()"""
        )
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits(page: chromium.Page, width: int, theme: str) -> None:
    page.resize(width, 800)
    page.theme(theme)
    settled(page)
    assert page.value("document.documentElement.scrollWidth") <= width
    clipped = page.value(
        """[...document.querySelectorAll("button, h1, h2, dd, p, canvas, input, select")]
        .filter((each) => each.offsetParent && each.getBoundingClientRect().right > innerWidth)
        .map((each) => each.outerHTML)"""
    )
    assert clipped == []
    assert colours(page, "timeline") > 10
    assert colours(page, "memory") > 5
    background = page.value("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert (brightness > 128) == (theme == "light")


def test_its_summary(page: chromium.Page, recording: Recording) -> None:
    rows = recording.rows
    spans = int(((rows["kind"] & (Kind.ALLOC | Kind.FREE | Kind.MARK)) == 0).sum())
    summary = page.value("document.getElementById('summary').textContent")
    assert summary.startswith(f"{spans:,} events in ")
    assert "of 2 processes" in summary
    assert "2026-09-21" in summary  # the recording's clock
    assert page.value("document.title") == "A net & its </title>"
    warning = page.value("document.getElementById('warning').textContent")
    assert warning.endswith("3 of kind op.")


def test_averages_by_name(page: chromium.Page, recording: Recording) -> None:
    rows, parents = recording.rows, recording.parents()
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    beside = Kind.ALLOC | Kind.FREE | Kind.MARK | Kind.STEP | Kind.DEVICE
    for index, row in enumerate(rows):
        if row["kind"] & beside:
            continue
        own = expected[recording.signatures[row["signature"]].name]
        own[0] += 1
        own[1] += int(row["duration"])
        outer = parents[index]
        if outer >= 0:
            expected[recording.signatures[rows[outer]["signature"]].name][1] -= int(row["duration"])
        inside = False
        while outer >= 0:
            inside |= rows[outer]["signature"] == row["signature"] or (
                recording.signatures[rows[outer]["signature"]].name
                == recording.signatures[row["signature"]].name
            )
            outer = parents[outer]
        own[2] += 0 if inside else int(row["duration"])
    result = page.value("shown.profile.averages('')")
    assert {row["name"]: [row["calls"], row["self"], row["total"]] for row in result} == expected
    names = page.value(
        "[...document.querySelectorAll('#averages tbody tr')].map((r) => r.cells[0].textContent)"
    )
    assert names == sorted(expected, key=lambda name: -expected[name][1])


def test_a_table_is_sorted_by_a_click(page: chromium.Page) -> None:
    page.value("document.querySelectorAll('#averages th button')[0].click()")
    script = (
        "[...document.querySelectorAll('#averages tbody tr')].map((r) => r.cells[0].textContent)"
    )
    names = page.value(script)
    assert names == sorted(names, key=str.lower)
    page.value("document.querySelectorAll('#averages th button')[2].click()")
    assert page.value(script) != names


def view(page: chromium.Page) -> tuple[float, float]:
    settled(page)
    first, last = page.value("[shown.view.from, shown.view.to]")
    return first, last


def test_keys(page: chromium.Page) -> None:
    whole = view(page)
    page.key("w")
    page.key("w")
    near = view(page)
    assert whole[0] < near[0] < near[1] < whole[1]
    page.key("d")
    right = view(page)
    assert right[0] > near[0]
    assert right[1] - right[0] == pytest.approx(near[1] - near[0])
    page.key("a")
    assert view(page) == pytest.approx(near)
    page.key("s")
    assert view(page)[1] - view(page)[0] > near[1] - near[0]
    page.key("0")
    assert view(page) == whole


def centre(page: chromium.Page, element: str = "timeline") -> tuple[float, float]:
    x, y = page.value(
        f"""(() => {{ const box = document.getElementById("{element}").getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2]; }})()"""
    )
    return x, y


def test_the_wheel_zooms_where_the_pointer_is(page: chromium.Page) -> None:
    x, y = centre(page)
    time = "shown.view.from + shown.timeline.width / 2 / shown.timeline.scale"
    settled(page)
    before, whole = page.value(time), view(page)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    settled(page)
    assert view(page)[1] - view(page)[0] < 0.7 * (whole[1] - whole[0])
    assert page.value(time) == pytest.approx(before, rel=1e-2)


def test_dragging_moves(page: chromium.Page) -> None:
    for _ in range(3):
        page.key("w")
    before = view(page)
    x, y = centre(page)
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x - 60, y, button="left", buttons=1)
    page.mouse("mouseMoved", x - 120, y, button="left", buttons=1)
    page.mouse("mouseReleased", x - 120, y, button="left", clickCount=1)
    width = page.value("shown.timeline.width")
    after = view(page)
    assert after[0] - before[0] == pytest.approx(120 / width * (before[1] - before[0]), rel=0.01)
    assert page.value("shown.timeline.selected") is None


def test_a_click_selects_and_arrows_lead_on(page: chromium.Page, recording: Recording) -> None:
    """The first forward call with a node is selected by a click; its details lead to the node."""
    event, node = page.value("[shown.profile.arrows[0].from[0], shown.profile.arrows[0].to[0]]")
    page.value(f"shown.timeline.reveal({event})")
    settled(page)
    x, y = page.value(
        f"""(() => {{ const box = document.getElementById("timeline").getBoundingClientRect();
        const {{ timeline, profile }} = shown;
        const middle = profile.start[{event}] + profile.duration[{event}] / 2;
        return [box.left + timeline.x(middle), box.top + timeline.y({event}) + 6]; }})()"""
    )
    page.mouse("mouseMoved", x, y)
    settled(page)
    assert page.value("shown.timeline.hovered") == event
    assert not page.value("document.getElementById('tip').hidden")
    page.click(x, y)
    assert page.value("shown.timeline.selected") == event
    details = page.value("document.getElementById('details').innerText")
    name = page.value(f"shown.profile.name({event})")
    assert details.startswith(name)
    for text in ("Duration", "Inputs", "float32", "Net.layers.", "forward", "Backward node"):
        assert text in details
    page.value(
        "[...document.querySelectorAll('#details .link')].find((b) => b.textContent.includes("
        "'Backward')).click()"
    )
    settled(page)
    assert page.value("shown.timeline.selected") == node
    first, last = view(page)
    start, end = page.value(f"[shown.profile.start[{node}], shown.profile.end({node})]")
    assert first <= start <= end <= last
    page.key("f")
    assert view(page)[1] - view(page)[0] < 2 * (end - start) + 100


def test_search(page: chromium.Page, recording: Recording) -> None:
    page.value("document.getElementById('query').focus()")
    for letter in "SoftMax":
        page.key(letter)
    rows = recording.rows
    spans = (rows["kind"] & (Kind.ALLOC | Kind.FREE | Kind.MARK)) == 0
    matching = [
        int(row["start"]) - recording.begin
        for row in rows[spans]
        if "softmax" in recording.signatures[row["signature"]].name.lower()
    ]
    text = page.value("document.getElementById('matches').textContent")
    assert text == f"{len(matching):,} found"
    page.value("document.activeElement.blur()")
    starts = []
    for _ in range(4):
        page.key("n")
        starts.append(page.value("shown.profile.start[shown.timeline.selected]"))
    assert starts == sorted(matching)[:4]
    page.key("p")
    assert page.value("shown.profile.start[shown.timeline.selected]") == starts[2]
    for _ in range(3):
        page.key("p")
    assert page.value("shown.profile.start[shown.timeline.selected]") == max(matching)


def test_the_memory(page: chromium.Page, recording: Recording) -> None:
    sizes = np.cumsum(memory_changes(recording).change)
    assert page.value("shown.memory.peak") == int(sizes.max())
    legend = page.value("document.getElementById('legend').innerText")
    for name in ("parameter", "gradient", "activation", "together at the peak", "reserved"):
        assert name in legend
    x, y = centre(page, "memory")
    page.value(f"scrollTo(0, {y} - 200)")
    x, y = centre(page, "memory")
    page.mouse("mouseMoved", x, y)
    assert "together here" in page.value("document.getElementById('legend').innerText")


@needs_browser
@pytest.mark.parametrize("marked", [False, True])
def test_without_marks_the_memory_is_one_area(tmp_path: Path, marked: bool) -> None:
    recording = synthetic.recording(500)
    if not marked:
        recording.rows = recording.rows[recording.rows["kind"] != Kind.MARK]
    export_html(recording, tmp_path / "page.html")
    with chromium.open_page(tmp_path / "page.html") as opened:
        assert (opened.value("shown.memory.categories.length") == 1) == (not marked)
        assert ("all storages" in opened.value("document.body.innerText")) == (not marked)
        assert opened.errors == []


@needs_browser
def test_a_long_event_behind_a_short_one_is_drawn(tmp_path: Path) -> None:
    """Both begin in one pixel."""
    rows = np.zeros(3, ROW)
    rows["kind"], rows["signature"] = Kind.OP, [0, 1, 0]
    rows["start"], rows["duration"] = [0, 5, 800_000], [2, 500_000, 200_000]
    signatures = [Signature("short", Kind.OP), Signature("long", Kind.OP)]
    export_html(Recording(rows, signatures), tmp_path / "page.html")
    with chromium.open_page(tmp_path / "page.html") as opened:
        drawn = opened.value(
            """(() => { const { timeline } = shown;
            const context = document.getElementById("timeline").getContext("2d");
            const at = (share) => [...context.getImageData(
              share * timeline.width, timeline.y(0) + 13, 1, 1).data];
            return [at(0.4), at(0.7), at(0.9)]; })()"""
        )
        assert opened.errors == []
    inside, between, other = drawn
    assert between[3] == 0
    assert inside[3] == other[3] == 255
    assert inside != other


@needs_browser
def test_an_empty_recording(tmp_path: Path) -> None:
    export_html(Recording(np.zeros(0, ROW), []), tmp_path / "page.html")
    with chromium.open_page(tmp_path / "page.html") as opened:
        assert opened.value("document.getElementById('summary').textContent") == "0 events in 0 ns"
        assert opened.value("document.getElementById('memory-card').hidden")
        for key in "wasdfn0":
            opened.key(key)
        assert opened.errors == []


def test_two_fingers_zoom_and_one_moves(page: chromium.Page) -> None:
    page.resize(400, 800)
    page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    settled(page)
    x, y = centre(page)

    def touch(kind: str, *places: float) -> None:
        points = [{"x": place, "y": y, "id": number} for number, place in enumerate(places)]
        page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    whole = view(page)
    touch("touchStart", x - 20, x + 20)
    for distance in (40, 80, 120):
        touch("touchMove", x - distance, x + distance)
    touch("touchEnd")
    near = view(page)
    assert near[1] - near[0] < (whole[1] - whole[0]) / 2
    touch("touchStart", x)
    for distance in (20, 60, 100):
        touch("touchMove", x + distance)
    touch("touchEnd")
    moved = view(page)
    page.call("Emulation.setTouchEmulationEnabled", enabled=False)
    assert moved[0] < near[0]
    assert moved[1] - moved[0] == pytest.approx(near[1] - near[0])

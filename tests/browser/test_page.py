"""The module of WebAssembly in Node and in a browser: numbers, training, errors, the page."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
from plait.graph import load

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "browser"
sys.path.insert(0, str(EXAMPLE))

import build_page  # noqa: E402

MOST_BYTES = 1_500_000
STEPS = 8
BROWSER = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")), None)
OPTIONS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in WebDriver's answers

for program in ("em++", "node"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page, with a network that knows digits roughly."""
    folder = tmp_path_factory.mktemp("page")
    build_page.main(["--epochs", "1", "--limit", "12000", "--output", str(folder)])
    return folder


def test_the_page_is_small(page: Path) -> None:
    rows = build_page.sizes(page)
    assert {name for name, _, _ in rows} >= {"digits.wasm", "plait_run.js", "index.html"}
    assert sum(nbytes for _, nbytes, _ in rows) < MOST_BYTES


def batch(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Images and labels, which `node_program.mjs` makes, too."""
    images = (np.arange(784 * count) % 23 / 23).astype(np.float32).reshape(count, 1, 28, 28)
    return images, np.arange(count) % 10


def test_numbers_in_node_are_those_of_python(page: Path) -> None:
    text = subprocess.run(
        ["node", HERE / "node_program.mjs", page], capture_output=True, text=True, check=True
    ).stdout
    results = json.loads(text)
    predict, train = (load(page / f"{name}.safetensors") for name in ("predict", "train"))
    images, labels = batch(6)
    expected = predict(plait.from_numpy(images[:1])).numpy().ravel()
    np.testing.assert_allclose(results["probabilities"], expected, rtol=1e-5, atol=1e-5)
    losses = [
        train(plait.from_numpy(images[:n]), plait.from_numpy(labels[:n])).item()
        for n in (6, 6, 3, 6, 1, 6, 6, 6)
    ]
    np.testing.assert_allclose(results["losses"], losses, rtol=1e-5, atol=1e-5)
    saved = page / "saved.safetensors"
    again = load(saved)(plait.from_numpy(images), plait.from_numpy(labels)).item()
    saved.unlink()
    assert again == pytest.approx(results["next_loss"], abs=1e-5)


def test_bad_input_in_node_is_an_error_with_its_text(page: Path) -> None:
    subprocess.run(["node", HERE / "bad_input.mjs", page], check=True)


# In a browser


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address(page: Path) -> Iterator[str]:
    """The address of a server of the page."""
    handler = functools.partial(Quiet, directory=str(page))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class Browser:
    """A session of chromedriver, by its protocol over HTTP."""

    def __init__(self, port: str, profile: Path) -> None:
        self._root = f"http://127.0.0.1:{port}/session"
        options = {
            "args": [*OPTIONS, f"--user-data-dir={profile}"],
            "binary": shutil.which(BROWSER or ""),
        }
        capabilities = {"alwaysMatch": {"goog:chromeOptions": options}}
        self._root += "/" + self.post("", {"capabilities": capabilities})["sessionId"]

    def request(self, method: str, path: str, data: Any = None) -> Any:
        """Return the value of an answer."""
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(self._root + path, body, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def post(self, path: str, data: Any) -> Any:
        return self.request("POST", path, data)

    def script(self, text: str, *arguments: Any) -> Any:
        """Run a function's body in the page."""
        return self.post("/execute/sync", {"script": text, "args": list(arguments)})

    def text(self, name: str) -> str:
        text: str = self.script(f"return document.getElementById('{name}').textContent")
        return text

    def click(self, selector: str) -> None:
        element = self.post("/element", {"using": "css selector", "value": selector})
        self.post(f"/element/{element[ELEMENT]}/click", {})

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        self.post("/timeouts", {"script": 120_000})
        wait = (
            "const done = arguments[0]; (function look() "
            f"{{ if ({condition}) done(); else setTimeout(look, 20); }})()"
        )
        self.post("/execute/async", {"script": wait, "args": []})

    def draw(self, points: list[tuple[float, float]]) -> None:
        """Draw a line with the mouse; points are fractions of the drawing area."""
        box = self.script(
            "const pad = document.getElementById('pad'); pad.scrollIntoView({block: 'center'});"
            "const box = pad.getBoundingClientRect(); return [box.left, box.top, box.width]"
        )
        moves = [
            {
                "type": "pointerMove",
                "duration": 10,
                "x": round(box[0] + x * box[2]),
                "y": round(box[1] + y * box[2]),
            }
            for x, y in points
        ]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:]]
        actions.append({"type": "pointerUp", "button": 0})
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}
        self.post("/actions", {"actions": [{**mouse, "actions": actions}]})

    def press(self, key: str) -> None:
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})


def started(port: str, factory: pytest.TempPathFactory) -> Browser:
    """Start a browser; on a busy machine the first one may not answer in time."""
    for _ in range(2):
        with contextlib.suppress(AssertionError):
            return Browser(port, factory.mktemp("profile"))
    return Browser(port, factory.mktemp("profile"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser without a window."""
    if not BROWSER or not shutil.which("chromedriver"):
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium-driver)")
    command = ["chromedriver", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout
        port = None
        for line in driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                port = found[1]
                break
        assert port, f"chromedriver ended with {driver.wait()}"
        try:
            browser = started(port, tmp_path_factory)
            yield browser
            browser.request("DELETE", "")
        finally:
            driver.terminate()


ONE = [(0.5, 0.15), (0.5, 0.4), (0.5, 0.6), (0.5, 0.85)]
SEVEN = [(0.25, 0.2), (0.5, 0.2), (0.75, 0.2), (0.62, 0.5), (0.45, 0.85)]
DOWN, SPACE = "\ue015", " "


def test_digits_are_drawn_recognised_and_learned(address: str, browser: Browser) -> None:
    browser.post("/url", {"url": address})
    browser.wait_for("document.getElementById('status').textContent !== 'Loading …'")
    assert browser.text("status") == "Ready."
    browser.draw(ONE)
    assert browser.text("guess") == "1"
    shares = browser.script(
        "return [...document.querySelectorAll('.share')].map((e) => parseFloat(e.textContent))"
    )
    assert len(shares) == 10 and sum(shares) == pytest.approx(100, abs=0.6)
    # The network is told that the drawings are other digits than it takes them for.
    browser.click("#labels button:nth-child(4)")
    assert browser.text("count") == "1" and browser.text("guess") == "–"
    browser.draw(SEVEN)
    browser.press("5")
    assert browser.text("count") == "2"
    for _ in range(STEPS):
        browser.click("#train")
    losses = browser.script("return JSON.parse(document.getElementById('loss').dataset.losses)")
    assert len(losses) == 5 * STEPS
    assert losses[-1] < losses[0] / 2
    browser.draw(ONE)
    assert browser.text("guess") == "3"
    browser.click("#reset")
    browser.draw(ONE)
    assert browser.text("guess") == "1"
    assert "error" not in browser.script("return document.getElementById('status').className")


def test_the_keyboard_draws(address: str, browser: Browser) -> None:
    browser.post("/url", {"url": address})
    browser.wait_for("document.getElementById('status').textContent === 'Ready.'")
    browser.script("document.getElementById('pad').focus()")
    browser.press(SPACE)
    for _ in range(24):
        browser.press(DOWN)
    assert browser.text("guess") == "1"
    browser.press("\ue00c")  # escape
    assert browser.text("guess") == "–"


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_the_page_fits_its_window(address: str, browser: Browser, width: int) -> None:
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    emulate = {"cmd": "Emulation.setDeviceMetricsOverride", "params": size}
    browser.post("/goog/cdp/execute", emulate)
    browser.post("/url", {"url": address})
    assert browser.script("return innerWidth") == width
    assert browser.script("return document.documentElement.scrollWidth") <= width

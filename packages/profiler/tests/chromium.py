"""Drives a headless Chromium by its debugging protocol, over pipes, without further packages."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Page", "browser", "open_page"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser() -> str | None:
    """Return the path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """A page of a browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        result = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = result["sessionId"]
        for domain in ("Page", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(answer["params"]))
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))

    def value(self, expression: str) -> Any:
        """Return what JavaScript makes of an expression; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def mouse(self, kind: str, x: float, y: float, **parameters: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **parameters)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, name: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, whole: bool = True) -> bytes:
        """Return a PNG of the whole page, or of what the window shows."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])


@contextlib.contextmanager
def open_page(file: Path, width: int = 900, height: int = 800) -> Iterator[Page]:
    """Open a page that `export_html` wrote, and wait until it has been drawn."""
    path = browser()
    assert path is not None
    commands, answers = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run"]
        # The browser reads file 3 and writes file 4.
        script = f'exec 3<&{commands[0]} 4>&{answers[1]}; exec "$@"'
        with subprocess.Popen(
            ["bash", "-c", script, "bash", path, *options],
            pass_fds=(commands[0], answers[1]),
            stderr=subprocess.DEVNULL,
        ) as process:
            os.close(commands[0])
            os.close(answers[1])
            try:
                page = Page(commands[1], answers[0])
                page.resize(width, height)
                page.call("Page.navigate", url=file.as_uri())
                page.value(
                    """new Promise((done) => { const look = () => window.shown
                    ? requestAnimationFrame(() => requestAnimationFrame(done))
                    : setTimeout(look, 5); look(); })"""
                )
                yield page
                page.call("Runtime.evaluate", expression="0")
            finally:
                os.close(commands[1])
                os.close(answers[0])
                process.terminate()
                process.wait()

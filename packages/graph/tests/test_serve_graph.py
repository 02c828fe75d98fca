"""The example of a server: answers, refusals, hostile requests, and its end."""

from __future__ import annotations

import errno
import fcntl
import http.client
import io
import json
import random
import re
import signal
import socket
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_graph import export

SOURCES = Path(__file__).resolve().parents[3] / "examples" / "native" / "serve_graph"
BYTES, NPY, JSON = "application/octet-stream", "application/x-npy", "application/json"

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="needs the examples")


class Server:
    """A server that runs, and what it should answer."""

    def __init__(self, program: Path, libraries: str, path: Path, *options: str) -> None:
        pc.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).eval()
        export(self.model, (pc.randn(2, 3),), path)
        command = [str(program), "-p", "0", "-l", libraries, *options, str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.startswith("serve_graph: http://127.0.0.1:"), line
        self.port = int(line.rpartition(":")[2])

    def ask(self, method: str, path: str, body: Any = None, **fields: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=200)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in fields.items()})
        answer = connection.getresponse()
        result = answer.status, answer.read()
        connection.close()
        return result

    def predict(self, body: Any, kind: str = JSON, **fields: str) -> tuple[int, bytes]:
        return self.ask("POST", "/predict", body, Content_Type=kind, **fields)

    def send(self, data: bytes) -> bytes:
        """Send bytes and return all that comes back until the server closes, or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=200) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        return answer

    def end(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        text = self.process.communicate(timeout=200)[0]
        assert self.process.returncode == 0
        return text

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture(scope="module")
def program(compiled: Callable[..., Path]) -> Path:
    names = ("serve_graph.c", "http.c", "arrays.c")
    return compiled("serve_graph", *(SOURCES / name for name in names), standard="c99")


@pytest.fixture(scope="module")
def server(
    program: Path, libraries: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("server") / "model.safetensors"
    with Server(program, libraries, path, "-m") as result:
        yield result
        assert "answers" in result.end()


def test_predictions_in_all_forms(server: Server) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    expected = server.model(pc.tensor(x)).detach().numpy()
    for text in (json.dumps(x.tolist()), json.dumps({"input": x.tolist()}, indent=1)):
        status, answer = server.predict(text)
        assert status == 200 and np.array_equal(
            np.array(json.loads(answer)["output"], np.float32), expected
        )
    file = io.BytesIO()
    np.save(file, x)
    status, answer = server.predict(file.getvalue(), NPY)
    assert status == 200 and np.array_equal(np.load(io.BytesIO(answer)), expected)
    status, answer = server.predict(x.tobytes(), BYTES + "; charset=x", Accept="*/*")
    assert status == 200 and answer == expected.tobytes()
    status, answer = server.predict(x.tobytes(), BYTES, Accept=NPY)
    assert status == 200 and np.array_equal(np.load(io.BytesIO(answer)), expected)
    status, answer = server.ask("GET", "/model")
    assert json.loads(answer) == {
        "inputs": [{"name": "input", "dtype": "float32", "shape": [2, 3]}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": [2, 4]}],
    }
    status, answer = server.ask("GET", "/health?verbose")
    assert status == 200 and json.loads(answer)["status"] == "ok"


def test_one_connection_for_many_requests(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=200)
    for i in range(50):
        body = b"[[1, 2, 3], [4, 5, 6]]" if i % 3 else b"[[1, 2, 3]]"
        connection.request("POST", "/predict", body, {"Content-Type": JSON})
        answer = connection.getresponse()
        assert answer.status == (200 if i % 3 else 400) and answer.read()
    connection.close()
    health = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    several = server.send(health * 20 + health.replace(b"Host", b"Connection: close\r\nHost"))
    assert several.count(b"HTTP/1.1 200 OK") == 21
    post = b"POST /predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 24\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=200) as slow:
        slow.sendall(post + b"Content-Type: application/octet-stream\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 100 Continue")
        for _ in range(24):
            slow.sendall(b"\0")
        assert slow.recv(1000).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("", "a list of 2 is required"),
        ("[[1, 2, 3]]", "axis 0 has 2 elements, got 1"),
        ("[[1, 2, 3], [1, 2]]", "axis 1 has 3 elements, got 2"),
        ("[[1, 2, 3], [1, 2, 3, 4]]", "axis 1 has 3 elements; ] is required"),
        ("[[1, 2, 3], [1, 2, null]]", "a number is required in place of 'null"),
        ("[[1, 2, 3], [1, 2, 0x1]]", "axis 1 has 3 elements"),
        ("[[1, 2, 3], [1, 2, NaN]]", "a number is required"),
        ("[[1, 2, 3], [1, 2, 1.]]", "a number is required"),
        ("[[1, 2, 3], [1, 2, 3]] 1", "there is more behind"),
        ("[" * 50000, "a number is required"),
        ('{"other": [[1, 2, 3], [1, 2, 3]]}', "the names of 1 inputs are required"),
        ('{"input": [[1, 2, 3], [1, 2, 3]], "input": 1}', "} is required"),
        ('{"input": 3', "a list of 2 is required"),
        ("[[1, 2, 3], [1, 2, 3]]\0", "there is more behind"),
    ],
)
def test_json_that_does_not_fit(server: Server, body: str, text: str) -> None:
    status, answer = server.predict(body)
    assert status == 400 and text in json.loads(answer)["error"], answer


def test_other_bodies_that_do_not_fit(server: Server) -> None:
    def npy(array: Any) -> bytes:
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    good = npy(np.zeros((2, 3), np.float32))
    for body in (npy(np.zeros((2, 3))), npy(np.zeros((3, 2), np.float32).T), good[:40], b"", b"\0"):
        status, answer = server.predict(body, NPY)
        assert status == 400 and b"shape': (2, 3)" in answer.replace(b'"', b"'"), answer
    assert server.predict(good[:-1], NPY)[0] == server.predict(good + b"\0", NPY)[0] == 400
    status, answer = server.predict(b"\0" * 23, BYTES)
    assert (status, json.loads(answer)["error"]) == (400, "the inputs have 24 bytes, got 23")
    assert server.predict("1", "text/plain")[0] == 415
    assert server.predict("1", "x" * 500)[0] == 415
    assert server.predict(b"\0" * 24, BYTES, Accept="text/html")[0] == 406
    assert server.predict("1" * 10_000_000)[0] == 413
    assert server.ask("GET", "/predict")[0] == server.ask("PUT", "/health")[0] == 405
    assert server.ask("GET", "/../etc/passwd")[0] == server.ask("GET", "/" + "a" * 5000)[0] == 404


HOST = b" HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),  # without a host
        (b"GET /health HTTP/2.0\r\n\r\n", 505),
        (b"GET /health HTTP/1.1\nHost: x\n\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),  # the begin of TLS
        (b"GET /health" + HOST + b" folded: 1\r\n\r\n", 400),
        (b"GET /health" + HOST + b"no colon\r\n\r\n", 400),
        (b"GET /health" + HOST + b"a: \0\r\n\r\n", 400),
        (b"GET /health" + HOST + b"a: " + b"b" * 9000, 431),
        (b"GET /health" + HOST + b"Expect: gold\r\n\r\n", 417),
        (b"A" * 20 + b" /health" + HOST + b"\r\n", 501),
        (b"POST /predict" + HOST + b"\r\n", 411),
        (b"POST /predict" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /predict" + HOST + b"Content-Length: -1\r\n\r\n", 400),
        (b"POST /predict" + HOST + b"Content-Length: \r\n\r\n", 400),
        (b"POST /predict" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /predict" + HOST + b"Content-Length: " + b"9" * 50 + b"\r\n\r\n", 413),
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_requests_that_are_malformed(server: Server, request_: bytes, status: int) -> None:
    answer = server.send(request_)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"Connection: close\r\n" in answer


def test_changed_requests_do_not_stop_it(server: Server) -> None:
    rng = random.Random(0)
    bodies = [b"[[1, 2, 3], [4, 5, 6]]", b'{"input": [[1e3, 2, 3], [4, 5, 6]]}', b"\0" * 24]
    pieces = [b"\r\n", b"\0", b"[", b"9" * 30, b"Content-Length: 5\r\n", b"e", b"{", b'"', b"\xff"]
    for i in range(300):
        kind, body = [JSON, BYTES, NPY][i % 3], bodies[rng.randrange(3)]
        head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: "
        data = bytearray(head.encode() + str(len(body)).encode() + b"\r\n\r\n" + body)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at] = rng.randrange(256)
            else:
                data[at : at + rng.randrange(3)] = rng.choice(pieces)
        answer = server.send(bytes(data))
        assert not answer or answer.startswith(b"HTTP/1.1 "), answer
    assert server.ask("GET", "/health")[0] == 200


def test_load(server: Server, compiled: Callable[..., Path]) -> None:
    program = compiled("load_test", SOURCES / "load_test.c", standard="c99")
    command = [program, str(server.port), "4", "1", "24"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert re.match(r"\d+ requests/s, [1-9]\d* in all; latency in ms: median \d", done.stdout)
    command[-1] = "23"  # bytes, to which the answer is 400
    assert subprocess.run(command, capture_output=True, timeout=240).returncode == 1


def test_slow_requests(program: Path, libraries: str, tmp_path: Path) -> None:
    with Server(program, libraries, tmp_path / "model.safetensors", "-s", "1") as server:
        place = ("127.0.0.1", server.port)
        begin = time.monotonic()
        with socket.create_connection(place, timeout=120) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\n")
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 Request Timeout")
            assert time.monotonic() - begin > 0.8
        assert "0 answers, 1 errors" in server.end()


def test_requests_at_its_end(program: Path, libraries: str, tmp_path: Path) -> None:
    with Server(program, libraries, tmp_path / "model.safetensors", "-w", "1") as server:
        place = ("127.0.0.1", server.port)
        with socket.create_connection(place, timeout=200) as late:
            late.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 24\r\n")
            while int.from_bytes(fcntl.ioctl(late, termios.TIOCOUTQ, bytes(4)), "little"):
                time.sleep(0.01)  # until the server's socket has all
            server.ask("GET", "/health")  # which the server reads later
            server.process.send_signal(signal.SIGTERM)
            refused = False
            while not refused:
                time.sleep(0.02)  # a full queue of connections would drop some for seconds
                with socket.socket() as other:
                    refused = other.connect_ex(place) == errno.ECONNREFUSED
            late.sendall(b"Content-Type: application/octet-stream\r\n\r\n" + b"\0" * 24)
            answer = late.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200 OK") and b"Connection: close" in answer
        assert "2 answers, 0 errors" in server.end()


def test_what_it_refuses_at_the_start(program: Path, libraries: str, tmp_path: Path) -> None:
    def start(*words: str) -> tuple[int, str]:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=240)
        return done.returncode, done.stderr

    assert start()[0] == start("-w", "0", "file")[0] == 2
    code, text = start("-l", libraries, str(tmp_path / "none"))
    assert code == 1 and "none" in text and "No such file" in text
    path = tmp_path / "model.safetensors"
    export(lambda x: x + 1, (pc.zeros(2),), path)
    assert "is no address" in start("-a", "here", "-p", "0", "-l", libraries, str(path))[1]

"""Jobs of `Trainer`."""

from __future__ import annotations

import pathlib
import re
import time
from typing import Any

import pytest
from remote_functions import Blocker, train, until_grown

import plait_ray


@pytest.mark.usefixtures("instance")
class TestJobs:
    def test_ranks_run_and_report(self, tmp_path: pathlib.Path, capfd: Any) -> None:
        trainer = plait_ray.Trainer(train, 2, checkpoint=tmp_path / "states")
        done = trainer.fit("runs", str(tmp_path))
        assert [value[:2] for value in done.values] == [(0, 2), (1, 2)]
        assert done.values[0][2] == done.values[1][2] == done.value[2]
        assert [report["step"] for report in done.history] == [0, 1, 2, 3, 4]
        assert done.metrics["loss"] == pytest.approx(sum(done.value[2])) and not done.failures
        names = sorted(path.name for path in (tmp_path / "states").iterdir())
        assert names == ["checkpoint-00000004.pt", "checkpoint-00000005.pt"]
        # Ray may lose what a process printed just before it ended; so one rank's line is enough
        line = re.compile(r"\(rank (\d) pid=\d+\)\S* the function runs in \1")
        deadline, text = time.monotonic() + 120, ""
        while not line.search(text):
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
            text += "".join(capfd.readouterr())

    @pytest.mark.parametrize(("way", "text"), [("dies", "died"), ("raises", "KeyError: 'at step")])
    def test_a_job_goes_on_from_its_checkpoint(
        self, way: str, text: str, tmp_path: pathlib.Path
    ) -> None:
        done = plait_ray.Trainer(train, 2, checkpoint=tmp_path, max_failures=1).fit(way, "")
        assert len(done.failures) == 1
        assert done.failures[0].startswith("rank 1 (host ") and text in done.failures[0]
        assert [report["step"] for report in done.history][-2:] == [3, 4]
        weight = 1.0
        for _ in range(5):
            weight -= 0.1 * weight * 1.5
        assert done.value[2] == pytest.approx([weight, weight])  # no step was lost or taken twice

    def test_a_job_that_fails_too_often(self, tmp_path: pathlib.Path) -> None:
        with pytest.raises(
            plait_ray.TrainingError, match=r"failed 1 times.*\n.*rank 1 .*KeyError"
        ) as caught:
            plait_ray.Trainer(train, 2, checkpoint=tmp_path).fit("raises", "")
        assert isinstance(caught.value.__cause__, KeyError)

    def test_a_job_grows_when_there_is_room(self, instance: Any, tmp_path: pathlib.Path) -> None:
        blocker = instance.remote(num_cpus=2)(Blocker).remote()
        instance.get(blocker.ready.remote())
        trainer = plait_ray.Trainer(
            until_grown, checkpoint=tmp_path / "states", min_workers=1, max_workers=2
        )
        done = trainer.fit(str(tmp_path / "begun"), blocker)
        assert done.history[0]["size"] == 1 and done.metrics["size"] == 2
        assert len(done.values) == 2 and not done.failures

    def test_no_room(self) -> None:
        trainer = plait_ray.Trainer(train, 2, resources={"CPU": 64}, timeout=0.5)
        with pytest.raises(TimeoutError, match=r"no room for 2 workers with {'CPU': 64}"):
            trainer.fit("runs", "")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"workers": 0}, "`workers` must be positive, got 0"),
        ({"workers": 2, "min_workers": 3}, "`min_workers` must be at most 2, got 3"),
        ({"max_failures": -1}, "`max_failures` must be at least 0, got -1"),
    ],
)
def test_wrong_numbers(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plait_ray.Trainer(train, **options)

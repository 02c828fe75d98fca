"""The examples run, learn, and write their pictures."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest


def test_mnist_learns_and_draws(example, digits, tmp_path, capsys, is_png):
    flags = ["--epochs", "2", "--limit", "4000", "--data", str(digits), "--output", str(tmp_path)]
    history = example("mnist").main(flags)
    out = capsys.readouterr().out
    assert history[1].loss < 0.6 * history[0].loss
    assert history[1].accuracy > 0.85  # six seeds: 0.866 to 0.899
    assert f"test accuracy {100 * history[1].accuracy:.2f} %" in out
    assert f"picture: {tmp_path / 'mnist.png'}" in out
    assert is_png(tmp_path / "mnist.png")


def test_mnist_repeats_with_a_seed(example, digits, tmp_path):
    mnist = example("mnist")

    def losses(seed):
        flags = ["--epochs", "1", "--limit", "640", "--data", str(digits)]
        return [e.loss for e in mnist.main([*flags, "--output", str(tmp_path), "--seed", seed])]

    assert losses("5") == losses("5") != losses("6")


def test_pictures_are_left_out_without_matplotlib(example, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    pictures = example("pictures")
    assert pictures.digit_grid(tmp_path / "x.png", np.zeros((4, 28, 28)), "") is None
    assert "matplotlib is not installed" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_progress_bar_is_left_out_without_tqdm(example, monkeypatch, capsys):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    loader = [1, 2]
    assert example("mnist").progress(loader, 1) is loader
    assert "tqdm is not installed" in capsys.readouterr().out


def test_listing1_learns(example):
    losses, accuracy = example("listing1").main(["--steps", "200"])
    assert np.mean(losses[-10:]) < 0.2 * np.mean(losses[:10])
    assert accuracy > 0.95


def test_listing1_gives_probabilities(example):
    listing1 = example("listing1")
    images, labels = listing1.sample(5)
    probabilities = listing1.FullBasicModel()(images).detach().numpy()
    assert images.shape == (5, 1, 3, 3)
    assert labels.shape == (5,)
    assert probabilities.shape == (5, 10)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)


def test_listing2_generates_digits(example, digits, tmp_path, capsys, is_png):
    flags = ["--epochs", "4", "--limit", "8192", "--batch-size", "64"]
    gan = example("listing2_gan")
    history, images = gan.main([*flags, "--data", str(digits), "--output", str(tmp_path)])
    assert is_png(tmp_path / "gan.png")
    assert np.isfinite(history).all()
    assert images.shape == (64, 28, 28)
    # Digits have an empty border and ink in the middle; before training both are near 0.5.
    border, middle = images[:, :3].mean(), images[:, 8:20, 8:20].mean()
    assert border < 0.25
    assert middle > border + 0.15
    assert images.std(axis=0).mean() > 0.05  # and not one image 64 times


def test_hogwild_learns_as_a_single_process(example, digits, capsys):
    hogwild = example("hogwild")
    flags = ["--epochs", "2", "--limit", "8000", "--batch-size", "32", "--momentum", "0.8"]
    flags += ["--data", str(digits)]
    many = hogwild.main([*flags, "--processes", "2", "--start-method", "fork"])
    one = hogwild.main([*flags, "--processes", "1", "--start-method", "fork"])
    assert len(many) == len(one) == 2
    assert many[1] > 0.85 and many[1] > one[1] - 0.05
    assert f"test accuracy {100 * many[1]:.2f} %" in capsys.readouterr().out


def test_data_parallel_has_the_losses_of_a_single_process(example, digits, capsys):
    flags = ["--limit", "1280", "--processes", "2", "--compare", "--data", str(digits)]
    together, alone = example("data_parallel").main([*flags, "--start-method", "fork"])
    assert together.shape == (10,) and together[-1] < together[0]
    assert np.allclose(together.numpy(), alone.numpy(), rtol=1e-5, atol=1e-6)
    assert "2 processes: 10 steps" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        example("data_parallel").main(["--batch-size", "3", "--processes", "2"])


def test_two_stages_in_processes_train_as_one_model():
    if importlib.util.find_spec("ray") is None:  # Ray is not imported here, as other tests fork
        pytest.skip("the package ray is not installed")
    path = pathlib.Path(__file__).parents[1] / "examples" / "rpc_two_stages.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    losses = re.findall(r"two stages (\S+)  one process (\S+)", done.stdout)
    assert len(losses) == 4 and all(one == other for one, other in losses)
    assert float(losses[-1][0]) < float(losses[0][0])

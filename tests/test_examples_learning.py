"""The examples that generate digits, recommend films and balance a pole: measures and learning."""

import math

import gymnasium
import numpy as np
import pytest

import plait


def test_the_bound_of_a_known_case(example):
    bound = example("vae").bound
    x = plait.tensor([[0.0, 1.0, 0.5]])
    logits, one = plait.zeros(1, 3), plait.ones(1, 2)
    # At the prior only the likelihood counts: each pixel has probability 1/2.
    assert bound(x, logits, 0 * one, 0 * one).item() == pytest.approx(3 * math.log(0.5))
    # KL(N(1, e) || N(0, 1)) = (1 + e - 1 - 1) / 2 in each of two dimensions.
    expected = 3 * math.log(0.5) - (math.e - 1)
    assert bound(x, logits, one, one).item() == pytest.approx(expected, rel=1e-6)


def test_vae_learns_and_draws(example, digits, tmp_path, capsys, is_png):
    flags = ["--epochs", "2", "--limit", "4000", "--data", str(digits), "--output", str(tmp_path)]
    history, images = example("vae").main(flags)
    assert history[0] < 784 * math.log(0.5)  # untrained: every pixel near one half, and the KL
    assert history[0] < history[1] < history[2]
    assert history[2] > -230
    assert images.shape == (64, 28, 28) and is_png(tmp_path / "vae.png")
    assert f"{history[2]:.2f} on the test set" in capsys.readouterr().out


def test_inception_score_of_known_cases(example):
    score = example("dcgan").inception_score
    classes = plait.nn.Sequential(plait.nn.Flatten(), plait.nn.Linear(4, 4, bias=False))
    with plait.no_grad():
        classes[1].weight.copy_(1000 * plait.eye(4))
    different = plait.eye(4).reshape(4, 1, 2, 2)
    assert score(classes, different) == pytest.approx(4, rel=1e-3)
    assert score(classes, different[:1].expand(4, 1, 2, 2)) == pytest.approx(1, rel=1e-3)
    assert score(classes, plait.zeros(4, 1, 2, 2)) == pytest.approx(1, rel=1e-3)


def test_dcgan_runs_and_draws(example, digits, tmp_path, is_png):
    flags = ["--epochs", "1", "--limit", "512", "--batch-size", "64", "--width", "8"]
    dcgan = example("dcgan")
    history, images = dcgan.main([*flags, "--data", str(digits), "--output", str(tmp_path)])
    assert 1 <= history[0] <= 10
    assert images.shape == (64, 28, 28) and is_png(tmp_path / "dcgan.png")
    assert images.min() >= 0 and images.max() <= 1


def test_the_discriminator_learns_to_detect_real_images(example):
    dcgan = example("dcgan")
    plait.manual_seed(0)
    G, D = dcgan.generator(4), dcgan.discriminator(4)
    optimizers = [plait.optim.Adam(n.parameters(), lr=lr) for n, lr in ((G, 1e-5), (D, 2e-3))]
    real = plait.ones(16, 1, 28, 28)
    losses = [dcgan.step(G, D, *optimizers, real) for _ in range(12)]
    assert losses[-1][0] < 0.8 * losses[0][0]
    assert losses[-1][1] > losses[0][1]


def test_the_last_film_is_held_out(example):
    # Lines of user, film, rating, time; user 1 saw films 3, 1, 2; user 2 saw 2, then 3 and 1.
    ratings = np.array([[1, 1, 5, 20], [1, 3, 4, 10], [2, 2, 3, 5], [1, 2, 1, 30]])
    ratings = np.concatenate([ratings, [[2, 3, 3, 7], [2, 1, 3, 7]]])
    pairs, last, seen = example("ncf").split(ratings)
    assert pairs.tolist() == [[0, 2], [0, 0], [1, 1], [1, 2]]
    assert last.tolist() == [1, 0]
    assert seen.all() and seen.shape == (2, 3)


def test_hit_rate(example):
    hit_rate = example("ncf").hit_rate
    scores = np.array([[0.5, 0.9, 0.1], [0.5, 0.9, 0.6], [0.5, 0.5, 0.1]])
    assert hit_rate(scores, n=1) == 0  # a tie counts as a miss
    assert hit_rate(scores, n=2) == pytest.approx(2 / 3)
    assert hit_rate(scores, n=3) == 1


def test_candidates_are_new_to_the_user(example):
    ncf = example("ncf")
    _, last, seen = ncf.split(example("packaged").movie_ratings())
    options = ncf.candidates(last, seen, np.random.default_rng(0))
    assert seen.shape == (943, 1682) and seen.sum() == 100000
    assert (options[:, 0] == last).all()
    assert not seen[np.arange(943)[:, None], options[:, 1:]].any()
    assert all(len(set(row)) == 100 for row in options.tolist())


def test_ncf_beats_popularity(example, tmp_path, capsys, is_png):
    history = example("ncf").main(["--epochs", "3", "--output", str(tmp_path)])
    assert is_png(tmp_path / "ncf.png")
    out = capsys.readouterr().out
    popularity = float(out.partition("popularity: HR@10 ")[2].split()[0])
    assert popularity == pytest.approx(0.41, abs=0.015)
    assert history[2][0] < history[0][0]
    assert history[2][1] > popularity + 0.1


def test_returns_to_go(example):
    returns = example("reinforce").returns_to_go([1.0, 0.0, 2.0], discount=0.5)
    assert returns.tolist() == [1.5, 1.0, 2.0]


def test_an_episode_is_the_environment_s(example):
    reinforce = example("reinforce")
    plait.manual_seed(0)
    policy = reinforce.Policy()
    environments = [gymnasium.make("CartPole-v1") for _ in range(3)]
    observations, actions, rewards = reinforce.episodes(policy, environments, range(3))
    for seed, (seen, acted, argument) in enumerate(
        zip(observations, actions, rewards, strict=True)
    ):
        environment = gymnasium.make("CartPole-v1")
        observation, ended = environment.reset(seed=seed)[0], False
        for number, action in enumerate(acted.tolist()):
            assert not ended
            np.testing.assert_array_equal(observation, seen[number])
            observation, _, ended, _, _ = environment.step(action)
        assert ended and len(argument) == len(seen) == len(acted)


def test_update_makes_good_actions_likelier(example):
    reinforce = example("reinforce")
    plait.manual_seed(0)
    policy = reinforce.Policy()
    optimizer = plait.optim.Adam(policy.parameters(), lr=1e-2)
    x, actions = np.zeros((2, 4), dtype=np.float32), np.array([0, 1])

    def left():
        return policy(plait.zeros(1, 4))[0].softmax(1)[0, 0].item()

    before = left()
    for _ in range(20):  # the first action earns something, the second nothing
        reinforce.update(policy, optimizer, [x[:1], x[1:]], [actions[:1], actions[1:]], [[1], [0]])
    assert left() > before + 0.2


def test_reinforce_learns(example, tmp_path, capsys, is_png):
    flags = ["--iterations", "20", "--test-episodes", "5", "--output", str(tmp_path)]
    history, returns = example("reinforce").main(flags)
    assert is_png(tmp_path / "reinforce.png")
    assert np.mean(history[-5:]) > 2 * np.mean(history[:5])
    assert len(returns) == 5 and f"mean return {returns.mean():.1f}" in capsys.readouterr().out

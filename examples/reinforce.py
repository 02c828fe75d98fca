"""REINFORCE on CartPole: a policy learns to balance a pole from its own episodes.

Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement
learning" (1992), with a learned baseline. An episode is cut off after 500 steps, so that 500 is the
highest return; an average of 475 over 100 episodes counts as solved.

    pip install gymnasium==1.4.0
    python examples/reinforce.py --iterations 150

The picture ``results/reinforce.png`` shows the returns while the policy learns.
"""

import argparse
import time
from pathlib import Path

import gymnasium
import numpy as np
import pictures

import plait
from plait import nn, optim
from plait.nn import functional as F

__all__ = ["Policy", "episodes", "evaluate", "main", "returns_to_go", "update"]


class Policy(nn.Module):
    """From (n, 4) observations to the scores of the two actions and the value of the state."""

    def __init__(self, observations=4, actions=2, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, hidden), nn.Tanh())
        self.scores = nn.Linear(hidden, actions)
        self.value = nn.Sequential(
            nn.Linear(observations, hidden), nn.Tanh(), nn.Linear(hidden, 1), nn.Flatten(0)
        )

    def forward(self, x):
        return self.scores(self.body(x)), self.value(x)


def episodes(policy, environments, seeds, greedy=False):
    """One episode in each environment, all policies' steps in one batch.

    Returns observations, actions and rewards: a list of arrays each, one array an episode.
    """
    observed = [env.reset(seed=seed)[0] for env, seed in zip(environments, seeds, strict=True)]
    record = [([], [], []) for _ in environments]
    running = list(range(len(environments)))
    while running:
        x = plait.tensor(np.stack([observed[i] for i in running]))
        with plait.no_grad():
            scores, _ = policy(x)
        drawn = scores.argmax(1) if greedy else plait.multinomial(F.softmax(scores, 1), 1)[:, 0]
        for i, action in zip(list(running), drawn.tolist(), strict=True):
            seen = observed[i]
            observed[i], reward, terminated, truncated, _ = environments[i].step(action)
            for values, value in zip(record[i], (seen, action, reward), strict=True):
                values.append(value)
            if terminated or truncated:
                running.remove(i)
    return [[np.array(values) for values in column] for column in zip(*record, strict=True)]


def returns_to_go(rewards, discount):
    """The discounted sum of the rewards from each step on."""
    total, returns = 0.0, np.zeros(len(rewards), dtype=np.float32)
    for i in reversed(range(len(rewards))):
        returns[i] = total = rewards[i] + discount * total
    return returns


def update(policy, optimizer, observations, actions, rewards, discount=0.99):
    """One step up the gradient of log p(action) * (return - value), with some entropy."""
    x = plait.tensor(np.concatenate(observations))
    action = plait.tensor(np.concatenate(actions))
    # In units of the longest possible return, 1 / (1 - discount), the values are of size 1.
    returns = np.concatenate([returns_to_go(r, discount) for r in rewards]) * (1 - discount)
    returns = plait.tensor(returns)
    optimizer.zero_grad()
    scores, value = policy(x)
    log_p = F.log_softmax(scores, dim=1)
    advantage = (returns - value).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    choice = log_p.gather(1, action[:, None])[:, 0]
    entropy = -(log_p.exp() * log_p).sum(1).mean()
    loss = -(choice * advantage).mean() + F.mse_loss(value, returns) - 0.01 * entropy
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    return loss.item()


def evaluate(policy, environments, count, seed):
    """The returns of episodes in which the policy takes its likeliest action."""
    returns = []
    for first in range(0, count, len(environments)):
        choice = environments[: count - first]
        seeds = range(seed + first, seed + first + len(choice))
        _, _, rewards = episodes(policy, choice, seeds, greedy=True)
        returns += [r.sum() for r in rewards]
    return np.array(returns)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a policy on CartPole by REINFORCE.")
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--environments", type=int, default=10, help="episodes an iteration")
    parser.add_argument("--test-episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--output", type=Path, default=Path("results"), help="folder of reinforce.png"
    )
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    environments = [gymnasium.make("CartPole-v1") for _ in range(flags.environments)]
    policy = Policy()
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    history, steps, start = [], 0, time.perf_counter()
    for iteration in range(1, flags.iterations + 1):
        first = 10**6 * flags.seed + flags.environments * iteration
        seeds = range(first, first + flags.environments)
        batch = episodes(policy, environments, seeds)
        update(policy, optimizer, *batch)
        history.append(np.mean([r.sum() for r in batch[2]]))
        steps += sum(map(len, batch[2]))
        if iteration % 10 == 0:
            seconds = time.perf_counter() - start
            mean = np.mean(history[-10:])
            print(
                f"iteration {iteration}: return {mean:.1f}, {steps} steps, {seconds:.0f} s",
                flush=True,
            )
    returns = evaluate(policy, environments, flags.test_episodes, seed=10**9)
    mean, lowest = returns.mean(), returns.min()
    print(f"{len(returns)} test episodes: mean return {mean:.1f}, lowest {lowest:.0f}")
    names = ("iteration", f"mean return of {flags.environments} episodes")
    path = flags.output / "reinforce.png"
    if pictures.learning_curve(path, history, names, {"highest": 500.0}) is not None:
        print(f"picture: {path}")
    return history, returns


if __name__ == "__main__":
    main()

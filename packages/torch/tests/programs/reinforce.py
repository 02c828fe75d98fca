"""Policy gradients on a little balance task, with a baseline; no environment package."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(0)
rng = np.random.default_rng(0)
eps = np.finfo(np.float32).eps.item()


class Corridor:
    """Walk from 0 to +3 (reward 1) or -3 (reward -1); every step costs 0.02."""

    def reset(self):
        self.position, self.left = 0, 40
        return self._state()

    def _state(self):
        return np.array([self.position / 3.0, self.left / 40.0], dtype=np.float32)

    def step(self, action):
        self.position += 1 if action == 1 else -1
        self.left -= 1
        done = abs(self.position) == 3 or self.left == 0
        reward = (1.0 if self.position == 3 else -1.0 if self.position == -3 else 0.0) - 0.02
        return self._state(), reward, done, {}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 16)
        self.affine2 = nn.Linear(16, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=3e-2)


def select_action(state):
    probs = policy(torch.from_numpy(state).float().unsqueeze(0))
    action = torch.multinomial(probs, 1)
    policy.saved_log_probs.append(torch.log(probs.gather(1, action)).squeeze(1))
    return action.item()


def finish_episode():
    R, returns, policy_loss = 0, [], []
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std(unbiased=False) + eps) + returns.sign()
    for log_prob, ret in zip(policy.saved_log_probs, returns, strict=True):
        policy_loss.append(-log_prob * ret)
    optimizer.zero_grad()
    loss = torch.cat(policy_loss).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


env, totals = Corridor(), []
for _episode in range(150):
    state, total, done = env.reset(), 0.0, False
    while not done:
        state, reward, done, _ = env.step(select_action(state))
        policy.rewards.append(reward)
        total += reward
    totals.append(total)
    finish_episode()
print("episodes", len(totals))
print("# last 30:", np.mean(totals[-30:]))
assert np.mean(totals[-30:]) > 0.7, np.mean(totals[-30:])

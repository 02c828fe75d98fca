"""Proximal policy optimisation with torch.distributions: clipped ratios, advantages, entropy."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, MultivariateNormal, Normal, kl_divergence

torch.manual_seed(0)
rng = np.random.default_rng(0)


class Reach:
    """Move a point by a small step towards 0; the reward is the negative distance."""

    def reset(self):
        self.x, self.t = rng.uniform(-1, 1, 1).astype(np.float32), 0
        return self.x.copy()

    def step(self, action):
        self.x = np.clip(self.x + 0.3 * np.clip(action, -1, 1), -2, 2).astype(np.float32)
        self.t += 1
        return self.x.copy(), -float(abs(self.x[0])), self.t == 10, {}


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
        self.critic = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def dist(self, state):
        return Normal(self.actor(state), self.log_std.exp())


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
env, history = Reach(), []
for _iteration in range(25):
    states, actions, logprobs, rewards, masks, totals = [], [], [], [], [], []
    for _ in range(8):
        state, done, total = env.reset(), False, 0.0
        while not done:
            s = torch.from_numpy(state)
            with torch.no_grad():
                dist = model.dist(s)
                action = dist.sample()
            states.append(s)
            actions.append(action)
            logprobs.append(dist.log_prob(action).sum())
            state, reward, done, _ = env.step(action.numpy())
            rewards.append(reward)
            masks.append(1.0 - done)
            total += reward
        totals.append(total)
    history.append(np.mean(totals))
    returns, R = [], 0.0
    for reward, mask in zip(reversed(rewards), reversed(masks), strict=True):
        R = reward + 0.95 * R * mask
        returns.insert(0, R)
    states, actions = torch.stack(states), torch.stack(actions)
    returns, old = torch.tensor(returns, dtype=torch.float32), torch.stack(logprobs)
    for _ in range(6):
        dist = model.dist(states)
        values = model.critic(states).squeeze(-1)
        advantage = returns - values.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-7)
        ratios = torch.exp(dist.log_prob(actions).sum(-1) - old)
        surr = torch.min(ratios * advantage, torch.clamp(ratios, 0.8, 1.2) * advantage)
        loss = (
            -surr + 0.5 * nn.functional.mse_loss(values, returns) - 0.001 * dist.entropy().sum(-1)
        )
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
print("# first and last return", history[0], history[-1])
assert np.mean(history[-5:]) > np.mean(history[:3]), history

m = Categorical(logits=torch.tensor([[0.1, 0.2, 0.7], [1.0, -1.0, 0.0]]))
print(m.log_prob(torch.tensor([2, 0])).tolist(), m.entropy().tolist())
print(Categorical(torch.tensor([0.25, 0.75])).sample((5,)).shape == torch.Size([5]))
print(kl_divergence(Normal(0.0, 1.0), Normal(torch.tensor(1.0), 2.0)).item())
mvn = MultivariateNormal(torch.zeros(2), torch.diag(torch.tensor([1.0, 4.0])))
print(mvn.log_prob(torch.tensor([1.0, 1.0])).item(), mvn.rsample().requires_grad)

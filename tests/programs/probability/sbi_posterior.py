"""sbi: a posterior of a simulator by NPE: trained with a seed, sampled, its density and map."""

import torch
from recording import record
from sbi.inference import NPE
from sbi.utils import BoxUniform

torch.manual_seed(0)
prior = BoxUniform(-torch.ones(2), torch.ones(2))
theta = prior.sample((300,))
x = theta + 0.1 * torch.randn(300, 2)
record("simulated", x)
trainer = NPE(prior, density_estimator="maf", show_progress_bars=False)
estimator = trainer.append_simulations(theta, x).train(max_num_epochs=5, training_batch_size=50)
record("losses", trainer.summary["training_loss"], rtol=2e-2)
posterior = trainer.build_posterior(estimator).set_default_x(torch.tensor([0.3, -0.2]))
samples = posterior.sample((500,), show_progress_bars=False)
record("mean", samples.mean(0), rtol=0.1, atol=0.05)
record("density", posterior.log_prob(torch.tensor([[0.3, -0.2], [0.0, 0.0]])), rtol=5e-2, atol=0.05)

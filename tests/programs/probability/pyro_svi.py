"""pyro-ppl: SVI of a regression with AutoDelta and AutoNormal, an enumerated mixture, replay."""

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoNormal
from recording import array, record

pyro.set_rng_seed(0)
x = array(0, 40, 2)
y = x @ torch.tensor([1.5, -0.7]) + 0.3 + 0.1 * array(1, 40)


def model(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


def fit(model, guide, steps, loss, *data):
    pyro.clear_param_store()
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), loss)
    return [svi.step(*data) for _ in range(steps)]


point = AutoDelta(model, init_loc_fn=pyro.infer.autoguide.init_to_median(num_samples=1))
point = AutoDelta(
    model,
    init_loc_fn=pyro.infer.autoguide.init_to_value(
        values={"weight": torch.zeros(2), "bias": torch.tensor(0.0), "scale": torch.tensor(1.0)}
    ),
)
record("losses", fit(model, point, 20, Trace_ELBO(), x, y))
record("point", dict(pyro.get_param_store().items()))

trace = poutine.trace(poutine.condition(model, data=point())).get_trace(x, y)
record("log density", trace.log_prob_sum())

normal = AutoNormal(model)
fit(model, normal, 600, Trace_ELBO(num_particles=4), x, y)
record("posterior", normal.median(), rtol=0.1, atol=0.1)
draws = Predictive(model, guide=normal, num_samples=300)(x)["y"]
record("predicted", draws.mean(0), rtol=0.15, atol=0.1)


@config_enumerate
def mixture(data):
    weights = pyro.param("weights", torch.ones(2) / 2, constraint=dist.constraints.simplex)
    locs = pyro.param("locs", torch.tensor([-1.0, 1.0]))
    with pyro.plate("points", len(data)):
        component = pyro.sample("component", dist.Categorical(weights))
        pyro.sample("obs", dist.Normal(locs[component], 0.5), obs=data)


points = torch.cat([array(2, 20) * 0.3 - 2, array(3, 30) * 0.3 + 2])
losses = fit(mixture, lambda data: None, 20, TraceEnum_ELBO(max_plate_nesting=1), points)
record("mixture losses", losses)
record("mixture", dict(pyro.get_param_store().items()))

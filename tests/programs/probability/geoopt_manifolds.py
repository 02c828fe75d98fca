"""geoopt: points of manifolds, distances, maps, and Riemannian optimizers for 20 steps."""

import geoopt
import torch
from recording import array, record

torch.set_default_dtype(torch.float64)
manifolds = {
    "sphere": (geoopt.Sphere(), (5, 3)),
    "ball": (geoopt.PoincareBall(), (5, 3)),
    "stiefel": (geoopt.Stiefel(), (5, 3)),
    "lorentz": (geoopt.Lorentz(), (5, 4)),
    "positive": (geoopt.SymmetricPositiveDefinite(), (2, 3, 3)),
}
for name, (manifold, shape) in manifolds.items():
    x = manifold.projx(0.3 * array(0, *shape, dtype=torch.float64))
    v = manifold.proju(x, 0.1 * array(1, *shape, dtype=torch.float64))
    record(f"{name} point", x)
    record(f"{name} step", manifold.retr(x, v))
    record(f"{name} inner", manifold.inner(x, v))
    if name != "stiefel":
        record(f"{name} distance", manifold.dist(x, manifold.expmap(x, v)))
    point = geoopt.ManifoldParameter(x.clone(), manifold=manifold)
    for kind in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
        optimizer = kind([point], lr=0.01)
        losses = []
        for _ in range(10):
            loss = (point - array(2, *shape, dtype=torch.float64)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        record(f"{name} {kind.__name__}", losses)
    record(f"{name} is on it", bool(manifold.check_point_on_manifold(point, atol=1e-4)))
record("repr", repr(point)[:60])

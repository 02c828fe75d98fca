"""entmax: sparse alternatives to softmax with their losses and gradients."""

import entmax
from recording import array, record

for name in ("sparsemax", "entmax15"):
    x = array(0, 4, 7).requires_grad_()
    output = getattr(entmax, name)(x, dim=1)
    (output * array(1, 4, 7)).sum().backward()
    record(name, output)
    record(f"{name} gradient", x.grad, rtol=5e-3)
x, alpha = array(0, 4, 7).requires_grad_(), (1.2 + 0.1 * array(2, 4, 1).abs()).requires_grad_()
output = entmax.entmax_bisect(x, alpha, dim=1)
(output * array(1, 4, 7)).sum().backward()
record("bisect", output)
record("alpha", alpha.grad, rtol=5e-3)
target = (array(3, 4) > 0).long()
for loss in (entmax.SparsemaxLoss(), entmax.Entmax15Loss(reduction="sum")):
    x.grad = None
    value = loss(x, target)
    value.sum().backward()
    record(type(loss).__name__, value)
    record(f"{type(loss).__name__} gradient", x.grad)

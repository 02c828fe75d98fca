"""lpips: the distance of images by the layers of AlexNet and VGG, with gradients."""

import lpips
import torch
from recording import array, fill, record

one, two = array(0, 2, 3, 64, 64).tanh().requires_grad_(), array(1, 2, 3, 64, 64).tanh()
for name in ("alex", "squeeze"):
    distance = lpips.LPIPS(net=name, pnet_rand=True, verbose=False)
    fill(distance.net)
    distance.requires_grad_(False)
    result, layers = distance(one, two, retPerLayer=True)
    record(f"{name}", result)
    record(f"{name} layers", list(layers))
    one.grad = None
    result.sum().backward()
    record(f"{name} gradient", one.grad, rtol=1e-2)
record("l2", lpips.L2(use_gpu=False)(one[:1], two[:1]))
record("tensor", lpips.im2tensor(torch.ones(4, 4, 3).numpy() * 100))

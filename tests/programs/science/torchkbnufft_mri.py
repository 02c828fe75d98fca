"""torchkbnufft: non-uniform Fourier transforms with sensitivities, adjoints, density weights."""

import torch
import torchkbnufft as kb
from recording import array, record

image = torch.complex(array(0, 1, 1, 16, 16), array(1, 1, 1, 16, 16)).requires_grad_()
places = array(2, 2, 60).tanh() * torch.pi
forward, adjoint = kb.KbNufft((16, 16)), kb.KbNufftAdjoint((16, 16))
data = forward(image, places)
record("forward", data)
record("adjoint", adjoint(data, places))
data.abs().square().sum().backward()
record("gradient", image.grad)
coils = torch.complex(array(3, 1, 3, 16, 16), array(4, 1, 3, 16, 16))
record("coils", forward(image, places, smaps=coils))
record("density", kb.calc_density_compensation_function(places, (16, 16)), rtol=1e-2)
matrices = kb.calc_tensor_spmatrix(places, (16, 16))
record("sparse", forward(image, places, interp_mats=matrices))
kernel = kb.calc_toeplitz_kernel(places, (16, 16))
record("toeplitz", kb.ToepNufft()(image, kernel), rtol=1e-2)

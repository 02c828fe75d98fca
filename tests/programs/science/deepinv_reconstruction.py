"""deepinv: blur and inpainting as operators, their adjoints, priors, proximal steps, a denoiser."""

import deepinv as dinv
from recording import array, fill, record

x = array(0, 2, 3, 32, 32).sigmoid()
blur = dinv.physics.Blur(dinv.physics.blur.gaussian_blur(1.0), padding="circular")
mask = (array(1, 1, 3, 32, 32) > 0).float()
inpainting = dinv.physics.Inpainting((3, 32, 32), mask=mask)
down = dinv.physics.Downsampling(img_size=(3, 32, 32), factor=2)
for name, physics in (("blur", blur), ("inpainting", inpainting), ("down", down)):
    y = physics(x)
    record(name, y)
    record(f"{name} adjoint", physics.A_adjoint(y))
    record(f"{name} dagger", physics.A_dagger(y), rtol=2e-2)
    fidelity = dinv.optim.L2()
    record(f"{name} gradient", fidelity.grad(x * 0.5, y, physics))
record("tv", dinv.models.TVDenoiser(n_it_max=20)(x, 0.1), rtol=1e-2)
record("wavelet", dinv.models.WaveletDenoiser(level=2)(x, 0.1))
net = fill(dinv.models.DnCNN(3, 3, depth=4, nf=8, pretrained=None))
record("dncnn", net(x, 0.1), rtol=1e-2)
record("psnr", dinv.metric.PSNR()(x, 0.9 * x))

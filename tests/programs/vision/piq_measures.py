"""piq: measures of image quality with and without a reference, and their gradients."""

import piq
from recording import array, record

one = array(0, 2, 3, 192, 192).sigmoid()
two = (0.8 * one + 0.2 * array(1, 2, 3, 192, 192).sigmoid()).requires_grad_()
for name in ("psnr", "ssim", "multi_scale_ssim", "vif_p", "fsim", "gmsd", "vsi", "haarpsi", "mdsi"):
    record(name, getattr(piq, name)(two, one, data_range=1.0), rtol=5e-3)
for name in ("SRSIMLoss", "DSSLoss", "MultiScaleGMSDLoss", "InformationWeightedSSIMLoss"):
    two.grad = None
    loss = getattr(piq, name)(data_range=1.0)(two, one)
    loss.backward()
    record(name, loss, rtol=5e-3)
    record(f"{name} gradient", two.grad.abs().sum(), rtol=1e-2)
record("tv", piq.total_variation(one))
features = array(2, 40, 16), array(3, 40, 16)
record("fid", piq.FID()(*features), rtol=1e-2)
record("kid", piq.KID()(*features), rtol=1e-2)
record("prdc", piq.PR(nearest_k=3)(*features))
record("hue", piq.functional.rgb2lab(one))

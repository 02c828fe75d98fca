"""captum: attributions of a convolutional model by gradients, layers and perturbations."""

import torch
from captum import attr
from recording import array, fill, record
from torch import nn

model = nn.Sequential(
    nn.Conv2d(1, 4, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(4, 8, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 4 * 4, 5),
)
model = fill(model).eval()
x, target = array(0, 2, 1, 14, 14), torch.tensor([1, 3])
x.requires_grad_()
zero = torch.zeros_like(x)

integrated = attr.IntegratedGradients(model)
found, delta = integrated.attribute(x, zero, target=target, return_convergence_delta=True)
record("IntegratedGradients", found)
record("delta", delta, atol=1e-3)
record("Saliency", attr.Saliency(model).attribute(x, target=target))
record("InputXGradient", attr.InputXGradient(model).attribute(x, target=target))
record("GuidedBackprop", attr.GuidedBackprop(model).attribute(x, target=target))
record("Deconvolution", attr.Deconvolution(model).attribute(x, target=target))
record("DeepLift", attr.DeepLift(model).attribute(x, zero, target=target))
dense = fill(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))).eval()
record("LRP", attr.LRP(dense).attribute(array(2, 4, 6), target=1))
windows = {"sliding_window_shapes": (1, 5, 5), "strides": (1, 3, 3)}
record("Occlusion", attr.Occlusion(model).attribute(x, target=target, **windows))
mask = (torch.arange(196).reshape(1, 1, 14, 14) // 14) // 2
record(
    "FeatureAblation", attr.FeatureAblation(model).attribute(x, target=target, feature_mask=mask)
)
record("GradCam", attr.LayerGradCam(model, model[3]).attribute(x, target=target))
record("LayerConductance", attr.LayerConductance(model, model[3]).attribute(x, zero, target=target))
record("LayerActivation", attr.LayerActivation(model, model[4]).attribute(x))
record("NeuronGradient", attr.NeuronGradient(model, model[3]).attribute(x, (1, 2, 2)))
record("upsampled", attr.LayerAttribution.interpolate(array(1, 1, 1, 4, 4), (8, 8)))
torch.manual_seed(0)
smooth = attr.NoiseTunnel(attr.Saliency(model)).attribute(x, nt_samples=50, target=target)
record("NoiseTunnel", smooth.mean(), rtol=0.2)

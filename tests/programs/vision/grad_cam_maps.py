"""grad-cam: maps of what a convolutional model sees, by gradients, scores and ablation."""

import torch
from pytorch_grad_cam import AblationCAM, EigenCAM, GradCAM, GradCAMPlusPlus, LayerCAM, ScoreCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from recording import array, fill, record

model = fill(
    torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 4),
    )
).eval()
images = array(0, 2, 3, 32, 32)
targets = [ClassifierOutputTarget(1), ClassifierOutputTarget(3)]
for method in (GradCAM, GradCAMPlusPlus, LayerCAM, EigenCAM, ScoreCAM, AblationCAM):
    with method(model=model, target_layers=[model[3]]) as cam:
        cam.batch_size = 4
        record(method.__name__, cam(input_tensor=images, targets=targets), rtol=1e-2)

"""torch-pruning: groups of dependent channels, cut by magnitude and by Taylor's formula."""

import torch
import torch_pruning as tp
import torchvision
from recording import array, fill, record

images = array(0, 2, 3, 32, 32)
model = fill(torchvision.models.resnet18(num_classes=5)).eval()
group = (
    tp.DependencyGraph()
    .build_dependency(model, images)
    .get_pruning_group(model.conv1, tp.prune_conv_out_channels, idxs=[2, 6, 9])
)
record(
    "has the shortcut",
    any(dependency.target.module is model.layer1[1].bn2 for dependency, _ in group),
)
group.prune()
record("channels", model.conv1.weight)
record("cut", model(images), rtol=1e-2)
importance = tp.importance.GroupTaylorImportance()
pruner = tp.pruner.MetaPruner(
    model, images, importance=importance, pruning_ratio=0.5, ignored_layers=[model.fc]
)
loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([1, 2]))
loss.backward()
pruner.step()
record("shapes", {name: list(p.shape) for name, p in model.named_parameters()})
record("operations", list(tp.utils.count_ops_and_params(model, images)))
record("output", model(images), rtol=2e-2)

"""ptflops: operations by hooks and by patched functions, of convolutions and attention."""

import io

import torchvision
from ptflops import get_model_complexity_info
from recording import record

for backend in ("pytorch", "aten"):
    for name in ("resnet18", "vit_b_32"):
        model, size = getattr(torchvision.models, name)().eval(), 224 if "vit" in name else 64
        text = io.StringIO()
        numbers = get_model_complexity_info(
            model,
            (3, size, size),
            as_strings=False,
            print_per_layer_stat=False,
            verbose=False,
            backend=backend,
            ost=text,
        )
        record(f"{backend} {name}", list(numbers))

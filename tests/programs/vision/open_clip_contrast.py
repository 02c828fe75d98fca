"""open_clip_torch: a small CLIP trained 5 steps with its loss, its tokenizer and transforms."""

import open_clip
import torch
from open_clip.loss import ClipLoss
from open_clip.model import CLIP
from open_clip.transform import image_transform
from PIL import Image
from recording import array, fill, record

vision = {"image_size": 32, "layers": 2, "width": 64, "head_width": 16, "patch_size": 8}
text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
model = fill(CLIP(32, vision, text))
tokens = open_clip.get_tokenizer("ViT-B-32")(["a photo of a cat", "two dogs", "a red car", "sky"])
record("tokens", tokens)
transform = image_transform(32, is_train=False)
pixels = (array(0, 40, 48, 3).sigmoid() * 255).byte().numpy()
record("image", transform(Image.fromarray(pixels)), rtol=1e-2)
images = array(1, 4, 3, 32, 32)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
losses = []
for _ in range(5):
    loss = ClipLoss()(*model(images, tokens))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=5e-3)
model.eval()
with torch.no_grad():
    record("features", model.encode_text(tokens, normalize=True), rtol=2e-2)

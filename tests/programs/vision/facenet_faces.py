"""facenet-pytorch: Inception-ResNet's embeddings with gradients, and MTCNN's nets and boxes."""

import torch
from facenet_pytorch import InceptionResnetV1
from facenet_pytorch.models.mtcnn import ONet, PNet, RNet
from facenet_pytorch.models.utils.detect_face import batched_nms_numpy, bbreg, generateBoundingBox
from recording import array, fill, record

model = fill(InceptionResnetV1(pretrained=None, classify=False)).eval()
images = array(
    0,
    2,
    3,
    80,
    80,
).requires_grad_()
embedding = model(images)
record("embedding", embedding, rtol=1e-2)
(embedding[0] * embedding[1]).sum().backward()
record("gradient", images.grad.abs().sum(), rtol=2e-2)
classifier = fill(InceptionResnetV1(pretrained=None, classify=True, num_classes=5)).train()
classifier.dropout.p = 0.0
loss = torch.nn.functional.cross_entropy(classifier(images.detach()), torch.tensor([1, 3]))
loss.backward()
record("logits gradient", classifier.logits.weight.grad, rtol=2e-2)
for net, size in ((PNet, 24), (RNet, 24), (ONet, 48)):
    with torch.no_grad():
        record(net.__name__, list(fill(net(pretrained=False))(array(1, 2, 3, size, size))))
places = torch.cat([array(2, 20, 2) * 5 + 20, array(3, 20, 2) * 5 + 45], 1)
kept = batched_nms_numpy(places, array(4, 20), torch.zeros(20), 0.5, "Union")
record("nms", kept)
record("bbreg", bbreg(places.clone(), array(5, 20, 4) * 0.1))
record("grid", list(generateBoundingBox(array(6, 1, 4, 9, 9), array(7, 1, 9, 9), 0.5, 0.3)))

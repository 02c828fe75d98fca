import numpy as np
import pytest

from plait_data import DataLoader
from plait_data.datasets import MNIST, idx

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
LABELS = np.array([7, 2, 1, 0, 4], dtype=np.uint8)


@pytest.fixture(params=["", "raw", "MNIST/raw"])
def root(tmp_path, request):
    folder = tmp_path / request.param
    folder.mkdir(parents=True, exist_ok=True)
    idx.write(folder / "train-images-idx3-ubyte", IMAGES)
    idx.write(folder / "train-labels-idx1-ubyte.gz", LABELS)
    idx.write(folder / "t10k-images-idx3-ubyte.gz", IMAGES[:2])
    idx.write(folder / "t10k-labels-idx1-ubyte", LABELS[:2])
    return tmp_path


def test_both_parts(root):
    train, test = MNIST(root), MNIST(str(root), train=False)
    assert len(train) == 5
    assert len(test) == 2
    image, label = train[3]
    assert image.tolist() == IMAGES[3].tolist()
    assert label == 0
    assert type(label) is int
    assert train.data.dtype == np.uint8
    assert train.targets.dtype == np.int64
    assert train.classes[4] == "4"


def test_batches_with_and_without_transforms(root):
    whole = DataLoader(MNIST(root), batch_size=5)
    single = DataLoader(MNIST(root, transform=lambda image: image), batch_size=5)
    for images, labels in (*whole, *single):
        assert images.dtype == np.uint8
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(images, IMAGES)
        np.testing.assert_array_equal(labels, LABELS)


def test_transforms(root):
    digits = MNIST(root, transform=lambda image: image / 255, target_transform=lambda y: y % 2)
    images, labels = next(iter(DataLoader(digits, batch_size=5)))
    np.testing.assert_allclose(images, IMAGES / 255)
    assert labels.tolist() == [1, 0, 1, 0, 0]


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="must hold train-images-idx3-ubyte or"):
        MNIST(tmp_path)


def test_files_that_do_not_belong_together(tmp_path):
    idx.write(tmp_path / "train-images-idx3-ubyte", IMAGES)
    idx.write(tmp_path / "train-labels-idx1-ubyte", LABELS[:4])
    with pytest.raises(ValueError, match=r"got uint8 \(5, 28, 28\) and uint8 \(4,\)"):
        MNIST(tmp_path)

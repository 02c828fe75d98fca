import pickle
import struct
import sys
import zlib

import numpy as np
import pytest

from plait_data import DataLoader
from plait_data.datasets import ImageFolder, NumPyArrays, load_image


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(4, 3),
        np.asfortranarray(np.arange(24, dtype="int16").reshape(2, 3, 4)),
        np.arange(5, dtype=">f4"),
        np.zeros((0, 3)),
    ],
    ids=str,
)
def test_samples_are_rows(tmp_path, array, mmap):
    np.save(tmp_path / "one.npy", array)
    np.savez(tmp_path / "two.npz", x=array, y=np.arange(len(array)))
    np.savez_compressed(tmp_path / "three.npz", x=array, y=np.arange(len(array)))
    one = NumPyArrays(tmp_path / "one.npy", mmap=mmap)
    assert len(one) == len(array)
    for i in range(len(array)):
        np.testing.assert_array_equal(one[i], array[i])
    for name in ("two.npz", "three.npz"):
        two = NumPyArrays(tmp_path / name, mmap=mmap)
        for i in range(len(array)):
            np.testing.assert_array_equal(two[i]["x"], array[i])
            assert two[i]["y"] == i
            assert two[i]["x"].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")


def test_files_are_mapped_and_samples_are_copies(tmp_path):
    np.savez(tmp_path / "two.npz", x=np.eye(3), y=np.arange(3))
    np.save(tmp_path / "one.npy", np.eye(3))
    for name in ("two.npz", "one.npy"):
        data = NumPyArrays(tmp_path / name)
        assert all(isinstance(a, np.memmap) and not a.flags.writeable for a in data.arrays.values())
        sample = data[1]["x"] if name == "two.npz" else data[1]
        sample[0] = 9  # a copy
        assert type(sample) is np.ndarray
        copy = pickle.dumps(data)
        assert len(copy) < 1000  # without the arrays
        again = pickle.loads(copy)
        np.testing.assert_array_equal(again.arrays.popitem()[1], data.arrays.popitem()[1])


def test_batches(tmp_path):
    np.savez(tmp_path / "two.npz", x=np.arange(20.0).reshape(10, 2), y=np.arange(10))
    data = NumPyArrays(tmp_path / "two.npz")
    slow = NumPyArrays(tmp_path / "two.npz", transform=lambda sample: sample)
    for a, b in zip(DataLoader(data, 4), DataLoader(slow, 4), strict=True):
        np.testing.assert_array_equal(a["x"], b["x"])
        np.testing.assert_array_equal(a["y"], b["y"])
        assert type(a["x"]) is type(b["x"])


def test_files_that_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([object()]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"a\.npy must be a whole \.npy or \.npz file"):
        NumPyArrays(path)
    np.savez(tmp_path / "o.npz", np.array([object()]))
    with pytest.raises(ValueError, match="Python objects"):
        NumPyArrays(tmp_path / "o.npz")
    np.save(path, np.float64(3))
    with pytest.raises(ValueError, match="must have a first dimension"):
        NumPyArrays(path)
    np.savez(tmp_path / "u.npz", x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(ValueError, match=r"one size .*; got \{'x': 3, 'y': 4\}"):
        NumPyArrays(tmp_path / "u.npz")
    np.savez(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="one size"):
        NumPyArrays(tmp_path / "none.npz")
    np.save(path, np.zeros((100, 3)))
    whole = path.read_bytes()
    for cut in (0, 5, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="must be a whole"):
            NumPyArrays(path)
    np.savez(tmp_path / "z.npz", x=np.zeros((100, 3)))
    whole = (tmp_path / "z.npz").read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "z.npz").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="must be a whole"):
            NumPyArrays(tmp_path / "z.npz")


@pytest.fixture
def folder(tmp_path):
    for name, value in (("cat/b.ppm", 1), ("cat/a/c.PPM", 2), ("dog/x.ppm", 3), ("dog/y.ppm", 4)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"P6 2 1 255 " + bytes([value] * 6))
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "readme.txt").write_text("no class")
    return tmp_path


def test_a_folder_of_images(folder):
    images = ImageFolder(folder)
    assert (images.classes, images.class_to_idx) == (["cat", "dog"], {"cat": 0, "dog": 1})
    assert [(path[len(str(folder)) + 1 :], label) for path, label in images.samples] == [
        ("cat/a/c.PPM", 0),
        ("cat/b.ppm", 0),
        ("dog/x.ppm", 1),
        ("dog/y.ppm", 1),
    ]
    image, label = images[-2]
    assert (image.tolist(), label) == ([[[3, 3, 3], [3, 3, 3]]], 1)
    (batch,) = DataLoader(pickle.loads(pickle.dumps(images)), batch_size=4)
    assert batch[0].shape == (4, 1, 2, 3)
    assert batch[1].tolist() == [0, 0, 1, 1]
    grey = ImageFolder(folder, loader=lambda path: load_image(path, "L"), target_transform=str)
    assert (grey[0][0].tolist(), grey[0][1]) == ([[2, 2]], "0")


def png(pixels):
    """The bytes of a PNG file with red, green, blue and opacity (ISO/IEC 15948)."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_images_of_other_formats(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 4), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(png(pixels))
    np.testing.assert_array_equal(load_image(tmp_path / "a.png"), pixels[:, :, :3])
    np.testing.assert_array_equal(load_image(tmp_path / "a.png", "RGBA"), pixels)
    (tmp_path / "cut.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"cut\.png must be a whole image file"):
        load_image(tmp_path / "cut.png")
    with pytest.raises(FileNotFoundError):
        load_image(tmp_path / "none.png")


def test_without_pillow(folder, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "PIL", None)
    images = ImageFolder(folder)  # looks at names alone
    with pytest.raises(ModuleNotFoundError, match=r"pip install plait-data\[images\]"):
        images[0]
    assert ImageFolder(folder, loader=lambda path: path[-5:])[0] == ("c.PPM", 0)


def test_folders_that_are_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="`root` must be a folder"):
        ImageFolder(folder / "none")
    with pytest.raises(FileNotFoundError, match="must hold a folder for each class"):
        ImageFolder(folder / "dog")
    (folder / "eel").mkdir()
    with pytest.raises(FileNotFoundError, match=r"eel of .* has none"):
        ImageFolder(folder)
    one = tmp_path / "one"
    (one / "only").mkdir(parents=True)
    (one / "only" / "a.ppm").write_bytes(b"")
    with pytest.raises(IndexError, match=r"index must be in \[-1, 0\]; got 1"):
        ImageFolder(one).path(1)


def test_a_member_that_says_more_than_it_has(tmp_path):
    """No memory is taken for it, whether it is compressed or not."""
    import io
    import zipfile

    header = io.BytesIO()
    description = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    np.lib.format.write_array_header_1_0(header, description)
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as archive:
            archive.writestr("x.npy", header.getvalue() + bytes(100))
        with pytest.raises(ValueError, match=r"a\.npz must be .* too few for shape"):
            NumPyArrays(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': (), 'fortran_order': False, 'shape': (2,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"(" * 300,
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}",
        b"{(1,): '<f4', 'fortran_order': False, 'shape': (2,)}",
    ],
)
@pytest.mark.parametrize("mmap", [True, False])
def test_a_damaged_header_is_a_value_error(header, mmap, tmp_path):
    path = tmp_path / "a.npy"
    data = b"\x93NUMPY\x01\x00" + len(header + b"\n").to_bytes(2, "little") + header + b"\n"
    path.write_bytes(data + bytes(8))
    with pytest.raises(ValueError, match=r"a\.npy must be a whole .npy or .npz file"):
        NumPyArrays(path, mmap=mmap)

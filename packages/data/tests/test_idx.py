import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from plait_data.datasets import idx


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("name", ["array", "array.gz"])
def test_round_trip(tmp_path, dtype, shape, name):
    array = (np.arange(np.prod(shape)) * 3 - 5).astype(dtype).reshape(shape)
    idx.write(tmp_path / name, array)
    back = idx.read(tmp_path / name)
    assert back.dtype == array.dtype
    assert back.dtype.isnative
    assert back.flags.writeable
    np.testing.assert_array_equal(back, array)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_bytes_by_hand():
    content = bytes.fromhex("00000b02 00000002 00000001 0102 fffe")
    assert idx.encode(np.array([[258], [-2]], dtype=np.int16)) == content
    assert idx.decode(content).tolist() == [[258], [-2]]


def test_foreign_byte_order_and_strides_are_written_alike():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert idx.encode(array.astype(">i4")) == idx.encode(array)
    assert idx.decode(idx.encode(array.T)).tolist() == array.T.tolist()


def test_gzip_is_found_by_content_and_reproducible(tmp_path):
    array = np.arange(5, dtype=np.uint8)
    (tmp_path / "plain-name").write_bytes(gzip.compress(idx.encode(array)))
    assert idx.read(tmp_path / "plain-name").tolist() == [0, 1, 2, 3, 4]
    idx.write(tmp_path / "a.gz", array)
    idx.write(tmp_path / "b.gz", array)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


WHOLE = idx.encode(np.arange(6, dtype=np.uint8).reshape(2, 3))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "must start with two zero bytes"),
        (b"PNG\r\n", "must start with two zero bytes .* got '50 4e 47 0d'"),
        (b"\0\0\x07\x01", "must start with two zero bytes and a type code"),
        (WHOLE[:10], "must have 2 sizes; it ends before the last"),
        (WHOLE[:-1], r"must have 18 bytes for shape \(2, 3\) of uint8; got 17"),
        (WHOLE + b"\0", "must have 18 bytes .* got 19"),
        (struct.pack(">4B3I", 0, 0, 8, 3, *[2**32 - 1] * 3), "must have 792281624"),
        (gzip.compress(WHOLE)[:-9], "must be a whole gzip file"),
        (b"\x1f\x8bnot gzip", "must be a whole gzip file"),
    ],
)
def test_damaged_files(tmp_path, content, text):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(ValueError, match=f"idx.read: .*bad {text}"):
        idx.read(tmp_path / "bad")


def test_write_errors_leave_nothing(tmp_path):
    with pytest.raises(TypeError, match=r"the dtype must be one of uint8, .*; got int64"):
        idx.write(tmp_path / "x", np.arange(3))
    with pytest.raises(ValueError, match=r"1 to 255 dimensions .* got shape \(\)"):
        idx.write(tmp_path / "x", np.float32(1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        bytes(60 << 20),
        idx.encode(np.zeros(10, np.uint8)) + bytes(60 << 20),
        b"\0\0\x08\x03" + b"\xff" * 12 + bytes(1 << 20),  # says more than there is
    ],
    ids=["zeros", "longer", "shorter"],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_takes_no_more_memory_than_its_head_says(tmp_path, content, zipped):
    path = tmp_path / "array"
    path.write_bytes(gzip.compress(content, 1) if zipped else content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"or more|type code|must have"):
            idx.read(path)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()

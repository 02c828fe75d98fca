// Reads checkpoints into memory; the digest or the CRC of each piece is computed while it is in the
// cache.
#define PY_SSIZE_T_CLEAN
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "checkpoints/crc32.hpp"
#include "checkpoints/digest.hpp"

namespace plait::core {
namespace {

namespace py = pybind11;

// Bytes of an object for as long as this lives.
class Bytes {
 public:
  Bytes(const py::object &o, int flags) {
    if (PyObject_GetBuffer(o.ptr(), &view_, flags) < 0) throw py::error_already_set();
  }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;
  ~Bytes() { PyBuffer_Release(&view_); }
  char *data() const { return static_cast<char *>(view_.buf); }
  uint64_t size() const { return uint64_t(view_.len); }

 private:
  Py_buffer view_;
};

std::string digest(const py::object &data) {
  const Bytes bytes(data, PyBUF_SIMPLE);
  Digest sum(bytes.size());
  const py::gil_scoped_release free;
  sum.update(bytes.data(), bytes.size());
  return sum.text();
}

uint32_t crc32(const py::object &data) {
  const Bytes bytes(data, PyBUF_SIMPLE);
  Crc32 crc;
  const py::gil_scoped_release free;
  crc.update(bytes.data(), bytes.size());
  return crc.value();
}

// The CRC by each implementation for this processor, for tests.
std::vector<uint32_t> crc32_in_every_way(const py::object &data) {
  const Bytes bytes(data, PyBUF_SIMPLE);
  std::vector<uint32_t> sums;
  for (int i = 0; i < Crc32::kWays; i++)
    if (const Crc32::Way way = Crc32::way(i)) sums.push_back(~way(~0u, bytes.data(), bytes.size()));
  return sums;
}

// The checksum that is computed while bytes are read.
enum class Kind { none, digest, crc };

Kind kind_of(const std::string &name) {
  if (name.empty()) return Kind::none;
  if (name == "digest") return Kind::digest;
  if (name == "crc") return Kind::crc;
  throw py::value_error("_read_into: `kind` must be \"\", \"digest\" or \"crc\", got " + name);
}

class Sums {
 public:
  Sums(Kind kind, uint64_t nbytes) : kind_(kind), digest_(nbytes) {}
  void update(const char *data, uint64_t nbytes) {
    if (kind_ == Kind::digest) digest_.update(data, nbytes);
    if (kind_ == Kind::crc) crc_.update(data, nbytes);
  }
  py::object value() const {
    if (kind_ == Kind::digest) return py::str(digest_.text());
    return kind_ == Kind::crc ? py::object(py::int_(crc_.value())) : py::none();
  }

 private:
  Kind kind_;
  Digest digest_;
  Crc32 crc_;
};

// Bytes of a piece: a block of the digest, which stays in the second-level cache until it is
// summed.
constexpr uint64_t kPiece = Digest::kBlock * Digest::kRow;
constexpr uint64_t kPiecesAtOnce = 64;  // between two checks for signals

// The result of reading: the number of bytes, and errno or 0.
struct Got {
  uint64_t nbytes = 0;
  int code = 0;
};
Got read_all(int file, int64_t offset, char *data, uint64_t size) {
  Got got;
  while (got.nbytes < size) {
    const ssize_t n =
        pread(file, data + got.nbytes, size - got.nbytes, offset + int64_t(got.nbytes));
    if (n > 0) got.nbytes += uint64_t(n);
    if (n < 0 && errno == EINTR) continue;  // the caller checks for signals after each stretch
    if (n < 0) got.code = errno;
    if (n <= 0) break;
  }
  return got;
}

// Reads piece by piece and computes the sums of each.
Got read_summed(int file, int64_t offset, char *data, uint64_t size, Sums *sums) {
  Got all;
  while (all.nbytes < size && !all.code) {
    char *to = data + all.nbytes;
    const uint64_t n = std::min(kPiece, size - all.nbytes);
    const Got got = read_all(file, offset + int64_t(all.nbytes), to, n);
    sums->update(to, got.nbytes);
    all.nbytes += got.nbytes;
    all.code = got.code;
    if (got.nbytes < n) break;
  }
  return all;
}

// (number of bytes read, checksum or None)
py::tuple read_into(int file, int64_t offset, const py::object &target, const std::string &name) {
  const Kind kind = kind_of(name);
  const Bytes bytes(target, PyBUF_WRITABLE);
  Sums sums(kind, bytes.size());
  uint64_t done = 0;
  while (done < bytes.size()) {
    const uint64_t size = std::min(bytes.size() - done, kPiecesAtOnce * kPiece);
    Got got;
    {
      const py::gil_scoped_release free;
      char *to = bytes.data() + done;
      const int64_t from = offset + int64_t(done);
      got = kind == Kind::none ? read_all(file, from, to, size)
                               : read_summed(file, from, to, size, &sums);
    }
    errno = got.code;
    if (got.code) PyErr_SetFromErrno(PyExc_OSError);
    if (PyErr_Occurred() || PyErr_CheckSignals() < 0) throw py::error_already_set();
    done += got.nbytes;
    if (got.nbytes < size) break;
  }
  return py::make_tuple(done, done == bytes.size() ? sums.value() : py::none());
}

}  // namespace

void add_checkpoint_files(py::module_ &m) {
  m.def("_digest", digest, py::arg("data"), "The digest of the bytes of a checkpoint's tensor.");
  m.def("_read_into", read_into, py::arg("file"), py::arg("offset"), py::arg("target"),
        py::arg("kind"),
        "Fill a buffer from a file; how many bytes there were, and their digest or crc.");
  m.def("_crc32", crc32, py::arg("data"), "The CRC-32 of bytes, as zip files have it.");
  m.def("_crc32_in_every_way", crc32_in_every_way, py::arg("data"), "For tests of the ways.");
}

}  // namespace plait::core

// Sums of columns run at the speed of the cache; reading is fused with them, block by block.
#define PY_SSIZE_T_CLEAN
#include "digest.hpp"

#include "crc32.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace plait::core {
namespace {

constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // odd: multiplication loses no difference
constexpr uint64_t kAtOnce = 8;  // rows, so that the sums are loaded and stored once for as many

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
uint64_t word(const char *p) {
  uint64_t x;
  memcpy(&x, p, 8);
  return x;
}
#else
uint64_t word(const char *p) {
  uint64_t x;
  memcpy(&x, p, 8);
  return __builtin_bswap64(x);
}
#endif

void add_row(uint64_t *sums, const char *p) {
  for (uint64_t c = 0; c < Digest::kColumns; c++) sums[c] += word(p + 8 * c);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint64_t Words __attribute__((vector_size(32), aligned(8), may_alias));

__attribute__((always_inline)) inline void add_eight(uint64_t *sums, const char *p) {
  uint64_t c = 0;
  for (; c + 4 <= Digest::kColumns; c += 4, p += 32) {
    Words sum = *reinterpret_cast<Words *>(sums + c);
#pragma GCC unroll 8
    for (uint64_t r = 0; r < kAtOnce; r++)
      sum += *reinterpret_cast<const Words *>(p + r * Digest::kRow);
    *reinterpret_cast<Words *>(sums + c) = sum;
  }
  for (; c < Digest::kColumns; c++, p += 8)
    for (uint64_t r = 0; r < kAtOnce; r++) sums[c] += word(p + r * Digest::kRow);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) void add_eight_avx2(uint64_t *sums, const char *p) {
  add_eight(sums, p);
}
#endif
void add_eight_base(uint64_t *sums, const char *p) { add_eight(sums, p); }
using AddEight = void (*)(uint64_t *, const char *);
AddEight best_add_eight() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) return add_eight_avx2;
#endif
  return add_eight_base;
}
#else
using AddEight = void (*)(uint64_t *, const char *);
void add_eight_base(uint64_t *sums, const char *p) {
  for (uint64_t r = 0; r < kAtOnce; r++) add_row(sums, p + r * Digest::kRow);
}
AddEight best_add_eight() { return add_eight_base; }
#endif

uint64_t mixed(uint64_t h, uint64_t x) {  // one to one in either
  h = (h ^ x) * kFactor;
  return h ^ h >> 32;
}

}  // namespace

void Digest::update(const void *data, uint64_t nbytes) {
  static const AddEight add_eight_rows = best_add_eight();
  const char *p = static_cast<const char *>(data);
  while (nbytes) {
    if (rows_ % kBlock == 0)
      for (uint64_t &sum : sums_) sum *= kFactor;
    if (nbytes >= kAtOnce * kRow && rows_ % kAtOnce == 0) {
      add_eight_rows(sums_, p);
      rows_ += kAtOnce;
      p += kAtOnce * kRow;
      nbytes -= kAtOnce * kRow;
    } else if (nbytes >= kRow) {
      add_row(sums_, p);
      rows_++;
      p += kRow;
      nbytes -= kRow;
    } else {
      char last[kRow] = {};
      memcpy(last, p, nbytes);
      add_row(sums_, last);
      rows_++;
      nbytes = 0;
    }
  }
}

std::string Digest::text() const {
  uint64_t lanes[4] = {nbytes_, 0, 0, 0};  // side by side: each waits for its own products alone
  for (uint64_t c = 0; c < kColumns; c++) lanes[c % 4] = mixed(lanes[c % 4], sums_[c]);
  uint64_t h = lanes[0];
  for (int i = 1; i < 4; i++) h = mixed(h, lanes[i]);
  char out[17];
  snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

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
  Digest made(bytes.size());
  const py::gil_scoped_release free;
  made.update(bytes.data(), bytes.size());
  return made.text();
}

uint32_t crc32(const py::object &data) {
  const Bytes bytes(data, PyBUF_SIMPLE);
  Crc32 made;
  const py::gil_scoped_release free;
  made.update(bytes.data(), bytes.size());
  return made.value();
}

// By each of the ways that this processor has, for tests.
std::vector<uint32_t> crc32_in_every_way(const py::object &data) {
  const Bytes bytes(data, PyBUF_SIMPLE);
  std::vector<uint32_t> found;
  for (int i = 0; i < Crc32::kWays; i++)
    if (const Crc32::Way way = Crc32::way(i))
      found.push_back(~way(~0u, bytes.data(), bytes.size()));
  return found;
}

// What is computed of bytes while they are read: nothing, the digest or the CRC.
class Sums {
 public:
  Sums(const std::string &kind, uint64_t nbytes)
      : digest_(nbytes), is_digest_(kind == "digest"), is_crc_(kind == "crc") {
    if (!is_digest_ && !is_crc_ && !kind.empty())
      throw py::value_error("_read_into: `kind` must be \"\", \"digest\" or \"crc\"");
  }
  bool wanted() const { return is_digest_ || is_crc_; }
  void update(const char *data, uint64_t nbytes) {
    if (is_digest_) digest_.update(data, nbytes);
    if (is_crc_) crc_.update(data, nbytes);
  }
  py::object value() const {
    if (is_digest_) return py::str(digest_.text());
    return is_crc_ ? py::object(py::int_(crc_.value())) : py::none();
  }

 private:
  Digest digest_;
  Crc32 crc_;
  bool is_digest_, is_crc_;
};

// Bytes of a read: they stay in the second-level cache until they are summed.
constexpr uint64_t kRead = Digest::kBlock * Digest::kRow;

// Reads [done, size) until an interruption; 0 at the end, else errno, or -1 where the file ends.
int read_on(int file, int64_t offset, char *data, uint64_t size, uint64_t *done, uint64_t *digested,
            Sums *made) {
  while (*done < size) {
    const uint64_t left = size - *done,
                   n = made->wanted() && left > kRead ? kRead - *done % kRead : left;
    const ssize_t got = pread(file, data + *done, n, offset + int64_t(*done));
    if (got < 0) return errno;
    if (got == 0) return -1;
    *done += uint64_t(got);
    const uint64_t ready = *done == size ? size : *done - *done % Digest::kRow;
    made->update(data + *digested, ready - *digested);
    *digested = ready;
  }
  return 0;
}

// (how many bytes were read, what was computed of them or None)
py::tuple read_into(int file, int64_t offset, const py::object &target, const std::string &kind) {
  const Bytes bytes(target, PyBUF_WRITABLE);
  Sums made(kind, bytes.size());
  uint64_t done = 0, digested = 0;
  for (;;) {
    int code;
    {
      const py::gil_scoped_release free;
      code = read_on(file, offset, bytes.data(), bytes.size(), &done, &digested, &made);
    }
    if (code <= 0) break;
    errno = code;
    if (code == EINTR ? PyErr_CheckSignals() < 0 : !PyErr_SetFromErrno(PyExc_OSError))
      throw py::error_already_set();
  }
  return py::make_tuple(done, done == bytes.size() ? made.value() : py::none());
}

}  // namespace

void add_digests(py::module_ &m) {
  m.def("_digest", digest, py::arg("data"), "The digest of the bytes of a checkpoint's tensor.");
  m.def("_read_into", read_into, py::arg("file"), py::arg("offset"), py::arg("target"),
        py::arg("kind"),
        "Fill a buffer from a file; how many bytes there were, and their digest or crc.");
  m.def("_crc32", crc32, py::arg("data"), "The CRC-32 of bytes, as zip files have it.");
  m.def("_crc32_in_every_way", crc32_in_every_way, py::arg("data"), "For tests of the ways.");
}

}  // namespace plait::core

#include "blocks.hpp"

#include "cursor.hpp"
#include "steps.hpp"

namespace plait::optim {
namespace {

template <class T>
T *run(const plait_tensor *t, int64_t start) {
  return static_cast<T *>(t->dl.data) + start;
}

template <class T>
void read(const plait_tensor *t, bool flat, int64_t start, int64_t n, T *to) {
  if (flat) {
    std::memcpy(to, run<T>(t, start), size_t(n) * sizeof(T));
    return;
  }
  Cursor cursor(t, start);
  for (int64_t j = 0; j < n; j++, cursor.next()) to[j] = *reinterpret_cast<const T *>(cursor.at());
}

template <class T>
void write(const plait_tensor *t, bool flat, int64_t start, int64_t n, const T *from) {
  if (flat) {
    std::memcpy(run<T>(t, start), from, size_t(n) * sizeof(T));
    return;
  }
  Cursor cursor(t, start);
  for (int64_t j = 0; j < n; j++, cursor.next()) *reinterpret_cast<T *>(cursor.at()) = from[j];
}

const HalfRuns &half_runs(DType d) {
  return same(d, dtype::bfloat16) ? loops().bfloat16 : loops().float16;
}

}  // namespace

bool is_real_floating(DType d) {
  switch (key(d)) {
    case key(dtype::float16):
    case key(dtype::bfloat16):
    case key(dtype::float32):
    case key(dtype::float64): return d.lanes == 1;
    default: return false;
  }
}

void gather(const plait_tensor *t, bool flat, int64_t start, int64_t n, void *block) {
  const DType d = t->dl.dtype;
  if (is_wide(d)) return read(t, flat, start, n, static_cast<double *>(block));
  if (!is_half(d)) return read(t, flat, start, n, static_cast<float *>(block));
  uint16_t bits[block_elements];
  if (!flat) read(t, false, start, n, bits);
  half_runs(d).widen(static_cast<float *>(block), flat ? run<uint16_t>(t, start) : bits, n);
}

void scatter(const plait_tensor *t, bool flat, int64_t start, int64_t n, const void *block) {
  const DType d = t->dl.dtype;
  if (is_wide(d)) return write(t, flat, start, n, static_cast<const double *>(block));
  if (!is_half(d)) return write(t, flat, start, n, static_cast<const float *>(block));
  uint16_t bits[block_elements];
  half_runs(d).narrow(flat ? run<uint16_t>(t, start) : bits, static_cast<const float *>(block), n);
  if (!flat) write(t, false, start, n, bits);
}

}  // namespace plait::optim

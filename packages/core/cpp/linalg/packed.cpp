#include "linalg/packed.h"

namespace plait::core {
template <class T>
void pack_operand(const plait_call *c, Matrix<T> b, int64_t k, int64_t n, T *to) {
  const int64_t panels = ceil_div(n, kPanel<T>);
  parallel_ranges(c, panels, kSerial / (k + 1) / kPanel<T> + 1, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * kPanel<T>, stop = end * kPanel<T> < n ? end * kPanel<T> : n;
    pack_panels(b.at(0, from), k, stop - from, to + from * k);
  });
}

template void pack_operand(const plait_call *, Matrix<float>, int64_t, int64_t, float *);
template void pack_operand(const plait_call *, Matrix<double>, int64_t, int64_t, double *);

}  // namespace plait::core

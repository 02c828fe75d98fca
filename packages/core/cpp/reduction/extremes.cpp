// The index of the largest or smallest element: argmax, argmin, max.dim, min.dim. The first of
// equal elements is taken; NaN counts as largest and as smallest. The elements themselves, amax,
// amin, max and min, are in reductions.cpp.
#include "reduction/reduce.h"
#include "reduction/rows.h"

namespace plait::core {
namespace {

constexpr int64_t kPiece = 65536;

template <class T>
PLAIT_INLINE bool matches(T x, T best) {
  return (x == best) | ((x != x) & (best != best));
}

// The first position of `best`, which must occur.
template <class T>
int64_t find(const T *p, int64_t n, T best) {
  constexpr int64_t kStep = 64;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    uint8_t hit = 0;
    for (int64_t j = 0; j < kStep; j++) hit |= uint8_t(matches(p[i + j], best));
    if (hit) break;
  }
  while (i < n && !matches(p[i], best)) i++;
  return i;
}

template <class Op, class T>
int64_t locate(const T *p, int64_t n, T *best) {
  if (n >= 32) {
    *best = reduce_contiguous<Op, T, T>(p, n);
    return find(p, n, *best);
  }
  int64_t at = 0;
  T b = p[0];
  for (int64_t i = 1; i < n; i++) {
    const T next = Op::step(b, p[i]);
    if (!matches(next, b)) at = i;
    b = next;
  }
  *best = b;
  return at;
}

template <class Op, class T>
plait_status locate_rows(const plait_call *c, const Reduction &r, T *values, int64_t *indices) {
  const T *from = reinterpret_cast<const T *>(r.data);
  const int64_t n = r.reduced.count, results = r.kept.count;
  if (results == 1 && n > 2 * kPiece) {
    const int64_t pieces = ceil_div(n, kPiece);
    Workspace space;
    PLAIT_TRY(space.take(c, uint64_t(pieces) * sizeof(T)));
    T *best = space.as<T>();
    parallel(c, pieces, [&](int64_t k) {
      const int64_t rest = n - k * kPiece;
      best[k] = reduce_contiguous<Op, T, T>(from + k * kPiece, rest < kPiece ? rest : kPiece);
    });
    T top = best[0];
    for (int64_t k = 1; k < pieces; k++) top = Op::step(top, best[k]);
    int64_t k = 0;
    while (!matches(best[k], top)) k++;
    indices[0] = k * kPiece + find(from + k * kPiece, n - k * kPiece, top);
    if (values) values[0] = top;
    return PLAIT_OK;
  }
  parallel_ranges(c, results, kPiece / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      T best;
      indices[i] = locate<Op>(from + r.kept.offset(i), n, &best);
      if (values) values[i] = best;
    }
  });
  return PLAIT_OK;
}

template <class Op>
plait_status locate_any(const plait_call *c, DLTensor *values, DLTensor *indices) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, in, dims_mask(c, 1, in->ndim), k, Layout::kRow, &space, &r));
  if (r.kept.count == 0) return PLAIT_OK;
  int64_t *to = data<int64_t>(indices);
  if (k == Bool)
    return locate_rows<Op, uint8_t>(c, r, values ? data<uint8_t>(values) : nullptr, to);
  PLAIT_NUMERIC(k, return (locate_rows<Op, T>(c, r, values ? data<T>(values) : nullptr, to)))
  return PLAIT_OK;
}

plait_status argmax(plait_call *c) { return locate_any<Max>(c, nullptr, result(c)); }
plait_status argmin(plait_call *c) { return locate_any<Min>(c, nullptr, result(c)); }
plait_status max_dim(plait_call *c) { return locate_any<Max>(c, result(c), result(c, 1)); }
plait_status min_dim(plait_call *c) { return locate_any<Min>(c, result(c), result(c, 1)); }

PLAIT_KERNEL("argmax", argmax);
PLAIT_KERNEL("argmin", argmin);
PLAIT_KERNEL("max.dim", max_dim);
PLAIT_KERNEL("min.dim", min_dim);

}  // namespace
}  // namespace plait::core

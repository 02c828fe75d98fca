// Norms of order 0, 1, 2 and infinity, in float64. Squares of float64 that overflow or underflow
// are summed again as shares of the largest magnitude. Other orders are composed of powers.
#include "reduction/reductions.h"

namespace plait::core {
namespace {

// Sums of squares of rows of kind `own`; those of float32 and of halves are not exact enough for a
// result of float64.
decltype(Source<double>::adjacent) squares_of(Kind own, Kind to) {
  if (own == F64) return sums_of_squares<double>;
  if (to == F64) return nullptr;
  if (own == F32) return sums_of_squares<float>;
  if (own == F16) return sums_of_squares_of_halves<Half>;
  if (own == BF16) return sums_of_squares_of_halves<Bfloat>;
  return nullptr;
}

template <class Op, class Map>
plait_status norm_by(const plait_call *c, const Reduction &r, bool root) {
  const Kind own = kind(tensor(c, 0)->dtype);
  const auto convert = converter_of_floats<double, Map>(own);
  if (!convert) return PLAIT_DECLINE;
  Source<double> from = {r.data, size_of(own), convert};
  if (root) from.adjacent = squares_of(own, kind(result(c)->dtype));
  return reduce_source<Op>(c, r, from, Output(result(c), 1, root));
}

// Calls f with the magnitudes of all elements of result i, block by block.
template <class F>
void each_block(const Reduction &r, const Source<double> &from, int64_t i, F &&f) {
  double some[kBlockOf];
  r.spans(0, r.reduced.count, [&](int64_t at, int64_t n, int64_t step) {
    for (int64_t j = 0; j < n; j += kBlockOf) {
      const int64_t m = least(kBlockOf, n - j);
      from.get(some, r.kept.offset(i) + at + j * step, m, step);
      f(some, m);
    }
  });
}

// Norms that are not those of ordinary sums of squares.
void again_by_shares(const plait_call *c, const Reduction &r) {
  const Kind own = kind(tensor(c, 0)->dtype);
  const Source<double> from = {r.data, size_of(own), converter_of_floats<double, Magnitude>(own)};
  double *out = data<double>(result(c));
  parallel_ranges(c, r.kept.count, kReducedPiece / (r.reduced.count + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; i++) {
                      if (out[i] > 0x1p-450 && out[i] < 0x1p511) continue;  // or nan
                      double top = 0, sum = 0;
                      each_block(r, from, i, [&](const double *p, int64_t n) {
                        for (int64_t j = 0; j < n; j++)
                          top = p[j] > top || p[j] != p[j] ? p[j] : top;
                      });
                      if (!(top > 0) || top - top != 0) continue;  // 0, inf and nan are right
                      each_block(r, from, i, [&](const double *p, int64_t n) {
                        for (int64_t j = 0; j < n; j++) sum += p[j] / top * (p[j] / top);
                      });
                      out[i] = top * __builtin_sqrt(sum);
                    }
                  });
}

// (self, p, dim, keepdim, *, dtype)
plait_status norm(plait_call *c) {
  if (c->in[1].tag == PLAIT_COMPLEX) return PLAIT_DECLINE;
  const DLTensor *in = tensor(c, 0);
  const double p = real(c, 1, 2);
  Reduction r;
  describe(in, dims_mask(c, 2, in->ndim), &r);
  if (p == 0) return norm_by<Sum, NotZero>(c, r, false);
  if (p == 1) return norm_by<Sum, Magnitude>(c, r, false);
  if (p == __builtin_inf()) return norm_by<Max, Magnitude>(c, r, false);
  if (p == -__builtin_inf()) return norm_by<Min, Magnitude>(c, r, false);
  if (p != 2) return PLAIT_DECLINE;
  PLAIT_TRY((norm_by<Sum, Square>(c, r, true)));
  if (kind(result(c)->dtype) == F64) again_by_shares(c, r);
  return PLAIT_OK;
}
PLAIT_KERNEL("norm", norm);

}  // namespace
}  // namespace plait::core

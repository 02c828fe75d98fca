// Variance and standard deviation of real numbers: var, std, var_mean, std_mean.
#include "kernel/settings.h"
#include "reduction/moments.h"
#include "reduction/reduce.h"

namespace plait::core {
namespace {

constexpr int64_t kPiece = kMomentsPiece;

template <class T>
Moments moments_between(const Reduction &r, const T *base, int64_t begin, int64_t end) {
  Moments all{0, 0, 0};
  r.runs(base, begin, end, [&](const T *p, int64_t n, int64_t) { all.join(moments_of_run(p, n)); });
  return all;
}

template <class T>
plait_status moments(const plait_call *c, const Reduction &r, T *variance, T *mean, bool root) {
  const T *from = reinterpret_cast<const T *>(r.data);
  const int64_t n = r.reduced.count, results = r.kept.count;
  const double correction = real(c, 2, 1);
  const bool few = results < 32 || batch_invariant();
  const int64_t pieces = few && n > 4 * kPiece ? ceil_div(n, 4 * kPiece) : 1;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(results * pieces) * sizeof(Moments)));
  Moments *part = space.as<Moments>();
  parallel_ranges(c, results * pieces, 4 * kPiece / (n / pieces + 1) + 1,
                  [&](int64_t from_piece, int64_t to_piece) {
                    for (int64_t k = from_piece; k < to_piece; k++) {
                      const int64_t begin = pieces == 1 ? 0 : k % pieces * 4 * kPiece;
                      const int64_t end =
                          pieces == 1 || begin + 4 * kPiece > n ? n : begin + 4 * kPiece;
                      part[k] = moments_between(r, from + r.kept.offset(k / pieces), begin, end);
                    }
                  });
  for (int64_t i = 0; i < results; i++) {
    Moments m = part[i * pieces];
    for (int64_t k = 1; k < pieces; k++) m.join(part[i * pieces + k]);
    const double left = double(n) - correction;
    const double v = m.squares / (left > 0 ? left : 0);
    if (variance) variance[i] = T(root ? __builtin_sqrt(v) : v);
    if (mean) mean[i] = T(n ? m.mean : __builtin_nan(""));
  }
  return PLAIT_OK;
}

// (self, dim, *, correction, keepdim)
plait_status moments_any(const plait_call *c, DLTensor *variance, DLTensor *mean, bool root) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(variance->dtype);
  if (is_complex_kind(kind(in->dtype))) return PLAIT_DECLINE;
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, in, dims_mask(c, 1, in->ndim), k, Layout::kRuns, &space, &r));
  PLAIT_FLOATING(k,
                 return moments<T>(c, r, data<T>(variance), mean ? data<T>(mean) : nullptr, root))
  return PLAIT_OK;
}

plait_status var(plait_call *c) { return moments_any(c, result(c), nullptr, false); }
plait_status std_(plait_call *c) { return moments_any(c, result(c), nullptr, true); }
plait_status var_mean(plait_call *c) { return moments_any(c, result(c), result(c, 1), false); }
plait_status std_mean(plait_call *c) { return moments_any(c, result(c), result(c, 1), true); }

PLAIT_KERNEL("var", var);
PLAIT_KERNEL("std", std_);
PLAIT_KERNEL("var_mean", var_mean);
PLAIT_KERNEL("std_mean", std_mean);

}  // namespace
}  // namespace plait::core

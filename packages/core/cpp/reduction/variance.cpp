// Variance and standard deviation of real numbers: var, std, var_mean, std_mean.
#include "kernel/settings.h"
#include "kernel/transpose.h"
#include "reduction/moments.h"
#include "reduction/numbers.h"
#include "reduction/reduce.h"

namespace plait::core {
namespace {

constexpr int64_t kPiece = kMomentsPiece;
constexpr int64_t kUnit = 4 * kPiece;  // elements that make a unit of parallel work
constexpr int64_t kBeside = 16;  // adjacent results that are computed at once
constexpr int64_t kPitch = kPiece + 16;  // distance of their copies, to use several cache sets

// Elements as T: where they lie, or copies in `memory` of kPiece numbers.
template <class T>
Moments moments_between(const Reduction &r, const Elements<T> &from, int64_t base, int64_t begin,
                        int64_t end, T *memory) {
  Moments all{0, 0, 0};
  r.spans(begin, end, [&](int64_t at, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = least(kPiece, n - i), first = base + at + i * step;
      if (step != 1) from.get(first, step, m, memory);
      all.join(moments_of<T>(step == 1 ? from.read(first, m, memory) : memory, m));
    }
  });
  return all;
}

// The same for `width` adjacent results. Their elements are copied into `memory`: kPiece numbers of
// each result, and then a cache line of space.
template <class T>
void moments_beside(const Reduction &r, const Elements<T> &from, int64_t base, int64_t width,
                    int64_t begin, int64_t end, Moments *all, T *memory) {
  T *line = memory + kBeside * kPitch;
  for (int64_t k = 0; k < width; k++) all[k] = {0, 0, 0};
  r.spans(begin, end, [&](int64_t at, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = least(kPiece, n - i);
      if (!from.widens())
        transpose_block(reinterpret_cast<char *>(memory), kPitch,
                        reinterpret_cast<const char *>(from.read(base + at + i * step, 1, line)),
                        step, m, width, sizeof(T));
      for (int64_t j = 0; from.widens() && j < m; j++) {
        const T *some = from.read(base + at + (i + j) * step, width, line);
        for (int64_t k = 0; k < width; k++) memory[k * kPitch + j] = some[k];
      }
      for (int64_t k = 0; k < width; k++) all[k].join(moments_of<T>(memory + k * kPitch, m));
    }
  });
}

struct MomentsOut {  // where variances (or their roots) and means go; `mean` may be NULL
  DLTensor *variance, *mean;
  double correction;
  bool root;
  template <class T>
  void put(int64_t i, int64_t n, const Moments &m) const {
    const double left = double(n) - correction, v = m.squares / (left > 0 ? left : 0);
    const T one = T(root ? __builtin_sqrt(v) : v), other = T(n ? m.mean : __builtin_nan(""));
    Elements<T>(variance).put(i, 1, 1, &one);
    if (mean) Elements<T>(mean).put(i, 1, 1, &other);
  }
};

template <class T>
plait_status moments(const plait_call *c, const Reduction &r, const Elements<T> &from,
                     const MomentsOut &out) {
  const int64_t n = r.reduced.count, results = r.kept.count;
  const bool beside = n > 1 && r.reduced.inner_stride() != 1 && r.kept.ndim &&
                      r.kept.inner_stride() == 1 && r.kept.inner_size() >= 4;
  // groups of results, cut where they do not lie side by side
  const int64_t inner = beside ? r.kept.inner_size() : 1, most = beside ? kBeside : 1;
  const int64_t parts = ceil_div(inner, most), groups = results / inner * parts;
  const bool few = results < 32 || batch_invariant();
  const int64_t pieces = few && n > kUnit ? ceil_div(n, kUnit) : 1;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(groups * pieces * most) * sizeof(Moments)));
  Moments *part = space.as<Moments>();
  const int64_t memory = beside                                           ? kBeside * (kPitch + 1)
                         : from.widens() || r.reduced.inner_stride() != 1 ? kPiece
                                                                          : 0;
  const auto first = [&](int64_t g) { return g / parts * inner + g % parts * most; };
  const auto width = [&](int64_t g) { return least(most, inner - g % parts * most); };
  PLAIT_TRY(parallel_with_memory<T>(
      c, groups * pieces, kUnit / (n / pieces * most + 1) + 1, memory,
      [&](int64_t from_piece, int64_t to_piece, T *room) {
        for (int64_t k = from_piece; k < to_piece; k++) {
          const int64_t g = k / pieces, begin = pieces == 1 ? 0 : k % pieces * kUnit;
          const int64_t end = pieces == 1 ? n : least(begin + kUnit, n);
          const int64_t base = r.kept.offset(first(g));
          if (beside)
            moments_beside(r, from, base, width(g), begin, end, part + k * most, room);
          else
            part[k] = moments_between(r, from, base, begin, end, room);
        }
      }));
  for (int64_t g = 0; g < groups; g++)
    for (int64_t j = 0; j < width(g); j++) {
      Moments m = part[g * pieces * most + j];
      for (int64_t k = 1; k < pieces; k++) m.join(part[(g * pieces + k) * most + j]);
      out.put<T>(first(g) + j, n, m);
    }
  return PLAIT_OK;
}

// (self, dim, *, correction, keepdim)
plait_status moments_any(const plait_call *c, DLTensor *variance, DLTensor *mean, bool root) {
  const DLTensor *in = tensor(c, 0);
  if (kind(in->dtype) != kind(variance->dtype)) return PLAIT_DECLINE;  // complex
  Reduction r;
  describe(in, dims_mask(c, 1, in->ndim), &r);
  const MomentsOut out = {variance, mean, real(c, 2, 1), root};
  PLAIT_COMPUTED(kind(in->dtype), return moments<T>(c, r, Elements<T>(in), out))
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

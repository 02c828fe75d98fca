// Elements by rank along a dimension: kthvalue, median, nanmedian, mode. A rank is found digit by
// digit, the most significant first, in passes that count; nothing is moved.
#include "sorting/radix_sort.h"

namespace plait::core {
namespace {

template <class T>
PLAIT_INLINE bool is_nan(T x) {
  return x != x;
}

// The index of the element that a stable sort would put at `rank`, for few elements: of those with
// at most `rank` smaller ones the largest.
template <class T>
int64_t index_of_rank_of_few(const T *p, int64_t step, int64_t n, int64_t rank) {
  using S = std::make_signed_t<Key<T>>;
  S keys[kRanked] = {}, below[kRanked];
  for (int64_t i = 0; i < n; i++) keys[i] = signed_key(key_of(p[i * step]));
  for (int64_t i = 0; i < n; i += 2 * kLanes<S>) count_smaller(keys, n, keys + i, below + i);
  S best = 0;
  for (int64_t i = 0; i < n; i++) best = below[i] <= rank && below[i] > best ? below[i] : best;
  int64_t i = 0;
  for (int64_t rest = rank - best;; i++)
    if (below[i] == best && rest-- == 0) return i;
}

// The index of the element that a stable sort would put at `rank`, found digit by digit.
template <class T>
int64_t index_of_rank(const T *p, int64_t step, int64_t n, int64_t rank) {
  using K = Key<T>;
  if (n <= kRanked) return index_of_rank_of_few(p, step, n, rank);
  K prefix = 0, mask = 0;
  int top = 8 * int(sizeof(K)) - 8;
  if constexpr (!is_float<T>) {  // digits that all integers share are not counted
    K differences = 0;
    prefix = key_of(p[0]);
    for (int64_t i = 1; i < n; i++) differences |= key_of(p[i * step]) ^ prefix;
    while (top >= 0 && differences >> top == 0) top -= 8;
    mask = top == 8 * int(sizeof(K)) - 8 ? 0 : top < 0 ? ~K(0) : ~K(0) << (top + 8);
    prefix &= mask;
  }
  for (int shift = top; shift >= 0; shift -= 8) {
    int64_t count[256] = {}, odd[256] = {};  // two, as equal digits would wait for each other
    const auto take = [&](int64_t *of, int64_t i) {
      const K key = key_of(p[i * step]);
      of[key >> shift & 255] += (key & mask) == prefix;
    };
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) take(count, i), take(odd, i + 1);
    if (i < n) take(count, i);
    for (int d = 0; d < 256; d++) count[d] += odd[d];
    int digit = 0;
    while (rank >= count[digit]) rank -= count[digit++];
    prefix |= K(digit) << shift;
    mask |= K(255) << shift;
    if (count[digit] == 1) break;
  }
  for (int64_t i = 0; i < n; i++)
    if ((key_of(p[i * step]) & mask) == prefix && rank-- == 0) return i;
  return 0;
}

enum class Rank { kKth, kMedian, kNanMedian };

template <class T>
int64_t ranked(const T *p, int64_t step, int64_t n, Rank statistic, int64_t k) {
  if (statistic == Rank::kKth) return index_of_rank(p, step, n, k - 1);
  int64_t numbers = 0, first = -1;
  for (int64_t i = 0; i < n; i++) {
    const bool nan = is_nan(p[i * step]);
    numbers += !nan;
    if (nan && first < 0) first = i;
  }
  if (numbers < n && (statistic == Rank::kMedian || numbers == 0)) return first;
  return index_of_rank(p, step, n, (numbers - 1) / 2);
}

// The last index of the most frequent element; the smallest element if several are.
template <class T>
int64_t most_frequent(const T *p, int64_t step, int64_t n, Keyed<Key<T>> *x) {
  for (int64_t i = 0; i < n; i++) x[i] = {key_of(p[i * step]), uint32_t(i)};
  const Keyed<Key<T>> *sorted = radix_sort(x, x + n, n);
  int64_t best = 0, at = n - 1;
  for (int64_t i = 0; i < n;) {
    int64_t j = i + 1;
    if (!is_nan(p[int64_t(sorted[i].at) * step]))
      while (j < n && sorted[j].key == sorted[i].key) j++;
    else if (best)
      break;  // the rest is nan, and each nan counts as a different element
    if (j - i > best) {
      best = j - i;
      at = sorted[is_nan(p[int64_t(sorted[i].at) * step]) ? n - 1 : j - 1].at;
    }
    i = j;
  }
  return at;
}

// Calls f(line's first element, workspace) for each line; it returns the index of the result in the
// line.
template <class T, class F>
plait_status each_line(const plait_call *c, int dim, int64_t room, F &&f) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *values = result(c, 0), *indices = result(c, 1);
  const Lines from(self, dim);  // the results are dense, one element for each line in order
  bool failed = false;
  parallel_ranges(c, from.count, kSerial / 8 / (from.size + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    Workspace space;
                    if (room && !space.try_take(uint64_t(room)))
                      return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
                    for (int64_t line = begin; line < end; line++) {
                      const T *p = data<T>(self) + from.first(line);
                      const int64_t at = f(p, from.step, from.size, space.as<char>());
                      data<T>(values)[line] = p[at * from.step];
                      data<int64_t>(indices)[line] = at;
                    }
                  });
  return failed ? Workspace::out_of_memory(c, uint64_t(room)) : PLAIT_OK;
}

template <class T>
plait_status rank_lines(const plait_call *c, int dim, Rank statistic, int64_t k) {
  return each_line<T>(c, dim, 0, [=](const T *p, int64_t step, int64_t n, char *) {
    return ranked(p, step, n, statistic, k);
  });
}
template <class T>
plait_status mode_lines(const plait_call *c, int dim) {
  const DLTensor *self = tensor(c, 0);
  const int64_t n = self->ndim ? self->shape[dim] : 1;
  if (n > UINT32_MAX)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "dimension %d must have at most 2**32 - 1 elements; got %lld", dim,
                      (long long)n);
  using K = Keyed<Key<T>>;
  return each_line<T>(c, dim, 2 * n * int64_t(sizeof(K)),
                      [](const T *p, int64_t step, int64_t m, char *room) {
                        return most_frequent(p, step, m, reinterpret_cast<K *>(room));
                      });
}

int dim_of(const plait_call *c, int i) {
  const DLTensor *self = tensor(c, 0);
  return self->ndim ? int(wrapped(integer(c, i, -1), self->ndim)) : 0;
}
plait_status rank(const plait_call *c, int dim_argument, Rank statistic, int64_t k) {
  const int dim = dim_of(c, dim_argument);
  if (numel(tensor(c, 0)) == 0) return PLAIT_OK;
  const Kind kind_of = kind(tensor(c, 0)->dtype);
  if (kind_of == Bool) return rank_lines<uint8_t>(c, dim, statistic, k);
  PLAIT_NUMERIC(kind_of, return rank_lines<T>(c, dim, statistic, k))
  return PLAIT_OK;
}

plait_status kthvalue(plait_call *c) { return rank(c, 2, Rank::kKth, integer(c, 1)); }
plait_status median(plait_call *c) { return rank(c, 1, Rank::kMedian, 0); }
plait_status nanmedian(plait_call *c) { return rank(c, 1, Rank::kNanMedian, 0); }
plait_status mode(plait_call *c) {
  const int dim = dim_of(c, 1);
  if (numel(tensor(c, 0)) == 0) return PLAIT_OK;
  const Kind k = kind(tensor(c, 0)->dtype);
  if (k == Bool) return mode_lines<uint8_t>(c, dim);
  PLAIT_NUMERIC(k, return mode_lines<T>(c, dim))
  return PLAIT_OK;
}
PLAIT_KERNEL("kthvalue", kthvalue);
PLAIT_KERNEL("median.dim", median);
PLAIT_KERNEL("nanmedian.dim", nanmedian);
PLAIT_KERNEL("mode", mode);

}  // namespace
}  // namespace plait::core

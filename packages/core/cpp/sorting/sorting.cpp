// sort and topk along one dimension: always stable, NaN counts as the largest number. Elements
// become unsigned integers of the same order, which are sorted digit by digit (least significant
// first) together with their indices. argsort_rows orders the rows of a matrix.
#include "kernel/dense.h"
#include "sorting/radix_sort.h"

namespace plait::core {
namespace {

constexpr int64_t kSelected = 64;   // results that topk keeps in a short sorted list

// The `keep` smallest keys in order, the first of equal ones first.
template <class T>
void select(const T *p, int64_t step, int64_t n, bool descending, Keyed<Key<T>> *best,
            int64_t keep) {
  int64_t held = 0;
  for (int64_t i = 0; i < n; i++) {
    const Key<T> key = directed(p[i * step], descending);
    if (held == keep && PLAIT_LIKELY(key >= best[held - 1].key)) continue;
    int64_t j = held < keep ? held++ : held - 1;
    for (; j > 0 && key < best[j - 1].key; j--) best[j] = best[j - 1];
    best[j] = {key, uint32_t(i)};
  }
}

template <class T>
plait_status sort_lines(const plait_call *c, int dim, bool descending, int64_t keep) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *values = result(c, 0), *indices = result(c, 1);
  const Lines from(self, dim), to(values, dim);
  const int64_t n = from.size;
  const bool few = keep <= kSelected && keep * 8 <= n;
  const uint64_t room = uint64_t(few ? keep : 2 * n) * sizeof(Keyed<Key<T>>);
  bool failed = false;
  parallel_ranges(c, from.count, kSerial / 8 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (!space.try_take(room)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    auto *x = space.as<Keyed<Key<T>>>();
    for (int64_t line = begin; line < end; line++) {
      const T *p = data<T>(self) + from.first(line);
      const Keyed<Key<T>> *sorted = x;
      if (few) {
        select(p, from.step, n, descending, x, keep);
      } else {
        for (int64_t i = 0; i < n; i++)
          x[i] = {directed(p[i * from.step], descending), uint32_t(i)};
        sorted = radix_sort(x, x + n, n);
      }
      const int64_t at = to.first(line);
      for (int64_t i = 0; i < keep; i++) {
        data<T>(values)[at + i * to.step] = p[int64_t(sorted[i].at) * from.step];
        data<int64_t>(indices)[at + i * to.step] = int64_t(sorted[i].at);
      }
    }
  });
  return failed ? Workspace::out_of_memory(c, room) : PLAIT_OK;
}

plait_status sorted(const plait_call *c, int dim_argument, bool descending, int64_t keep) {
  const DLTensor *self = tensor(c, 0);
  const int dim = self->ndim ? int(wrapped(integer(c, dim_argument, -1), self->ndim)) : 0;
  const int64_t n = self->ndim ? self->shape[dim] : 1;
  if (keep < 0) keep = n;
  if (numel(self) == 0 || keep == 0) return PLAIT_OK;
  if (n > UINT32_MAX)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "dimension %d must have at most 2**32 - 1 elements; got %lld", dim,
                      (long long)n);
  const Kind k = kind(self->dtype);
  if (k == Bool) return sort_lines<uint8_t>(c, dim, descending, keep);
  PLAIT_NUMERIC(k, return sort_lines<T>(c, dim, descending, keep))
  return PLAIT_OK;
}

// sort(self, dim, descending, stable) -> (values, indices)
plait_status sort(plait_call *c) { return sorted(c, 1, integer(c, 2) != 0, -1); }
// topk(self, k, dim, largest, sorted) -> (values, indices)
plait_status topk(plait_call *c) { return sorted(c, 2, integer(c, 3, 1) != 0, integer(c, 1)); }
PLAIT_KERNEL("sort", sort);
PLAIT_KERNEL("topk", topk);

template <class T>
PLAIT_INLINE bool is_before(const T *a, const T *b, int64_t width) {
  for (int64_t j = 0; j < width; j++) {
    const Key<T> x = key_of(a[j]), y = key_of(b[j]);
    if (x != y) return x < y;
  }
  return false;
}

// Merges neighbouring runs of indices until one is left; stable.
template <class T>
void merge_rows(const T *p, int64_t width, int64_t n, int64_t *at, int64_t *room) {
  int64_t *from = at, *to = room;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * run) {
      const int64_t middle = begin + run < n ? begin + run : n,
                    end = begin + 2 * run < n ? begin + 2 * run : n;
      int64_t i = begin, j = middle;
      for (int64_t k = begin; k < end; k++) {
        const bool second =
            j < end && (i >= middle || is_before(p + from[j] * width, p + from[i] * width, width));
        to[k] = second ? from[j++] : from[i++];
      }
    }
    int64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != at) memcpy(at, from, size_t(n) * sizeof(int64_t));
}

// argsort_rows(self): the order of the rows of a matrix
plait_status argsort_rows(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  const int64_t n = self->shape[0], width = self->shape[1];
  int64_t *at = data<int64_t>(result(c));
  for (int64_t i = 0; i < n; i++) at[i] = i;
  if (n < 2 || width == 0) return PLAIT_OK;
  const Kind k = kind(self->dtype);
  const auto run = [&](auto zero) -> plait_status {
    using T = decltype(zero);
    Workspace space;
    Dense<T> rows;
    PLAIT_TRY(space.take(c, uint64_t(n) * sizeof(int64_t)));
    PLAIT_TRY(rows.take(c, self));
    merge_rows<T>(rows, width, n, at, space.as<int64_t>());
    return PLAIT_OK;
  };
  if (k == Bool) return run(uint8_t());
  PLAIT_NUMERIC(k, return run(T()))
  return PLAIT_OK;
}
PLAIT_KERNEL("argsort_rows", argsort_rows);

}  // namespace
}  // namespace plait::core

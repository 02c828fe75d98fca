// sort and topk along one dimension: always stable, NaN counts as the largest number. Elements
// become unsigned integers of the same order, which are sorted digit by digit (least significant
// first) together with their places.
#include "kernels/indices.h"

namespace plait::core {
namespace {

constexpr int64_t kInsertion = 24;  // elements that are sorted by insertion
constexpr int64_t kSelected = 64;   // results that topk keeps in a short sorted list

template <class K>
struct Keyed {
  K key;
  uint32_t at;
};

// ---- keys
// ----------------------------------------------------------------------------------------------------------
// Signed numbers with their sign bit turned over; negative floats with all bits turned over. -0 is
// 0, every NaN is the largest key.
PLAIT_INLINE uint32_t key_of(float x) {
  const float y = x + 0.0f;
  uint32_t u;
  memcpy(&u, &y, 4);
  u = u >> 31 ? ~u : u | 0x80000000u;
  return x != x ? UINT32_MAX : u;
}
PLAIT_INLINE uint64_t key_of(double x) {
  const double y = x + 0.0;
  uint64_t u;
  memcpy(&u, &y, 8);
  u = u >> 63 ? ~u : u | uint64_t(1) << 63;
  return x != x ? UINT64_MAX : u;
}
PLAIT_INLINE uint32_t key_of(uint8_t x) { return x; }
PLAIT_INLINE uint32_t key_of(uint16_t x) { return x; }
PLAIT_INLINE uint32_t key_of(uint32_t x) { return x; }
PLAIT_INLINE uint64_t key_of(uint64_t x) { return x; }
PLAIT_INLINE uint32_t key_of(int8_t x) { return uint32_t(x + 128); }
PLAIT_INLINE uint32_t key_of(int16_t x) { return uint32_t(x + 32768); }
PLAIT_INLINE uint32_t key_of(int32_t x) { return uint32_t(x) ^ 0x80000000u; }
PLAIT_INLINE uint64_t key_of(int64_t x) { return uint64_t(x) ^ uint64_t(1) << 63; }

template <class T>
using Key = decltype(key_of(T()));

template <class T>
PLAIT_INLINE Key<T> directed(T x, bool descending) {
  return descending ? Key<T>(~key_of(x)) : key_of(x);
}

// ---- sorting
// -------------------------------------------------------------------------------------------------------
template <class K>
void insertion_sort(Keyed<K> *x, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const Keyed<K> own = x[i];
    int64_t j = i;
    for (; j > 0 && own.key < x[j - 1].key; j--) x[j] = x[j - 1];
    x[j] = own;
  }
}

// Returns the sorted elements, which are in x or in room.
template <class K>
const Keyed<K> *radix_sort(Keyed<K> *x, Keyed<K> *room, int64_t n) {
  if (n <= kInsertion) {
    insertion_sort(x, n);
    return x;
  }
  uint32_t count[sizeof(K)][256] = {};
  for (int64_t i = 0; i < n; i++)
    for (unsigned d = 0; d < sizeof(K); d++) count[d][x[i].key >> (8 * d) & 255]++;
  for (unsigned d = 0; d < sizeof(K); d++) {
    if (count[d][x[0].key >> (8 * d) & 255] == uint32_t(n)) continue;  // all alike
    uint32_t sum = 0;
    for (uint32_t &entry : count[d]) {
      const uint32_t own = entry;
      entry = sum;
      sum += own;
    }
    for (int64_t i = 0; i < n; i++) room[count[d][x[i].key >> (8 * d) & 255]++] = x[i];
    Keyed<K> *swap = x;
    x = room;
    room = swap;
  }
  return x;
}

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

// ---- along a dimension
// ---------------------------------------------------------------------------------------------
struct Lines {  // the positions of a tensor without one dimension
  int ndim = 0;
  int64_t count = 1, size = 1, step = 0;
  int64_t shape[PLAIT_MAX_DIMS], stride[PLAIT_MAX_DIMS];
  Lines(const DLTensor *t, int dim) {
    for (int d = 0; d < t->ndim; d++) {
      if (d == dim) {
        size = t->shape[d];
        step = t->strides[d];
        continue;
      }
      count *= shape[ndim] = t->shape[d];
      stride[ndim++] = t->strides[d];
    }
  }
  int64_t first(int64_t line) const {
    int64_t at = 0;
    for (int d = ndim - 1; d >= 0; d--) {
      at += line % shape[d] * stride[d];
      line /= shape[d];
    }
    return at;
  }
};

template <class T>
plait_status sort_lines(const plait_call *c, int dim, bool descending, int64_t keep) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *values = result(c, 0), *places = result(c, 1);
  const Lines from(self, dim), to(values, dim);
  const int64_t n = from.size;
  const bool few = keep <= kSelected && keep * 8 <= n;
  const uint64_t room = uint64_t(few ? keep : 2 * n) * sizeof(Keyed<Key<T>>);
  bool failed = false;
  parallel_ranges(c, from.count, kSerial / 8 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (!space.try_take(c, room)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
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
        data<int64_t>(places)[at + i * to.step] = int64_t(sorted[i].at);
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

}  // namespace
}  // namespace plait::core

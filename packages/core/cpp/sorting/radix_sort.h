// Shared by sorting and ranking: elements as unsigned integers of the same order, a stable radix
// sort of those with their indices, and the lines of a tensor along one dimension.
#pragma once
#include <type_traits>

#include "kernel/vec.h"

namespace plait::core {

// up to this number elements are sorted by counting the smaller ones
constexpr int64_t kRanked = 80;

template <class K>
struct Keyed {
  K key;
  uint32_t at;
};

// Keys.

// The sign bit of signed numbers is inverted; of negative floats all bits are. -0 is 0, and every
// NaN is the largest key.
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

// Sorting keys.

// Keys as numbers that vectors compare in one instruction, in the same order.
template <class K>
PLAIT_INLINE std::make_signed_t<K> signed_key(K key) {
  return std::make_signed_t<K>(key ^ K(1) << (sizeof(K) * 8 - 1));
}

// How many of n keys are smaller than each of those in two vectors from `at` on.
template <class S>
PLAIT_INLINE void count_smaller(const S *keys, int64_t n, const S *at, S *smaller) {
  constexpr int64_t w = kLanes<S>;
  const Vec<S> a = load(at), b = load(at + w);
  Vec<S> below_a{}, below_b{};
  for (int64_t j = 0; j < n; j++) {
    const Vec<S> other = splat(keys[j]);
    below_a -= Vec<S>(other < a);
    below_b -= Vec<S>(other < b);
  }
  store(smaller, below_a);
  store(smaller + w, below_b);
}

// The number of smaller elements is the position of an element; equal ones stay in order.
template <class K>
void rank_sort(const Keyed<K> *x, Keyed<K> *to, int64_t n) {
  using S = std::make_signed_t<K>;
  constexpr int64_t w = kLanes<S>, most = kRanked;
  static_assert(most % (2 * w) == 0 && most < 256);
  S keys[most];
  uint8_t taken[most] = {};
  for (int64_t i = 0; i < n; i++) keys[i] = signed_key(x[i].key);
  for (int64_t i = n; i < most; i++) keys[i] = 0;
  for (int64_t i = 0; i < n; i += 2 * w) {
    S below[2 * w];
    count_smaller(keys, n, keys + i, below);
    for (int64_t k = 0; k < 2 * w && i + k < n; k++) to[below[k] + taken[below[k]]++] = x[i + k];
  }
}

constexpr int64_t kInserted = 12;  // up to so many elements are sorted by insertion
template <class K>
PLAIT_INLINE void insertion_sort(Keyed<K> *x, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const Keyed<K> one = x[i];
    int64_t j = i;
    for (; j > 0 && one.key < x[j - 1].key; j--) x[j] = x[j - 1];
    x[j] = one;
  }
}

// Returns the sorted elements, which are in x or in room.
template <class K>
const Keyed<K> *radix_sort(Keyed<K> *x, Keyed<K> *room, int64_t n) {
  if (n <= kInserted) return insertion_sort(x, n), x;
  if (n <= kRanked) {
    rank_sort(x, room, n);
    return room;
  }
  uint32_t count[sizeof(K)][256] = {};
  for (int64_t i = 0; i < n; i++)
    for (unsigned d = 0; d < sizeof(K); d++) count[d][x[i].key >> (8 * d) & 255]++;
  for (unsigned d = 0; d < sizeof(K); d++) {
    if (count[d][x[0].key >> (8 * d) & 255] == uint32_t(n)) continue;  // all digits are equal
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

// Lines of a tensor along a dimension.

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

}  // namespace plait::core

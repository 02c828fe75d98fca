// Elements made of words of the random stream: element i (in C order) depends on the stream's
// position and on i alone.
#pragma once
#include "kernel/indices.h"
#include "random/philox.h"

namespace plait::core {

constexpr int kWords = 4 * kPhiloxBlocks;

// Elements made from kWords words: from one word each (float32), or from two.
template <class T>
constexpr int kMade = kWords / int(sizeof(T) / 4);

// [0, 1)
PLAIT_INLINE float unit(const uint32_t *w, int i, float) { return float(w[i] >> 8) * 0x1p-24f; }
PLAIT_INLINE double unit(const uint32_t *w, int i, double) {
  const uint64_t bits = uint64_t(w[2 * i]) << 32 | w[2 * i + 1];
  return double(bits >> 11) * 0x1p-53;
}

// The number that a random word is below with probability p.
inline uint64_t threshold(double p) {
  return p >= 1 ? uint64_t(1) << 32 : p > 0 ? uint64_t(p * 0x1p32) : 0;
}

// (0, 1)
PLAIT_INLINE float open_unit(const uint32_t *w, int i, float) {
  return (float(w[i] >> 9) + 0.5f) * 0x1p-23f;
}
PLAIT_INLINE double open_unit(const uint32_t *w, int i, double) {
  const uint64_t bits = uint64_t(w[2 * i]) << 32 | w[2 * i + 1];
  return (double(bits >> 12) + 0.5) * 0x1p-52;
}

// [0, range): the high half of 64 bits times range is uniform up to 2^-64 range
PLAIT_INLINE uint64_t below(const uint32_t *w, int i, uint64_t range) {
  const uint64_t bits = uint64_t(w[2 * i]) << 32 | w[2 * i + 1];
  return uint64_t((unsigned __int128)(bits)*range >> 64);
}

// Fills `out` group by group; make(words, T[kMade]) gives a group.
template <class T, int Group, class Make>
void fill(const plait_call *c, const DLTensor *out, const Make &make) {
  const int64_t n = numel(out), groups = ceil_div(n, Group);
  const Stream s(c, groups * kPhiloxBlocks);
  const bool dense = is_contiguous(out);
  const auto run = [&](int64_t begin, int64_t end) {
    uint32_t words[kWords];
    T result[Group];
    for (int64_t g = begin; g < end; g++) {
      s.words(g * kPhiloxBlocks, words);
      const int64_t first = g * Group, left = n - first < Group ? n - first : Group;
      if (dense && left == Group) {
        make(words, data<T>(out) + first);
        continue;
      }
      make(words, result);
      for (int64_t i = 0; i < left; i++)
        *reinterpret_cast<T *>(element(out, first + i)) = result[i];
    }
  };
  parallel_ranges(c, groups, kChunk / Group, run);
}

// Fills a tensor of any real kind with whole numbers; make(words, j) gives the j-th of a group.
template <class Make>
void fill_whole(const plait_call *c, const DLTensor *out, const Make &make) {
  const Kind k = kind(out->dtype);
  const int64_t n = numel(out);
  constexpr int per = kWords / 2;
  const bool dense = is_contiguous(out);
  const int item = size_of(k);
  const Stream s(c, ceil_div(n, per) * kPhiloxBlocks);
  parallel_ranges(c, ceil_div(n, per), kChunk / per, [&](int64_t begin, int64_t end) {
    uint32_t w[kWords];
    for (int64_t g = begin; g < end; g++) {
      s.words(g * kPhiloxBlocks, w);
      for (int64_t i = g * per; i < n && i < (g + 1) * per; i++) {
        char *to = dense ? data<char>(out) + i * item : element(out, i);
        const int64_t result = make(w, int(i - g * per));
        if (k == I64)
          *reinterpret_cast<int64_t *>(to) = result;
        else
          store_number(k, plait_value{PLAIT_INT, 0, {result}}, to);
      }
    }
  });
}

// The parts of complex numbers as an array of twice as many real ones.
struct Parts {
  DLTensor t;
  int64_t shape[PLAIT_MAX_DIMS + 1], strides[PLAIT_MAX_DIMS + 1];
  explicit Parts(const DLTensor *z) : t(*z) {
    for (int d = 0; d < z->ndim; d++) shape[d] = z->shape[d], strides[d] = 2 * z->strides[d];
    shape[z->ndim] = 2, strides[z->ndim] = 1;
    t.ndim = z->ndim + 1;
    t.dtype = DLDataType{kDLFloat, uint8_t(z->dtype.bits / 2), 1};
    t.shape = shape;
    t.strides = strides;
  }
  Parts(const Parts &) = delete;
  Parts &operator=(const Parts &) = delete;
};

}  // namespace plait::core

// Planes inside of zeros, for depthwise convolutions: then borders, dilation and any padding are
// one case.
#pragma once
#include "convolution/convolution.h"
#include "kernel/integers.h"

namespace plait::core {

// Of sums that run along rows: elements of a plane that are taken at once, and results that an
// activation finds in the first-level cache.
constexpr int64_t kRowsBand = 1 << 15, kMade = 1 << 11;
constexpr int64_t kMostTaps = 9;  // whose factors, or sums, fit into the registers

inline int64_t floor_div(int64_t a, int64_t b) { return a < 0 ? -ceil_div(-a, b) : a / b; }
constexpr int64_t rounded(int64_t n) { return (n + 15) / 16 * 16; }  // whole cache lines

// Rows of a plane inside of zeros. With strides, its rows and columns can be dealt out to down x
// across parts, so that the elements that neighbouring results see at one place of the window are
// neighbours. Element (0, 0) of the plane is at (top, left), which may lie outside.
struct DepthwiseFrame {
  int64_t h, w;  // of the plane
  int64_t down, across;  // as many parts
  int64_t top, left;
  int64_t rows, pitch;  // of each part
  int64_t part() const { return rows * pitch; }
  int64_t size() const { return down * across * part() + 16; }  // and what vectors read beyond
  int64_t at(int64_t i, int64_t j) const {
    return (i % down * across + j % across) * part() + i / down * pitch + j / across;
  }
};

// The planes of the gradient that windows cover elements [0, rows) x [0, v.w) with, after `begin`
// rows.
inline DepthwiseFrame covering(const Conv &v, int64_t rows, int64_t begin) {
  const int64_t up = floor_div(v.ph + begin - (v.kh - 1) * v.dh, v.sh);
  const int64_t left = floor_div(v.pw - (v.kw - 1) * v.dw, v.sw);
  const int64_t below = floor_div(v.ph + begin + rows - 1, v.sh) + 1;
  const int64_t right = floor_div(v.pw + v.w - 1, v.sw) + 1;
  return {v.oh, v.ow, 1, 1, -up, -left, below - up, right - left};
}

// Rows of results of a plane are taken in bands of equal heights, which are multiples of `step`:
// about `size` elements.
struct DepthwiseBands {
  int64_t rows, count;
  DepthwiseBands(int64_t height, int64_t step, int64_t row, int64_t size) {
    rows = most(size / (row + 1) / step, 1) * step;
    rows = ceil_div(ceil_div(height, ceil_div(height, rows)), step) * step;
    count = ceil_div(height, rows);
  }
};

// What the rows and columns of each residue of the stride see of `filters` planes, `apart` elements
// from one to the next: an offset of the planes and an element of the filters each.
struct DepthwiseResidues {
  int64_t *counts = nullptr, *offsets = nullptr, *elements = nullptr;
  int64_t downs, acrosses;  // residues of rows and of columns
  explicit DepthwiseResidues(const Conv &v) : downs(least(v.sh, v.h)), acrosses(least(v.sw, v.w)) {}
  plait_status find(const plait_call *c, const Conv &v, const DepthwiseFrame &f, int64_t apart) {
    const int64_t own = v.goc() * v.kh * v.kw, residues = downs * acrosses;
    PLAIT_TRY(space.take(c, uint64_t(residues + 2 * own) * sizeof(int64_t)));
    counts = space.as<int64_t>();
    offsets = counts + residues;
    elements = offsets + own;
    int64_t all = 0;
    for (int64_t r = 0; r < residues; r++) {
      counts[r] = 0;
      for (int64_t e = 0; e < own; e++) {
        const int64_t m = e / (v.kh * v.kw), i = e / v.kw % v.kh, j = e % v.kw;
        const int64_t y = r / acrosses + v.ph - i * v.dh, x = r % acrosses + v.pw - j * v.dw;
        const int64_t row = floor_div(y, v.sh), column = floor_div(x, v.sw);
        if (row * v.sh != y || column * v.sw != x) continue;
        offsets[all] = m * apart + (row + f.top) * f.pitch + column + f.left;
        elements[all++] = e;
        counts[r]++;
      }
    }
    return PLAIT_OK;
  }

 private:
  Workspace space;
};

// Scratch memory of T for `size` elements, zeros, for each chunk of about `grain` of n units.
template <class T, class F>
plait_status with_zeros(const plait_call *c, int64_t n, int64_t grain, int64_t size, F &&f) {
  const uint64_t nbytes = uint64_t(size) * sizeof(T);
  bool failed = false;
  parallel_ranges(c, n, grain, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (!space.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    memset(space.as<T>(), 0, size_t(nbytes));
    f(begin, end, space.as<T>());
    finish_stores();
  });
  return failed ? Workspace::out_of_memory(c, nbytes) : PLAIT_OK;
}

}  // namespace plait::core

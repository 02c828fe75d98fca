#include "convolution/convolution_lanes.h"

#include "kernel/transpose.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

using V = Vec<float>;
constexpr int64_t kImages = kLaneImages;

// Images in lanes.

// `channels` planes of h x w elements with eight images side by side, inside zeros of ph rows above
// and below and pw columns left and right: plane after plane, or the channels of a position side by
// side where `beside`.
struct Lanes {
  int64_t channels, h, w, ph, pw;
  bool beside;
  int64_t height() const { return h + 2 * ph; }
  int64_t width() const { return w + 2 * pw; }
  int64_t column() const { return beside ? channels * kImages : kImages; }
  int64_t pitch() const { return width() * column(); }
  int64_t plane() const { return beside ? kImages : height() * pitch(); }
  int64_t size() const { return channels * height() * width() * kImages; }
};

const char *bytes(const float *p) { return reinterpret_cast<const char *>(p); }
char *bytes(float *p) { return reinterpret_cast<char *>(p); }

void to_lanes(const Lanes &l, const float *images, int64_t count, float *out) {
  const int64_t image = l.channels * l.h * l.w, rows = l.pw ? l.h : 1, run = l.h * l.w / rows;
  if (count < kImages || l.ph || l.pw) memset(out, 0, size_t(l.size()) * sizeof(float));
  for (int64_t c = 0; c < l.channels; c++)
    for (int64_t i = 0; i < rows; i++)
      transpose_block(bytes(out + c * l.plane() + (i + l.ph) * l.pitch() + l.pw * l.column()),
                      l.column(), bytes(images + (c * l.h + i) * l.w), image, count, run,
                      sizeof(float));
}

void from_lanes(const float *lanes, int64_t image, int64_t count, float *images) {
  transpose_block(bytes(images), image, bytes(lanes), kImages, image, count, 4);
}

// Sums over a window.

// An image in lanes whose `in` channels lie side by side; weights packed by blocks of OB output
// channels: [block][kh][kw][in][OB]
struct Window {
  int64_t in, kh, kw;
  int64_t row_step, column_step;  // floats between neighbouring window rows, columns
};

// A part of a window: rows [i0, i1) and columns [j0, j1).
struct Part {
  int64_t i0, i1, j0, j1;
};

// Where the results of a block of channels go: to planes `plane` floats apart. They are added to
// what is there where `add`, and to `start` where there is one.
struct Sums {
  float *to;
  int64_t plane, channels;
  const float *start;
  bool add;
};

// S neighbouring results, `apart` floats of the image from one to the next, of OB channels. `at` is
// where the window's first element would be. A result is one chain of fused operations over rows,
// columns and channels.
template <int OB, int S>
PLAIT_INLINE void window_sum(const Window &q, const float *at, int64_t apart, const float *weights,
                             const Part &part, const Sums &sums, int64_t first) {
  V acc[OB][S] = {};
  const int64_t columns = part.j1 - part.j0;
  const bool dense = q.column_step == q.in * kImages;
  const int64_t runs = dense ? 1 : columns, run = dense ? columns * q.in : q.in;
  for (int64_t i = part.i0; i < part.i1; i++) {
    const float *row = at + i * q.row_step + part.j0 * q.column_step;
    const float *w = weights + (i * q.kw + part.j0) * q.in * OB;
    for (int64_t j = 0; j < runs; j++, row += q.column_step) {
      const float *x = row;
      for (int64_t l = 0; l < run; l++, x += kImages, w += OB) {
        V v[S];
#pragma GCC unroll 8
        for (int s = 0; s < S; s++) v[s] = load(x + s * apart);
#pragma GCC unroll 8
        for (int o = 0; o < OB; o++) {
          const V factor = splat(w[o]);
#pragma GCC unroll 8
          for (int s = 0; s < S; s++) acc[o][s] = fused(factor, v[s], acc[o][s]);
        }
      }
    }
  }
  PLAIT_UNROLL for (int o = 0; o < OB; o++) {
    if (o >= sums.channels) return;
    float *to = sums.to + o * sums.plane + first * kImages;
    const V start = splat(sums.start ? sums.start[o] : 0.0f);
    PLAIT_UNROLL for (int s = 0; s < S; s++) {
      V sum = acc[o][s];
      if (sums.add) sum = load(to + s * kImages) + sum;
      if (sums.start) sum = start + sum;
      store(to + s * kImages, sum);
    }
  }
}

// One row of `n` results whose windows share their rows and columns.
template <int OB, int S>
void window_row(const Window &q, const float *at, int64_t apart, int64_t n, const float *weights,
                const Part &part, const Sums &sums) {
  int64_t k = 0;
  for (; k + S <= n; k += S) window_sum<OB, S>(q, at + k * apart, apart, weights, part, sums, k);
  if constexpr (S > 2) {
    if (n - k == 2) {
      window_sum<OB, 2>(q, at + k * apart, apart, weights, part, sums, k);
      k += 2;
    }
  }
  if (k < n) window_sum<OB, 1>(q, at + k * apart, apart, weights, part, sums, k);
}

using RowFunction = void (*)(const Window &, const float *, int64_t, int64_t, const float *,
                             const Part &, const Sums &);

// The same for a part of any number of window rows, which are summed up in the blocks of
// multiply_rounds.
void window_rows(RowFunction row, const Window &q, const float *at, int64_t apart, int64_t n,
                 const float *weights, const Part &part, Sums sums) {
  const int64_t many = rounds_at_once<float>(q.kh, q.kw * q.in);
  Part block = part;
  for (int64_t i = part.i0 / many * many; i < part.i1;
       i += many, sums.add = true, sums.start = nullptr) {
    block.i0 = i < part.i0 ? part.i0 : i;
    block.i1 = i + many < part.i1 ? i + many : part.i1;
    row(q, at, apart, n, weights, block, sums);
  }
}

int64_t block_of(int64_t channels) {  // the block size that leaves fewer empty channels; both need
                                      // 12 sums in registers
  return ceil_div(channels, 6) * 6 < ceil_div(channels, 4) * 4 ? 6 : 4;
}

RowFunction row_function(int64_t block) { return block == 6 ? window_row<6, 2> : window_row<4, 3>; }

template <class F>  // weight(out, in, i, j)
void pack_weights(int64_t out, int64_t in, int64_t kh, int64_t kw, int64_t block, float *to,
                  F &&weight) {
  for (int64_t b = 0; b < out; b += block)
    for (int64_t i = 0; i < kh; i++)
      for (int64_t j = 0; j < kw; j++)
        for (int64_t c = 0; c < in; c++)
          for (int64_t o = b; o < b + block; o++) *to++ = o < out ? weight(o, c, i, j) : 0.0f;
}

// The derivative by the weights.

// acc[o][k] += sum over rows and columns of gy[o] * x[.. + k], lanes apart; KB neighbouring window
// columns.
template <int OB, int KB>
PLAIT_INLINE void weight_sum(const Conv &v, const float *gy, int64_t gy_plane, const float *x,
                             int64_t pitch, float *out, int64_t out_step) {
  V acc[OB][KB];
  for (int o = 0; o < OB; o++)
    for (int k = 0; k < KB; k++) acc[o][k] = load(out + o * out_step + k * kImages);
  const int64_t step = v.sw * kImages, apart = v.dw * kImages;
  for (int64_t i = 0; i < v.oh; i++) {
    const float *g = gy + i * v.ow * kImages, *row = x + i * v.sh * pitch;
    for (int64_t j = 0; j < v.ow; j++, g += kImages, row += step) {
      V a[OB];
#pragma GCC unroll 8
      for (int o = 0; o < OB; o++) a[o] = load(g + o * gy_plane);
#pragma GCC unroll 8
      for (int k = 0; k < KB; k++) {
        const V b = load(row + k * apart);
#pragma GCC unroll 8
        for (int o = 0; o < OB; o++) acc[o][k] = fused(a[o], b, acc[o][k]);
      }
    }
  }
  for (int o = 0; o < OB; o++)
    for (int k = 0; k < KB; k++) store(out + o * out_step + k * kImages, acc[o][k]);
}

template <int KB>
void weight_columns(const Conv &v, int64_t channels, const float *gy, int64_t gy_plane,
                    const float *x, int64_t pitch, float *out, int64_t out_step) {
  constexpr int OB = KB <= 3 ? 4 : 2;
  int64_t o = 0;
  for (; o + OB <= channels; o += OB)
    weight_sum<OB, KB>(v, gy + o * gy_plane, gy_plane, x, pitch, out + o * out_step, out_step);
  for (; o < channels; o++)
    weight_sum<1, KB>(v, gy + o * gy_plane, gy_plane, x, pitch, out + o * out_step, out_step);
}

// out[oc][patch][8 images]
void weight_lanes(const Conv &v, const float *gy, const float *x, const Lanes &xl, float *out) {
  const int64_t gy_plane = v.oh * v.ow * kImages, pitch = xl.pitch(), step = v.patch() * kImages;
  for (int64_t c = 0; c < v.c; c++)
    for (int64_t i = 0; i < v.kh; i++)
      for (int64_t j = 0; j < v.kw; j += 5) {
        const float *from = x + c * xl.plane() + i * v.dh * pitch + j * v.dw * kImages;
        float *to = out + ((c * v.kh + i) * v.kw + j) * kImages;
        switch (v.kw - j) {
          case 1: weight_columns<1>(v, v.oc, gy, gy_plane, from, pitch, to, step); break;
          case 2: weight_columns<2>(v, v.oc, gy, gy_plane, from, pitch, to, step); break;
          case 3: weight_columns<3>(v, v.oc, gy, gy_plane, from, pitch, to, step); break;
          case 4: weight_columns<4>(v, v.oc, gy, gy_plane, from, pitch, to, step); break;
          default: weight_columns<5>(v, v.oc, gy, gy_plane, from, pitch, to, step);
        }
      }
}

// Runs f(first image, how many, scratch) for each eight images.
template <class F>
plait_status each_group(const plait_call *c, const Conv &v, int64_t scratch, F &&f) {
  const uint64_t nbytes = uint64_t(scratch) * sizeof(float);
  bool failed = false;
  parallel(c, ceil_div(v.n, kImages), [&](int64_t g) {
    Workspace space;  // a thread gets the memory again that it freed, which is still in its cache
    if (!space.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    const int64_t first = g * kImages;
    f(first, v.n - first < kImages ? v.n - first : kImages, space.as<float>());
  });
  return failed ? Workspace::out_of_memory(c, nbytes) : PLAIT_OK;
}

}  // namespace

bool lanes_fit(const Conv &v) {
  if (v.groups != 1 || v.is_pointwise()) return false;
  const int64_t in = v.c * (v.h + 2 * v.ph) * (v.w + 2 * v.pw), out = v.oc * v.oh * v.ow;
  return (in + out) * kImages <= (1 << 18) && v.oc * v.patch() <= (1 << 14);
}
bool lanes_filled(const Conv &v) {
  const int64_t wasted = ceil_div(v.n, kImages) * kImages - v.n;
  return v.n >= kImages && wasted * 4 <= v.n;
}
bool lanes_like_pixels(const Conv &v, int64_t channels) {
  return (v.dw == 1 || v.kw == 1) && v.kw * channels <= kDepth<float>;
}

plait_status lanes_forward(const plait_call *c, const Conv &v, const float *x, const float *w,
                           const DLTensor *bias, float *y) {
  const Lanes l{v.c, v.h, v.w, v.ph, v.pw, true};
  const int64_t block = block_of(v.oc), blocks = ceil_div(v.oc, block), patch = v.patch();
  const int64_t area = v.oh * v.ow, image = v.c * v.h * v.w;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(blocks * block * (patch + 1)) * sizeof(float)));
  float *weights = space.as<float>(), *shift = weights + blocks * block * patch;
  pack_weights(v.oc, v.c, v.kh, v.kw, block, weights,
               [&](int64_t o, int64_t k, int64_t i, int64_t j) {
                 return w[(o * v.c + k) * v.kh * v.kw + i * v.kw + j];
               });
  for (int64_t o = 0; o < blocks * block; o++)
    shift[o] = bias && o < v.oc ? data<float>(bias)[o * bias->strides[0]] : 0.0f;
  const RowFunction row = row_function(block);
  return each_group(
      c, v, l.size() + v.oc * area * kImages, [&](int64_t first, int64_t count, float *lanes) {
        float *out = lanes + l.size();
        to_lanes(l, x + first * image, count, lanes);
        const int64_t pitch = l.pitch(), column = l.column();
        const Window q{v.c, v.kh, v.kw, v.dh * pitch, v.dw * column};
        for (int64_t b = 0; b < blocks; b++)
          for (int64_t i = 0; i < v.oh; i++)
            window_rows(row, q, lanes + i * v.sh * pitch, v.sw * column, v.ow,
                        weights + b * block * patch, {0, v.kh, 0, v.kw},
                        {out + (b * block * area + i * v.ow) * kImages, area * kImages,
                         v.oc - b * block, bias ? shift + b * block : nullptr, false});
        from_lanes(out, v.oc * area, count, y + first * v.oc * area);
      });
}

// A convolution of gy with the reversed weights; windows are cut at gy's border instead of reading
// zeros there, and zero is added to a sum, as zeros read would make +0 of -0.
plait_status lanes_backward_input(const plait_call *c, const Conv &v, const float *gy,
                                  const float *w, float *gx) {
  const Lanes l{v.oc, v.oh, v.ow, 0, 0, true};
  const int64_t block = block_of(v.c), blocks = ceil_div(v.c, block), size = v.oc * v.kh * v.kw;
  const int64_t area = v.h * v.w, image = v.oc * v.oh * v.ow;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(blocks * block * size) * sizeof(float)));
  float *weights = space.as<float>();
  pack_weights(v.c, v.oc, v.kh, v.kw, block, weights,
               [&](int64_t o, int64_t k, int64_t i, int64_t j) {
                 return w[(k * v.c + o) * v.kh * v.kw + (v.kh - 1 - i) * v.kw + (v.kw - 1 - j)];
               });
  const RowFunction row = row_function(block);
  const float zeros[6] = {};  // of a block
  const int64_t up = v.kh - 1 - v.ph, left = v.kw - 1 - v.pw;  // padding of the turned convolution
  return each_group(c, v, l.size() + v.c * area * kImages,
                    [&](int64_t first, int64_t count, float *lanes) {
                      float *out = lanes + l.size();
                      to_lanes(l, gy + first * image, count, lanes);
                      const int64_t pitch = l.pitch(), column = l.column();
                      const Window q{v.oc, v.kh, v.kw, pitch, column};
                      for (int64_t b = 0; b < blocks; b++)
                        for (int64_t i = 0; i < v.h; i++) {
                          const Span rows = inside(v.kh, v.oh, 1, i - up);
                          for (int64_t j = 0; j < v.w;) {
                            const Span columns = inside(v.kw, v.ow, 1, j - left);
                            int64_t n = 1;  // neighbouring results with the same window
                            while (j + n < v.w) {
                              const Span next = inside(v.kw, v.ow, 1, j + n - left);
                              if (next.begin != columns.begin || next.end != columns.end) break;
                              n++;
                            }
                            window_rows(row, q, lanes + (i - up) * pitch + (j - left) * column,
                                        column, n, weights + b * block * size,
                                        {rows.begin, rows.end, columns.begin, columns.end},
                                        {out + (b * block * area + i * v.w + j) * kImages,
                                         area * kImages, v.c - b * block, zeros, false});
                            j += n;
                          }
                        }
                      from_lanes(out, v.c * area, count, gx + first * v.c * area);
                    });
}

plait_status lanes_backward_weight(const plait_call *c, const Conv &v, const float *gy,
                                   const float *x, float *gw) {
  constexpr int64_t kParts = 16;
  const Lanes xl{v.c, v.h, v.w, v.ph, v.pw, false}, gl{v.oc, v.oh, v.ow, 0, 0, false};
  const int64_t size = v.oc * v.patch(), groups = ceil_div(v.n, kImages),
                each = ceil_div(groups, kParts);
  const int64_t parts = ceil_div(groups, each);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(parts * size * kImages) * sizeof(float)));
  const uint64_t nbytes = uint64_t(xl.size() + gl.size()) * sizeof(float);
  bool failed = false;
  parallel(c, parts, [&](int64_t p) {
    Workspace lanes;
    if (!lanes.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    float *sums = space.as<float>() + p * size * kImages;
    float *xs = lanes.as<float>(), *gs = xs + xl.size();
    memset(sums, 0, size_t(size * kImages) * sizeof(float));
    for (int64_t g = p * each; g < (p + 1) * each && g < groups; g++) {
      const int64_t first = g * kImages, count = v.n - first < kImages ? v.n - first : kImages;
      to_lanes(xl, x + first * v.c * v.h * v.w, count, xs);
      to_lanes(gl, gy + first * v.oc * v.oh * v.ow, count, gs);
      weight_lanes(v, gs, xs, xl, sums);
    }
  });
  if (failed) return Workspace::out_of_memory(c, nbytes);
  for (int64_t i = 0; i < size; i++) {
    V sum = load(space.as<float>() + i * kImages);
    for (int64_t p = 1; p < parts; p++) sum += load(space.as<float>() + (p * size + i) * kImages);
    gw[i] = sum_of<float>(sum);
  }
  return PLAIT_OK;
}

}  // namespace plait::core

// Linear layers with int8 weights: in float32, or in integers with rows of activations that are
// quantised in the call.
#include <plait/half.h>
#include "linalg/integer_tile.h"

#include "linalg/small_weights.h"

namespace plait::core {
namespace {

constexpr int64_t kHigh = 192, kBeside = 4;  // the most rows and panels of a unit of work
constexpr int64_t kDeep = 512;  // groups of panels that stay in a cache

// The step between a row's quantised numbers, or nan or an infinity. The order of integers is that
// of the sizes of floats, and nan comes last.
float step_of(const float *x, int64_t k) {
  uint32_t most = 0;
  for (int64_t l = 0; l < k; l++) {
    const uint32_t size = plait_float_bits(x[l]) & 0x7fffffff;
    most = size > most ? size : most;
  }
  return plait_float_of_bits(most) / 127.0f;
}

// The quantised numbers of a row, plus `offset`: the divisions and roundings of IEEE arithmetic, so
// that every processor gets the same ones.
template <class T>
void quantize(const float *x, int64_t k, float step, int offset, T *to) {
  const bool used = step > 0 && step <= 3.4028235e38f;
  for (int64_t l = 0; l < k; l++) {
    float q = used ? x[l] / step : 0.0f;
    q = q > 127 ? 127 : q < -127 ? -127 : q;
    q += 12582912.0f;  // 1.5 * 2^23: its lowest bits are the number, rounded to even
    to[l] = T(int32_t(plait_float_bits(q)) - 0x4b400000 + offset);
  }
}

// float32 results of sums: no operation here is an addition, which a compiler could join with.
PLAIT_NOINLINE void scale_sums(const int32_t *sums, int64_t n, float step, const float *scale,
                               float *to) {
  for (int64_t j = 0; j < n; j++) to[j] = float(sums[j]) * (step * scale[j]);
}

// Rows of quantised numbers, each of which is `row` bytes.
struct Quantized {
  const char *data;
  int64_t row;
  const float *steps;
};

void finish(const SmallProduct &p, int64_t row, int64_t j, int64_t n, const int32_t *sums,
            const Quantized &q) {
  constexpr int64_t kSome = 128;
  float values[kSome];
  SmallProduct rest = p;
  rest.scale = nullptr;
  for (int64_t from = 0; from < n; from += kSome) {
    const int64_t some = n - from < kSome ? n - from : kSome;
    scale_sums(sums + from, some, q.steps[row], p.scale + j + from, values);
    finish_row(rest, row, j + from, some, values);
  }
}

template <int R, int M>
void some_rows(const SmallProduct &p, int64_t j, int64_t i, const Quantized &q) {
  const int16_t *a = reinterpret_cast<const int16_t *>(q.data + i * q.row);
  int32_t sums[R * M];
  integer_dots<R, M>(static_cast<const int8_t *>(p.w) + j * p.w_row, p.w_row, a, q.row / 2, p.k,
                     sums);
  for (int r = 0; r < M; r++) finish(p, i + r, j, R, sums + r * R, q);
}

template <int R>
void all_rows(const SmallProduct &p, int64_t j, const Quantized &q) {
  for (int64_t i = 0; i < p.m;) {
    const int64_t left = p.m - i, some = left == 4 ? 2 : left < 3 ? left : 3;
    (some == 3 ? some_rows<R, 3> : some == 2 ? some_rows<R, 2> : some_rows<R, 1>)(p, j, i, q);
    i += some;
  }
}

void multiply_few(const plait_call *c, const SmallProduct &p, const Quantized &q) {
  const int64_t grain = (kWeightsInPlace / (p.k + 1) + 4) / 4 * 4;
  parallel_ranges(c, p.n, grain, [&](int64_t begin, int64_t end) {
    int64_t j = begin;
    for (; j + 4 <= end; j += 4) all_rows<4>(p, j, q);
    for (; j < end; j++) all_rows<1>(p, j, q);
  });
}

// Memory of a unit of work: panels, which stay in the second-level cache, and sums.
struct UnitMemory {
  alignas(64) char panels[kBeside * (1 + kDeep) * 64];
  alignas(64) int32_t sums[kHigh * kBeside * kIntegerPanel];
};

// The results of m rows and some panels from column j on.
void multiply_unit(const IntegerTile &t, const SmallProduct &p, int64_t i, int64_t m, int64_t j,
                   const Quantized &q, UnitMemory *memory) {
  constexpr int64_t w = kIntegerPanel;
  const int64_t wide = p.n - j < kBeside * w ? p.n - j : kBeside * w, panels = ceil_div(wide, w);
  const int8_t *weights = static_cast<const int8_t *>(p.w) + j * p.w_row;
  int64_t l = 0;
  do {
    const int64_t depth = p.k - l < kDeep * t.group ? p.k - l : kDeep * t.group;
    const int64_t panel = integer_panel_bytes(t, depth);
    for (int64_t s = 0; s < panels; s++)
      pack_integer_panel(t, weights + s * w * p.w_row + l, p.w_row,
                         wide - s * w < w ? wide - s * w : w, depth, memory->panels + s * panel);
    t.multiply(m, panels, ceil_div(depth, t.group), q.data + i * q.row + l / t.group * 4, q.row,
               memory->panels, panel, memory->sums, panels * w, l > 0);
    l += depth;
  } while (l < p.k);
  for (int64_t r = 0; r < m; r++) finish(p, i + r, j, wide, memory->sums + r * panels * w, q);
}

plait_status multiply_many(const plait_call *c, const SmallProduct &p, const Quantized &q) {
  const IntegerTile &t = integer_tile();
  const int64_t down = ceil_div(p.m, kHigh), high = ceil_div(p.m, down);
  bool failed = false;
  parallel(c, down * ceil_div(p.n, kBeside * kIntegerPanel), [&](int64_t unit) {
    const int64_t i = unit % down * high, j = unit / down * kBeside * kIntegerPanel;
    Workspace space;
    if (!space.try_take(sizeof(UnitMemory)))
      return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    if (i < p.m)
      multiply_unit(t, p, i, p.m - i < high ? p.m - i : high, j, q, space.as<UnitMemory>());
  });
  return failed ? Workspace::out_of_memory(c, sizeof(UnitMemory)) : PLAIT_OK;
}

plait_status multiply_quantized(const plait_call *c, const SmallProduct &p) {
  if (p.m == 0 || p.n == 0) return PLAIT_OK;
  const bool few = p.m <= kRowsInPlace, offset = !few && integer_tile().offset;
  const int64_t size = offset ? 1 : 2;
  Quantized q{nullptr, ceil_div(p.k * size, 64) * 64 + 64, nullptr};
  Workspace rows, steps;
  PLAIT_TRY(rows.take(c, uint64_t(p.m * q.row)));
  PLAIT_TRY(steps.take(c, uint64_t(p.m) * sizeof(float)));
  parallel_ranges(c, p.m, kSerial / (p.k + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const float *x = p.a + i * p.a_row, step = step_of(x, p.k);
      char *to = rows.as<char>() + i * q.row;
      memset(to + p.k * size, 0, size_t(q.row - p.k * size));
      if (offset)
        quantize(x, p.k, step, 128, reinterpret_cast<uint8_t *>(to));
      else
        quantize(x, p.k, step, 0, reinterpret_cast<int16_t *>(to));
      steps.as<float>()[i] = step;
    }
  });
  q.data = rows.as<char>();
  q.steps = steps.as<float>();
  if (!few) return multiply_many(c, p, q);
  multiply_few(c, p, q);
  return PLAIT_OK;
}

plait_status linear_int8(plait_call *c) {
  const DLTensor *x = tensor(c, 0), *w = tensor(c, 1), *bias = tensor(c, 3);
  DLTensor *out = result(c);
  FloatRows rows, scale, added;
  DenseRows weights;
  PLAIT_TRY(rows.take(c, x));
  PLAIT_TRY(weights.take(c, w));
  PLAIT_TRY(scale.take(c, tensor(c, 2)));
  if (bias) PLAIT_TRY(added.take(c, bias));
  const SmallProduct p{rows.count,   w->shape[0], w->shape[1],     rows.data, rows.row,
                       weights.data, weights.row, weights.column,  I8,        scale.data,
                       added.data,   out->data,   kind(out->dtype)};
  return integer(c, 4) ? multiply_quantized(c, p) : multiply_small(c, p);
}

PLAIT_KERNEL("linear_int8", linear_int8);

}  // namespace
}  // namespace plait::core

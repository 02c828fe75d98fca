#include "pointwise/pointwise.h"

#include <atomic>

#include "kernel/half.h"
#include "pointwise/operands.h"

namespace plait::core {
namespace {

PLAIT_INLINE void read_params(const plait_call *c, const PointwiseOp &op, Params *q) {
  for (int j = 0; j < op.n_params; j++) {
    const Number x = number_of(c->in[op.n_operands + j]);
    q->f[j] = x.real, q->imaginary[j] = x.imaginary, q->i[j] = x.integer;
  }
}

// The float32 loop over tiles of float16 or bfloat16.
struct HalfTiles {
  Loop loop;
  const void *context;
  int n_operands;
  Kind kind;
  bool rounds;                  // the result is a half too
  bool one;                     // numbers are one element each, for a loop that takes numbers
  bool wide[kMaxOperands - 1];  // the numbers, which are float32 already
};
PLAIT_NOINLINE void half_tiles_loop(char *out, char *const *in, int64_t n, const void *context) {
  const HalfTiles &h = *static_cast<const HalfTiles *>(context);
  constexpr int64_t kTile = 4 * kBlock;
  alignas(64) float tile[kMaxOperands][kTile + 80];  // not at addresses with the same lower bits
  char *p[kMaxOperands - 1];
  for (int64_t at = 0; at < n; at += kTile) {
    const int64_t m = n - at < kTile ? n - at : kTile;
    for (int k = 0; k < h.n_operands; k++) {
      if (h.wide[k]) {
        p[k] = h.one ? in[k] : in[k] + at * 4;
        continue;
      }
      p[k] = reinterpret_cast<char *>(tile[k + 1]);
      widen(h.kind, tile[k + 1], reinterpret_cast<const uint16_t *>(in[k]) + at, m);
    }
    if (!h.rounds) {
      h.loop(out + at, p, m, h.context);  // bool
      continue;
    }
    h.loop(reinterpret_cast<char *>(tile[0]), p, m, h.context);
    narrow(h.kind, reinterpret_cast<uint16_t *>(out) + at, tile[0], m);
  }
}

// A loop of floats that first checks a tile of the bounded operand, which is then in the cache.
struct Bounded {
  Loop loop;
  const void *context;
  int n_operands;
  const Bounds *bounds;
  std::atomic<bool> *found;
  std::atomic<double> *outside;  // an element that is not in the bounds, if one was found
};
template <class T>
void bounded_loop(char *out, char *const *in, int64_t n, const void *context) {
  const Bounded &b = *static_cast<const Bounded *>(context);
  const T low = T(b.bounds->low), high = T(b.bounds->high);
  constexpr int64_t kTile = 4 * kBlock;
  for (int64_t at = 0; at < n; at += kTile) {
    const int64_t m = n - at < kTile ? n - at : kTile;
    char *p[kMaxOperands - 1];
    for (int k = 0; k < b.n_operands; k++) p[k] = in[k] + at * int64_t(sizeof(T));
    const T *x = reinterpret_cast<const T *>(p[b.bounds->operand]);
    int inside = 1;
    for (int64_t i = 0; i < m; i++) inside &= int(x[i] >= low) & int(x[i] <= high);
    if (PLAIT_UNLIKELY(!inside)) {
      int64_t i = 0;
      while (x[i] >= low && x[i] <= high) i++;
      b.outside->store(double(x[i]), std::memory_order_relaxed);
      b.found->store(true, std::memory_order_release);
    }
    b.loop(out + at * int64_t(sizeof(T)), p, m, b.context);
  }
}

plait_status check_bounds(const plait_call *c, const Bounds &bounds,
                          const std::atomic<bool> &result, const std::atomic<double> &outside) {
  if (PLAIT_LIKELY(!result.load(std::memory_order_acquire))) return PLAIT_OK;
  const double x = outside.load(std::memory_order_relaxed);
  if (bounds.high == HUGE_VAL)
    return PLAIT_FAIL(c, PLAIT_VALUE_ERROR, "elements of `%s` must be at least %g; got %g",
                      bounds.argument, bounds.low, x);
  return PLAIT_FAIL(c, PLAIT_VALUE_ERROR, "elements of `%s` must be in [%g, %g]; got %g",
                    bounds.argument, bounds.low, bounds.high, x);
}

const PointwiseOp::HalfLoops &half_loops(const PointwiseOp &op, Kind k) {
  return k == F16 ? op.float16 : op.bfloat16;
}

// The loop over tensors of kind k, NULL if there is none.
Loop loop_of(const PointwiseOp &op, Kind k) {
  if (PLAIT_LIKELY(unsigned(k) < unsigned(kReal))) return op.loop[k];
  if (is_half(k)) return half_loops(op, k).all_tensors;
  return is_complex_kind(k) ? op.complex[k - C64] : nullptr;
}

// Numbers are not rounded to a half dtype, except in comparisons, where they must equal elements.
void round_to_half(Kind k, const plait_value &v, char *to) {
  uint16_t half;
  store_number(k, v, reinterpret_cast<char *>(&half));
  widen(k, reinterpret_cast<float *>(to), &half, 1);
}

bool is_number(const plait_call *c, int i) { return c->in[i].tag != PLAIT_TENSOR; }

// The loops of kind k whose last operands are numbers; NULL if the operator has none for it.
const PointwiseOp::Numbers *number_loops(const PointwiseOp &op, Kind k) {
  if (is_half(k)) return &half_loops(op, k).numbers;
  return k == F32 ? &op.float32 : k == I32 ? &op.int32 : k == I64 ? &op.int64 : nullptr;
}

// Returns the loop of kind k for the numbers among the operands of a call, NULL if there is none.
Loop loop_with_numbers(const plait_call *c, const PointwiseOp &op, Kind k) {
  const PointwiseOp::Numbers *loops = number_loops(op, k);
  const int last = op.n_operands - 1;
  if (!loops || last < 1 || is_number(c, 0) || !is_number(c, last)) return nullptr;
  int first = last;
  while (is_number(c, first - 1)) first--;
  return first == last ? loops->last : first == 1 ? loops->all : nullptr;
}

// Long rows whose last operand repeats one element, such as a matrix and a column: that element is
// a number for the loop over a row, and no row of copies of it is written.
void repeat_last(const PointwiseOp &op, const Plan &plan, Kind k, Inner *inner, Params *params) {
  const int inside = plan.ndim - 1, last = op.n_operands;
  const PointwiseOp::Numbers *loops = number_loops(op, k);
  if (!loops || !loops->last || last < 2 || plan.size[inside] < kBlock) return;
  if (plan.stride[last][inside] != 0 || inner->loop != loop_of(op, k)) return;
  inner->loop = loops->last;
  inner->item[last] = 0;
  params->half_number = is_half(k);
}

// Whether the operator has loops of halves for the operands of a call, so that no tiles are needed.
bool has_half_loop(const plait_call *c, const PointwiseOp &op, Kind k) {
  if (loop_with_numbers(c, op, k)) return true;
  for (int i = 0; i < op.n_operands; i++)
    if (is_number(c, i)) return false;
  return loop_of(op, k) != nullptr;
}

}  // namespace

bool all_small(const float *x, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t u;
    memcpy(&u, x + i, 4);
    u &= 0x7fffffffu;
    largest = u > largest ? u : largest;
  }
  return largest < 0x4d800000u;
}

bool all_quotients_small(const float *x, const float *y, int64_t step, int64_t n) {
  constexpr float kLargest = 3.4028234663852886e38f;
  int all = 1;
  const auto test = [](float a, float b) {
    const float size = __builtin_fabsf(b);
    return int(__builtin_fabsf(a) < size * 0x1p28f) & int(size <= kLargest);
  };
  if (step) {
    for (int64_t i = 0; i < n; i++) all &= test(x[i], y[i]);
  } else {
    const float number = *y;
    for (int64_t i = 0; i < n; i++) all &= test(x[i], number);
  }
  return all;
}

plait_status run_pointwise(plait_call *c, const PointwiseOp &op, const Bounds *bounds) {
  const Kind k = operand_kind(c, op.n_operands, op.to == promote::BOOL);
  const bool half = is_half(k);
  const int item = size_of(k);
  const Kind number_kind = half ? F32 : k;
  const bool tiles = half && (bounds || !has_half_loop(c, op, k));
  const Kind of_loop = tiles ? F32 : k;
  const Loop with_numbers = bounds ? nullptr : loop_with_numbers(c, op, of_loop);
  Inner inner{with_numbers ? with_numbers : loop_of(op, of_loop), nullptr, {}};
  if (PLAIT_UNLIKELY(!inner.loop)) return PLAIT_DECLINE;
  const DLTensor *out = result(c);
  Params params;
  params.half_number = false;
  read_params(c, op, &params);
  inner.context = &params;
  HalfTiles half_tiles;
  Bounded bounded;
  std::atomic<bool> match{false};
  std::atomic<double> outside{0};
  if (PLAIT_UNLIKELY(bounds != nullptr)) {
    bounded = Bounded{inner.loop, &params, op.n_operands, bounds, &match, &outside};
    inner.loop = k == F64 ? bounded_loop<double> : bounded_loop<float>;
    inner.context = &bounded;
  }
  if (PLAIT_UNLIKELY(tiles)) {
    half_tiles = HalfTiles{inner.loop, inner.context,          op.n_operands,
                           k,          op.to != promote::BOOL, with_numbers != nullptr,
                           {}};
    inner.loop = half_tiles_loop;
    inner.context = &half_tiles;
  }
  inner.item[0] = op.to == promote::BOOL                         ? 1
                  : op.to == promote::REAL && is_complex_kind(k) ? item / 2
                                                                 : item;
  alignas(16) char number[kMaxOperands][16];
  char *in[kMaxOperands];
  for (int i = 0; i < op.n_operands; i++) {
    const plait_value &v = c->in[i];
    const bool is_tensor = v.tag == PLAIT_TENSOR;
    inner.item[i + 1] = is_tensor ? item : with_numbers ? 0 : size_of(number_kind);
    in[i] = is_tensor ? static_cast<char *>(v.u.t->dl.data) : number[i];
    if (is_tensor) continue;
    store_number(number_kind, v, number[i]);
    if (PLAIT_LIKELY(!half)) continue;
    if (tiles) half_tiles.wide[i] = true;
    if (op.to == promote::BOOL) round_to_half(k, v, number[i]);
  }
  if (PLAIT_LIKELY(numel(out) == 1)) {  // then the operands are empty too
    inner.loop(static_cast<char *>(out->data), in, 1, inner.context);
    return bounds ? check_bounds(c, *bounds, match, outside) : PLAIT_OK;
  }
  Plan plan;
  plan.add(out, inner.item[0]);
  for (int i = 0; i < op.n_operands; i++)
    is_number(c, i) ? plan.add_constant(number[i]) : plan.add(&c->in[i].u.t->dl, item);
  plan.finish();
  repeat_last(op, plan, k, &inner, &params);
  run_elementwise(c, plan, inner);
  return bounds ? check_bounds(c, *bounds, match, outside) : PLAIT_OK;
}

}  // namespace plait::core

// Reductions on the device: values of the lanes of a warp or of the threads of a block become one,
// and the elements of a tensor along some dimensions become one. Any associative step will do. The
// order of steps depends on sizes alone, so results have the same bits from run to run.
#pragma once
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {

constexpr int kReduceThreads = 256;
constexpr int kValueBytes = 32;  // at most, of a value that pieces of a reduction leave

// What a kernel that reduces a tensor is told (host/reduce.h fills it). Strides and distances are
// in elements.
struct ReduceArgs {
  const void *data;
  const void *other, *third;  // operands that lie as `data` does
  const void *extra[2];  // of the operator
  void *out, *second;  // the results; `second` is a second result or NULL
  void *partial;  // values of pieces: those of one result lie side by side
  int64_t results, n;  // and elements of each result
  int64_t piece;  // elements of a piece
  int64_t total;  // elements of a result in all, also where n counts pieces
  int64_t step;  // between the elements of a result, if they lie in one dimension
  double number;  // of the operator
  int32_t pieces, lanes;  // for a result; `lanes` threads share a piece
  int32_t columns;  // neighbouring threads have neighbouring results
  int32_t is_vector;  // elements can be read 16 bytes at a time
  int32_t joins;  // the values of pieces are joined
  int32_t mode, out_kind;  // of the operator
  Walk<1> kept, reduced;
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

// Joins the values of groups of `lanes` lanes, a power of 2 up to a warp. Each lane gets the
// result, with the same bits if the step is commutative.
template <class P, class Step>
PLAIT_DEVICE P reduce_lanes(Block &t, P value, int lanes, Step step) {
  for (int by = lanes / 2; by > 0; by /= 2) value = step(value, t.shuffle_xor(value, by));
  return value;
}

// Joins the values of groups of `lanes` neighbouring threads, a power of 2. The first thread of
// each group gets the result. `room`: a value for each warp, free again afterwards.
template <class P, class Step>
PLAIT_DEVICE P reduce_groups(Block &t, P value, int lanes, Shared<P> room, Step step) {
  value = reduce_lanes(t, value, lanes < kWarp ? lanes : kWarp, step);
  if (lanes <= kWarp) return value;
  if (t.lane() == 0) room.store(t.warp(), value);
  t.barrier();
  if (t.thread() % lanes == 0)
    for (int w = 1; w < lanes / kWarp; w++) value = step(value, room.load(t.warp() + w));
  t.barrier();
  return value;
}

// Joins the values of all threads of the block, a multiple of a warp; each thread gets the result.
// The step is commutative. `room`: a value for each warp, free again afterwards.
template <class P, class Step>
PLAIT_DEVICE P reduce_block(Block &t, P value, P start, Shared<P> room, Step step) {
  value = reduce_lanes(t, value, kWarp, step);
  if (t.warps() == 1) return value;
  if (t.lane() == 0) room.store(t.warp(), value);
  t.barrier();
  value = t.lane() < t.warps() ? room.load(t.lane()) : start;
  value = reduce_lanes(t, value, kWarp, step);
  t.barrier();
  return value;
}

// Joins the values of threads that are `beside` threads apart. The first `beside` threads get the
// results. `room`: a value for each thread.
template <class P, class Step>
PLAIT_DEVICE P reduce_columns(Block &t, P value, int beside, Shared<P> room, Step step) {
  for (int half = t.threads() / beside / 2; half > 0; half /= 2) {
    const int row = t.thread() / beside;
    if (row >= half && row < 2 * half) room.store(t.thread(), value);
    t.barrier();
    if (row < half) value = step(value, room.load(t.thread() + half * beside));
    t.barrier();
  }
  return value;
}

// A reduction is a struct R(Thread &, const Args &), where Args is ReduceArgs or a struct whose
// member `reduce` is that. It has the types Element, what is read at a position, and Value, what
// elements become, and
//   Element load(int64_t at) const
//   kWidth, void load_vector(int64_t at, Element *to) const: kWidth neighbouring elements
//   void begin(int64_t i): called before the elements of result i are folded
//   Value start() const
//   Value step(Value, Value) const
//   void fold<N, width>(Value &, const Element *, int64_t first, int64_t apart) const: takes N
//     elements, a power of 2. Element k has the position first + k / width * apart + k % width.
//   void finish(Thread &, const ReduceArgs &, int64_t i, Value) const: writes result i

// The elements of one tensor.
template <class E>
struct Elements {
  using Element = E;
  static constexpr int kWidth = int(16 / sizeof(E));
  Global<const E> x;
  PLAIT_DEVICE Elements(Thread &t, const ReduceArgs &a) : x(t.global<const E>(a.data)) {}
  PLAIT_DEVICE void begin(int64_t) {}
  PLAIT_DEVICE E load(int64_t at) const { return x.load(at); }
  PLAIT_DEVICE void load_vector(int64_t at, E *to) const {
    const auto v = x.template load_vector<kWidth>(at);
#pragma unroll
    for (int e = 0; e < kWidth; e++) to[e] = v.at[e];
  }
};

// The offset of a position. Loops are not unrolled: a kernel has this in several places.
PLAIT_DEVICE int64_t offset_of(const Walk<1> &walk, int64_t linear) {
  int64_t offset = 0;
  if (walk.is_large) {
#pragma unroll 1
    for (int d = 0; d < walk.dims; d++) {
      const int64_t rest = linear / walk.size[d];
      offset += (linear - rest * walk.size[d]) * walk.stride[d][0];
      linear = rest;
    }
    return offset;
  }
  uint32_t n = uint32_t(linear);
#pragma unroll 1
  for (int d = 0; d < walk.dims; d++) {
    const uint32_t rest = quotient(walk.by[d], n);
    offset += int64_t(n - rest * walk.by[d].divisor) * walk.stride[d][0];
    n = rest;
  }
  return offset;
}

// Positions [begin, end) of one result that are `lane`'s, several vectors at a time.
template <class R, bool is_line>
PLAIT_DEVICE void reduce_vectors(const R &r, const ReduceArgs &a, int64_t base, int64_t begin,
                                 int64_t end, int lane, typename R::Value &value) {
  using E = typename R::Element;
  constexpr int kWidth = R::kWidth, kDepth = kWidth == 16 || !is_line ? 2 : 4;
  const int64_t whole = begin + (end - begin) / kWidth * kWidth, apart = int64_t(a.lanes) * kWidth;
  const auto at = [&](int64_t position) {
    return base + (is_line ? position : offset_of(a.reduced, position));
  };
  for (int64_t i = begin + lane * kWidth; i < whole; i += kDepth * apart) {
    E some[kDepth * kWidth];
    if (i + (kDepth - 1) * apart < whole) {
#pragma unroll
      for (int u = 0; u < kDepth; u++) r.load_vector(at(i + u * apart), some + u * kWidth);
      r.template fold<kDepth * kWidth, kWidth>(value, some, i, apart);
      continue;
    }
    for (int64_t j = i; j < whole; j += apart) {
      r.load_vector(at(j), some);
      r.template fold<kWidth, kWidth>(value, some, j, 0);
    }
  }
  for (int64_t i = whole + lane; i < end; i += a.lanes) {
    const E one[1] = {r.load(at(i))};
    r.template fold<1, 1>(value, one, i, 0);
  }
}

// Reduces elements of any strides, which it loads one by one.
template <class R, bool is_line>
PLAIT_DEVICE void reduce_elements(const R &r, const ReduceArgs &a, int64_t base, int64_t begin,
                                  int64_t end, int lane, typename R::Value &value) {
  using E = typename R::Element;
  constexpr int kDepth = !is_line ? 2 : sizeof(E) <= 8 ? 8 : 4;
  const int64_t lanes = a.lanes;
  const auto at = [&](int64_t position) {
    return base + (is_line ? position * a.step : offset_of(a.reduced, position));
  };
  for (int64_t i = begin + lane; i < end; i += kDepth * lanes) {
    if (i + (kDepth - 1) * lanes < end) {
      E some[kDepth];
#pragma unroll
      for (int u = 0; u < kDepth; u++) some[u] = r.load(at(i + u * lanes));
      r.template fold<kDepth, 1>(value, some, i, lanes);
      continue;
    }
    for (int64_t j = i; j < end; j += lanes) {
      const E one[1] = {r.load(at(j))};
      r.template fold<1, 1>(value, one, j, 0);
    }
  }
}

// The kernel of a reduction: block_y is the piece.
template <class R, class Args>
PLAIT_DEVICE void reduce(Block &t, const Args &args, const ReduceArgs &a) {
  using Value = typename R::Value;
  static_assert(sizeof(Value) <= kValueBytes, "pieces leave values of at most so many bytes");
  R r(t, args);
  const auto room = t.shared<Value>(t.threads());
  const int beside = t.threads() / a.lanes;
  const int own = a.columns ? t.thread() % beside : t.thread() / a.lanes;
  const int lane = a.columns ? t.thread() / beside : t.thread() % a.lanes;
  const int64_t begin = t.block_y() * a.piece;
  const int64_t end = begin + a.piece < a.n ? begin + a.piece : a.n;
  const auto step = [&](const Value &x, const Value &y) { return r.step(x, y); };
  const auto partial = t.global<Value>(a.partial);
  for (int64_t first = t.block() * beside; first < a.results; first += t.blocks() * beside) {
    const int64_t i = first + own;
    Value value = r.start();
    if (i < a.results && a.joins) {
      for (int64_t k = lane; k < a.n; k += a.lanes)
        value = r.step(value, partial.load(i * a.n + k));
    } else if (i < a.results) {
      const int64_t base = offset_of(a.kept, i);
      r.begin(i);
      const bool is_line = a.reduced.dims <= 1;
      if (is_line && a.is_vector)
        reduce_vectors<R, true>(r, a, base, begin, end, lane, value);
      else if (is_line)
        reduce_elements<R, true>(r, a, base, begin, end, lane, value);
      else if (a.is_vector)
        reduce_vectors<R, false>(r, a, base, begin, end, lane, value);
      else
        reduce_elements<R, false>(r, a, base, begin, end, lane, value);
    }
    value = a.columns ? reduce_columns(t, value, beside, room, step)
                      : reduce_groups(t, value, a.lanes, room, step);
    if (lane != 0 || i >= a.results) continue;
    if (a.pieces > 1)
      partial.store(i * a.pieces + t.block_y(), value);
    else
      r.finish(t, a, i, value);
  }
}

template <class R>
PLAIT_DEVICE void reduce(Block &t, const ReduceArgs &a) {
  reduce<R>(t, a, a);
}

// Writes a real number as an element of a floating-point kind.
PLAIT_DEVICE void store_real(Thread &t, void *to, int kind, int64_t i, double value) {
  switch (kind) {
    case core::F32: t.global<float>(to).store(i, float(value)); break;
    case core::F64: t.global<double>(to).store(i, value); break;
    case core::F16: t.global<Half>(to).store(i, narrow<Half>(float(value))); break;
    default: t.global<BFloat>(to).store(i, narrow<BFloat>(float(value))); break;
  }
}

}  // namespace plait::cuda
#endif

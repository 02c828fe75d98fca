// Scans along a dimension: each element of the result is an associative step over all elements
// before it and itself. Lines whose elements are neighbours are the work of a warp or of a block,
// other lines of a thread each. Where lines are few they are cut into pieces: a first launch leaves
// the value of each piece, a second one begins each piece with what is before it.
#pragma once
#include "block/block.h"

namespace plait::cuda {

constexpr int kScanThreads = 256;
constexpr int kScanValueBytes = 32;
// Neighbouring elements that a thread reads at once; few, as values take more room than elements.
constexpr int scan_width(int item) { return item >= 4 ? 16 / item : 4; }

struct ScanArgs {  // dense operands: (lines / inner, n, inner)
  const void *x, *other;
  void *y, *second;
  void *totals;  // of pieces: those of one line lie side by side
  int64_t lines, n, inner;
  int64_t piece;  // elements of a piece
  int32_t pieces, lanes;  // threads of a line; 1: neighbouring threads have neighbouring lines
  int32_t is_total;  // the launch that leaves the values of pieces
  int32_t is_reverse, is_vector;
  int32_t mode;  // of the operator
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

// A scan is a struct S(Thread &, const ScanArgs &) with the types Element and Value and
//   Value start() const: what leaves a value as it is, on either side
//   Value step(const Value &before, const Value &after) const
//   Value load(int64_t at, int64_t position) const
//   void load_vector(int64_t at, int64_t position, Value *to) const: kWidth neighbouring elements
//   void store(int64_t at, const Value &) const
//   void store_vector(int64_t at, const Value *) const

// Scans from one tensor to another; Of makes a value of an element and an element of a value.
template <class E, class Of>
struct ScanElements {
  using Element = E;
  using Value = typename Of::Value;
  static constexpr int kWidth = scan_width(int(sizeof(E)));
  Global<const E> x;
  Global<E> y;
  PLAIT_DEVICE ScanElements(Thread &t, const ScanArgs &a)
      : x(t.global<const E>(a.x)), y(t.global<E>(a.y)) {}
  PLAIT_DEVICE Value load(int64_t at, int64_t position) const {
    return Of::value(x.load(at), position);
  }
  PLAIT_DEVICE void load_vector(int64_t at, int64_t position, Value *to) const {
    const auto v = x.template load_vector<kWidth>(at);
#pragma unroll
    for (int e = 0; e < kWidth; e++) to[e] = Of::value(v.at[e], position + e);
  }
  PLAIT_DEVICE void store(int64_t at, const Value &v) const { y.store(at, Of::element(v)); }
  PLAIT_DEVICE void store_vector(int64_t at, const Value *from) const {
    Vector<E, kWidth> v;
#pragma unroll
    for (int e = 0; e < kWidth; e++) v.at[e] = Of::element(from[e]);
    y.template store_vector<kWidth>(at, v);
  }
};

// The step over the values of the lanes before this one; *total: over those of all lanes of the
// warp.
template <class S, class Value = typename S::Value>
PLAIT_DEVICE Value scan_warp(Block &t, const S &s, Value value, Value *total) {
  for (int by = 1; by < kWarp; by *= 2) {
    const Value other = t.shuffle_up(value, by);
    if (t.lane() >= by) value = s.step(other, value);
  }
  *total = t.shuffle(value, kWarp - 1);
  const Value before = t.shuffle_up(value, 1);
  return t.lane() ? before : s.start();
}

// `scan_warp` for all threads of a line: a warp or the block. `room` has a value for each warp.
template <class S, class Value = typename S::Value>
PLAIT_DEVICE Value scan_line_threads(Block &t, const S &s, Value value, int lanes,
                                     Shared<Value> room, Value *total) {
  Value before = scan_warp(t, s, value, total);
  if (lanes <= kWarp) return before;
  if (t.lane() == 0) room.store(t.warp(), *total);
  t.barrier();
  Value warps = s.start(), all = s.start();
  for (int w = 0; w < t.warps(); w++) {
    const Value each = room.load(w);
    if (w < t.warp()) warps = s.step(warps, each);
    all = s.step(all, each);
  }
  t.barrier();
  *total = all;
  return s.step(warps, before);
}

// What is before a piece of a line: the step over the values of the pieces before it.
template <class S, class Value = typename S::Value>
PLAIT_DEVICE Value value_before(Block &t, const S &s, const ScanArgs &a, int64_t line, int piece,
                                int lane, Shared<Value> room) {
  const auto totals = t.global<const Value>(a.totals);
  const int each = (piece + a.lanes - 1) / a.lanes;
  Value value = s.start(), total;
  for (int k = lane * each; k < (lane + 1) * each && k < piece; k++)
    value = s.step(value, totals.load(line * a.pieces + k));
  if (a.lanes == 1) return value;
  scan_line_threads(t, s, value, a.lanes, room, &total);
  return total;
}

template <class S>
PLAIT_DEVICE void scan_rows(Block &t, const S &s, const ScanArgs &a) {
  using Value = typename S::Value;
  constexpr int kWidth = S::kWidth;
  const auto room = t.shared<Value>(t.warps());
  const int lanes = a.lanes, beside = t.threads() / lanes, lane = t.thread() % lanes;
  const int piece = t.block_y();
  const int64_t begin = piece * a.piece, end = begin + a.piece < a.n ? begin + a.piece : a.n;
  for (int64_t first = t.block() * beside; first < a.lines; first += t.blocks() * beside) {
    const int64_t line = first + t.thread() / lanes;
    const bool is_line = line < a.lines;
    const int64_t base = line * a.n;
    Value carry = s.start();
    if (a.pieces > 1 && !a.is_total)
      carry = value_before(t, s, a, is_line ? line : 0, piece, lane, room);
    for (int64_t i = begin; i < end; i += int64_t(lanes) * kWidth) {
      const int64_t own = i + lane * kWidth;
      Value v[kWidth], total;
      if (is_line && a.is_vector && own < end) {
        s.load_vector(base + own, own, v);
      } else {
#pragma unroll
        for (int e = 0; e < kWidth; e++) {
          const int64_t p = own + e, at = a.is_reverse ? a.n - 1 - p : p;
          v[e] = is_line && p < end ? s.load(base + at, p) : s.start();
        }
      }
#pragma unroll
      for (int e = 1; e < kWidth; e++) v[e] = s.step(v[e - 1], v[e]);
      Value before = scan_line_threads(t, s, v[kWidth - 1], lanes, room, &total);
      before = s.step(carry, before);
      carry = s.step(carry, total);
      if (!is_line || a.is_total || own >= end) continue;
#pragma unroll
      for (int e = 0; e < kWidth; e++) v[e] = s.step(before, v[e]);
      if (a.is_vector) {
        s.store_vector(base + own, v);
      } else {
#pragma unroll
        for (int e = 0; e < kWidth; e++) {
          const int64_t p = own + e, at = a.is_reverse ? a.n - 1 - p : p;
          if (p < end) s.store(base + at, v[e]);
        }
      }
    }
    if (a.is_total && is_line && lane == 0)
      t.global<Value>(a.totals).store(line * a.pieces + piece, carry);
  }
}

// A thread has a line.
template <class S>
PLAIT_DEVICE void scan_columns(Block &t, const S &s, const ScanArgs &a) {
  using Value = typename S::Value;
  constexpr int kDepth = sizeof(Value) <= 8 ? 4 : 2;
  const auto room = t.shared<Value>(t.warps());
  const int piece = t.block_y();
  const int64_t begin = piece * a.piece, end = begin + a.piece < a.n ? begin + a.piece : a.n;
  for (int64_t line = t.index(); line < a.lines; line += t.stride()) {
    const int64_t base = line / a.inner * a.inner * a.n + line % a.inner;
    const auto at = [&](int64_t p) { return base + (a.is_reverse ? a.n - 1 - p : p) * a.inner; };
    Value carry = s.start();
    if (a.pieces > 1 && !a.is_total) carry = value_before(t, s, a, line, piece, 0, room);
    for (int64_t i = begin; i < end; i += kDepth) {
      Value v[kDepth];
#pragma unroll
      for (int u = 0; u < kDepth; u++) v[u] = i + u < end ? s.load(at(i + u), i + u) : s.start();
#pragma unroll
      for (int u = 0; u < kDepth; u++) {
        carry = s.step(carry, v[u]);
        if (!a.is_total && i + u < end) s.store(at(i + u), carry);
      }
    }
    if (a.is_total) t.global<Value>(a.totals).store(line * a.pieces + piece, carry);
  }
}

// The kernel of a scan: block_y is the piece.
template <class S>
PLAIT_DEVICE void scan_lines(Block &t, const ScanArgs &a) {
  static_assert(sizeof(typename S::Value) <= kScanValueBytes,
                "values of pieces have so many bytes");
  const S s(t, a);
  if (a.lanes == 1)
    scan_columns(t, s, a);
  else
    scan_rows(t, s, a);
}

}  // namespace plait::cuda
#endif

// Reductions by one associative step: sum, mean, prod, amax, amin, max, min, any, all. How the
// input is cut depends on its shape alone, so results don't depend on threads; float sums are
// collected in float64 every few thousand steps.
#include "kernel/half.h"
#include "kernel/integers.h"
#include "kernel/settings.h"
#include "reduction/reduce.h"
#include "reduction/rows.h"

namespace plait::core {
namespace {

constexpr int64_t kPiece = 65536;       // elements that make a unit of parallel work
constexpr int64_t kFewResults = 64;     // with fewer results, long reductions are cut too
constexpr int64_t kColumns = 2048;      // results side by side: long runs of each row
constexpr int64_t kFlush = 128;  // rows that are summed in T before the sums go to the wider type

template <class T, class P>
T finished(P value, int64_t divisor) {
  if constexpr (is_float<T>) return T(divisor == 1 ? value : value / P(divisor));
  return T(value);
}

// Adjacent halves in float32: the steps and their order are those of reduce_contiguous.
template <class Op, class P>
P reduce_run_of_halves(Kind k, const uint16_t *p, int64_t n) {
  using T = float;
  constexpr int64_t kWhole = 4 * kLanes<T>;
  T some[kBlockOf];
  P result = Op::template start<P>();
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < kWhole ? n - i : least(kBlockOf, (n - i) / kWhole * kWhole);
    widen(k, some, p + i, m);
    if (m < kWhole)
      result = reduce_rest<Op, T, P>(result, some, m);
    else if constexpr (Op::kNanWins)
      result = Op::step(result, extreme_block<Op, T, P>(some, m));
    else
      result = Op::step(result, reduce_block<Op, T, P>(some, m));
  }
  return result;
}

// Rows below this number of elements are reduced side by side. Sums of floating-point numbers are
// the same then; of others any order is.
template <class T>
constexpr int64_t short_of = is_float<T> ? kLanes<T> : 32;

template <class T, class S>
constexpr bool are_halves = is_float<T> && sizeof(S) == 2;

template <class T, class S>
PLAIT_INLINE void store_result(Kind k, S *out, T value) {
  if constexpr (are_halves<T, S>)
    narrow(k, out, &value, 1);
  else
    *out = value;
}

// One result after the other. Elements and results are stored as S: T, or halves of kind k.
template <class Op, class T, class S = T, class P = typename Collected<T>::type>
plait_status reduce_rows(const plait_call *c, const Reduction &r, S *out, bool mean, Kind k) {
  const S *data = reinterpret_cast<const S *>(r.data);
  const int64_t results = r.kept.count, n = r.reduced.count, divisor = mean ? n : 1;
  const bool few = results < kFewResults || batch_invariant();
  const int64_t pieces = few && n > kPiece ? ceil_div(n, kPiece) : 1;
  auto piece = [&](int64_t i, int64_t begin, int64_t end) {
    P value = Op::template start<P>();
    r.runs(data + r.kept.offset(i), begin, end, [&](const S *p, int64_t m, int64_t step) {
      if constexpr (are_halves<T, S>)
        value = Op::step(value, reduce_run_of_halves<Op, P>(k, p, m));
      else
        value = Op::step(value, reduce_run<Op>(p, m, step));
    });
    return value;
  };
  if (pieces == 1) {
    parallel_ranges(c, results, kPiece / (n + 1) + 1, [&](int64_t begin, int64_t end) {
      if constexpr (!are_halves<T, S>) {
        if (n < short_of<T> && r.reduced.ndim == 1 && r.reduced.stride[0] == 1 &&
            r.kept.ndim == 1) {
          constexpr int64_t kBeside = 256;
          P some[kBeside];
          for (int64_t i = begin; i < end; i += kBeside) {
            const int64_t rows = least(kBeside, end - i), apart = r.kept.stride[0];
            reduce_short_rows<Op, T, P>(data + i * apart, apart, n, rows, some);
            for (int64_t j = 0; j < rows; j++) out[i + j] = finished<T>(some[j], divisor);
          }
          return;
        }
      }
      for (int64_t i = begin; i < end; i++)
        store_result<T>(k, out + i, finished<T>(piece(i, 0, n), divisor));
    });
    return PLAIT_OK;
  }
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(results * pieces) * sizeof(P)));
  P *partial = space.as<P>();
  parallel(c, results * pieces, [&](int64_t k) {
    const int64_t begin = k % pieces * kPiece;
    partial[k] = piece(k / pieces, begin, begin + kPiece < n ? begin + kPiece : n);
  });
  for (int64_t i = 0; i < results; i++) {
    P value = partial[i * pieces];
    for (int64_t k = 1; k < pieces; k++) value = Op::step(value, partial[i * pieces + k]);
    store_result<T>(k, out + i, finished<T>(value, divisor));
  }
  return PLAIT_OK;
}

// Of halves; what lies side by side or apart is left to the fallback.
template <class Op>
plait_status reduce_halves(const plait_call *c, const Reduction &r, DLTensor *out, bool mean) {
  if (r.reduced.count > 1 && r.reduced.inner_stride() != 1) return PLAIT_DECLINE;
  if (r.kept.count == 0) return PLAIT_OK;
  return reduce_rows<Op, float>(c, r, data<uint16_t>(out), mean, kind(out->dtype));
}

template <class Op, class T>
PLAIT_INLINE void add_row(T *acc, const T *p, int64_t n) {
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>) store(acc + j, Op::step(load(acc + j), load(p + j)));
  for (; j < n; j++) acc[j] = Op::step(acc[j], p[j]);
}
// Four rows at once: the row of results is read and written a quarter as often.
template <class Op, class T>
PLAIT_INLINE void add_rows(T *acc, const T *p, int64_t step, int64_t n) {
  const T *q = p + step, *r = q + step, *s = r + step;
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>) {
    const Vec<T> a = Op::step(load(p + j), load(q + j)), b = Op::step(load(r + j), load(s + j));
    store(acc + j, Op::step(load(acc + j), Op::step(a, b)));
  }
  for (; j < n; j++)
    acc[j] = Op::step(acc[j], Op::step(Op::step(p[j], q[j]), Op::step(r[j], s[j])));
}

// Results that lie side by side: whole rows of the input are added to a row of results.
template <class Op, class T, class P = typename Collected<T>::type>
void reduce_columns_piece(const Reduction &r, const T *base, int64_t columns, int64_t begin,
                          int64_t end, P *out) {
  T acc[kColumns];
  for (int64_t j = 0; j < columns; j++) out[j] = Op::template start<P>();
  for (; begin < end; begin += kFlush) {
    const int64_t stop = begin + kFlush < end ? begin + kFlush : end;
    for (int64_t j = 0; j < columns; j++) acc[j] = Op::template start<T>();
    r.runs(base, begin, stop, [&](const T *p, int64_t m, int64_t step) {
      int64_t i = 0;
      for (; i + 4 <= m; i += 4) add_rows<Op>(acc, p + i * step, step, columns);
      for (; i < m; i++) add_row<Op>(acc, p + i * step, columns);
    });
    for (int64_t j = 0; j < columns; j++) out[j] = Op::step(out[j], P(acc[j]));
  }
}

template <class Op, class T, class P = typename Collected<T>::type>
plait_status reduce_columns(const plait_call *c, const Reduction &r, T *out, bool mean) {
  const T *data = reinterpret_cast<const T *>(r.data);
  const int64_t width = r.kept.inner_size(), n = r.reduced.count, divisor = mean ? n : 1;
  const int64_t blocks = ceil_div(width, kColumns), outer = r.kept.count / width * blocks;
  const int64_t rows = kPiece * 2 / (width < kColumns ? width : kColumns);  // of one piece
  const bool few = outer < kFewResults || batch_invariant();
  const int64_t pieces = few && n > rows ? ceil_div(n, rows) : 1;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(outer * pieces * kColumns) * sizeof(P)));
  P *partial = space.as<P>();
  auto first = [&](int64_t o) { return o / blocks * width + o % blocks * kColumns; };
  auto columns = [&](int64_t o) {
    const int64_t rest = width - o % blocks * kColumns;
    return rest < kColumns ? rest : kColumns;
  };
  const int64_t work = n / pieces * (width < kColumns ? width : kColumns);
  parallel_ranges(c, outer * pieces, kPiece / (work + 1) + 1, [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; k++) {
      const int64_t o = k / pieces, begin = pieces == 1 ? 0 : k % pieces * rows;
      const int64_t end = pieces == 1 || begin + rows > n ? n : begin + rows;
      reduce_columns_piece<Op>(r, data + r.kept.offset(first(o)), columns(o), begin, end,
                               partial + k * kColumns);
    }
  });
  constexpr int64_t kBeside = 256;  // columns of one piece of the second pass
  const int64_t parts = kColumns / kBeside;
  parallel_ranges(c, outer * parts, kPiece / (pieces * kBeside) + 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
      const int64_t o = i / parts, begin = i % parts * kBeside;
      const int64_t end = begin + kBeside < columns(o) ? begin + kBeside : columns(o);
      P *p = partial + o * pieces * kColumns;
      for (int64_t k = 1; k < pieces; k++)
        for (int64_t j = begin; j < end; j++) p[j] = Op::step(p[j], p[k * kColumns + j]);
      for (int64_t j = begin; j < end; j++) out[first(o) + j] = finished<T>(p[j], divisor);
    }
  });
  return PLAIT_OK;
}

template <class Op, class T>
plait_status reduce_as(const plait_call *c, const Reduction &r, DLTensor *out, bool mean) {
  if (r.kept.count == 0) return PLAIT_OK;
  T *to = data<T>(out);
  const bool columns = r.reduced.count > 1 && r.reduced.inner_stride() != 1 && r.kept.ndim &&
                       r.kept.inner_stride() == 1 && r.kept.inner_size() >= 8;
  if (columns) return reduce_columns<Op>(c, r, to, mean);
  return reduce_rows<Op, T>(c, r, to, mean, Unknown);
}

// Sums and products wrap around: signed integers are treated as the unsigned ones of their size.
template <class Op>
plait_status reduce_arithmetic(const plait_call *c, uint64_t mask, bool mean) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, in, mask, k, Layout::kAny, &space, &r));
  if (is_half(k)) return reduce_halves<Op>(c, r, out, mean);
  switch (k) {
    case F32: return reduce_as<Op, float>(c, r, out, mean);
    case F64: return reduce_as<Op, double>(c, r, out, mean);
    case I64:
    case U64: return reduce_as<Op, uint64_t>(c, r, out, mean);
    case I32:
    case U32: return reduce_as<Op, uint32_t>(c, r, out, mean);
    case I16:
    case U16: return reduce_as<Op, uint16_t>(c, r, out, mean);
    case I8:
    case U8: return reduce_as<Op, uint8_t>(c, r, out, mean);
    default: return PLAIT_DECLINE;
  }
}

template <class Op>
plait_status reduce_order(const plait_call *c, uint64_t mask) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, in, mask, k, Layout::kAny, &space, &r));
  if (k == Bool) return reduce_as<Op, uint8_t>(c, r, out, false);
  if (is_half(k)) return reduce_halves<Op>(c, r, out, false);
  PLAIT_NUMERIC(k, return (reduce_as<Op, T>(c, r, out, false)))
  return PLAIT_OK;
}

// any and all, of the condition "is not 0"
template <class Op>
plait_status reduce_truth(const plait_call *c, uint64_t mask) {
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, tensor(c, 0), mask, Bool, Layout::kAny, &space, &r));
  DLTensor *out = result(c);
  if (r.reduced.count == 0) {  // what a reduction of bytes starts from may be no bool
    memset(data<uint8_t>(out), Op::template start<uint8_t>() != 0, size_t(r.kept.count));
    return PLAIT_OK;
  }
  return reduce_as<Op, uint8_t>(c, r, out, false);
}

uint64_t dims(const plait_call *c) { return dims_mask(c, 1, tensor(c, 0)->ndim); }

plait_status sum(plait_call *c) {
  if (kind(result(c)->dtype) == Bool) return reduce_truth<Max>(c, dims(c));
  return reduce_arithmetic<Sum>(c, dims(c), false);
}
plait_status mean(plait_call *c) { return reduce_arithmetic<Sum>(c, dims(c), true); }
plait_status prod(plait_call *c) {
  if (kind(result(c)->dtype) == Bool) return reduce_truth<Min>(c, all_dims(tensor(c, 0)->ndim));
  return reduce_arithmetic<Product>(c, all_dims(tensor(c, 0)->ndim), false);
}
plait_status prod_dim(plait_call *c) {
  if (kind(result(c)->dtype) == Bool) return reduce_truth<Min>(c, dims(c));
  return reduce_arithmetic<Product>(c, dims(c), false);
}
plait_status amax(plait_call *c) { return reduce_order<Max>(c, dims(c)); }
plait_status amin(plait_call *c) { return reduce_order<Min>(c, dims(c)); }
plait_status max(plait_call *c) { return reduce_order<Max>(c, all_dims(tensor(c, 0)->ndim)); }
plait_status min(plait_call *c) { return reduce_order<Min>(c, all_dims(tensor(c, 0)->ndim)); }

PLAIT_KERNEL("sum", sum);
PLAIT_KERNEL("mean", mean);
PLAIT_KERNEL("prod", prod);
PLAIT_KERNEL("prod.dim", prod_dim);
PLAIT_KERNEL("amax", amax);
PLAIT_KERNEL("amin", amin);
PLAIT_KERNEL("max", max);
PLAIT_KERNEL("min", min);

plait_status any(plait_call *c) { return reduce_truth<Max>(c, all_dims(tensor(c, 0)->ndim)); }
plait_status all(plait_call *c) { return reduce_truth<Min>(c, all_dims(tensor(c, 0)->ndim)); }
plait_status any_dim(plait_call *c) { return reduce_truth<Max>(c, dims(c)); }
plait_status all_dim(plait_call *c) { return reduce_truth<Min>(c, dims(c)); }
PLAIT_KERNEL("any", any);
PLAIT_KERNEL("all", all);
PLAIT_KERNEL("any.dim", any_dim);
PLAIT_KERNEL("all.dim", all_dim);

}  // namespace
}  // namespace plait::core

// A reduction by one associative step: elements along some dimensions become one. How the input is
// cut depends on its shape alone, so results don't depend on threads; float sums are collected in
// float64 every few thousand steps.
#ifndef PLAIT_CORE_REDUCTIONS_H
#define PLAIT_CORE_REDUCTIONS_H
#include "kernel/settings.h"
#include "reduction/reduce.h"
#include "reduction/source.h"

namespace plait::core {

constexpr int64_t kReducedPiece = 65536;  // elements that make a unit of parallel work
constexpr int64_t kFewResults = 64;       // with fewer results, long reductions are cut too
constexpr int64_t kColumns = 2048;        // results side by side: long runs of each row
constexpr int64_t kGroups = 4;            // of four rows: as many streams as caches prefetch
constexpr int64_t kFlush = 128;  // rows that are summed in T before the sums go to the wider type

// Where results go: divided (a mean), or their square root, rounded to the dtype once. Integers
// that are wider than the dtype lose their upper bits.
class Output {
 public:
  explicit Output(DLTensor *t, int64_t divisor = 1, bool root = false)
      : data_(t->data), kind_(kind(t->dtype)), divisor_(divisor), root_(root) {}

  template <class P>
  PLAIT_INLINE void put(int64_t i, P value) const {
    put_run(i, &value, 1);
  }
  // Results i, i + 1, ...
  template <class P>
  PLAIT_NOINLINE void put_run(int64_t i, const P *values, int64_t n) const {
    if constexpr (!is_float<P>) {
      const int size = size_of(kind_);
      if (size == sizeof(P))
        copy<P>(i, values, n);
      else if (size == 2)
        copy<uint16_t>(i, values, n);
      else
        copy<uint8_t>(i, values, n);
    } else if (kind_ == F64) {
      finish(static_cast<double *>(data_) + i, values, n, [](P x) { return double(x); });
    } else if (kind_ == F32) {
      finish(static_cast<float *>(data_) + i, values, n, [](P x) { return float(x); });
    } else {
      uint16_t *to = static_cast<uint16_t *>(data_) + i;
      if (kind_ == BF16)
        finish(to, values, n, [](P x) { return plait_bfloat16_of_float(float(x)); });
      else
        finish(to, values, n, [](P x) { return plait_float16_of_float(float(x)); });
    }
  }

 private:
  template <class R, class P>
  PLAIT_INLINE void copy(int64_t i, const P *values, int64_t n) const {
    for (int64_t j = 0; j < n; j++) static_cast<R *>(data_)[i + j] = R(values[j]);
  }
  template <class R, class P, class Round>
  PLAIT_INLINE void finish(R *to, const P *values, int64_t n, Round round) const {
    if (root_)
      for (int64_t j = 0; j < n; j++) to[j] = round(P(__builtin_sqrt(values[j])));
    else if (divisor_ == 1)
      for (int64_t j = 0; j < n; j++) to[j] = round(values[j]);
    else
      for (int64_t j = 0; j < n; j++) to[j] = round(values[j] / P(divisor_));
  }

  void *data_;
  Kind kind_;
  int64_t divisor_;
  bool root_;
};

// Rows below this number of elements are reduced side by side. Sums of floating-point numbers are
// the same then; of others any order is.
template <class T>
constexpr int64_t short_of = is_float<T> ? kLanes<T> : 32;

// One result after the other.
template <class Op, class T, class P = typename Collected<T>::type>
plait_status reduce_rows(const plait_call *c, const Reduction &r, const Source<T> &from,
                         const Output &out) {
  const int64_t results = r.kept.count, n = r.reduced.count;
  const bool few = results < kFewResults || batch_invariant();
  const int64_t pieces = few && n > kReducedPiece ? ceil_div(n, kReducedPiece) : 1;
  const bool one_run = r.reduced.ndim <= 1 && n > 0;
  const int64_t run = r.reduced.inner_stride();
  auto piece = [&](int64_t i, int64_t begin, int64_t end) {
    P value = Op::template start<P>();
    const int64_t base = r.kept.offset(i);
    if (one_run && !from.convert)
      return Op::step(value, reduce_run<Op>(from.stored(base + begin * run), end - begin, run));
    r.spans(begin, end, [&](int64_t at, int64_t m, int64_t step) {
      P some;
      if (from.adjacent && step == 1)
        from.adjacent(from.data + (base + at) * from.size, m, 0, 1, &some);
      else
        some = from.convert ? reduce_converted<Op>(from, base + at, m, step)
                            : reduce_run<Op>(from.stored(base + at), m, step);
      value = Op::step(value, some);
    });
    return value;
  };
  if (pieces == 1) {
    parallel_ranges(c, results, kReducedPiece / (n + 1) + 1, [&](int64_t begin, int64_t end) {
      constexpr int64_t kBeside = 256;
      P some[kBeside];
      const bool adjacent =
          n && r.reduced.ndim == 1 && r.reduced.stride[0] == 1 && r.kept.ndim == 1;
      const int64_t apart = r.kept.inner_stride();
      const bool together = adjacent && n < short_of<T> && (!from.convert || apart == n);
      T converted[kBeside * short_of<T>];
      for (int64_t i = begin; i < end; i += kBeside) {
        const int64_t rows = least(kBeside, end - i);
        if (together && from.convert) from.get(converted, i * n, rows * n, 1);
        if (together)
          reduce_short_rows<Op, T, P>(from.convert ? converted : from.stored(i * apart), apart, n,
                                      rows, some);
        else if (adjacent && from.convert && apart == n && n <= kBlockOf / 4)
          reduce_converted_rows<Op, T, P>(from, i * n, n, rows, some);
        else if (adjacent && from.adjacent)
          from.adjacent(from.data + i * apart * from.size, n, apart * from.size, rows, some);
        else
          for (int64_t j = 0; j < rows; j++) some[j] = piece(i + j, 0, n);
        out.put_run(i, some, rows);
      }
    });
    return PLAIT_OK;
  }
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(results * pieces) * sizeof(P)));
  P *partial = space.as<P>();
  parallel(c, results * pieces, [&](int64_t k) {
    const int64_t begin = k % pieces * kReducedPiece;
    partial[k] = piece(k / pieces, begin, least(begin + kReducedPiece, n));
  });
  for (int64_t i = 0; i < results; i++) {
    P value = partial[i * pieces];
    for (int64_t k = 1; k < pieces; k++) value = Op::step(value, partial[i * pieces + k]);
    out.put(i, value);
  }
  return PLAIT_OK;
}

// Groups of four rows, and then single rows, are added to `vectors` vectors of results, which stay
// in registers.
template <class Op, class T, int vectors, class From>
PLAIT_INLINE void add_strip(T *acc, From p, int64_t step, int64_t groups, int64_t rest) {
  Vec<T> sum[vectors];
  for (int v = 0; v < vectors; v++) sum[v] = load(acc + v * kLanes<T>);
  for (int64_t g = 0; g < groups; g++, p += 4 * step)
    for (int v = 0; v < vectors; v++) {
      const From at = p + v * kLanes<T>;
      const Vec<T> a = Op::step(load(at), load(at + step)),
                   b = Op::step(load(at + 2 * step), load(at + 3 * step));
      sum[v] = Op::step(sum[v], Op::step(a, b));
    }
  for (int64_t k = 0; k < rest; k++, p += step)
    for (int v = 0; v < vectors; v++) sum[v] = Op::step(sum[v], load(p + v * kLanes<T>));
  for (int v = 0; v < vectors; v++) store(acc + v * kLanes<T>, sum[v]);
}
// Several groups of four rows and the rest at once: they are read as so many streams, and the row
// of results is read and written less often.
template <class Op, class T, class From = const T *>
PLAIT_INLINE void add_rows(T *acc, From p, int64_t step, int64_t groups, int64_t rest, int64_t n) {
  constexpr int64_t kWide = 4;
  int64_t j = 0;
  for (; j + kWide * kLanes<T> <= n; j += kWide * kLanes<T>)
    add_strip<Op, T, kWide>(acc + j, p + j, step, groups, rest);
  for (; j + 2 * kLanes<T> <= n; j += 2 * kLanes<T>)
    add_strip<Op, T, 2>(acc + j, p + j, step, groups, rest);
  for (; j + kLanes<T> <= n; j += kLanes<T>)
    add_strip<Op, T, 1>(acc + j, p + j, step, groups, rest);
  for (; j < n; j++) {
    From at = p + j;
    for (int64_t g = 0; g < groups; g++, at += 4 * step)
      acc[j] = Op::step(acc[j],
                        Op::step(Op::step(at[0], at[step]), Op::step(at[2 * step], at[3 * step])));
    for (int64_t k = 0; k < rest; k++, at += step) acc[j] = Op::step(acc[j], at[0]);
  }
}

template <class Op, class H>
void add_halves(float *acc, const char *from, int64_t step, int64_t groups, int64_t rest,
                int64_t n) {
  add_rows<Op, float>(acc, WidenedRun<H>(from), step, groups, rest, n);
}

// Results that lie side by side: whole rows of the input, [begin, end), are added to a row of T.
// Rows that are converted have four rows of `memory`; short ones that follow each other fill it.
template <class Op, class T>
void add_row_range(const Reduction &r, const Source<T> &from, int64_t base, int64_t columns,
                   int64_t begin, int64_t end, T *acc, T *memory) {
  for (int64_t j = 0; j < columns; j++) acc[j] = Op::template start<T>();
  r.spans(begin, end, [&](int64_t at, int64_t m, int64_t step) {
    const bool convert = from.converts_rows(), dense = convert && step == columns;
    const int64_t most_groups = step == columns ? most(kColumns / columns, convert ? 1 : kGroups)
                                : convert       ? 1
                                                : kGroups;
    for (int64_t i = 0; i < m;) {
      const int64_t groups = least(most_groups, (m - i) / 4);
      const int64_t left = m - i - 4 * groups;
      const int64_t rest = left < 4 && (groups == 0 || !convert) ? left : 0;
      const int64_t rows = 4 * groups + rest, first = base + at + i * step;
      if (dense)
        from.get(memory, first, rows * columns, 1);
      else if (convert)
        for (int64_t k = 0; k < rows; k++)
          from.get(memory + k * kColumns, first + k * step, columns, 1);
      if (from.add)
        from.add(acc, from.data + first * from.size, step, groups, rest, columns);
      else
        add_rows<Op, T>(acc, convert ? memory : from.stored(first),
                        convert && !dense ? kColumns : step, groups, rest, columns);
      i += rows;
    }
  });
}

// The same for a row of P: sums of floating-point numbers go to it after every kFlush rows.
template <class Op, class T, class P = typename Collected<T>::type>
void reduce_columns_piece(const Reduction &r, const Source<T> &from, int64_t base, int64_t columns,
                          int64_t begin, int64_t end, P *out, T *memory) {
  if constexpr (!is_float<T>) {
    add_row_range<Op, T>(r, from, base, columns, begin, end, out, memory);
  } else {
    T acc[kColumns];
    if (begin >= end)
      for (int64_t j = 0; j < columns; j++) out[j] = Op::template start<P>();
    for (bool first = true; begin < end; begin += kFlush, first = false) {
      const int64_t stop = least(begin + kFlush, end);
      add_row_range<Op, T>(r, from, base, columns, begin, stop, acc, memory);
      for (int64_t j = 0; j < columns; j++)
        out[j] = first ? P(acc[j]) : Op::step(out[j], P(acc[j]));
    }
  }
}

template <class Op, class T, class P = typename Collected<T>::type>
plait_status reduce_columns(const plait_call *c, const Reduction &r, const Source<T> &from,
                            const Output &out) {
  const int64_t width = r.kept.inner_size(), n = r.reduced.count;
  const int64_t blocks = ceil_div(width, kColumns), outer = r.kept.count / width * blocks;
  const int64_t beside = least(width, kColumns);  // results of one block
  // rows of one piece: no more pieces than there is work for, as each has a row of results
  const int64_t least_rows = kReducedPiece * 2 / beside;
  const int64_t rows =
      batch_invariant() ? least_rows : most(least_rows, ceil_div(n, ceil_div(kFewResults, outer)));
  const bool few = outer < kFewResults || batch_invariant();
  const int64_t pieces = few && n > rows ? ceil_div(n, rows) : 1;
  auto first = [&](int64_t o) { return o / blocks * width + o % blocks * kColumns; };
  auto columns = [&](int64_t o) { return least(width - o % blocks * kColumns, kColumns); };
  if (pieces == 1 && n > 0 && n <= kFlush)  // few rows: their sums in T are the results
    return parallel_with_memory<T>(
        c, outer, kReducedPiece / (n * beside + 1) + 1, from.converts_rows() ? 4 * kColumns : 0,
        [&](int64_t begin, int64_t end, T *memory) {
          T acc[kColumns];
          for (int64_t o = begin; o < end; o++) {
            add_row_range<Op, T>(r, from, r.kept.offset(first(o)), columns(o), 0, n, acc, memory);
            out.put_run(first(o), acc, columns(o));
          }
        });
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(outer * pieces * beside) * sizeof(P)));
  P *partial = space.as<P>();
  const int64_t work = n / pieces * beside;
  PLAIT_TRY(parallel_with_memory<T>(
      c, outer * pieces, kReducedPiece / (work + 1) + 1, from.converts_rows() ? 4 * kColumns : 0,
      [&](int64_t from_piece, int64_t to_piece, T *memory) {
        for (int64_t k = from_piece; k < to_piece; k++) {
          const int64_t o = k / pieces, begin = pieces == 1 ? 0 : k % pieces * rows;
          const int64_t end = pieces == 1 || begin + rows > n ? n : begin + rows;
          reduce_columns_piece<Op>(r, from, r.kept.offset(first(o)), columns(o), begin, end,
                                   partial + k * beside, memory);
        }
      }));
  constexpr int64_t kBeside = 256;  // columns of one piece of the second pass
  const int64_t parts = ceil_div(beside, kBeside);
  parallel_ranges(c, outer * parts, kReducedPiece / (pieces * kBeside) + 1,
                  [&](int64_t from_part, int64_t to_part) {
                    for (int64_t i = from_part; i < to_part; i++) {
                      const int64_t o = i / parts, begin = i % parts * kBeside;
                      const int64_t end = least(begin + kBeside, columns(o));
                      P *p = partial + o * pieces * beside;
                      for (int64_t k = 1; k < pieces; k++)
                        for (int64_t j = begin; j < end; j++)
                          p[j] = Op::step(p[j], p[k * beside + j]);
                      out.put_run(first(o) + begin, p + begin, end - begin);
                    }
                  });
  return PLAIT_OK;
}

constexpr int64_t kNarrow = 8;  // fewer results side by side don't fill vectors

// Narrow rows, one behind the other: several of them are reduced as one wide row.
template <class Op, class T, class P = typename Collected<T>::type>
plait_status reduce_narrow(const plait_call *c, const Reduction &r, const Source<T> &from,
                           const Output &out) {
  const int64_t width = r.kept.inner_size(), outer = r.kept.count / width, n = r.reduced.count;
  const int64_t joined = 64 / width, beside = joined * width, rows = n / joined;
  Reduction wide;
  wide.reduced.push(rows, beside);
  const int64_t most_rows = kReducedPiece * 2 / beside, pieces = ceil_div(rows, most_rows);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(outer * pieces * beside) * sizeof(P)));
  P *partial = space.as<P>();
  const int64_t work = least(rows, most_rows) * beside;
  PLAIT_TRY(parallel_with_memory<T>(
      c, outer * pieces, kReducedPiece / (work + 1) + 1, from.converts_rows() ? 4 * kColumns : 0,
      [&](int64_t begin, int64_t end, T *memory) {
        for (int64_t k = begin; k < end; k++) {
          const int64_t row = k % pieces * most_rows;
          reduce_columns_piece<Op>(wide, from, r.kept.offset(k / pieces * width), beside, row,
                                   least(row + most_rows, rows), partial + k * beside, memory);
        }
      }));
  for (int64_t o = 0; o < outer; o++) {
    P *p = partial + o * pieces * beside;
    for (int64_t i = 1; i < pieces * joined; i++)
      for (int64_t j = 0; j < width; j++) p[j] = Op::step(p[j], p[i * width + j]);
    for (int64_t i = joined * rows; i < n; i++) {
      T some[kNarrow];
      const int64_t at = r.kept.offset(o * width) + i * width;
      if (from.convert) from.get(some, at, width, 1);
      const T *row = from.convert ? some : from.stored(at);
      for (int64_t j = 0; j < width; j++) p[j] = Op::step(p[j], P(row[j]));
    }
    out.put_run(o * width, p, width);
  }
  return PLAIT_OK;
}

template <class Op, class T>
plait_status reduce_source(const plait_call *c, const Reduction &r, const Source<T> &from,
                           const Output &out) {
  if (r.kept.count == 0) return PLAIT_OK;
  const int64_t width = r.kept.inner_size(), step = r.reduced.inner_stride();
  const bool columns =
      r.reduced.count > 1 && step != 1 && r.kept.ndim && r.kept.inner_stride() == 1;
  if (columns && width < kNarrow && r.reduced.ndim == 1 && step == width && r.reduced.count > 64)
    return reduce_narrow<Op>(c, r, from, out);
  return columns && width >= kNarrow ? reduce_columns<Op>(c, r, from, out)
                                     : reduce_rows<Op>(c, r, from, out);
}

template <class Op, class T>
plait_status reduce_as(const plait_call *c, const Reduction &r, Convert<T> convert, bool mean) {
  const DLTensor *in = tensor(c, 0);
  const Source<T> from = {r.data, size_of(kind(in->dtype)), convert};
  return reduce_source<Op>(c, r, from, Output(result(c), mean ? r.reduced.count : 1));
}

// The same of halves.
template <class Op, class H>
plait_status reduce_halves_as(const plait_call *c, const Reduction &r, Convert<float> convert,
                              bool mean) {
  Source<float> from = {r.data, 2, convert};
  from.adjacent = reduce_halves<Op, H>;
  from.add = add_halves<Op, H>;
  return reduce_source<Op>(c, r, from, Output(result(c), mean ? r.reduced.count : 1));
}

// Bits of the dimensions that argument 1 of a call names.
inline uint64_t reduced_dims(const plait_call *c) { return dims_mask(c, 1, tensor(c, 0)->ndim); }

}  // namespace plait::core
#endif  // PLAIT_CORE_REDUCTIONS_H

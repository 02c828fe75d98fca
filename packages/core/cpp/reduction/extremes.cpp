// The index of the largest or smallest element: argmax, argmin, max.dim, min.dim. The first of
// equal elements is taken; NaN counts as largest and as smallest. The elements themselves, amax,
// amin, max and min, are in bounds.cpp.
#include "kernel/transpose.h"
#include "reduction/numbers.h"
#include "reduction/reduce.h"
#include "reduction/rows.h"

#include <type_traits>

namespace plait::core {
namespace {

constexpr int64_t kPiece = 65536;

template <class T>
PLAIT_INLINE bool matches(T x, T best) {
  return (x == best) | ((x != x) & (best != best));
}

// The first position of `best`, which must occur.
template <class T>
int64_t find(const T *p, int64_t n, T best) {
  constexpr int64_t kStep = 64;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    uint8_t hit = 0;
    for (int64_t j = 0; j < kStep; j++) hit |= uint8_t(matches(p[i + j], best));
    if (hit) break;
  }
  while (i < n && !matches(p[i], best)) i++;
  return i;
}

template <class Op, class T>
int64_t locate(const T *p, int64_t n, T *best) {
  if (n >= 32) {
    *best = reduce_contiguous<Op, T, T>(p, n);
    return find(p, n, *best);
  }
  int64_t at = 0;
  T b = p[0];
  for (int64_t i = 1; i < n; i++) {
    const T next = Op::step(b, p[i]);
    if (!matches(next, b)) at = i;
    b = next;
  }
  *best = b;
  return at;
}

// Whether an element is better than the best before it, of which `next` is the better one. A NaN
// is better than all numbers; of equal elements the first stays.
template <class T>
PLAIT_INLINE bool improves(T best, T next) {
  return (next != best) & (best == best);
}

// Where the best element is.
template <class T>
struct Best {
  T value;
  int64_t at;
  template <class Op>
  PLAIT_INLINE void join(const Best &later) {
    if (improves(value, Op::step(value, later.value))) *this = later;
  }
};

// The best of positions [begin, end) of one result's elements, which are never none.
template <class Op, class T>
Best<T> locate_between(const Reduction &r, const Numbers<T> &from, int64_t base, int64_t begin,
                       int64_t end) {
  T some[kBlockOf];
  Best<T> best{};
  int64_t position = begin;
  r.spans(begin, end, [&](int64_t at, int64_t n, int64_t step) {
    const bool whole = step == 1 && !from.widens();
    for (int64_t i = 0, m; i < n; i += m, position += m) {
      m = whole ? n - i : least(kBlockOf, n - i);
      const int64_t first = base + at + i * step;
      if (!whole) from.get(first, step, m, some);
      Best<T> next;
      const int64_t result =
          locate<Op>(whole ? from.read(first, m, nullptr) : some, m, &next.value);
      next.at = position + result;
      if (position == begin)
        best = next;
      else
        best.template join<Op>(next);
    }
  });
  return best;
}

// One long row where it lies: only the piece with the best element is searched for it.
template <class Op, class T>
plait_status locate_in_row(const plait_call *c, const T *row, int64_t n, Best<T> *result) {
  const int64_t pieces = ceil_div(n, kPiece);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(pieces) * sizeof(T)));
  T *best = space.as<T>();
  parallel(c, pieces, [&](int64_t k) {
    best[k] = reduce_contiguous<Op, T, T>(row + k * kPiece, least(kPiece, n - k * kPiece));
  });
  T top = best[0];
  for (int64_t k = 1; k < pieces; k++) top = Op::step(top, best[k]);
  const int64_t begin = find(best, pieces, top) * kPiece;
  *result = {top, begin + find(row + begin, n - begin, top)};
  return PLAIT_OK;
}

constexpr int64_t kColumns = 512;
constexpr int64_t kMostRows = INT32_MAX;
// Positions of the size of an element are kept in as many registers as elements.
template <class T>
using Position = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// A row of elements, all of which have the same position, is compared with a row of the best.
template <class Op, class T>
PLAIT_INLINE void compare_row(const T *p, int64_t n, Position<T> position, T *best,
                              Position<T> *at) {
  if (position == 0) {
    for (int64_t j = 0; j < n; j++) {
      best[j] = p[j];
      at[j] = 0;
    }
    return;
  }
  for (int64_t j = 0; j < n; j++) {
    const T next = Op::step(best[j], p[j]);
    const bool better = improves(best[j], next);
    best[j] = better ? next : best[j];
    at[j] = better ? position : at[j];
  }
}

// Results side by side: rows, kMostRows at most, are compared with a row of the best.
template <class Op, class T>
void locate_columns(const Reduction &r, const Numbers<T> &from, int64_t base, int64_t columns,
                    T *best, int64_t *indices) {
  T some[kColumns];
  Position<T> at[kColumns], position = 0;
  r.spans(0, r.reduced.count, [&](int64_t offset, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i++, position++) {
      compare_row<Op, T>(from.read(base + offset + i * step, columns, some), columns, position,
                         best, at);
    }
  });
  for (int64_t j = 0; j < columns; j++) indices[j] = at[j];
}

constexpr int64_t kShortRow = 32;    // elements; longer ones are searched one after the other
// Few enough for both orders of them in the first-level cache.
template <class T>
constexpr int64_t kRowsAtOnce = sizeof(T) == 8 ? 32 : 128;

// Short rows, `apart` elements from each other: some of them are transposed, so that they are
// compared side by side, as one row alone would be a chain of steps.
template <class Op, class T>
void locate_in_short_rows(const Numbers<T> &from, int64_t base, int64_t apart, int64_t n,
                          int64_t rows, T *best, int64_t *indices) {
  T turned[kShortRow * kRowsAtOnce<T>];
  Position<T> at[kRowsAtOnce<T>];
  T some[std::is_same_v<T, float> ? kShortRow * kRowsAtOnce<T> : 1];  // of halves
  const T *p = from.read(base, 0, some);
  if (from.widens()) {
    for (int64_t i = 0; i < rows; i++) from.get(base + i * apart, 1, n, some + i * n);
    apart = n;
  }
  transpose_block(reinterpret_cast<char *>(turned), kRowsAtOnce<T>,
                  reinterpret_cast<const char *>(p), apart, rows, n, int(sizeof(T)));
  for (int64_t j = 0; j < n; j++)
    compare_row<Op, T>(turned + j * kRowsAtOnce<T>, rows, Position<T>(j), best, at);
  for (int64_t i = 0; i < rows; i++) indices[i] = at[i];
}

template <class Op, class T>
plait_status locate_results(const plait_call *c, const Reduction &r, const Numbers<T> &from,
                            const Numbers<T> *values, int64_t *indices) {
  const int64_t n = r.reduced.count, results = r.kept.count;
  const bool in_place =
      r.reduced.inner_size() == n && r.reduced.inner_stride() == 1 && !from.widens();
  if (results == 1 && n > 2 * kPiece && in_place) {
    Best<T> result;
    PLAIT_TRY((locate_in_row<Op, T>(c, from.read(0, n, nullptr), n, &result)));
    indices[0] = result.at;
    if (values) values->put(0, 1, 1, &result.value);
    return PLAIT_OK;
  }
  if (results == 1 && n > 2 * kPiece) {
    const int64_t pieces = ceil_div(n, kPiece);
    Workspace space;
    PLAIT_TRY(space.take(c, uint64_t(pieces) * sizeof(Best<T>)));
    Best<T> *best = space.as<Best<T>>();
    parallel(c, pieces, [&](int64_t k) {
      best[k] = locate_between<Op, T>(r, from, 0, k * kPiece, least((k + 1) * kPiece, n));
    });
    for (int64_t k = 1; k < pieces; k++) best[0].template join<Op>(best[k]);
    indices[0] = best[0].at;
    if (values) values->put(0, 1, 1, &best[0].value);
    return PLAIT_OK;
  }
  const int64_t width = r.kept.inner_size();
  if (n > 1 && n <= kMostRows && r.reduced.inner_stride() != 1 && r.kept.ndim &&
      r.kept.inner_stride() == 1 && width >= 8) {
    const int64_t parts = ceil_div(width, kColumns), beside = least(width, kColumns);
    parallel_ranges(
        c, results / width * parts, kPiece / (n * beside + 1) + 1, [&](int64_t begin, int64_t end) {
          T best[kColumns];
          for (int64_t k = begin; k < end; k++) {
            const int64_t first = k / parts * width + k % parts * kColumns;
            const int64_t m = least(kColumns, width - k % parts * kColumns);
            locate_columns<Op, T>(r, from, r.kept.offset(first), m, best, indices + first);
            if (values) values->put(first, 1, m, best);
          }
        });
    return PLAIT_OK;
  }
  if (n > 1 && n < kShortRow && r.reduced.ndim == 1 && r.reduced.inner_stride() == 1 &&
      r.kept.ndim == 1) {
    const int64_t apart = r.kept.inner_stride();
    parallel_ranges(c, results, kPiece / (n + 1) + 1, [&](int64_t begin, int64_t end) {
      T best[kRowsAtOnce<T>];
      for (int64_t i = begin; i < end; i += kRowsAtOnce<T>) {
        const int64_t rows = least(kRowsAtOnce<T>, end - i);
        locate_in_short_rows<Op, T>(from, i * apart, apart, n, rows, best, indices + i);
        if (values) values->put(i, 1, rows, best);
      }
    });
    return PLAIT_OK;
  }
  parallel_ranges(c, results, kPiece / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      Best<T> best;
      if (in_place)
        best.at = locate<Op>(from.read(r.kept.offset(i), n, nullptr), n, &best.value);
      else
        best = locate_between<Op, T>(r, from, r.kept.offset(i), 0, n);
      indices[i] = best.at;
      if (values) values->put(i, 1, 1, &best.value);
    }
  });
  return PLAIT_OK;
}

template <class Op, class T>
plait_status locate_as(const plait_call *c, const Reduction &r, DLTensor *values, int64_t *to) {
  DLTensor in = *tensor(c, 0);
  in.data = const_cast<char *>(r.data);  // maybe those of a copy
  const Numbers<T> from(&in), out = values ? Numbers<T>(values) : Numbers<T>();
  return locate_results<Op, T>(c, r, from, values ? &out : nullptr, to);
}

template <class Op>
plait_status locate_any(const plait_call *c, DLTensor *values, DLTensor *indices) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  const uint64_t mask = dims_mask(c, 1, in->ndim);
  Reduction r;
  Workspace space;
  if (is_in_order(in, mask))
    describe(in, mask, &r);
  else  // indices count in C order
    PLAIT_TRY(prepare(c, in, mask, k, Layout::kRow, &space, &r));
  if (r.kept.count == 0) return PLAIT_OK;
  int64_t *to = data<int64_t>(indices);
  if (k == Bool) return locate_as<Op, uint8_t>(c, r, values, to);
  if (is_half(k)) return locate_as<Op, float>(c, r, values, to);
  PLAIT_NUMERIC(k, return (locate_as<Op, T>(c, r, values, to)))
  return PLAIT_OK;
}

plait_status argmax(plait_call *c) { return locate_any<Max>(c, nullptr, result(c)); }
plait_status argmin(plait_call *c) { return locate_any<Min>(c, nullptr, result(c)); }
plait_status max_dim(plait_call *c) { return locate_any<Max>(c, result(c), result(c, 1)); }
plait_status min_dim(plait_call *c) { return locate_any<Min>(c, result(c), result(c, 1)); }

PLAIT_KERNEL("argmax", argmax);
PLAIT_KERNEL("argmin", argmin);
PLAIT_KERNEL("max.dim", max_dim);
PLAIT_KERNEL("min.dim", min_dim);

}  // namespace
}  // namespace plait::core

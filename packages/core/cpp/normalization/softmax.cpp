// softmax, log_softmax, their derivatives, and logsumexp: one pass over each row while it is in the
// first-level cache.
#include "kernel/dense.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "normalization/softmax_rows.h"
#include "reduction/reduce.h"

namespace plait::core {
namespace {

template <class T>
void softmax_row(const T *x, int64_t n, T *out) {
  if (n <= kShort) {
    ShortRow<T> row(x, n);
    return row.write(splat(T(1)) / row.exp(), out);
  }
  const T scale = T(1) / exp_row_total(x, largest(x, n), n, out);
  for (int64_t i = 0; i < n; i++) out[i] *= scale;
}

template <class T>
PLAIT_INLINE T dot_row(const T *a, const T *b, int64_t n) {
  Vec<T> s = {}, t = {};
  constexpr int64_t w = kLanes<T>;
  int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    s = fused(load(a + i), load(b + i), s);
    t = fused(load(a + i + w), load(b + i + w), t);
  }
  T sum = in_every_lane<Sum, T>(s + t)[0];
  for (; i < n; i++) sum = fused(a[i], b[i], sum);
  return sum;
}

// Loops over vectors and the elements behind them: compilers put tests of aliasing and of lengths
// before a loop over elements, which take longer than a short row.
template <class T, class Vectors, class Rest>
PLAIT_INLINE void each_vector(int64_t n, const Vectors &vectors, const Rest &rest) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) vectors(i);
  for (; i < n; i++) rest(i);
}

template <class T>
void softmax_backward_row(const T *g, const T *y, int64_t n, T *out) {
  const T d = dot_row(g, y, n);
  each_vector<T>(
      n, [&](int64_t i) { store(out + i, (load(g + i) - splat(d)) * load(y + i)); },
      [&](int64_t i) { out[i] = (g[i] - d) * y[i]; });
}

// The sum of a row, in T if it is short.
template <class T>
PLAIT_INLINE T row_total(const T *x, int64_t n) {
  if (n > kShort) return total(x, n);
  Vec<T> sums = {};
  T rest = 0;
  each_vector<T>(n, [&](int64_t i) { sums += load(x + i); }, [&](int64_t i) { rest += x[i]; });
  return in_every_lane<Sum, T>(sums)[0] + rest;
}

// Of logarithms of probabilities.
template <class T>
PLAIT_INLINE Vec<T> exp_of(Vec<T> x) {
  T e[kLanes<T>];
  store(e, x);
#pragma GCC ivdep
  for (int64_t k = 0; k < kLanes<T>; k++) e[k] = math::exp_negative(e[k]);
  return load(e);
}

template <class T>
void log_softmax_backward_row(const T *g, const T *y, int64_t n, T *out) {
  const T s = row_total(g, n);
  each_vector<T>(
      n, [&](int64_t i) { store(out + i, load(g + i) - exp_of<T>(load(y + i)) * splat(s)); },
      [&](int64_t i) { out[i] = g[i] - math::exp_negative(y[i]) * s; });
}

// Rows of any layout.

// A tensor whose dimension `dim` is last and contiguous: the tensor itself, or a copy.
template <class T>
class Rows {
 public:
  plait_status take(const plait_call *c, const DLTensor *t, int64_t dim, bool fill = true) {
    describe(t, dim);
    if (n_ <= 1 || t->strides[dim] == 1) return PLAIT_OK;
    if (elements_.widens()) return PLAIT_DECLINE;  // a copy in float32 is turned faster
    PLAIT_TRY(space_.take(c, uint64_t(numel(t)) * sizeof(T)));
    moved_ = *t;
    int n = 0;
    for (int d = 0; d < t->ndim; d++)
      if (d != dim) order_[n++] = d;
    order_[n] = int(dim);
    int64_t step = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
      strides_[order_[i]] = step;
      step *= t->shape[order_[i]];
    }
    moved_.strides = strides_;
    moved_.data = space_.as<char>();
    source_ = t;
    if (fill) PLAIT_TRY(copy(c, &moved_, t));
    describe(&moved_, dim);
    return PLAIT_OK;
  }
  plait_status give_back(const plait_call *c) const {
    return source_ ? copy(c, source_, &moved_) : PLAIT_OK;
  }
  bool widens() const { return elements_.widens(); }
  const T *read(int64_t i, T *memory) const { return elements_.read(rest_.offset(i), n_, memory); }
  T *place(int64_t i, T *memory) const { return elements_.place(rest_.offset(i), memory); }
  void round(int64_t i, const T *memory) const { elements_.round(rest_.offset(i), n_, memory); }
  // Elements [at, at + n) of row i, in the same way.
  const T *read(int64_t i, int64_t at, int64_t n, T *memory) const {
    return elements_.read(rest_.offset(i) + at, n, memory);
  }
  T *place(int64_t i, int64_t at, T *memory) const {
    return elements_.place(rest_.offset(i) + at, memory);
  }
  void round(int64_t i, int64_t at, int64_t n, const T *memory) const {
    elements_.round(rest_.offset(i) + at, n, memory);
  }
  int64_t length() const { return n_; }
  int64_t count() const { return rest_.count; }

 private:
  void describe(const DLTensor *t, int64_t dim) {
    rest_ = Axes();
    elements_ = Elements<T>(t);
    n_ = t->ndim ? t->shape[dim] : 1;
    for (int d = 0; d < t->ndim; d++)
      if (d != dim) rest_.push(t->shape[d], t->strides[d]);
  }
  Elements<T> elements_;
  int64_t n_ = 1;
  Axes rest_;
  Workspace space_;
  DLTensor moved_;
  const DLTensor *source_ = nullptr;
  int64_t strides_[PLAIT_MAX_DIMS];
  int order_[PLAIT_MAX_DIMS];
};

int64_t grain(int64_t n) { return kSerial / 4 / (n + 1) + 1; }

// Along a dimension before the last one: what lies side by side belongs to different sums, so
// vectors run along it, and nothing is moved.

constexpr int64_t kBeside = 256;  // sums at once
constexpr int64_t kFlush = 128;  // elements that are summed in T before they go to a wider type

// Where the elements of kBeside sums, or fewer, are in a dense tensor.
struct Columns {
  int64_t at, apart, n, count;  // the first one, those of one sum, their number; sums

  template <class T>
  PLAIT_INLINE Vec<T> read(const T *p, int64_t j, int64_t i) const {
    p += at + j * apart + i;
    if (PLAIT_LIKELY(i + kLanes<T> <= count)) return load(p);
    T rest[kLanes<T>] = {};
    memcpy(rest, p, size_t(count - i) * sizeof(T));
    return load(rest);
  }
  template <class T>
  PLAIT_INLINE void write(T *p, int64_t j, int64_t i, Vec<T> v) const {
    p += at + j * apart + i;
    if (PLAIT_LIKELY(i + kLanes<T> <= count)) return store(p, v);
    memcpy(p, &v, size_t(count - i) * sizeof(T));
  }
  // f(j, i) for vectors of all elements, those of one j in turn
  template <class T, class F>
  PLAIT_INLINE void each(int64_t begin, int64_t end, const F &f) const {
    for (int64_t j = begin; j < end; j++)
      for (int64_t i = 0; i < count; i += kLanes<T>) f(j, i);
  }
  // all[i] = step of itself and f(j, i), for j in [begin, end), two of them at once
  template <class T, class Step, class F>
  PLAIT_INLINE void fold(T *all, int64_t begin, int64_t end, const Step &step, const F &f) const {
    int64_t j = begin;
    for (; j + 2 <= end; j += 2)
      for (int64_t i = 0; i < count; i += kLanes<T>)
        store(all + i, step(load(all + i), step(f(j, i), f(j + 1, i))));
    each<T>(j, end, [&](int64_t k, int64_t i) { store(all + i, step(load(all + i), f(k, i))); });
  }
  // sums[i] = f(j, i) over all j
  template <class T, class F>
  PLAIT_INLINE void sum(T *sums, const F &f) const {
    const int64_t m = padded<T>();
    const auto add = [&](int64_t begin) {
      for (int64_t i = 0; i < m; i++) sums[i] = 0;
      fold(sums, begin, least(begin + kFlush, n), [](Vec<T> a, Vec<T> b) { return a + b; }, f);
    };
    if (n <= kFlush) return add(0);
    typename Collected<T>::type all[kBeside] = {};
    for (int64_t j = 0; j < n; j += kFlush) {
      add(j);
      for (int64_t i = 0; i < m; i++) all[i] += sums[i];
    }
    for (int64_t i = 0; i < m; i++) sums[i] = T(all[i]);
  }
  // the sums in whole vectors
  template <class T>
  int64_t padded() const {
    return ceil_div(count, kLanes<T>) * kLanes<T>;
  }
};

// How far the elements of one sum are apart in a dense tensor of the result's shape; the dimension
// is the argument behind the inputs.
int64_t apart_of(const plait_call *c, int inputs) {
  const DLTensor *out = result(c);
  if (out->ndim == 0) return 1;
  const int64_t dim = wrapped(integer(c, inputs), out->ndim);
  int64_t apart = 1;
  for (int d = out->ndim - 1; d > dim; d--) apart *= out->shape[d];
  return apart;
}

// Whether the call is by columns. Shapes alone decide: sums of columns and of rows have other bits.
template <class T>
bool by_columns(const plait_call *c, int inputs) {
  return numel(result(c)) > 0 && apart_of(c, inputs) >= kLanes<T>;
}

// f(o, first, count) for blocks of `width` adjacent sums, of n elements each, `outer` times.
template <class T, class F>
void each_block(const plait_call *c, int64_t outer, int64_t n, int64_t width, const F &f) {
  const int64_t blocks = ceil_div(width, kBeside);
  const int64_t some = ceil_div(ceil_div(width, blocks), kLanes<T>) * kLanes<T>;
  parallel_ranges(c, outer * blocks, grain(n * some), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++)
      f(b / blocks, b % blocks * some, least(some, width - b % blocks * some));
  });
}

// f(columns, first input, second input, result) for all columns.
template <class T, class F>
plait_status in_columns(const plait_call *c, int inputs, const F &f) {
  if (is_half(kind(result(c)->dtype))) return PLAIT_DECLINE;  // they are computed in float32
  Dense<T> in[2];
  DenseResult<T> out;
  for (int i = 0; i < inputs; i++) PLAIT_TRY(in[i].take(c, tensor(c, i)));
  PLAIT_TRY(out.take(c, result(c)));
  const DLTensor *t = result(c);
  const int64_t n = t->shape[wrapped(integer(c, inputs), t->ndim)], apart = apart_of(c, inputs);
  each_block<T>(c, numel(t) / (n * apart), n, apart, [&](int64_t o, int64_t first, int64_t count) {
    f(Columns{o * n * apart + first, apart, n, count}, static_cast<const T *>(in[0]),
      static_cast<const T *>(in[1]), static_cast<T *>(out));
  });
  return out.give_back(c);
}

// The largest elements. Unless it is requested, a NaN is lost: the sum of exponentials has it.
template <bool nan = false, class T>
void largest(const Columns &columns, const T *x, T *top) {
  for (int64_t i = 0; i < columns.padded<T>(); i++) top[i] = Max::start<T>();
  columns.fold(
      top, 0, columns.n, [](Vec<T> a, Vec<T> b) { return nan ? Max::step(a, b) : Max::pick(a, b); },
      [&](int64_t j, int64_t i) { return columns.read(x, j, i); });
}

// The logarithms of the sums of exp(x - top), and top.
template <bool nan = false, class T>
void log_sums(const Columns &columns, const T *x, T *top, T *logs) {
  largest<nan>(columns, x, top);
  columns.sum(
      logs, [&](int64_t j, int64_t i) { return exp_below(columns.read(x, j, i) - load(top + i)); });
  const int64_t m = columns.padded<T>();
#pragma GCC ivdep
  for (int64_t i = 0; i < m; i++) logs[i] = math::log(logs[i]);
}

template <class T>
plait_status softmax_columns(const plait_call *c) {
  return in_columns<T>(c, 1, [](const Columns &columns, const T *x, const T *, T *out) {
    alignas(64) T top[kBeside], sum[kBeside];
    largest(columns, x, top);
    columns.sum(sum, [&](int64_t j, int64_t i) {
      const Vec<T> v = exp_below(columns.read(x, j, i) - load(top + i));
      columns.write(out, j, i, v);
      return v;
    });
    for (int64_t i = 0; i < columns.padded<T>(); i++) sum[i] = T(1) / sum[i];
    columns.each<T>(0, columns.n, [&](int64_t j, int64_t i) {
      columns.write(out, j, i, columns.read(out, j, i) * load(sum + i));
    });
  });
}

template <class T>
plait_status log_softmax_columns(const plait_call *c) {
  return in_columns<T>(c, 1, [](const Columns &columns, const T *x, const T *, T *out) {
    alignas(64) T top[kBeside], sum[kBeside];
    log_sums(columns, x, top, sum);
    columns.each<T>(0, columns.n, [&](int64_t j, int64_t i) {
      columns.write(out, j, i, (columns.read(x, j, i) - load(top + i)) - load(sum + i));
    });
  });
}

template <class T>
plait_status softmax_backward_columns(const plait_call *c) {
  return in_columns<T>(c, 2, [](const Columns &columns, const T *g, const T *y, T *out) {
    alignas(64) T sum[kBeside];
    columns.sum(
        sum, [&](int64_t j, int64_t i) { return columns.read(g, j, i) * columns.read(y, j, i); });
    columns.each<T>(0, columns.n, [&](int64_t j, int64_t i) {
      columns.write(out, j, i, (columns.read(g, j, i) - load(sum + i)) * columns.read(y, j, i));
    });
  });
}

template <class T>
plait_status log_softmax_backward_columns(const plait_call *c) {
  return in_columns<T>(c, 2, [](const Columns &columns, const T *g, const T *y, T *out) {
    alignas(64) T sum[kBeside];
    columns.sum(sum, [&](int64_t j, int64_t i) { return columns.read(g, j, i); });
    columns.each<T>(0, columns.n, [&](int64_t j, int64_t i) {
      const Vec<T> e = exp_of<T>(columns.read(y, j, i));
      columns.write(out, j, i, columns.read(g, j, i) - e * load(sum + i));
    });
  });
}

template <class T, class F>
plait_status map_rows(const plait_call *c, F &&f) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = out->ndim ? wrapped(integer(c, 1), out->ndim) : 0;
  Rows<T> from, to;
  PLAIT_TRY(from.take(c, tensor(c, 0), dim));
  PLAIT_TRY(to.take(c, out, dim, false));
  const int64_t n = from.length();
  auto rows = [&](int64_t begin, int64_t end, T *memory) {
    for (int64_t i = begin; i < end; i++) {
      T *output = to.place(i, memory);
      f(from.read(i, memory), n, output);
      to.round(i, output);
    }
  };
  PLAIT_TRY(parallel_with_memory<T>(c, from.count(), grain(n), from.widens() || to.widens() ? n : 0,
                                    rows));
  return to.give_back(c);
}

template <class T, class F>
plait_status map_rows_2(const plait_call *c, F &&f) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = out->ndim ? wrapped(integer(c, 2), out->ndim) : 0;
  Rows<T> a, b, to;
  PLAIT_TRY(a.take(c, tensor(c, 0), dim));
  PLAIT_TRY(b.take(c, tensor(c, 1), dim));
  PLAIT_TRY(to.take(c, out, dim, false));
  const int64_t n = a.length();
  const bool widens = a.widens() || b.widens() || to.widens();
  auto rows = [&](int64_t begin, int64_t end, T *memory) {
    for (int64_t i = begin; i < end; i++) {
      T *output = to.place(i, memory + 2 * n);
      f(a.read(i, memory), b.read(i, memory + n), n, output);
      to.round(i, output);
    }
  };
  PLAIT_TRY(parallel_with_memory<T>(c, a.count(), grain(n), widens ? 3 * n : 0, rows));
  return to.give_back(c);
}

constexpr int64_t kGroup = 8;  // rows whose logarithms are computed together

// The sums of rows x(i), of which there are kGroup at most.
template <class T, class Read>
PLAIT_INLINE void log_sums(int64_t rows, int64_t n, const Read &x, LogSum<T> *sums) {
  T rest[kGroup];
  for (int64_t i = 0; i < kGroup; i++) {
    if (i < rows) sums[i] = exp_sum(x(i), n);
    rest[i] = i < rows ? sums[i].rest : T(1);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < kGroup; i++) rest[i] = math::log(rest[i]);
  for (int64_t i = 0; i < rows; i++) sums[i].rest = rest[i];
}

template <class T>
PLAIT_INLINE void subtract_log_sum(const T *x, int64_t n, T shift, T log, T *y) {
  each_vector<T>(
      n, [&](int64_t j) { store(y + j, (load(x + j) - splat(shift)) - splat(log)); },
      [&](int64_t j) { y[j] = (x[j] - shift) - log; });
}

// Rows of many blocks, each of which is read while it is in a cache.
template <class T>
plait_status log_softmax_long_rows(const plait_call *c, const Rows<T> &from, const Rows<T> &to) {
  const int64_t n = from.length();
  const bool widens = from.widens() || to.widens();
  return parallel_with_memory<T>(
      c, from.count(), grain(n), widens ? kBlockOf : 0, [&](int64_t begin, int64_t end, T *memory) {
        for (int64_t r = begin; r < end; r++) {
          const LogSum<T> sum = exp_sum_of_blocks<T>(
              n, [&](int64_t i, int64_t m) { return from.read(r, i, m, memory); });
          const T log = math::log(sum.rest);
          for (int64_t i = 0; i < n; i += kBlockOf) {
            const int64_t m = least(kBlockOf, n - i);
            T *y = to.place(r, i, memory);
            subtract_log_sum(from.read(r, i, m, memory), m, sum.top, log, y);
            to.round(r, i, m, y);
          }
        }
      });
}

template <class T>
plait_status log_softmax_rows(const plait_call *c) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = out->ndim ? wrapped(integer(c, 1), out->ndim) : 0;
  Rows<T> from, to;
  PLAIT_TRY(from.take(c, tensor(c, 0), dim));
  PLAIT_TRY(to.take(c, out, dim, false));
  const int64_t n = from.length();
  if (n > 4 * kBlockOf) {
    PLAIT_TRY(log_softmax_long_rows<T>(c, from, to));
    return to.give_back(c);
  }
  auto groups = [&](int64_t begin, int64_t end, T *memory) {
    for (; begin < end; begin += kGroup) {
      const int64_t rows = least(kGroup, end - begin);
      LogSum<T> sums[kGroup];
      log_sums(rows, n, [&](int64_t r) { return from.read(begin + r, memory); }, sums);
      for (int64_t r = 0; r < rows; r++) {
        const T *x = from.read(begin + r, memory);
        T *y = to.place(begin + r, memory + n);
        subtract_log_sum(x, n, sums[r].top, sums[r].rest, y);
        to.round(begin + r, y);
      }
    }
  };
  PLAIT_TRY(parallel_with_memory<T>(c, from.count(), grain(n),
                                    from.widens() || to.widens() ? 2 * n : 0, groups));
  return to.give_back(c);
}

plait_status softmax(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return by_columns<T>(c, 1)
                                                    ? softmax_columns<T>(c)
                                                    : map_rows<T>(c, softmax_row<T>))
  return PLAIT_OK;
}
plait_status log_softmax(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype),
                 return by_columns<T>(c, 1) ? log_softmax_columns<T>(c) : log_softmax_rows<T>(c))
  return PLAIT_OK;
}
plait_status softmax_backward(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return by_columns<T>(c, 2)
                                                    ? softmax_backward_columns<T>(c)
                                                    : map_rows_2<T>(c, softmax_backward_row<T>))
  return PLAIT_OK;
}
plait_status log_softmax_backward(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return by_columns<T>(c, 2)
                                                    ? log_softmax_backward_columns<T>(c)
                                                    : map_rows_2<T>(c, log_softmax_backward_row<T>))
  return PLAIT_OK;
}

// Sums of columns, whose vectors run along the results.
template <class T>
void logsumexp_columns(const plait_call *c, const Reduction &r, T *out) {
  const T *x = reinterpret_cast<const T *>(r.data);
  const int64_t n = r.reduced.count, width = r.kept.inner_size();
  const auto block = [&](int64_t o, int64_t first, int64_t count) {
    first += o * width;
    const Columns columns{r.kept.offset(first), r.reduced.inner_stride(), n, count};
    alignas(64) T top[kBeside], logs[kBeside];
    log_sums<true>(columns, x, top, logs);
    for (int64_t i = 0; i < count; i++) out[first + i] = LogSum<T>{top[i], logs[i]}.value();
  };
  each_block<T>(c, r.kept.count / width, n, width, block);
}

template <class T>
void logsumexp_rows(const plait_call *c, const Reduction &r, T *out) {
  const T *x = reinterpret_cast<const T *>(r.data);
  const int64_t n = r.reduced.count;
  parallel_ranges(c, r.kept.count, grain(n), [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kGroup) {
      const int64_t rows = least(kGroup, end - begin);
      LogSum<T> sums[kGroup];
      log_sums(rows, n, [&](int64_t i) { return x + r.kept.offset(begin + i); }, sums);
      for (int64_t i = 0; i < rows; i++) out[begin + i] = n ? sums[i].value() : -T(math::kInf);
    }
  });
}

// logsumexp(self, dim, keepdim)
plait_status logsumexp(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  const uint64_t mask = dims_mask(c, 1, in->ndim);
  Reduction r;
  describe(in, mask, &r);
  if (r.kept.count == 0) return PLAIT_OK;
  const bool columns = kind(in->dtype) == k && r.reduced.ndim == 1 &&
                       r.reduced.inner_stride() != 1 && r.kept.ndim && r.kept.inner_stride() == 1 &&
                       r.kept.inner_size() >= 8;
  Workspace space;
  if (!columns) {
    r = Reduction();
    PLAIT_TRY(prepare(c, in, mask, k, Layout::kRow, &space, &r));
  }
  PLAIT_FLOATING(k, {
    if (columns)
      logsumexp_columns<T>(c, r, data<T>(out));
    else
      logsumexp_rows<T>(c, r, data<T>(out));
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("softmax", softmax);
PLAIT_KERNEL("log_softmax", log_softmax);
PLAIT_KERNEL("softmax_backward", softmax_backward);
PLAIT_KERNEL("log_softmax_backward", log_softmax_backward);
PLAIT_KERNEL("logsumexp", logsumexp);

}  // namespace
}  // namespace plait::core

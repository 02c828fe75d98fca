// Attention in blocks (Dao et al. 2022): scores are computed tile by tile and never stored as a
// whole. The forward pass keeps the logarithm of each row's sum of exponentials, from which the
// backward pass computes the weights again.
#include "attention/attention.h"

namespace plait::core {
namespace {

constexpr int64_t kFew = 4;  // packing the keys does not pay for fewer queries
constexpr int64_t kWidened = 16;  // rows of halves that are widened at a time

// The state of a row after some keys: the largest score, and the sum of exponentials relative to
// it.
template <class T>
struct Seen {
  T top, sum;
};

// Turns n scores of a row into exponentials; the results so far are scaled to the new largest
// score.
template <class T>
void absorb(T *x, int64_t n, Seen<T> *seen, T *out, int64_t width) {
  const T block = largest(x, n), top = seen->top > block ? seen->top : block;
  const T shift = top == -T(math::kInf) ? T(0) : top;  // no key counted yet
  const T sum = exp_row_total(x, shift, n, x);
  const T scale = math::exp(seen->top - shift);
  if (scale != T(1))
    for (int64_t j = 0; j < width; j++) out[j] *= scale;
  *seen = {top, seen->sum * scale + sum};
}

// Adds n rows of `width` elements, each times its weight, to out.
template <class T>
void add_rows(Matrix<T> rows, const T *weight, int64_t n, int64_t width, T *out) {
  constexpr int64_t w = kLanes<T>, beside = 4;
  int64_t j = 0;
  if (rows.columns == 1)
    for (; j + beside * w <= width; j += beside * w) {
      Vec<T> sum[beside];
      for (int64_t v = 0; v < beside; v++) sum[v] = load(out + j + v * w);
      for (int64_t i = 0; i < n; i++)
        for (int64_t v = 0; v < beside; v++)
          sum[v] = fused(splat(weight[i]), load(rows.data + i * rows.rows + j + v * w), sum[v]);
      for (int64_t v = 0; v < beside; v++) store(out + j + v * w, sum[v]);
    }
  for (int64_t i = 0; j < width && i < n; i++)
    for (int64_t l = j; l < width; l++)
      out[l] = fused(weight[i], rows.data[i * rows.rows + l * rows.columns], out[l]);
}

template <class T>
constexpr int64_t kKept = int64_t(sizeof(Seen<T>) / sizeof(T));

template <class T>
class Forward {
 public:
  Forward(const plait_call *c, const HeadSizes &s)
      : c_(c),
        s_(s),
        query_(tensor(c, 0)),
        key_(tensor(c, 1)),
        value_(tensor(c, 2)),
        value_rows_(tensor(c, 2)),
        result_(result(c)),
        mask_(tensor(c, 3), tensor(c, 0), integer(c, 4) != 0) {}

  // Few queries: every key and value is read once for each, from where it lies. With few heads each
  // range of keys has its own results, which are put together in order.
  plait_status run_few() {
    ranges_ = least(ceil_div(kUnits, s_.heads > 0 ? s_.heads : 1), ceil_div(s_.keys, 8 * kKeys));
    if (ranges_ < 1) ranges_ = 1;
    range_ = ceil_div(ceil_div(s_.keys, ranges_), kKeys) * kKeys;
    PLAIT_TRY(
        parts_.take(c_, bytes_of(s_.heads * s_.queries, ranges_, s_.values + kKept<T>, sizeof(T))));
    const int64_t work = s_.queries * least(range_, s_.keys) * (s_.width + s_.values);
    const int64_t size = s_.width + kKeys + kWidened * most(s_.width, s_.values);
    PLAIT_TRY(each_unit<T>(c_, s_.heads * ranges_, work, size, [&](int64_t unit, T *memory) {
      few(unit / ranges_, unit % ranges_, memory);
    }));
    for (int64_t head = 0; head < s_.heads; head++)
      for (int64_t i = 0; i < s_.queries; i++) join(head, i);
    return PLAIT_OK;
  }

  plait_status run() {
    const int64_t blocks = ceil_div(s_.queries, kQueries), width = padded(s_.values);
    key_width_ = ceil_div(s_.keys, kPanel<T>) * kPanel<T>;
    PLAIT_TRY(value_rows_.take(c_, tensor(c_, 2), s_.heads, s_.keys, s_.values, T(1)));
    PLAIT_TRY(panels_.take(c_, bytes_of(s_.heads, key_width_, s_.width, sizeof(T))));
    PLAIT_TRY(each_unit<T>(c_, s_.heads, 8 * s_.keys * (s_.width + s_.values), kKeys * s_.width,
                           [&](int64_t head, T *memory) { pack(head, memory); }));
    const int64_t work = least(kQueries, s_.queries) * s_.keys * (s_.width + s_.values);
    const int64_t size = kQueries * (s_.width + kStride + width);
    return each_unit<T>(c_, s_.heads * blocks, work, size, [&](int64_t unit, T *memory) {
      block(unit / blocks, unit % blocks * kQueries, memory);
    });
  }

 private:
  T *panels(int64_t head) const { return panels_.as<T>() + head * key_width_ * s_.width; }
  void pack(int64_t head, T *memory) const {
    value_rows_.fill(head);
    for (int64_t j = 0; j < s_.keys; j += kKeys) {
      const int64_t n = least(kKeys, s_.keys - j);
      pack_panels(key_.read(head, j, n, s_.width, memory).transposed(), s_.width, n,
                  panels(head) + j * s_.width);
    }
  }

  void block(int64_t head, int64_t first, T *memory) const {
    const int64_t m = least(kQueries, s_.queries - first), width = padded(s_.values);
    T *q = memory, *scores = q + kQueries * s_.width, *out = scores + kQueries * kStride;
    Seen<T> seen[kQueries];
    for (int64_t i = 0; i < m; i++) seen[i] = {-T(math::kInf), T(0)};
    memset(out, 0, size_t(m * width) * sizeof(T));
    query_.pack(head, first, m, s_.width, s_.width, T(real(c_, 5)), q);
    const int64_t end = mask_.end(first + m - 1, s_.keys);
    for (int64_t begin = 0; begin < end; begin += kKeys) {
      const int64_t n = least(kKeys, end - begin), wide = ceil_div(n, kLanes<T>) * kLanes<T>;
      multiply_tile(m, ceil_div(n, kPanel<T>) * kPanel<T>, s_.width, {q, s_.width, 1},
                    Panels<T>::packed(panels(head) + begin * s_.width, s_.width), scores, kStride,
                    false);
      for (int64_t i = 0; i < m; i++) {
        mask_.apply(scores + i * kStride, head, first + i, begin, n);
        absorb(scores + i * kStride, wide, seen + i, out + i * width, width);
      }
      multiply_tile(m, width, n, {scores, kStride, 1},
                    Panels<T>::of_rows(value_rows_.rows(head, begin), width), out, width, true);
    }
    finish(head, first, m, seen, out, width);
  }

  // The results of a query from one range of keys, and after them what was seen of it.
  T *part(int64_t head, int64_t i, int64_t range) const {
    return parts_.as<T>() + ((head * s_.queries + i) * ranges_ + range) * (s_.values + kKept<T>);
  }

  void few(int64_t head, int64_t range, T *memory) const {
    T *q = memory, *scores = q + s_.width, *rows = scores + kKeys;
    for (int64_t i = 0; i < s_.queries; i++) {
      T *out = part(head, i, range);
      Seen<T> seen{-T(math::kInf), T(0)};
      memset(out, 0, size_t(s_.values) * sizeof(T));
      query_.pack(head, i, 1, s_.width, s_.width, T(real(c_, 5)), q);
      const int64_t end = least(mask_.end(i, s_.keys), (range + 1) * range_);
      for (int64_t begin = range * range_; begin < end; begin += kKeys) {
        const int64_t n = least(kKeys, end - begin);
        for (int64_t j = 0, m; j < n; j += m) {
          m = key_.widens() ? least(kWidened, n - j) : n;
          const Matrix<T> keys = key_.read(head, begin + j, m, s_.width, rows);
          for (int64_t r = 0; r < m; r++) scores[j + r] = dot(keys.at(r, 0), {q, 0, 1}, s_.width);
        }
        mask_.apply(scores, head, i, begin, n);
        absorb(scores, ceil_div(n, kLanes<T>) * kLanes<T>, &seen, out, s_.values);
        for (int64_t j = 0, m; j < n; j += m) {
          m = value_.widens() ? least(kWidened, n - j) : n;
          add_rows(value_.read(head, begin + j, m, s_.values, rows), scores + j, m, s_.values, out);
        }
      }
      memcpy(out + s_.values, &seen, sizeof seen);
    }
  }

  void join(int64_t head, int64_t i) const {
    T *out = part(head, i, 0);
    Seen<T> all, seen;
    memcpy(&all, out + s_.values, sizeof all);
    for (int64_t range = 1; range < ranges_; range++) {
      const T *from = part(head, i, range);
      memcpy(&seen, from + s_.values, sizeof seen);
      const T top = all.top > seen.top ? all.top : seen.top;
      const T shift = top == -T(math::kInf) ? T(0) : top;
      const T own = math::exp(all.top - shift), other = math::exp(seen.top - shift);
      for (int64_t j = 0; j < s_.values; j++) out[j] = out[j] * own + from[j] * other;
      all = {top, all.sum * own + seen.sum * other};
    }
    finish(head, i, 1, &all, out, s_.values);
  }

  void finish(int64_t head, int64_t first, int64_t m, const Seen<T> *seen, T *out,
              int64_t width) const {
    T *lse = data<T>(result(c_, 1)) + head * s_.queries + first;
    for (int64_t i = 0; i < m; i++) {
      // no key counts: the result is 0, and so are the weights below
      const bool blind = seen[i].sum == T(0);
      lse[i] = blind ? T(math::kInf) : seen[i].top + math::log(seen[i].sum);
      const T scale = blind ? T(0) : T(1) / seen[i].sum;
      for (int64_t j = 0; j < width; j++) out[i * width + j] *= scale;
    }
    result_.write(head, first, m, s_.values, width, out);
  }

  const plait_call *c_;
  HeadSizes s_;
  HeadRows<T> query_, key_, value_;
  PaddedRows<T> value_rows_;
  HeadRows<T> result_;
  ScoreMask<T> mask_;
  Workspace panels_, parts_;
  int64_t key_width_ = 0, ranges_ = 1, range_ = kKeys;
};

plait_status attention_forward(plait_call *c) {
  const HeadSizes s(tensor(c, 0), tensor(c, 1), tensor(c, 2));
  if (s.queries == 0) return PLAIT_OK;
  PLAIT_COMPUTED(kind(result(c)->dtype), {
    Forward<T> pass(c, s);
    return s.queries <= kFew ? pass.run_few() : pass.run();
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("attention_forward", attention_forward);

}  // namespace
}  // namespace plait::core

// The derivative of attention, in the blocks of attention.cpp.
#include "attention/attention.h"

namespace plait::core {
namespace {

// Turns n scores and gradients of weights into weights and gradients of scores; n is a multiple of
// the lanes.
template <class T>
void weights_row(T *x, T *g, int64_t n, T lse, T mean) {
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    const Vec<T> weight = exp_below(load(x + j) - splat(lse));
    store(x + j, weight);
    store(g + j, weight * (load(g + j) - splat(mean)));
  }
}

// attention_backward(grad, query, key, value, mask, result, lse, is_causal, scale)
template <class T>
class Backward {
 public:
  Backward(const plait_call *c, const HeadSizes &s)
      : c_(c),
        s_(s),
        grad_rows_(tensor(c, 0)),
        query_rows_(tensor(c, 1)),
        key_rows_(tensor(c, 2)),
        key_(tensor(c, 2)),
        value_(tensor(c, 3)),
        grad_(tensor(c, 0)),
        made_(tensor(c, 5)),
        mask_(tensor(c, 4), tensor(c, 1), integer(c, 7) != 0) {}

  plait_status run() {
    PLAIT_TRY(lse_.take(c_, tensor(c_, 6)));
    PLAIT_TRY(grad_rows_.take(c_, tensor(c_, 0), s_.heads, s_.queries, s_.values, T(1)));
    PLAIT_TRY(query_rows_.take(c_, tensor(c_, 1), s_.heads, s_.queries, s_.width, T(real(c_, 8))));
    PLAIT_TRY(key_rows_.take(c_, tensor(c_, 2), s_.heads, s_.keys, s_.width, T(1)));
    PLAIT_TRY(means_.take(c_, bytes_of(s_.heads, s_.queries, 1, sizeof(T))));
    // few heads: each range of keys sums up its own gradients of the queries
    ranges_ = ceil_div(kUnits, s_.heads > 0 ? s_.heads : 1);
    ranges_ = least(ranges_, ceil_div(s_.keys, 2 * kKeys));
    if (ranges_ < 1) ranges_ = 1;
    range_ = ceil_div(ceil_div(s_.keys, ranges_), kKeys) * kKeys;
    PLAIT_TRY(
        sums_.take(c_, bytes_of(s_.heads * ranges_, s_.queries, padded(s_.width), sizeof(T))));
    const int64_t each = (s_.queries + s_.keys) * (s_.width + s_.values);
    parallel_ranges(c_, s_.heads, kWork / 8 / (each + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n++) prepare(n);
    });
    const int64_t work = s_.queries * range_ * (s_.width + s_.values) * 2;
    const int64_t size = 2 * kQueries * kStride + kKeys * (s_.width + s_.values) +
                         kKeys * (padded(s_.width) + padded(s_.values));
    PLAIT_TRY(each_unit<T>(c_, s_.heads * ranges_, work, size, [&](int64_t unit, T *memory) {
      keys(unit / ranges_, unit % ranges_, memory);
    }));
    parallel_ranges(c_, s_.heads, kWork / 8 / (each + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n++) finish(n);
    });
    return PLAIT_OK;
  }

 private:
  T *sums(int64_t head, int64_t range) const {
    return sums_.as<T>() + (head * ranges_ + range) * s_.queries * padded(s_.width);
  }
  void prepare(int64_t head) const {
    grad_rows_.fill(head);
    query_rows_.fill(head);
    key_rows_.fill(head);
    T *means = means_.as<T>() + head * s_.queries;
    const Matrix<T> output = made_.of<T>(tensor(c_, 5), head), g = grad_.of<T>(tensor(c_, 0), head);
    for (int64_t i = 0; i < s_.queries; i++) means[i] = dot(output.at(i, 0), g.at(i, 0), s_.values);
  }

  // All gradients to which the keys of one range contribute.
  void keys(int64_t head, int64_t range, T *memory) const {
    const int64_t width = padded(s_.width), values = padded(s_.values);
    memset(sums(head, range), 0, size_t(s_.queries * width) * sizeof(T));
    const int64_t stop = least(s_.keys, (range + 1) * range_);
    T *key_panels = memory + 2 * kQueries * kStride, *value_panels = key_panels + kKeys * s_.width;
    T *by_key = value_panels + kKeys * s_.values, *by_value = by_key + kKeys * width;
    for (int64_t begin = range * range_; begin < stop; begin += kKeys) {
      const int64_t n = least(kKeys, stop - begin);
      pack_panels(key_.of<T>(tensor(c_, 2), head).at(begin, 0).transposed(), s_.width, n,
                  key_panels);
      pack_panels(value_.of<T>(tensor(c_, 3), head).at(begin, 0).transposed(), s_.values, n,
                  value_panels);
      memset(by_key, 0, size_t(kKeys * (width + values)) * sizeof(T));
      // queries before the block's first key do not see it, nor do those that follow see later ones
      for (int64_t first = mask_.first(begin); first < s_.queries; first += kQueries) {
        const int64_t m = least(kQueries, s_.queries - first);
        const int64_t seen = mask_.end(first + m - 1, s_.keys) - begin;
        block(head, range, first, m, begin, least(n, seen), memory);
      }
      write_rows(by_key, width, n, s_.width, T(1),
                 Heads(result(c_, 1)).of<T>(result(c_, 1), head).at(begin, 0));
      write_rows(by_value, values, n, s_.values, T(1),
                 Heads(result(c_, 2)).of<T>(result(c_, 2), head).at(begin, 0));
    }
  }

  void block(int64_t head, int64_t range, int64_t first, int64_t m, int64_t begin, int64_t n,
             T *memory) const {
    const int64_t width = padded(s_.width), values = padded(s_.values);
    const int64_t wide = ceil_div(n, kPanel<T>) * kPanel<T>;
    T *x = memory, *g = x + kQueries * kStride, *key_panels = g + kQueries * kStride;
    T *value_panels = key_panels + kKeys * s_.width, *by_key = value_panels + kKeys * s_.values;
    T *by_value = by_key + kKeys * width;
    const T *query = query_rows_.rows(head, first), *grad = grad_rows_.rows(head, first);
    multiply_tile(m, wide, s_.width, {query, width, 1}, Panels<T>::packed(key_panels, s_.width), x,
                  kStride, false);
    multiply_tile(m, wide, s_.values, {grad, values, 1}, Panels<T>::packed(value_panels, s_.values),
                  g, kStride, false);
    const T *lse = lse_ + head * s_.queries + first,
            *mean = means_.as<T>() + head * s_.queries + first;
    for (int64_t i = 0; i < m; i++) {
      mask_.apply(x + i * kStride, head, first + i, begin, n);
      weights_row(x + i * kStride, g + i * kStride, wide, lse[i], mean[i]);
    }
    multiply_tile(n, values, m, {x, 1, kStride}, Panels<T>::of_rows(grad, values), by_value, values,
                  true);
    multiply_tile(n, width, m, {g, 1, kStride}, Panels<T>::of_rows(query, width), by_key, width,
                  true);
    multiply_tile(m, width, n, {g, kStride, 1},
                  Panels<T>::of_rows(key_rows_.rows(head, begin), width),
                  sums(head, range) + first * width, width, true);
  }

  void finish(int64_t head) const {
    const int64_t width = padded(s_.width), n = s_.queries * width;
    T *to = sums(head, 0);
    for (int64_t range = 1; range < ranges_; range++) {
      const T *from = sums(head, range);
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    }
    const DLTensor *out = result(c_);
    write_rows(to, width, s_.queries, s_.width, T(real(c_, 8)), Heads(out).of<T>(out, head));
  }

  const plait_call *c_;
  HeadSizes s_;
  PaddedRows<T> grad_rows_, query_rows_, key_rows_;
  Heads key_, value_, grad_, made_;
  ScoreMask<T> mask_;
  Dense<T> lse_;
  Workspace means_, sums_;
  int64_t ranges_ = 1, range_ = kKeys;
};

plait_status attention_backward(plait_call *c) {
  const HeadSizes s(tensor(c, 1), tensor(c, 2), tensor(c, 3));
  PLAIT_FLOATING(kind(result(c)->dtype), return Backward<T>(c, s).run())
  return PLAIT_OK;
}

PLAIT_KERNEL("attention_backward", attention_backward);

}  // namespace
}  // namespace plait::core

// Pooling of regions of interest. The place of a sample is a row and a column, each with weights of
// its own, so that a bin's mean is a sum over some rows of sums over some columns. The tables of
// these are made once for a region and some of its channels.
#include "convolution/convolution.h"
#include "kernel/dense.h"
#include "vision/regions.h"

namespace plait::core {
namespace {

using namespace regions;

constexpr int64_t kChannels = 32;  // of a region, or of an image, for one unit of parallel work

int64_t blocks_of(const Geometry &v) { return ceil_div(v.channels, kChannels); }

// Truncates the number of a region's image. It was checked by `check_images`.
template <class T>
int64_t image_of(const T *roi) {
  return int64_t(roi[0]);
}

template <class T>
plait_status check_images(const plait_call *c, const T *rois, int64_t count, int64_t images) {
  for (int64_t r = 0; r < count; r++) {
    const double at = double(rois[5 * r]);
    if (!is_image(at, images))
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                        "`rois` must name images in [0, %lld) in its first column; row %lld has %g",
                        (long long)images, (long long)r, at);
  }
  return PLAIT_OK;
}

template <class T>
struct Entry {
  T weight;
  int32_t at;  // row or column of the image
};

// The entries of the bins of a region, along one side of it.
template <class T>
struct Side {
  Entry<T> *entries;
  int64_t *sizes;
  int64_t bins, pixels, room;  // room: for the entries of a bin

  static int64_t room_for(int64_t pixels, int64_t ratio) {
    return ratio > 0 && 2 * ratio < pixels ? 2 * ratio : pixels;
  }
  void add(int64_t bin, int64_t at, T weight) {
    Entry<T> *own = entries + bin * room;
    int64_t &n = sizes[bin];
    // samples go on in one direction: a row that was met is among the last three
    for (int64_t k = n - 1; k >= 0 && k >= n - 3; k--)
      if (own[k].at == at) {
        own[k].weight += weight;
        return;
      }
    if (n < room) own[n++] = {weight, int32_t(at)};
  }

  void sample(const Samples<T> &samples) {
    for (int64_t b = 0; b < bins; b++) {
      sizes[b] = 0;
      int64_t first, last, low;
      T part;
      samples.range(b, &first, &last);
      for (int64_t i = first; i < last; i++) {
        if (!samples.at(b, i, &low, &part)) continue;
        add(b, low, T(1) - part);
        if (low + 1 < pixels) add(b, low + 1, part);
      }
    }
  }

  // Pixels from corner to corner, of which there is one at least; `end`: no pixel from there on.
  void round(T start, T stop, int64_t end) {
    for (int64_t b = 0; b < bins; b++) {
      sizes[b] = 0;
      int64_t from, to;
      span(start, stop, 0, bins, b, end, &from, &to);
      for (int64_t at = from; at < to; at++) entries[b * room + sizes[b]++] = {T(1), int32_t(at)};
    }
  }
};

// The tables of one region.
template <class T>
class Tables {
 public:
  static int64_t bytes(const Geometry &v) { return side(v.ph, v.h, v) + side(v.pw, v.w, v); }
  Tables(const Geometry &v, char *scratch) : v_(v) {
    take(&rows_, v.ph, v.h, scratch);
    take(&columns_, v.pw, v.w, scratch + side(v.ph, v.h, v));
  }
  void set(const T *roi) {
    const T scale = T(v_.scale);
    if (v_.how == Pooling::kSensitivePool) {  // the last row and column are left out
      rows_.round(roi[2] * scale, roi[4] * scale, v_.h - 1);
      columns_.round(roi[1] * scale, roi[3] * scale, v_.w - 1);
      return;
    }
    const Samples<T> rows = samples_of(v_, roi[2], roi[4], v_.ph, v_.h);
    const Samples<T> columns = samples_of(v_, roi[1], roi[3], v_.pw, v_.w);
    rows_.sample(rows);
    columns_.sample(columns);
    divisor_ = divisor_of(v_, rows, columns);
  }
  // What the sum of a bin is divided by.
  T divisor(int64_t i, int64_t j) const {
    if (v_.how != Pooling::kSensitivePool) return divisor_;
    const int64_t pixels = rows_.sizes[i] * columns_.sizes[j];
    return T(pixels > 0 ? pixels : 1);
  }
  T mean(const T *image, int64_t i, int64_t j) const {
    const Entry<T> *y = rows_.entries + i * rows_.room, *x = columns_.entries + j * columns_.room;
    const int64_t n = rows_.sizes[i], m = columns_.sizes[j];
    T sum = T(0);
    for (int64_t a = 0; a < n; a++) {
      const T *row = image + y[a].at * v_.w;
      T part = T(0);
      for (int64_t b = 0; b < m; b++) part += x[b].weight * row[x[b].at];
      sum += y[a].weight * part;
    }
    return sum / divisor(i, j);
  }
  void spread(T grad, T *image, int64_t i, int64_t j) const {
    const Entry<T> *y = rows_.entries + i * rows_.room, *x = columns_.entries + j * columns_.room;
    const int64_t n = rows_.sizes[i], m = columns_.sizes[j];
    if (n == 0 || m == 0) return;
    const T each = grad / divisor(i, j);
    for (int64_t a = 0; a < n; a++) {
      T *row = image + y[a].at * v_.w;
      const T part = each * y[a].weight;
      for (int64_t b = 0; b < m; b++) row[x[b].at] += part * x[b].weight;
    }
  }

 private:
  static int64_t room(int64_t pixels, const Geometry &v) {
    return v.how == Pooling::kSensitivePool ? pixels : Side<T>::room_for(pixels, v.ratio);
  }
  static int64_t side(int64_t bins, int64_t pixels, const Geometry &v) {
    const int64_t entries = bins * room(pixels, v) * int64_t(sizeof(Entry<T>));
    return bins * int64_t(sizeof(int64_t)) + ceil_div(entries, 8) * 8;
  }
  void take(Side<T> *to, int64_t bins, int64_t pixels, char *scratch) {
    to->sizes = reinterpret_cast<int64_t *>(scratch);
    to->entries = reinterpret_cast<Entry<T> *>(scratch + bins * int64_t(sizeof(int64_t)));
    to->bins = bins, to->pixels = pixels, to->room = room(pixels, v_);
  }

  const Geometry &v_;
  Side<T> rows_{}, columns_{};
  T divisor_ = T(1);
};

// Regions for one unit of parallel work.
int64_t grain(const Geometry &v) {
  const int64_t channels = v.channels < kChannels ? v.channels : kChannels;
  return kSerial / (16 * channels * v.bins() + 1) + 1;
}

template <class T>
plait_status pooled(const plait_call *c, const Geometry &v) {
  DLTensor *out = result(c);
  Dense<T> x, rois;
  PLAIT_TRY(x.take(c, tensor(c, 0)));
  PLAIT_TRY(rois.take(c, tensor(c, 1)));
  PLAIT_TRY(check_images<T>(c, rois, v.count, v.n));
  if (numel(out) == 0) return PLAIT_OK;
  const T *images = x, *boxes = rois;
  T *to = data<T>(out);
  return with_scratch<char>(
      c, v.count * blocks_of(v), grain(v), Tables<T>::bytes(v), [&](int64_t task, char *scratch) {
        const int64_t r = task / blocks_of(v), first = task % blocks_of(v) * kChannels;
        const int64_t last = first + kChannels < v.channels ? first + kChannels : v.channels;
        Tables<T> tables(v, scratch);
        tables.set(boxes + 5 * r);
        const T *image = images + image_of(boxes + 5 * r) * v.c * v.area();
        T *y = to + (r * v.channels + first) * v.bins();
        for (int64_t o = first; o < last; o++)
          for (int64_t i = 0; i < v.ph; i++)
            for (int64_t j = 0; j < v.pw; j++) {
              const int64_t channel = v.channel(o, i, j);
              *y++ = tables.mean(image + channel * v.area(), i, j);
            }
      });
}

// Each unit of work has some channels of one image to itself, and takes the regions in their order.
template <class T>
plait_status spread(const plait_call *c, const Geometry &v) {
  DLTensor *out = result(c);
  Dense<T> g, rois;
  PLAIT_TRY(g.take(c, tensor(c, 0)));
  PLAIT_TRY(rois.take(c, tensor(c, 1)));
  PLAIT_TRY(check_images<T>(c, rois, v.count, v.n));
  if (numel(out) == 0) return PLAIT_OK;
  const T *grads = g, *boxes = rois;
  const int64_t own =
      v.is_sensitive() ? v.bins() : 1;  // channels of the image for one of the result
  return with_scratch<char>(
      c, v.n * blocks_of(v), 1, Tables<T>::bytes(v), [&](int64_t task, char *scratch) {
        const int64_t b = task / blocks_of(v), first = task % blocks_of(v) * kChannels;
        const int64_t last = first + kChannels < v.channels ? first + kChannels : v.channels;
        T *image = data<T>(out) + b * v.c * v.area();
        memset(image + first * own * v.area(), 0,
               size_t((last - first) * own * v.area()) * sizeof(T));
        Tables<T> tables(v, scratch);
        for (int64_t r = 0; r < v.count; r++) {
          if (image_of(boxes + 5 * r) != b) continue;
          tables.set(boxes + 5 * r);
          const T *from = grads + (r * v.channels + first) * v.bins();
          for (int64_t o = first; o < last; o++)
            for (int64_t i = 0; i < v.ph; i++)
              for (int64_t j = 0; j < v.pw; j++) {
                const int64_t channel = v.channel(o, i, j);
                tables.spread(*from++, image + channel * v.area(), i, j);
              }
        }
      });
}

template <Pooling how>
plait_status forward(plait_call *c) {
  const Geometry v = geometry(c, how, tensor(c, 0)->shape, 2);
  PLAIT_FLOATING(kind(result(c)->dtype), return pooled<T>(c, v))
  return PLAIT_OK;
}
template <Pooling how>
plait_status backward(plait_call *c) {
  const Geometry v = geometry(c, how, result(c)->shape, 3);
  PLAIT_FLOATING(kind(result(c)->dtype), return spread<T>(c, v))
  return PLAIT_OK;
}

template <class T>
plait_status largest(const plait_call *c) {
  const int64_t *size = tensor(c, 0)->shape;
  const int64_t channels = size[1], h = size[2], w = size[3];
  DLTensor *out = result(c, 0);
  const int64_t count = out->shape[0], ph = out->shape[2], pw = out->shape[3];
  Dense<T> x, rois;
  PLAIT_TRY(x.take(c, tensor(c, 0)));
  PLAIT_TRY(rois.take(c, tensor(c, 1)));
  PLAIT_TRY(check_images<T>(c, rois, count, size[0]));
  if (numel(out) == 0) return PLAIT_OK;
  const T *images = x, *boxes = rois, scale = T(real(c, 2));
  const int64_t blocks = ceil_div(channels, kChannels);
  T *values = data<T>(out);
  int32_t *places = data<int32_t>(result(c, 1));
  parallel_ranges(c, count * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t r = task / blocks, first = task % blocks * kChannels;
      const int64_t last = first + kChannels < channels ? first + kChannels : channels;
      const T *roi = boxes + 5 * r;
      const T *image = images + image_of(roi) * channels * h * w;
      for (int64_t i = 0; i < ph; i++) {
        int64_t top, bottom, left, right;
        span(roi[2] * scale, roi[4] * scale, 1, ph, i, h, &top, &bottom);
        for (int64_t j = 0; j < pw; j++) {
          span(roi[1] * scale, roi[3] * scale, 1, pw, j, w, &left, &right);
          for (int64_t k = first; k < last; k++) {
            const T *plane = image + k * h * w;
            int64_t at = -1;
            T best = T(0);
            for (int64_t a = top; a < bottom; a++)
              for (int64_t b = left; b < right; b++)
                if (at < 0 || is_better(plane[a * w + b], best)) best = plane[at = a * w + b];
            values[((r * channels + k) * ph + i) * pw + j] = best;
            places[((r * channels + k) * ph + i) * pw + j] = int32_t(at);
          }
        }
      }
    }
  });
  return PLAIT_OK;
}

// roi_pool(input, rois, spatial_scale, pooled_height, pooled_width) -> (result, argmax)
plait_status roi_pool(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return largest<T>(c))
  return PLAIT_OK;
}

template <class T>
plait_status largest_backward(const plait_call *c) {
  const DLTensor *grad = tensor(c, 0);
  DLTensor *out = result(c);
  const int64_t count = grad->shape[0], bins = grad->shape[2] * grad->shape[3];
  const int64_t channels = out->shape[1], area = out->shape[2] * out->shape[3];
  Dense<T> g, rois;
  Dense<int32_t> argmax;
  PLAIT_TRY(g.take(c, grad));
  PLAIT_TRY(rois.take(c, tensor(c, 1)));
  PLAIT_TRY(argmax.take(c, tensor(c, 2)));
  PLAIT_TRY(check_images<T>(c, rois, count, out->shape[0]));
  if (numel(out) == 0) return PLAIT_OK;
  const T *from = g, *boxes = rois;
  const int32_t *places = argmax;
  bool bad = false;
  parallel_ranges(c, out->shape[0] * channels, kSerial / area + 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      T *plane = data<T>(out) + p * area;
      memset(plane, 0, size_t(area) * sizeof(T));
      for (int64_t r = 0; r < count; r++) {
        if (image_of(boxes + 5 * r) != p / channels) continue;
        const int64_t first = (r * channels + p % channels) * bins;
        for (int64_t k = first; k < first + bins; k++) {
          const int64_t at = places[k];
          if (at == -1) continue;
          if (at < 0 || at >= area) {
            __atomic_store_n(&bad, true, __ATOMIC_RELAXED);
            continue;
          }
          plane[at] += from[k];
        }
      }
    }
  });
  if (bad)
    return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                      "`argmax` must be in [-1, %lld) for images of %lld x %lld", (long long)area,
                      (long long)out->shape[2], (long long)out->shape[3]);
  return PLAIT_OK;
}

// roi_pool_backward(grad, rois, argmax, size)
plait_status roi_pool_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return largest_backward<T>(c))
  return PLAIT_OK;
}

PLAIT_KERNEL("roi_align", forward<Pooling::kAlign>);
PLAIT_KERNEL("roi_align_backward", backward<Pooling::kAlign>);
PLAIT_KERNEL("ps_roi_align", forward<Pooling::kSensitiveAlign>);
PLAIT_KERNEL("ps_roi_align_backward", backward<Pooling::kSensitiveAlign>);
PLAIT_KERNEL("ps_roi_pool", forward<Pooling::kSensitivePool>);
PLAIT_KERNEL("ps_roi_pool_backward", backward<Pooling::kSensitivePool>);
PLAIT_KERNEL("roi_pool", roi_pool);
PLAIT_KERNEL("roi_pool_backward", roi_pool_backward);

}  // namespace
}  // namespace plait::core

#include "emulation/cudnn/convolution.h"

#include <cmath>
#include <cstring>

#include <plait/half.h>

namespace plait::cuda::emulation {
namespace {

using namespace cudnn;  // NOLINT: the numbers of attributes

int64_t size_of(int type) { return type == kDouble ? 8 : type == kFloat ? 4 : 2; }

bool read_tensor(const CudnnDescriptor *from, ConvolutionTensor *to) {
  if (!from || from->count<int64_t>(kTensorSizes) != kDims) return false;
  memcpy(to->sizes, from->values<int64_t>(kTensorSizes), sizeof to->sizes);
  memcpy(to->strides, from->values<int64_t>(kTensorStrides), sizeof to->strides);
  to->type = *from->values<int>(kTensorType);
  to->id = *from->values<int64_t>(kTensorId);
  to->alignment = *from->values<int64_t>(kTensorAlignment);
  return true;
}

double get(const ConvolutionTensor &t, const char *data, int64_t at, bool rounds) {
  double wide;
  float narrow;
  uint16_t half;
  const char *from = data + at * size_of(t.type);
  switch (t.type) {
    case kDouble: memcpy(&wide, from, 8); return wide;
    case kHalf: memcpy(&half, from, 2); return double(plait_float16_to_float(half));
    case kBFloat: memcpy(&half, from, 2); return double(plait_bfloat16_to_float(half));
    default: break;
  }
  memcpy(&narrow, from, 4);
  if (!rounds || !std::isfinite(narrow)) return double(narrow);
  int exponent;
  const double mantissa = std::frexp(double(narrow), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11);
}

void set(const ConvolutionTensor &t, char *data, int64_t at, double value) {
  char *to = data + at * size_of(t.type);
  const auto narrow = float(value);
  uint16_t half;
  switch (t.type) {
    case kDouble: memcpy(to, &value, 8); break;
    case kHalf: half = plait_float16_of_float(narrow), memcpy(to, &half, 2); break;
    case kBFloat: half = plait_bfloat16_of_float(narrow), memcpy(to, &half, 2); break;
    default: memcpy(to, &narrow, 4);
  }
}

// Calls a function with all indices, in row-major order.
template <class F>
void for_each(const Sizes &sizes, F function) {
  for (int64_t a = 0; a < sizes[0]; a++)
    for (int64_t b = 0; b < sizes[1]; b++)
      for (int64_t i = 0; i < sizes[2]; i++)
        for (int64_t j = 0; j < sizes[3]; j++) function(a, b, i, j);
}

int64_t place(const Sizes &strides, int64_t a, int64_t b, int64_t i, int64_t j) {
  return a * strides[0] + b * strides[1] + i * strides[2] + j * strides[3];
}

// Numbers of a tensor in row-major order.
std::vector<double> unpack(const ConvolutionTensor &t, const char *data, bool rounds) {
  std::vector<double> all;
  for_each(t.sizes, [&](int64_t a, int64_t b, int64_t i, int64_t j) {
    all.push_back(get(t, data, place(t.strides, a, b, i, j), rounds));
  });
  return all;
}

void pack(const ConvolutionTensor &t, const std::vector<double> &all, char *data) {
  size_t next = 0;
  for_each(t.sizes, [&](int64_t a, int64_t b, int64_t i, int64_t j) {
    set(t, data, place(t.strides, a, b, i, j), all[next++]);
  });
}

}  // namespace

int64_t ConvolutionTensor::bytes() const {
  const int64_t last = place(strides, sizes[0] - 1, sizes[1] - 1, sizes[2] - 1, sizes[3] - 1);
  return (last + 1) * size_of(type);
}

bool ConvolutionProblem::read_geometry(const CudnnDescriptor &from) {
  if (*from.values<int>(kConvolutionMode) != kCrossCorrelation ||
      *from.values<int64_t>(kConvolutionDims) != kDims - 2)
    return false;
  memcpy(stride, from.values<int64_t>(kConvolutionStrides), sizeof stride);
  memcpy(dilation, from.values<int64_t>(kConvolutionDilations), sizeof dilation);
  memcpy(padding, from.values<int64_t>(kConvolutionPaddingBefore), sizeof padding);
  return !memcmp(padding, from.values<int64_t>(kConvolutionPaddingAfter), sizeof padding);
}

bool ConvolutionProblem::fits() const {
  const int64_t *const x = image.sizes, *const w = weight.sizes, *const y = result.sizes;
  bool same = weight.type == image.type && weight.type == result.type;
  same = same && x[0] == y[0] && w[0] == y[1] && w[1] > 0 && x[1] % w[1] == 0;
  same = same && w[0] % (x[1] / w[1]) == 0;
  for (int d = 0; d < 2 && same; d++) {
    const int64_t reach = dilation[d] * (w[2 + d] - 1);
    same = y[2 + d] == (x[2 + d] + 2 * padding[d] - reach - 1) / stride[d] + 1;
  }
  return same;
}

bool ConvolutionProblem::read(const CudnnDescriptor &from) {
  operation = from.type;
  const int first = operation == kForward        ? kForwardFirst
                    : operation == kBackwardData ? kBackwardDataFirst
                                                 : kBackwardFilterFirst;
  const CudnnDescriptor *const geometry = from.inner(first + 2, kConvolution);
  if (!geometry || !read_geometry(*geometry) ||
      !read_tensor(from.inner(first + 3, kTensor), &weight) ||
      !read_tensor(from.inner(first + 4, kTensor), &image) ||
      !read_tensor(from.inner(first + 5, kTensor), &result))
    return false;
  const bool is_double = weight.type == kDouble;
  const int factor = is_double ? kDoubleValue : kFloatValue;
  return from.attributes.at(first).type == factor && from.attributes.at(first + 1).type == factor &&
         *geometry->values<int>(kConvolutionCompute) == (is_double ? kDouble : kFloat) && fits();
}

void ConvolutionProblem::compute(char *weight_data, char *image_data, char *result_data,
                                 bool rounds) const {
  std::vector<double> w = unpack(weight, weight_data, rounds);
  std::vector<double> x = unpack(image, image_data, rounds);
  std::vector<double> y = unpack(result, result_data, rounds);
  std::vector<double> &out = operation == kForward ? y : operation == kBackwardData ? x : w;
  for (double &each : out) each = 0;
  const Sizes &xs = image.sizes, &ws = weight.sizes;
  const int64_t filters = ws[0] / (xs[1] / ws[1]);  // of a group
  const Sizes window = {1, ws[1], ws[2], ws[3]};
  size_t at = 0;
  for_each(result.sizes, [&](int64_t n, int64_t o, int64_t i, int64_t j) {
    auto tap = size_t(o * ws[1] * ws[2] * ws[3]);
    for_each(window, [&](int64_t, int64_t c, int64_t p, int64_t q) {
      const int64_t u = i * stride[0] - padding[0] + p * dilation[0];
      const int64_t v = j * stride[1] - padding[1] + q * dilation[1];
      const size_t filter = tap++;
      if (u < 0 || v < 0 || u >= xs[2] || v >= xs[3]) return;
      const auto pixel = size_t(((n * xs[1] + o / filters * ws[1] + c) * xs[2] + u) * xs[3] + v);
      switch (operation) {
        case kForward: y[at] += w[filter] * x[pixel]; break;
        case kBackwardData: x[pixel] += w[filter] * y[at]; break;
        default: w[filter] += x[pixel] * y[at];
      }
    });
    at++;
  });
  switch (operation) {
    case kForward: return pack(result, y, result_data);
    case kBackwardData: return pack(image, x, image_data);
    default: return pack(weight, w, weight_data);
  }
}

}  // namespace plait::cuda::emulation

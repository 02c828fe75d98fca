#include "host/convolution.h"

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "host/cudnn.h"
#include "host/dense.h"
#include "host/device.h"

namespace plait::cuda {
namespace {

using namespace cudnn;  // NOLINT: descriptors and numbers of the library

constexpr int kDims = 4;
enum : int64_t { kImageId = 1, kWeightId, kResultId };
enum class Format { Planes, Pixels };  // row-major order; channels last

struct TensorRequest {
  int64_t sizes[kDims], strides[kDims];
  int64_t alignment;
};

// What one convolution is for the library. All bytes of it are a key.
struct Request {
  TensorRequest image, weight, result;
  int64_t stride[2], padding[2], dilation[2];
  int32_t pass, type, device, exact;
};

std::unordered_map<std::string, Plan> &plans() {
  static auto *all = new std::unordered_map<std::string, Plan>();  // under the lock
  return *all;
}

void set_strides(const int64_t *sizes, Format format, int64_t *to) {
  static const int orders[][kDims] = {{3, 2, 1, 0}, {1, 3, 2, 0}};  // the innermost first
  int64_t next = 1;
  for (const int d : orders[format == Format::Pixels]) to[d] = next, next *= sizes[d];
}

bool lies_in(const DLTensor *t, Format format) {
  int64_t strides[kDims];
  set_strides(t->shape, format, strides);
  for (int d = 0; d < kDims; d++)
    if (t->shape[d] != 1 && t->strides[d] != strides[d]) return false;
  return true;
}

// An operand as the library reads it: in one of the two formats, if need be as a copy.
struct Operand {
  const DLTensor *tensor;
  Format format;
  bool is_copied;
  DeviceWorkspace space;
  const void *data = nullptr;

  Operand(const DLTensor *t, Format preferred) : tensor(t), format(preferred) {
    if (!lies_in(t, format)) format = preferred == Format::Planes ? Format::Pixels : Format::Planes;
    is_copied = !lies_in(t, format);
    if (is_copied) format = Format::Planes;
  }
  void describe(TensorRequest *to) const {
    constexpr uintptr_t kMost = 16;  // more does not matter to the library
    memcpy(to->sizes, tensor->shape, sizeof to->sizes);
    set_strides(tensor->shape, format, to->strides);
    const uintptr_t low = (is_copied ? 0 : reinterpret_cast<uintptr_t>(tensor->data)) | kMost;
    to->alignment = int64_t(low & (~low + 1));
  }
  plait_status prepare(const plait_call *c) {
    if (is_copied) return make_dense(c, tensor, &space, &data);
    return data = tensor->data, PLAIT_OK;
  }
};

int type_of(Kind kind) {
  switch (kind) {
    case F32: return kFloat;
    case F64: return kDouble;
    case F16: return kHalf;
    case BF16: return kBFloat;
    default: return -1;
  }
}

Descriptor describe(const TensorRequest &t, int64_t id, int type) {
  Descriptor d(kTensor);
  d.set(kTensorType, kDataTypeValue, type)
      .set(kTensorSizes, kInt64Value, kDims, t.sizes)
      .set(kTensorStrides, kInt64Value, kDims, t.strides)
      .set(kTensorAlignment, kInt64Value, t.alignment)
      .set(kTensorId, kInt64Value, id)
      .finish();
  return d;
}

Descriptor describe(const Request &r) {
  const bool is_double = r.type == kDouble;
  const int64_t dims = kDims - 2;
  Descriptor geometry(kConvolution);
  geometry.set(kConvolutionCompute, kDataTypeValue, is_double ? int(kDouble) : int(kFloat))
      .set(kConvolutionMode, kConvolutionModeValue, int(kCrossCorrelation))
      .set(kConvolutionDims, kInt64Value, dims)
      .set(kConvolutionStrides, kInt64Value, dims, r.stride)
      .set(kConvolutionDilations, kInt64Value, dims, r.dilation)
      .set(kConvolutionPaddingBefore, kInt64Value, dims, r.padding)
      .set(kConvolutionPaddingAfter, kInt64Value, dims, r.padding)
      .finish();
  const Descriptor image = describe(r.image, kImageId, r.type);
  const Descriptor weight = describe(r.weight, kWeightId, r.type);
  const Descriptor result = describe(r.result, kResultId, r.type);
  const Pass pass = Pass(r.pass);
  const int first = pass == Pass::Forward   ? kForwardFirst
                    : pass == Pass::ByInput ? kBackwardDataFirst
                                            : kBackwardFilterFirst;
  Descriptor operation(pass == Pass::Forward   ? kForward
                       : pass == Pass::ByInput ? kBackwardData
                                               : kBackwardFilter);
  const double factors[] = {1, 0};
  const float short_factors[] = {1, 0};
  for (int i = 0; i < 2; i++)
    if (is_double)
      operation.set(first + i, kDoubleValue, factors[i]);
    else
      operation.set(first + i, kFloatValue, short_factors[i]);
  operation.set(first + 2, geometry)
      .set(first + 3, weight)
      .set(first + 4, image)
      .set(first + 5, result)
      .finish();
  return operation;
}

// Engines that give other bits in every run are refused, and those whose sums are rounded to
// halves; for float32 those that convert operands to halves, and if the user asks for exact
// convolutions, those that convert them to TF32.
Limits limits_of(const Request &r) {
  uint32_t refused = 1u << kNondeterministic | 1u << kReducedReduction;
  if (r.type == kFloat) refused |= 1u << kDownConvert;
  if (r.exact) refused |= 1u << kTensorCore;
  const int64_t item = r.type == kDouble ? 8 : r.type == kFloat ? 4 : 2;
  int64_t bytes = 0;
  for (const TensorRequest *t : {&r.image, &r.weight, &r.result})
    bytes += item * t->sizes[0] * t->sizes[1] * t->sizes[2] * t->sizes[3];
  return {refused, (int64_t(32) << 20) + 2 * bytes};
}

plait_status fail(const plait_call *c, const Request &r, const char *text) {
  const auto shape = [](const TensorRequest &t) {
    std::string to;
    for (const int64_t size : t.sizes) to += (to.empty() ? "(" : ", ") + std::to_string(size);
    return to + ")";
  };
  return PLAIT_FAIL(c, PLAIT_ERROR,
                    "cuDNN failed (%s) for images of shape %s and a weight of shape %s; "
                    "PLAIT_CUDA_CUDNN=0 in the environment does without it",
                    text, shape(r.image).c_str(), shape(r.weight).c_str());
}

}  // namespace

plait_status convolution_by_library(const plait_call *c, const Convolution &v) {
  const int type = type_of(kind(v.image->dtype));
  if (type < 0 || !is_usable()) return PLAIT_DECLINE;
  Operand image(v.image, Format::Planes), weight(v.weight, image.format);
  Operand result(v.result, v.pass == Pass::Forward ? Format::Planes : image.format);
  Request r;
  memset(&r, 0, sizeof r);
  image.describe(&r.image), weight.describe(&r.weight), result.describe(&r.result);
  for (int d = 0; d < 2; d++)
    r.stride[d] = v.stride[d], r.padding[d] = v.padding[d], r.dilation[d] = v.dilation[d];
  r.pass = int32_t(v.pass), r.type = type, r.device = c->device.device_id;
  r.exact = type == kFloat && has_setting(PLAIT_SETTING_EXACT_CONVOLUTIONS);
  PLAIT_TRY(use(c->thread, c->device));
  const Plan *plan;
  Handle handle;
  {
    const std::lock_guard<ForkMutex> hold(cudnn::lock());
    handle = handle_of(c);
    if (!handle) return PLAIT_DECLINE;
    const std::string key(reinterpret_cast<const char *>(&r), sizeof r);
    auto found = plans().find(key);
    if (found == plans().end())
      found = plans().emplace(key, choose_plan(handle, describe(r), limits_of(r))).first;
    plan = &found->second;
  }
  if (!plan->works) return PLAIT_DECLINE;
  for (Operand *each : {&image, &weight, &result}) PLAIT_TRY(each->prepare(c));
  static const char *const names[] = {"cudnn_convolution", "cudnn_convolution_input",
                                      "cudnn_convolution_weight"};
  char text[512];
  bool done = false;
  PLAIT_TRY(run_plan(c, handle, *plan, names[r.pass],
                     {{kImageId, image.data}, {kWeightId, weight.data}, {kResultId, result.data}},
                     &done, text));
  return done ? PLAIT_OK : fail(c, r, text);
}

}  // namespace plait::cuda

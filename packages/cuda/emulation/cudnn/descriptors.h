// Descriptors of the stand-in for cuDNN: attributes by number, as they were set.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "host/cudnn_types.h"

namespace plait::cuda::emulation {

struct Attribute {
  int type;
  std::vector<char> bytes;
};

// A way to compute a convolution; `notes` are bits.
struct Engine {
  uint32_t notes;
  int64_t workspace;
};

struct ConvolutionProblem;

// What a finished descriptor needs of others, it has itself: those may be destroyed.
struct CudnnDescriptor {
  int type;
  bool is_finished = false;
  std::map<int, Attribute> attributes;
  std::shared_ptr<const ConvolutionProblem> problem;  // from an operation on
  Engine engine{};  // of an engine, a config and a plan

  template <class T>
  const T *values(int attribute) const {
    const auto at = attributes.find(attribute);
    return at == attributes.end() ? nullptr : reinterpret_cast<const T *>(at->second.bytes.data());
  }
  template <class T>
  int64_t count(int attribute) const {
    const auto at = attributes.find(attribute);
    return at == attributes.end() ? 0 : int64_t(at->second.bytes.size() / sizeof(T));
  }
  // A descriptor that was set; NULL: none, or one of another type, or it is not finished.
  const CudnnDescriptor *inner(int attribute, int wanted) const {
    const auto *raw = values<const CudnnDescriptor *>(attribute);
    return raw && *raw && (*raw)->type == wanted && (*raw)->is_finished ? *raw : nullptr;
  }
};

}  // namespace plait::cuda::emulation

// Types and numbers of cuDNN's graph interface, as its documentation gives them. The names are
// ours.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/types.h"

namespace plait::cuda::cudnn {

using Handle = void *;
using RawDescriptor = void *;
using Status = int;

enum : int {
  kSuccess = 0,
  kBadParameter = 2000,
  kNotSupported = 3000,
  kExecutionFailed = 5000,
};
enum DataType : int { kFloat = 0, kDouble = 1, kHalf = 2, kBFloat = 9 };
enum : int { kCrossCorrelation = 1 };

enum DescriptorType : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

// The C types of attributes' values.
enum ValueType : int {
  kHandleValue = 0,
  kDataTypeValue = 1,
  kInt64Value = 3,
  kFloatValue = 4,
  kDoubleValue = 5,
  kPointerValue = 6,
  kConvolutionModeValue = 7,
  kHeuristicModeValue = 8,
  kNoteValue = 11,
  kDescriptorValue = 15,
};

enum Attribute : int {
  kConvolutionCompute = 100,  // the data type of sums
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPaddingAfter = 104,
  kConvolutionPaddingBefore = 105,
  kConvolutionDims = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  // of each of the three operations: alpha, beta, convolution, then its tensors
  kForwardFirst = 700,  // ..., w, x, y
  kBackwardDataFirst = 706,  // ..., w, dx, dy
  kBackwardFilterFirst = 712,  // ..., dw, x, dy
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
};

enum Mode : int { kModeFallback = 2, kModeA = 3 };

// What is said about the numbers that an engine gives.
enum Note : int {
  kTensorCore = 0,
  kDownConvert = 1,
  kReducedReduction = 2,
  kNondeterministic = 4,
  kNotes = 10,  // more than there are
};

}  // namespace plait::cuda::cudnn

// Weights in the form in which a kernel reads them, packed or transformed, which are kept between
// calls while the weights are not written: see docs/design/0028.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

struct KeptBytes;

enum class PackedForm : uint32_t {  // what the bytes are: one for each function that makes them
  Right,           // of a product, by pack_operand, of the transposed weight
  ChannelFilters,  // of a convolution, [group][panel][kh][kw][channel][filters of a panel]
  WinogradFilters,  // of Winograd's algorithm: [group][panel][channel][kh][kw][filters of a panel]
  PointwiseFilters,  // of a 1x1 window: rows, further apart than a multiple of a set of the cache
  PointwisePanels,  // of a 1x1 window: [group][panel][channel][filters of a panel]
  DepthwiseFactors,  // of planes side by side: [filter of a channel][kh][kw][channel]
};

class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(const PackedWeight &) = delete;
  PackedWeight &operator=(const PackedWeight &) = delete;
  ~PackedWeight();

  // `bytes` bytes that make(void *to), which returns a status, writes of argument `i` of the call.
  // They depend on that tensor, `form` and `bytes` alone. They are kept from the second time on
  // that they are requested in a call without gradients, if the weights lie in memory that plait
  // alone writes; else they live as long as this object. What is done with them may not depend on
  // which it is.
  template <class F>
  plait_status take(const plait_call *c, int i, PackedForm form, uint64_t bytes, F &&make) {
    if (find(c, i, form, bytes)) return PLAIT_OK;
    PLAIT_TRY(room(c, bytes));
    PLAIT_TRY(make(data_));
    keep();
    return PLAIT_OK;
  }
  // For a call that keeps nothing: what is kept of an argument that has been written goes.
  static void pass(const plait_call *c, int i);
  template <class T>
  const T *as() const {
    return static_cast<const T *>(data_);
  }

 private:
  bool find(const plait_call *c, int i, PackedForm form, uint64_t bytes);
  plait_status room(const plait_call *c, uint64_t bytes);
  void keep();

  void *data_ = nullptr;
  KeptBytes *kept_ = nullptr;  // it is in use, or its bytes are being made
  bool making_ = false;
  Workspace space_;
};

inline plait_role engine_role;  // set when the library is loaded

// Whether `take` of argument `i` keeps bytes between calls: the call runs without gradients, and
// plait alone writes the argument's memory.
bool may_keep_packed(const plait_call *c, int i);

}  // namespace plait::core

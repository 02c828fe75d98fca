// Whether tensors that a collective writes share elements with others.
#pragma once
#include <plait/plait.hpp>

namespace plait::multiprocessing {

struct Overlap {
  enum Kind { none, within_outputs, with_input } kind = none;
  uint32_t index = 0;  // of the output, or of the input
};

// An output must not have an element twice, nor one of another output. An input may be an output
// exactly (`any_index` false: the one of its own index alone), and overlap none otherwise.
Overlap find_overlap(plait_tensor *const *in, uint32_t n_in, plait_tensor *const *out,
                     uint32_t n_out, bool any_index);

}  // namespace plait::multiprocessing

// What the user asks of the kernels of plait_core, beside the settings of plait/abi.h: bits of the
// same word, from the highest one down. Bits 8 to 11 have Winograd's mode
// (convolution/winograd_mode.h).
#pragma once
#include <cstdint>

namespace plait::core {

constexpr uint64_t kPackWeightsAnew = uint64_t(1) << 63;  // nothing packed is kept between calls
constexpr uint64_t kReproducible = uint64_t(1) << 62;  // the same bits on every processor

bool keeps_packed_weights();

// Whether rows of a result may not depend on other rows.
bool batch_invariant();

// In this mode results depend neither on the instruction set nor on the batch, and what has no such
// way is refused (docs/design/0029).
bool reproducible();

}  // namespace plait::core

// What the user asks of the kernels of plait_core, beside the settings of plait/abi.h: bits of the
// same word, from the highest one down.
#ifndef PLAIT_CORE_SETTINGS_H
#define PLAIT_CORE_SETTINGS_H
#include <cstdint>

namespace plait::core {

constexpr uint64_t kPackWeightsAnew = uint64_t(1) << 63;  // nothing packed is kept between calls

bool keeps_packed_weights();

}  // namespace plait::core
#endif  // PLAIT_CORE_SETTINGS_H

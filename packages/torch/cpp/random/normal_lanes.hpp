// Box and Muller's transform of 16 uniform numbers in float32.
#pragma once

namespace plait::pytorch {

// u: 16 numbers in [0, 1), which become 16 numbers of a normal distribution.
void normal_16(float *u, float mean, float deviation);

// The same with the vectorised logarithm, sine and cosine that PyTorch uses where a processor has
// AVX2; they differ from those of the C library by a few units in the last place.
bool has_normal_lanes();
void normal_16_lanes(float *u, float mean, float deviation);

}  // namespace plait::pytorch

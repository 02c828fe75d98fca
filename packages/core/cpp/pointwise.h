// The name by which the units that plait-ops emits know it.
#include "kernels/pointwise.h"

// Register code for every processor of an architecture.
#define PLAIT_STEPS base_steps
#define PLAIT_VECTOR_BYTES 16
#include "program/register_steps.hpp"

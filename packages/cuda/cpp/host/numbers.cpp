#include "kernel/number_conversion.h"

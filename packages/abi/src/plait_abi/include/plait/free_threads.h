/* Whether the host has a global lock (docs/design/0044): one more bit of plait_runtime::settings.
 */
#ifndef PLAIT_FREE_THREADS_H
#define PLAIT_FREE_THREADS_H
#include <stdint.h>

/* The host has no global lock: several of its threads may make calls with one tensor at the same
 * time. The host sets the bit before the first call, and nobody clears it. */
#define PLAIT_SETTING_FREE_THREADS ((uint64_t)1 << 61)

#endif /* PLAIT_FREE_THREADS_H */

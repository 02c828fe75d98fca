/* Memory that a caller provides for a later result, such as a gradient in a buffer. */
#ifndef PLAIT_PLACE_H
#define PLAIT_PLACE_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Memory for the result of a later call.
 *
 * plait_thread::slot[2] is the first entry of a list, or NULL. The next tensor in C order on the
 * CPU that tensor_new creates on this thread, and that has `nbytes` bytes, gets this memory, and
 * the entry leaves the list. The code that set the list owns it, keeps the storages alive, and
 * restores the former list. It then checks what the memory holds: it may be another result of
 * that size. */
typedef struct plait_place {
  plait_storage *storage; /**< on the CPU */
  void *data;             /**< in the storage; a multiple of 64 */
  uint64_t nbytes;
  struct plait_place *next;
} plait_place;

#ifdef __cplusplus
}
#endif
#endif

/* Memory for a result that is about to be made: where the engine wants a gradient to lie. */
#ifndef PLAIT_PLACE_H
#define PLAIT_PLACE_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* plait_thread::slot[2] points to the first of a list, or is NULL. The next tensor in C order on the CPU that tensor_new
 * makes on this thread, and that has as many bytes as a place, lies there, and the place is taken from the list. Who set
 * the list owns it, keeps the storages, sets the former list again, and looks afterwards what lies in them: it may be
 * another result of that size. */
typedef struct plait_place {
  plait_storage *storage; /* on the CPU */
  void *data;             /* in the storage; a multiple of 64 */
  uint64_t nbytes;
  struct plait_place *next;
} plait_place;

#ifdef __cplusplus
}
#endif
#endif

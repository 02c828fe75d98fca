/* Batched tensors, for the package that makes them (docs/design/0043): what plait_core asks about a
 * tensor that stands for the tensors of all samples of a batch.
 *
 * The capsule `plait_core._core.batched` holds one plait_batched. All functions are NULL until that
 * package sets them, at its import: then no tensor is batched. The table grows at its end alone. */
#ifndef PLAIT_BATCHED_H
#define PLAIT_BATCHED_H
#include <plait/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLAIT_BATCHED_CAPSULE "plait_core._core.batched"

typedef struct plait_batched {
  plait_header h;
  /* Whether a tensor is batched: its memory has the elements of no sample. Needs no GIL. */
  int (*is_batched)(const plait_tensor *);
  /* All samples of a batched tensor, along dimension 0, and the number of their call of vmap. A new
   * reference; NULL for another tensor, and with an exception. */
  plait_tensor *(*samples)(const plait_tensor *, int64_t *level);
  /* Is told of a tensor that was made by other means than an operator. */
  void (*note_new)(const plait_tensor *);
  /* 0, or -1 with an exception where `backward()` is not possible: within a call of vmap. */
  int (*check_backward)(void);
  /* Is told of a tensor whose elements Python is about to read: item(), tolist(), numpy(), DLPack.
   * With an exception that fails. The package that records graphs sets it. */
  void (*note_read)(const plait_tensor *);
  /* Is told of a tensor whose memory Python is about to get the address of, or to replace. With an
   * exception that fails. The same package sets it. */
  void (*note_address)(const plait_tensor *);
  /* A new reference to the object of Python for a size or a stride that Python asks for, which may
   * stand for other numbers too; NULL with an exception. The package that records graphs sets it.
   */
  void *(*size_number)(int64_t);
  /* Layers that see all calls of a thread, and for which a result of before may be used in the
   * place of calls that compute it anew, such as the weights of a convolution and its batch norm.
   * A layer that records must see these calls. The package that defers calls sets it. */
  uint64_t layers_of_caches;
} plait_batched;

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_BATCHED_H */

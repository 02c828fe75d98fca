/* The functions of libplait_multiprocessing for its binding and for programs without Python. They
 * may be called from any thread and never wait for the GIL. */
#ifndef PLAIT_SHARED_H
#define PLAIT_SHARED_H
#include <plait/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_block_name { /* the address of a block, valid in all processes; it is sent in
messages */
  uint64_t arena[2];              /* random */
  uint64_t offset;                /* of its bytes, from the start of the arena */
  uint64_t generation;            /* the number of times that the block was allocated */
  uint64_t nbytes;
} plait_block_name;

typedef struct plait_shared_stats {
  uint64_t arenas;     /* arenas that this process maps; each needs a descriptor */
  uint64_t storages;   /* shared storages that live in this process */
  uint64_t committed;  /* bytes of memory in the arenas that this process made */
  uint64_t free_bytes; /* the part of them in free blocks */
} plait_shared_stats;

/* Storages in shared memory. */

plait_status plait_shared_create(plait_thread *, uint64_t nbytes, plait_storage **);
int plait_shared_is_block(const plait_storage *);
/* returns the name of the storage's block and counts one message with the name */
plait_status plait_shared_send(plait_thread *, const plait_storage *, plait_block_name *);
/* returns the storage of a block, the same one while it is alive, and takes the message's count
 * over */
plait_status plait_shared_receive(plait_thread *, const plait_block_name *, plait_storage **);
void plait_shared_cancel(const plait_block_name *); /* the message will never arrive */
void plait_shared_trim(void); /* gives the pages of free blocks back to the system */
void plait_shared_get_stats(plait_shared_stats *);

/* Arenas: a pin keeps one mapped and its descriptor open. */

void *plait_shared_pin(const plait_storage *);
int plait_shared_descriptor(void *pin);
/* takes the descriptor over (also on failure) and maps the arena unless it is known already */
plait_status plait_shared_adopt(plait_thread *, int fd, void **pin);
void plait_shared_unpin(void *pin);

/* Processes. */

void plait_shared_before_fork(void); /* counts everything once more for the child of a fork */
void plait_shared_leave(void); /* releases all counts of this process before it ends */

/* Collectives. */

enum plait_outcome { /* the outcome of a collective; the text has the details */
                     PLAIT_DONE,
                     PLAIT_BROKEN,      /* a member died, left, or the group broke before */
                     PLAIT_MISMATCH, /* the members called different collectives; no tensors have
                     changed */
                     PLAIT_TIMED_OUT,
                     PLAIT_INTERRUPTED, /* by `interrupted` */
};
typedef struct plait_member plait_member;
typedef struct plait_collective_call {
  uint32_t kind;      /* plait_collective_kind */
  uint32_t reduction; /* plait_reduction */
  uint32_t root, n_in, n_out, reserved;
  plait_tensor *const *in; /* of one dtype, any strides */
  plait_tensor *const *out; /* written; may be `in` */
  int (*interrupted)(void); /* called while waiting; not 0: give up */
  char *text; /* buffer for the reason of a failure */
  uint64_t room;
} plait_collective_call;

uint64_t plait_group_bytes(uint32_t size, uint64_t chunk); /* the size of the block of a group */
void plait_group_format(plait_storage *, uint32_t size, uint64_t chunk, double timeout);
/* NULL with a text if the rank is taken or the bytes are not a group */
plait_member *plait_group_join(plait_storage *, uint32_t rank, char *text, uint64_t room);
void plait_group_leave(plait_member *);
uint32_t plait_group_size(const plait_member *);
int plait_group_run(plait_member *, const plait_collective_call *); /* a plait_outcome */

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_SHARED_H */

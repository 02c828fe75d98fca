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
void plait_shared_name(const plait_storage *, plait_block_name *);
/* returns the name of the storage's block and counts one message with the name */
plait_status plait_shared_send(plait_thread *, const plait_storage *, plait_block_name *);
/* returns the storage of a block, the same one while it is alive, and takes the message's count
 * over */
plait_status plait_shared_receive(plait_thread *, const plait_block_name *, plait_storage **);
void plait_shared_cancel(const plait_block_name *); /* the message will never arrive */
/* gives the pages of free blocks back to the system, and up memory of devices that nobody has */
void plait_shared_trim(void);
void plait_shared_get_stats(plait_shared_stats *);

/* Memory of devices. A process lends a storage of a device under a *ticket block*, an ordinary
 * block whose counts tell whether other processes may have the memory. Until they have not, the
 * lender keeps the storage. */

/* waits for the work on the device and returns the ticket block of its storage, the same one while
 * it is lent; messages name that block. A storage that was borrowed has that of its lender. `pin`:
 * what goes along with the message beside the block's own descriptor, or NULL */
plait_status plait_shared_lend(plait_thread *, plait_storage *, plait_storage **ticket, void **pin);
/* returns the storage of the device for a ticket block that was received, the same one while it is
 * alive, in the lender itself the one that is lent. `pin`: what came along, or NULL */
plait_status plait_shared_borrow(plait_thread *, plait_storage *ticket, void *pin,
                                 plait_storage **);

/* Pins: each keeps a file open, and an arena mapped, whose descriptor goes along with messages. */

void *plait_shared_pin(const plait_storage *);
int plait_shared_descriptor(void *pin);
/* takes the descriptor over (also on failure); maps it if it is an arena that is not known yet */
plait_status plait_shared_adopt(plait_thread *, int fd, void **pin);
void plait_shared_unpin(void *pin);

/* Processes. */

void plait_shared_before_fork(void); /* counts everything once more for the child of a fork */
void plait_shared_leave(void); /* releases all counts of this process before it ends */

/* Collectives: the role "communicator" under the name "shared_memory" (communicator.cpp). */

/* a block for a group of `size` members, which exchange `chunk` bytes at once (a multiple of 64)
 * and wait `timeout` seconds in each step. A process that holds it joins with `open`; what
 * plait_group_where writes is its `where`, and `open` does not wait for the others then */
plait_status plait_group_create(plait_thread *, uint32_t size, uint64_t chunk, double timeout,
                                plait_storage **);
void plait_group_where(const plait_storage *, char *text, uint64_t room);

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_SHARED_H */

/* What differs between MPI libraries. mpi4py knows it; so no header of any of them is needed. */
#ifndef PLAIT_MPI_FACTS_H
#define PLAIT_MPI_FACTS_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_mpi_facts {
  uint64_t comm_world, byte, errors_return, request_null; /* handles; short ones in the low bytes */
  const char *library; /* a loaded file that leads to the functions */
  int32_t handle_bytes, status_bytes;
  int32_t source_at, error_at; /* offsets of fields of a status */
  int32_t any_source;
  int32_t proc_failed, proc_failed_pending, revoked; /* error classes; 0: it has none */
  int32_t rank, size;
} plait_mpi_facts;

/* Begins to communicate, once in a process: the functions of MPI are called in a thread of their
 * own from then on. Returns NULL, or why it cannot. */
__attribute__((visibility("default"))) const char *plait_mpi_connect(const plait_mpi_facts *);
/* Ends what was begun, before MPI_Finalize. */
__attribute__((visibility("default"))) void plait_mpi_disconnect(double timeout);
/* Called directly before MPI_Finalize, when the process ends: ends it with the status 1 if the
 * thread has not come back from MPI, as MPI_Finalize would wait for it for ever. */
__attribute__((visibility("default"))) void plait_mpi_exit_if_stuck(void);
/* The ranks of the processes that are known to be lost; returns their number, and fills in at most
 * `room`. */
__attribute__((visibility("default"))) uint32_t plait_mpi_lost(uint32_t *ranks, uint32_t room);

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_MPI_FACTS_H */

// The functions of NCCL (libnccl.so.2) that plait-cuda calls: PLAIT_NCCL_FUNCTION(name, exported,
// parameters) where the result is a status, PLAIT_NCCL_TEXT where it is a text. The stand-in of the
// emulation implements the same list.
//
// No include guard: the file is included with one definition of the macros at a time.
PLAIT_NCCL_FUNCTION(version, "ncclGetVersion", (int *))
PLAIT_NCCL_FUNCTION(unique_id, "ncclGetUniqueId", (UniqueId *))
PLAIT_NCCL_FUNCTION(init, "ncclCommInitRank", (Comm *, int size, UniqueId, int rank))
PLAIT_NCCL_FUNCTION(abort, "ncclCommAbort", (Comm))
PLAIT_NCCL_FUNCTION(async_error, "ncclCommGetAsyncError", (Comm, Result *))
PLAIT_NCCL_TEXT(error_name, "ncclGetErrorString", (Result))
PLAIT_NCCL_TEXT(last_error, "ncclGetLastError", (Comm))
PLAIT_NCCL_FUNCTION(group_start, "ncclGroupStart", ())
PLAIT_NCCL_FUNCTION(group_end, "ncclGroupEnd", ())
PLAIT_NCCL_FUNCTION(all_reduce, "ncclAllReduce",
                    (const void *in, void *out, size_t count, int type, int reduction, Comm,
                     driver::Stream))
PLAIT_NCCL_FUNCTION(broadcast, "ncclBroadcast",
                    (const void *in, void *out, size_t count, int type, int root, Comm,
                     driver::Stream))
PLAIT_NCCL_FUNCTION(reduce, "ncclReduce",
                    (const void *in, void *out, size_t count, int type, int reduction, int root,
                     Comm, driver::Stream))
PLAIT_NCCL_FUNCTION(all_gather, "ncclAllGather",
                    (const void *in, void *out, size_t count, int type, Comm, driver::Stream))
PLAIT_NCCL_FUNCTION(reduce_scatter, "ncclReduceScatter",
                    (const void *in, void *out, size_t count, int type, int reduction, Comm,
                     driver::Stream))
PLAIT_NCCL_FUNCTION(send, "ncclSend",
                    (const void *in, size_t count, int type, int peer, Comm, driver::Stream))
PLAIT_NCCL_FUNCTION(receive, "ncclRecv",
                    (void *out, size_t count, int type, int peer, Comm, driver::Stream))

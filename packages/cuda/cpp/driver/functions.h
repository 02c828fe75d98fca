// The functions of the driver (libcuda.so.1) that plait-cuda calls, with the names by which the
// library exports them: PLAIT_CUDA_FUNCTION(name, exported, parameters). The emulation implements
// the same list.
//
// No include guard: the file is included with one definition of the macros at a time.
PLAIT_CUDA_FUNCTION(init, "cuInit", (unsigned flags))
PLAIT_CUDA_FUNCTION(driver_version, "cuDriverGetVersion", (int *version))
PLAIT_CUDA_FUNCTION(error_name, "cuGetErrorName", (Result, const char **))
PLAIT_CUDA_FUNCTION(error_text, "cuGetErrorString", (Result, const char **))

PLAIT_CUDA_FUNCTION(device_count, "cuDeviceGetCount", (int *count))
PLAIT_CUDA_FUNCTION(device_get, "cuDeviceGet", (Device *, int ordinal))
PLAIT_CUDA_FUNCTION(device_name, "cuDeviceGetName", (char *name, int length, Device))
PLAIT_CUDA_FUNCTION(device_uuid, "cuDeviceGetUuid_v2", (Uuid *, Device))
PLAIT_CUDA_FUNCTION(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, Device))
PLAIT_CUDA_FUNCTION(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, Device))
PLAIT_CUDA_FUNCTION(can_access_peer, "cuDeviceCanAccessPeer", (int *can, Device, Device peer))

PLAIT_CUDA_FUNCTION(primary_retain, "cuDevicePrimaryCtxRetain", (Context *, Device))
PLAIT_CUDA_FUNCTION(primary_release, "cuDevicePrimaryCtxRelease_v2", (Device))
PLAIT_CUDA_FUNCTION(context_set, "cuCtxSetCurrent", (Context))
PLAIT_CUDA_FUNCTION(context_get, "cuCtxGetCurrent", (Context *))
PLAIT_CUDA_FUNCTION(context_synchronize, "cuCtxSynchronize", ())
PLAIT_CUDA_FUNCTION(stream_priorities, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))
PLAIT_CUDA_FUNCTION(enable_peer, "cuCtxEnablePeerAccess", (Context peer, unsigned flags))

PLAIT_CUDA_FUNCTION(module_load, "cuModuleLoad", (Module *, const char *path))
PLAIT_CUDA_FUNCTION(module_unload, "cuModuleUnload", (Module))
PLAIT_CUDA_FUNCTION(module_function, "cuModuleGetFunction", (Function *, Module, const char *name))
PLAIT_CUDA_FUNCTION(function_attribute, "cuFuncGetAttribute", (int *value, int attribute, Function))
PLAIT_CUDA_FUNCTION(function_set, "cuFuncSetAttribute", (Function, int attribute, int value))
PLAIT_CUDA_FUNCTION(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                    (int *blocks, Function, int threads, size_t shared))
PLAIT_CUDA_FUNCTION(launch, "cuLaunchKernel",
                    (Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared, Stream, void **parameters,
                     void **extra))
PLAIT_CUDA_FUNCTION(launch_host, "cuLaunchHostFunc", (Stream, void (*)(void *), void *argument))

PLAIT_CUDA_FUNCTION(memory_info, "cuMemGetInfo_v2", (size_t *free, size_t *total))
PLAIT_CUDA_FUNCTION(memory_alloc, "cuMemAlloc_v2", (Address *, size_t bytes))
PLAIT_CUDA_FUNCTION(memory_free, "cuMemFree_v2", (Address))
PLAIT_CUDA_FUNCTION(address_range, "cuMemGetAddressRange_v2", (Address * base, size_t *, Address))
PLAIT_CUDA_FUNCTION(pinned_alloc, "cuMemHostAlloc", (void **, size_t bytes, unsigned flags))
PLAIT_CUDA_FUNCTION(pinned_free, "cuMemFreeHost", (void *))
PLAIT_CUDA_FUNCTION(pinned_address, "cuMemHostGetDevicePointer_v2", (Address *, void *, unsigned))
PLAIT_CUDA_FUNCTION(pointer_attribute, "cuPointerGetAttribute", (void *value, int, Address))
PLAIT_CUDA_FUNCTION(copy_to_device, "cuMemcpyHtoDAsync_v2", (Address, const void *, size_t, Stream))
PLAIT_CUDA_FUNCTION(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *, Address, size_t, Stream))
PLAIT_CUDA_FUNCTION(copy_on_device, "cuMemcpyDtoDAsync_v2", (Address, Address, size_t, Stream))
PLAIT_CUDA_FUNCTION(copy_to_peer, "cuMemcpyPeerAsync",
                    (Address, Context, Address, Context, size_t, Stream))
PLAIT_CUDA_FUNCTION(fill_bytes, "cuMemsetD8Async", (Address, unsigned char, size_t, Stream))
PLAIT_CUDA_FUNCTION(fill_words, "cuMemsetD32Async", (Address, unsigned, size_t, Stream))

PLAIT_CUDA_FUNCTION(stream_create, "cuStreamCreateWithPriority", (Stream *, unsigned, int priority))
PLAIT_CUDA_FUNCTION(stream_destroy, "cuStreamDestroy_v2", (Stream))
PLAIT_CUDA_FUNCTION(stream_query, "cuStreamQuery", (Stream))
PLAIT_CUDA_FUNCTION(stream_synchronize, "cuStreamSynchronize", (Stream))
PLAIT_CUDA_FUNCTION(stream_wait, "cuStreamWaitEvent", (Stream, Event, unsigned flags))

PLAIT_CUDA_FUNCTION(event_create, "cuEventCreate", (Event *, unsigned flags))
PLAIT_CUDA_FUNCTION(event_destroy, "cuEventDestroy_v2", (Event))
PLAIT_CUDA_FUNCTION(event_record, "cuEventRecord", (Event, Stream))
PLAIT_CUDA_FUNCTION(event_query, "cuEventQuery", (Event))
PLAIT_CUDA_FUNCTION(event_synchronize, "cuEventSynchronize", (Event))
PLAIT_CUDA_FUNCTION(event_elapsed, "cuEventElapsedTime", (float *milliseconds, Event, Event))

PLAIT_CUDA_FUNCTION(share_memory, "cuIpcGetMemHandle", (IpcHandle *, Address))
PLAIT_CUDA_FUNCTION(open_memory, "cuIpcOpenMemHandle_v2", (Address *, IpcHandle, unsigned flags))
PLAIT_CUDA_FUNCTION(close_memory, "cuIpcCloseMemHandle", (Address))
PLAIT_CUDA_FUNCTION(share_event, "cuIpcGetEventHandle", (IpcHandle *, Event))
PLAIT_CUDA_FUNCTION(open_event, "cuIpcOpenEventHandle", (Event *, IpcHandle))

PLAIT_CUDA_FUNCTION(capture_begin, "cuStreamBeginCapture_v2", (Stream, int mode))
PLAIT_CUDA_FUNCTION(capture_end, "cuStreamEndCapture", (Stream, Graph *))
PLAIT_CUDA_FUNCTION(capture_status, "cuStreamIsCapturing", (Stream, int *status))
PLAIT_CUDA_FUNCTION(graph_instantiate, "cuGraphInstantiateWithFlags",
                    (GraphExec *, Graph, unsigned long long flags))
PLAIT_CUDA_FUNCTION(graph_launch, "cuGraphLaunch", (GraphExec, Stream))
PLAIT_CUDA_FUNCTION(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec))
PLAIT_CUDA_FUNCTION(graph_destroy, "cuGraphDestroy", (Graph))

PLAIT_CUDA_FUNCTION(profiler_start, "cuProfilerStart", ())
PLAIT_CUDA_FUNCTION(profiler_stop, "cuProfilerStop", ())

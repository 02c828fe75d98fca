// The functions of cuDNN (libcudnn.so.9) that plait-cuda calls: PLAIT_CUDNN_FUNCTION(result, name,
// exported, parameters). The stand-in of the emulation has the same list.
//
// No include guard: the file is included with one definition of the macro at a time.
PLAIT_CUDNN_FUNCTION(size_t, version, "cudnnGetVersion", ())
PLAIT_CUDNN_FUNCTION(size_t, runtime_version, "cudnnGetCudartVersion", ())
PLAIT_CUDNN_FUNCTION(const char *, status_text, "cudnnGetErrorString", (Status))
PLAIT_CUDNN_FUNCTION(void, last_error, "cudnnGetLastErrorString", (char *text, size_t bytes))
PLAIT_CUDNN_FUNCTION(Status, create, "cudnnCreate", (Handle *))
PLAIT_CUDNN_FUNCTION(Status, set_stream, "cudnnSetStream", (Handle, driver::Stream))
PLAIT_CUDNN_FUNCTION(Status, descriptor_create, "cudnnBackendCreateDescriptor",
                     (int type, RawDescriptor *))
PLAIT_CUDNN_FUNCTION(Status, descriptor_destroy, "cudnnBackendDestroyDescriptor", (RawDescriptor))
PLAIT_CUDNN_FUNCTION(Status, descriptor_set, "cudnnBackendSetAttribute",
                     (RawDescriptor, int attribute, int type, int64_t n, const void *values))
PLAIT_CUDNN_FUNCTION(Status, descriptor_get, "cudnnBackendGetAttribute",
                     (RawDescriptor, int attribute, int type, int64_t most, int64_t *n,
                      void *values))
PLAIT_CUDNN_FUNCTION(Status, descriptor_finish, "cudnnBackendFinalize", (RawDescriptor))
PLAIT_CUDNN_FUNCTION(Status, execute, "cudnnBackendExecute",
                     (Handle, RawDescriptor plan, RawDescriptor pack))

// The functions of CUPTI (libcupti.so) that activity records come from: PLAIT_CUPTI_FUNCTION(name,
// exported, parameters). The stand-in of the emulation has the same list.
//
// No include guard: the file is included with one definition of the macro at a time.
PLAIT_CUPTI_FUNCTION(timestamp, "cuptiGetTimestamp", (uint64_t *))
PLAIT_CUPTI_FUNCTION(stream_number, "cuptiGetStreamIdEx",
                     (driver::Context, driver::Stream, uint8_t per_thread, uint32_t *))
PLAIT_CUPTI_FUNCTION(register_buffers, "cuptiActivityRegisterCallbacks",
                     (BufferRequest, BufferComplete))
PLAIT_CUPTI_FUNCTION(enable, "cuptiActivityEnable", (RecordKind))
PLAIT_CUPTI_FUNCTION(disable, "cuptiActivityDisable", (RecordKind))
PLAIT_CUPTI_FUNCTION(flush, "cuptiActivityFlushAll", (uint32_t flags))
PLAIT_CUPTI_FUNCTION(next_record, "cuptiActivityGetNextRecord",
                     (uint8_t *buffer, size_t valid_bytes, Record **))
PLAIT_CUPTI_FUNCTION(push, "cuptiActivityPushExternalCorrelationId", (ExternalKind, uint64_t))
PLAIT_CUPTI_FUNCTION(pop, "cuptiActivityPopExternalCorrelationId", (ExternalKind, uint64_t *last))

/* The structures of DLPack 1.x, declared from its published memory layout so that plait needs no
 * third header. Layout: dmlc.github.io/dlpack/latest/c_api.html. Names follow the standard; sizes
 * are asserted below. */
#ifndef PLAIT_DLPACK_H
#define PLAIT_DLPACK_H
#if !defined( \
    DLPACK_MAJOR_VERSION) /* another dlpack.h was included first; its layouts are the same */
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U,
  kDLFloat8_e4m3fn = 10U, /* from here on: DLPack 1.1 */
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U,
} DLDataTypeCode;

typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data; /* byte_offset is relative to this */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *
      strides; /* in elements; may be NULL for C order in exchanged tensors, never in plait's own */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor { /* the exchange struct before 1.0 */
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_MAJOR_VERSION */
#ifdef PLAIT_ASSERT /* a build for pointers of 32 bits, whose layouts are others, defines it */
#elif defined(__cplusplus)
#define PLAIT_ASSERT(condition, text) static_assert(condition, text)
#else
#define PLAIT_ASSERT(condition, text) _Static_assert(condition, text)
#endif
PLAIT_ASSERT(sizeof(DLDevice) == 8, "DLDevice");
PLAIT_ASSERT(sizeof(DLDataType) == 4, "DLDataType");
PLAIT_ASSERT(sizeof(DLTensor) == 48, "DLTensor");
PLAIT_ASSERT(offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20, "DLTensor");
PLAIT_ASSERT(offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40, "DLTensor");
PLAIT_ASSERT(sizeof(DLManagedTensor) == 64, "DLManagedTensor");
PLAIT_ASSERT(sizeof(DLManagedTensorVersioned) == 80, "DLManagedTensorVersioned");
PLAIT_ASSERT(offsetof(DLManagedTensorVersioned, dl_tensor) == 32, "DLManagedTensorVersioned");
#endif /* PLAIT_DLPACK_H */

// What plait uses of tvm-ffi's C ABI (docs/design/0045), declared from its published layout,
// tvm.apache.org/ffi. Nothing of it is needed to build: the functions are looked up in the library
// that the Python package tvm_ffi has loaded.
#pragma once
#include <vector>

#include "binding.hpp"

namespace plait::tvm {

enum Type : int32_t {
  type_none = 0,
  type_int = 1,
  type_bool = 2,
  type_float = 3,
  type_dtype = 5,
  type_device = 6,
  type_dltensor = 7,  // a borrowed DLTensor *
  type_raw_string = 8,  // a borrowed const char *
  type_small_string = 11,
  type_objects = 64,  // from here on values are counted objects
  type_string = 65,
  type_function = 68,
  type_shape = 69,
  type_tensor = 70,
  type_array = 71,
  type_list = 75,
};

struct Any {  // a value: an argument, which is borrowed, or a result, which its receiver owns
  int32_t type;
  uint32_t length;  // of a small string; else 0
  union {
    int64_t i;
    double f;
    void *p;
    const char *s;
    DLDataType dtype;
    DLDevice device;
    char small[8];
  } v;
};
static_assert(sizeof(Any) == 16, "TVMFFIAny");

struct Head {  // what every object begins with
  uint64_t counts;
  int32_t type;
  uint32_t reserved;
  void (*deleter)(void *, int);
};
static_assert(sizeof(Head) == 24, "TVMFFIObject");

struct Bytes {
  const char *data;
  size_t size;
};
struct String : Head {
  Bytes bytes;
};
struct Shape : Head {
  const int64_t *data;
  size_t size;
};
struct Sequence : Head {  // an Array or a List
  const Any *data;
  int64_t size;
};
struct Error : Head {
  Bytes kind, message;
};
struct Tensor : Head {
  DLTensor dl;
};

// A function, as everybody implements it: 0; or -1, and the error is set; or -2, and an exception
// of Python is.
using SafeCall = int (*)(void *self, const Any *args, int32_t n, Any *result);

struct Library {
  int (*retain)(void *object);
  int (*release)(void *object);
  int (*call)(void *function, Any *args, int32_t n, Any *result);
  int (*new_function)(void *self, SafeCall, void (*deleter)(void *self), void **out);
  int (*global_function)(const Bytes *name, void **out);
  int (*set_global_function)(const Bytes *name, void *function, int override_it);
  void (*take_error)(void **error);
  void (*set_error)(const char *kind, const char *message);
  int (*tensor_from_dlpack)(DLManagedTensorVersioned *, int32_t aligned, int32_t contiguous,
                            void **out);
  int (*set_stream)(int32_t device_type, int32_t device_id, void *stream, void **before);
};

// The functions of the library that is loaded; nullptr, with an exception, if it is not there.
const Library *library();

// Objects that are released at the end of a scope.
class Owned {
 public:
  explicit Owned(const Library *of) : of_(of) {}
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() {
    for (void *each : all_) of_->release(each);
  }
  void *keep(void *object) {
    all_.push_back(object);
    return object;
  }

 private:
  const Library *of_;
  std::vector<void *> all_;
};

// An Array of values; a new reference, or nullptr with the error set in tvm-ffi.
void *array_of(const Library *, Any *items, size_t n);
// A Tensor on the bytes of a tensor; a new reference, or nullptr with the thread's error.
void *tensor_of(const Library *, plait_thread *, plait_tensor *);

}  // namespace plait::tvm

/* clang-format off */
/** @file
 * The C ABI of plait: the one thing that all components share.
 *
 * The header is C11. It needs no Python and no C++, and no struct has implicit padding. A
 * component gets a pointer to the runtime (::plait_runtime) and calls everything through it; it
 * links to nothing. A component registers operators, kernels, layers, roles and observers there.
 *
 * Versions. A component runs on every later runtime of its major version. A struct grows only at
 * its end. The side that writes a struct states its size; the side that reads it checks that
 * size before it reads a field that an older writer does not know. Everything is there since
 * version 0.3 unless its block names a later one. docs/design/0019 has the rules.
 *
 * Errors. A function that can fail returns ::plait_status. A negative status means that
 * plait_thread::error of the calling thread holds the error object.
 *
 * Ownership. A pointer argument is borrowed for the duration of the call. A result through an
 * `out` parameter is a new reference, which the caller releases. Blocks name the exceptions.
 *
 * Threads. Functions of the runtime and of roles may be called from any thread, with the
 * ::plait_thread of that thread. Blocks name the exceptions.
 *
 * Each declaration has one block before it; docs/reference/abi.md shows this file. */
#ifndef PLAIT_ABI_H
#define PLAIT_ABI_H
#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header. A major version may break what was compiled for another one. */
#define PLAIT_ABI_MAJOR 0
#define PLAIT_ABI_MINOR 5

/** The version that a component is compiled for.
 *
 * The default is the version of this header. `-DPLAIT_TARGET='PLAIT_VERSION(1,0)'` asks for an
 * older version: the component sees the structs of that version, and runs on its runtimes and on
 * later ones. */
#define PLAIT_VERSION(major, minor) ((major) * 1000 + (minor))
#ifndef PLAIT_TARGET
#define PLAIT_TARGET PLAIT_VERSION(PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR)
#endif
#if PLAIT_TARGET < PLAIT_VERSION(0, 3) || PLAIT_TARGET > PLAIT_VERSION(PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR)
#error "PLAIT_TARGET must be a version from 0.3 on that this header knows"
#endif

/* ---- status -------------------------------------------------------------------------------- */

/** Result of a function that can fail.
 *
 * 0 is success. 1 is for kernels only: the runtime asks the next provider. A negative code is
 * the kind of the error in plait_thread::error, which a host language maps to an exception. */
typedef int32_t plait_status;
enum {
  PLAIT_OK = 0,
  PLAIT_DECLINE = 1,          /**< returned by a kernel: this kernel does not serve the call */
  PLAIT_ERROR = -1,           /**< RuntimeError */
  PLAIT_SHAPE_ERROR = -2,     /**< ShapeError(ValueError, RuntimeError) */
  PLAIT_DTYPE_ERROR = -3,     /**< DTypeError(TypeError, RuntimeError) */
  PLAIT_VALUE_ERROR = -4,     /**< ValueError */
  PLAIT_INDEX_ERROR = -5,     /**< IndexError */
  PLAIT_TYPE_ERROR = -6,      /**< TypeError */
  PLAIT_MEMORY_ERROR = -7,    /**< OutOfMemoryError(MemoryError, RuntimeError) */
  PLAIT_NOT_IMPLEMENTED = -8, /**< NotImplementedError */
  PLAIT_HOST_ERROR = -9,      /**< the exception of the host language in plait_error::host */
  PLAIT_TIMEOUT_ERROR = -10,  /**< TimeoutError */
  /** LinAlgError(RuntimeError): a matrix that an algorithm cannot serve, because it is singular,
   * not positive definite, or because an iteration does not converge. Since 0.5. */
  PLAIT_LINALG_ERROR = -11,
};

/** First member of every table that one component hands to another.
 *
 * ::PLAIT_HEADER fills it. The struct is frozen: it never grows. */
typedef struct plait_header {
  uint32_t size;         /**< sizeof the table, as its writer was compiled */
  uint16_t major, minor; /**< PLAIT_TARGET of its writer */
} plait_header;

/** Initialise the header of a table of type `T`. */
#define PLAIT_HEADER(T) {(uint32_t)sizeof(T), PLAIT_TARGET / 1000, PLAIT_TARGET % 1000}

/** Test whether the table `p` of type `T` has the field `f`, and `f` is not NULL. */
#define PLAIT_HAS(T, p, f) ((p)->h.size >= offsetof(T, f) + sizeof((p)->f) && (p)->f)

/** Test whether a struct of type `T`, of which `size` bytes are there, has the field `f`. */
#define PLAIT_KNOWS(T, size, f) ((size) >= offsetof(T, f) + sizeof(((T *)0)->f))

/** The flag bits that a reader must understand.
 *
 * A reader ignores an unknown flag of the low 32 bits. It refuses a struct with an unknown flag
 * of the high 32 bits, and its error names the bit. */
#define PLAIT_MUST_UNDERSTAND 0xffffffff00000000u

/** Structs that are defined below. */
struct plait_runtime;
struct plait_thread;
struct plait_op;
struct plait_plugin;
struct plait_allocator;
struct plait_device;
struct plait_stream;

/* ---- reference counts ---------------------------------------------------------------------- */

/** First member of every object with a reference count.
 *
 * Components count inline, so this struct, what the two functions below do and the memory order
 * of their atomics are frozen. */
typedef struct plait_object {
  uint64_t refs;                 /**< number of references; atomic */
  const struct plait_type *type; /**< how the object is freed */
} plait_object;

/** Type of a counted object. */
typedef struct plait_type {
  plait_header h;
  const char *name;             /**< for messages, such as "tensor" */
  void (*drop)(plait_object *); /**< frees the object; called once, at count 0, on any thread */
} plait_type;

/** Add a reference to `o`, which must not be NULL. Any thread. */
static inline void plait_retain_object(plait_object *o) {
  __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
}

/** Give up a reference to `o`, which may be NULL; the last one frees the object. Any thread. */
static inline void plait_release_object(plait_object *o) {
  if (!o) return;
  /* a sole owner needs no read-modify-write: nobody else can change the count */
  if (__atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) == 1 ||
      __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) == 1)
    o->type->drop(o);
}

/** Retain or release `p`, a pointer to a struct whose first member is a ::plait_object.
 *
 * The macros evaluate `p` once; `plait_release` accepts NULL. */
#define plait_retain(p) plait_retain_object((plait_object *)(p))
#define plait_release(p) plait_release_object((plait_object *)(p))

/* ---- streams and events -------------------------------------------------------------------- */

/** A stream: a queue of work that a device runs in order.
 *
 * A call returns before its work is done. The runtime creates streams
 * (plait_runtime::stream_new); the table of the device fills `native`. A NULL stream means the
 * default stream of the device, which always exists. */
typedef struct plait_stream {
  plait_object o;
  DLDevice device;
  void *native;      /**< handle of the device, such as a cudaStream_t */
  int32_t priority;  /**< lower numbers are served first; 0 is the default */
  uint32_t reserved; /**< 0 */
} plait_stream;

/** Flags of a ::plait_device_event. */
enum {
  PLAIT_EVENT_TIMED = 1,  /**< plait_runtime::event_elapsed will be asked for its time */
  PLAIT_EVENT_SHARED = 2, /**< other processes may open it; never with PLAIT_EVENT_TIMED; since 0.5 */
};

/** A point in a stream. The event is reached when all work before that point is done.
 *
 * The runtime creates events (plait_runtime::event_new); the device fills `native`. */
typedef struct plait_device_event {
  plait_object o;
  DLDevice device;
  void *native;   /**< handle of the device, such as a cudaEvent_t */
  uint64_t flags; /**< PLAIT_EVENT_* */
} plait_device_event;

/* ---- memory -------------------------------------------------------------------------------- */

/** The device `meta`: tensors have a shape and a dtype, and no bytes. DLPack does not use 0. */
#define PLAIT_META ((DLDeviceType)0)

/** Flags of a ::plait_storage. */
enum {
  PLAIT_STORAGE_READONLY = 1,  /**< a write is an error (a read-only array, a mapped file) */
  PLAIT_STORAGE_EXTERNAL = 2,  /**< the bytes belong to somebody else; `release(block)` ends that */
  PLAIT_STORAGE_SHARED = 4,    /**< other processes see the bytes */
  PLAIT_STORAGE_MAPPED = 8,    /**< the bytes are those of a mapped file */
  PLAIT_STORAGE_EXPORTED = 16, /**< DLPack or a buffer has the bytes: writes there are not seen */
  PLAIT_STORAGE_PINNED = 32,   /**< host memory that a device copies from and to without a wait */
};

/** The bytes of one or several tensors.
 *
 * Only the runtime creates storages (plait_runtime::storage_new, plait_runtime::storage_wrap).
 * The bytes never move. The allocator that gave the bytes frees them. Components read these
 * fields; the memory behind them belongs to the runtime. */
typedef struct plait_storage {
  plait_object o;
  void *data;      /**< first byte; NULL on the device `meta` */
  uint64_t nbytes; /**< number of bytes */
  /** Number of writes in place; atomic. The low 32 bits count the writes that differentiation
   * checks, the high 32 bits the writes through tensors with PLAIT_TENSOR_DATA. A cache compares
   * the whole number. */
  uint64_t version;
  uint64_t flags; /**< PLAIT_STORAGE_* */
  DLDevice device;
  const struct plait_allocator *allocator; /**< where the bytes came from; NULL: elsewhere */
  void *block;                 /**< context for the allocator's `free`, or for `release` */
  void (*release)(void *block); /**< frees external bytes, or NULL; any thread, without the GIL */
} plait_storage;

/** Flags of a ::plait_tensor. */
enum {
  PLAIT_TENSOR_VIEW = 1,           /**< an operator whose schema aliases its input made it */
  PLAIT_TENSOR_OWNS_WRAPPER = 2,   /**< slot[1] is a strong reference (docs/design/0001) */
  PLAIT_TENSOR_WRAPPED_NUMBER = 4, /**< 0-d, stands for a number of the host: promotes weakly */
  /** A view, or a view of such a view, which a layer that watches `base` did not see or to which
   * it gave another history. Writes to it are not writes to the base (docs/design/0006). */
  PLAIT_TENSOR_CUT = 8,
  /** `x.data`, or a view, alias or detached tensor of it: writes are not checked against the
   * history of x. Since 0.4. */
  PLAIT_TENSOR_DATA = 16,
};

/** A tensor: a strided view of a storage.
 *
 * Only the runtime creates tensors. Components read these fields directly; the memory behind
 * them belongs to the runtime. */
typedef struct plait_tensor {
  plait_object o;
  /** Shape, dtype and layout. `data` includes the offset, `byte_offset` is 0; `strides` are never
   * NULL, are counted in elements and may be negative. */
  DLTensor dl;
  plait_storage *storage; /**< owned, never NULL */
  uint64_t layers;        /**< bits of the layers that want to see operators on this tensor */
  uint64_t flags;         /**< PLAIT_TENSOR_* */
  /** 0: the engine; 1: the wrapper of the host language, a weak reference; 2: forward mode; 3: a
   * plait_sparse (sparse.h). All but 1 are owned ::plait_object pointers or NULL. */
  void *slot[4];
  /** Of a view by any operator but `detach`: the tensor at the root of the chain of views; owned.
   * Else NULL. */
  struct plait_tensor *base;
} plait_tensor;

/** A number that rises and falls. Since 0.5. */
typedef struct plait_counter {
  uint64_t current; /**< what it is now */
  uint64_t peak;    /**< the largest `current` since the last `reset_peak` */
  uint64_t added;   /**< the sum of all rises; that of all falls is `added` - `current` */
} plait_counter;

/** What an allocator counts of blocks, and of segments: memory of the system that is cut into
 * blocks. Since 0.5. */
typedef struct plait_memory_counters {
  plait_counter blocks;        /**< live blocks: those that a storage has */
  plait_counter block_bytes;   /**< their bytes */
  plait_counter request_bytes; /**< the bytes that were requested for them */
  plait_counter active;        /**< blocks that are live or that wait for another stream */
  plait_counter active_bytes;  /**< their bytes */
  plait_counter split;         /**< free blocks that are parts of segments in use */
  plait_counter split_bytes;   /**< their bytes, which the system cannot have back */
  plait_counter segments;      /**< segments */
  plait_counter segment_bytes; /**< their bytes */
} plait_memory_counters;

/** Counters of an allocator, in bytes or in blocks.
 *
 * The caller sets `size` to sizeof its struct and the rest to 0. The allocator fills the fields
 * that lie within `size`, and leaves 0 in those that it does not count. */
typedef struct plait_alloc_stats {
  uint64_t size;
  uint64_t live_bytes, live_blocks, /**< what is allocated and not freed */
      cached_bytes,                 /**< what the allocator keeps for later allocations */
      peak_bytes,                   /**< the largest `live_bytes` since the last `reset_peak` */
      allocations,                  /**< number of calls of `alloc` */
      system_allocations,           /**< number of those that asked the system for memory */
      largest_cached;               /**< size of the largest free block */
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  uint64_t retries;            /**< requests that the system refused and that were tried again with
                                  memory given back. Since 0.5 */
  uint64_t failures;           /**< requests that got no memory. Since 0.5 */
  uint64_t waits;              /**< times that the allocator waited for other streams. Since 0.5 */
  plait_memory_counters all;   /**< of all segments. Since 0.5 */
  plait_memory_counters small; /**< of the segments for small requests. Since 0.5 */
  plait_memory_counters large; /**< of the other segments. Since 0.5 */
#endif
} plait_alloc_stats;

/** Flags of a ::plait_memory_block. */
enum {
  PLAIT_BLOCK_LIVE = 1,    /**< a storage has it */
  PLAIT_BLOCK_WAITING = 2, /**< freed, but work in another stream may still use it */
  PLAIT_BLOCK_PRIVATE = 4, /**< of a pool that plait_allocator::pool_new created */
};

/** A block of an allocator, for plait_allocator::snapshot. Since 0.5. */
typedef struct plait_memory_block {
  void *data;         /**< first byte */
  uint64_t nbytes;    /**< of the block */
  uint64_t requested; /**< of the request that the block serves; 0 if it is free */
  void *segment;      /**< first byte of the memory of the system that the block lies in */
  uint64_t stream;    /**< a number that blocks of one stream have in common; 0: the default one */
  uint64_t flags;     /**< PLAIT_BLOCK_* */
} plait_memory_block;

/** Role "allocator": memory of one device type.
 *
 * In this table and in all other tables of roles, a function may be NULL only where its block
 * begins with "Or NULL", which says what NULL means. plait_runtime::provide refuses a table that
 * lacks one of the others. Each function gets `ctx` of its table as the first argument. */
typedef struct plait_allocator {
  plait_header h;
  const char *name;
  void *ctx;
  /** Allocate memory for work in a stream.
   *
   * A block that was freed in the stream may be given out again for that stream at once. It runs on
   * the thread of the call, whose state plait_runtime::thread returns.
   * @param nbytes number of bytes, more than 0
   * @param stream the stream that will use the memory, or NULL
   * @param data its address, a multiple of 64 and not NULL. Tensors add byte offsets to it and
   *        compare the results, so the numbers from `data` to `data` + `nbytes` belong to the block
   *        alone, even if nobody can read there. A device whose memory has handles chooses them
   * @param block a value that `free` gets back
   * @return PLAIT_MEMORY_ERROR without an error object if there is no memory; since 0.5 it may raise
   *        one with a text that says who has the memory, and another status is another error, which
   *        the function may raise. Before 0.5 every status but PLAIT_OK meant that there is no
   *        memory */
  plait_status (*alloc)(void *ctx, DLDevice, uint64_t nbytes, plait_stream *, void **data,
                        void **block);
  /** Free memory of `alloc`. Any thread. */
  void (*free)(void *ctx, void *data, uint64_t nbytes, void *block);
  /** Or NULL, the allocator caches nothing: give cached memory of all devices back to the system. */
  void (*trim)(void *ctx);
  /** Or NULL, the allocator counts nothing: fill the counters of a device. */
  void (*stats)(void *ctx, DLDevice, plait_alloc_stats *);
  /** Storages of fewer bytes than this may lie beside their ::plait_storage, without a call of
   * `alloc`. 0: the allocator gets every request. */
  uint64_t inline_below;
  /** Or NULL, the device has one stream: note that work in another stream uses the block.
   *
   * After `free` the allocator gives the block out again only when the work that is in that
   * stream at the time of `free` is done. */
  void (*record_use)(void *ctx, void *data, void *block, plait_stream *);
  /** Or NULL, the peak is that of the process: set `peak_bytes` to `live_bytes`. */
  void (*reset_peak)(void *ctx, DLDevice);
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** Or NULL, `trim` serves all devices: give cached memory of one device back. Since 0.5. */
  void (*trim_device)(void *ctx, DLDevice);
  /** Or NULL, the allocator has no pools: create a private pool of memory of a device. Since 0.5.
   *
   * A recorded graph (plait_device::capture_begin) runs on the addresses that it was recorded with,
   * so its memory must not be given to others, nor back to the system, while the pool lives.
   * @return the pool, or NULL if there is no memory */
  void *(*pool_new)(void *ctx, DLDevice);
  /** NULL only without `pool_new`: from now on take memory for the stream from the pool; NULL: from
   * the common memory again. A stream that joins a recording of this stream takes it from there,
   * too. Since 0.5. */
  void (*pool_use)(void *ctx, DLDevice, plait_stream *, void *pool);
  /** NULL only without `pool_new`: give up the pool. What lives in it stays valid. Since 0.5. */
  void (*pool_free)(void *ctx, void *pool);
  /** Or NULL: describe every block of a device, also the free ones. Since 0.5.
   * @param room length of `list`
   * @param block_size sizeof(plait_memory_block) of the caller
   * @return the number of blocks, which may exceed `room` */
  uint64_t (*snapshot)(void *ctx, DLDevice, plait_memory_block *list, uint64_t room,
                       uint64_t block_size);
#endif
} plait_allocator;

/* ---- values and calls ---------------------------------------------------------------------- */

/** What a ::plait_value holds. PLAIT_BOOL to PLAIT_COMPLEX are also the tags of a number that is
 * passed for a Scalar or for Tensor|Scalar; such a number promotes weakly. */
enum plait_tag {
  PLAIT_NONE = 0,
  PLAIT_TENSOR = 1,  /**< u.t */
  PLAIT_BOOL = 2,    /**< u.i, 0 or 1 */
  PLAIT_INT = 3,     /**< u.i */
  PLAIT_FLOAT = 4,   /**< u.f */
  PLAIT_COMPLEX = 5, /**< u.fs, two doubles: real and imaginary part */
  PLAIT_INTS = 6,    /**< u.is, n of them */
  PLAIT_FLOATS = 7,  /**< u.fs, n of them */
  PLAIT_TENSORS = 8, /**< u.ts, n of them; an entry may be NULL where the schema says Tensor?[] */
  PLAIT_STRING = 9,  /**< u.s, n bytes and a NUL */
  PLAIT_DTYPE = 10,  /**< u.dtype */
  PLAIT_DEVICE = 11, /**< u.device */
  PLAIT_OBJECT = 12, /**< u.o, a ::plait_generator */
};

/** One argument or result of a call.
 *
 * The struct is frozen at 16 bytes. What an argument points to is borrowed for the call: a
 * component that needs it longer copies it. */
typedef struct plait_value {
  int32_t tag; /**< plait_tag */
  uint32_t n;  /**< length of a list or string */
  union {
    int64_t i;
    double f;
    plait_tensor *t;
    plait_object *o;
    const int64_t *is;
    const double *fs;
    plait_tensor *const *ts;
    const char *s;
    DLDataType dtype;
    DLDevice device;
  } u;
} plait_value;

/** Forms of an operator: `f(x)`, `x.f_()` and `f(x, out=y)`. */
enum plait_form { PLAIT_FUNCTION = 0, PLAIT_INPLACE = 1, PLAIT_OUT = 2 };

/** One call of an operator.
 *
 * Inputs are borrowed. Outputs belong to the caller. A shape function or kernel gets all context
 * here and reads no thread-local storage. The caller sets `size` and zeroes what it does not
 * use. */
typedef struct plait_call {
  uint32_t size;        /**< sizeof of the caller; what lies behind it counts as 0 */
  uint16_t n_in, n_out; /**< numbers of arguments and results of the schema */
  const struct plait_op *op;
  /** One for each argument, in the order of the schema, with defaults filled in. */
  plait_value *in;
  /** FUNCTION: empty at the start. INPLACE: out[0] is in[0], retained; since 0.5 it may be another
   * target, where the last call of a decomposition writes for its caller. OUT: the targets,
   * retained. */
  plait_value *out;
  struct plait_thread *thread;    /**< the calling thread */
  const struct plait_entry *self; /**< the entry that runs; self->prev is the one that it wraps */
  uint64_t todo;                  /**< bits of the layers that have yet to run */
  /** The current stream of the thread on `device`. A kernel puts its work there and returns. */
  plait_stream *stream;
  uint32_t form; /**< plait_form */
  /** Bits of arguments that the caller no longer reads: a result may overwrite one. Since 0.5;
   * before, it was called `reserved` and was 0. */
  uint32_t reusable;
  DLDevice device; /**< where the call runs; set before shape functions and kernels run */
  uint64_t owned;  /**< used by the runtime: bits of the inputs that plait_runtime::cast replaced */
  uint64_t launch; /**< number of the call on a device other than the CPU, which its errors name */
} plait_call;

/** A kernel, layer function, shape function or decomposition.
 *
 * @return PLAIT_OK; an error, after plait_runtime::fail; or PLAIT_DECLINE from a kernel that
 *        does not serve the call, which must not have written anything */
typedef plait_status (*plait_kernel)(plait_call *);

/** A registered kernel or layer function. The runtime creates it (plait_runtime::implement). */
typedef struct plait_entry {
  plait_kernel fn;
  /** What `implement` got; a kernel finds it in call->self->ctx. */
  void *ctx;
  const struct plait_plugin *who;  /**< the plug-in that registered it, or NULL */
  const struct plait_entry *prev;  /**< the kernel that is asked if this one declines, or NULL */
} plait_entry;

/* ---- operators ----------------------------------------------------------------------------- */

/** Types of the schema grammar (docs/design/0003). */
enum plait_kind {
  PLAIT_KIND_TENSOR = 1,
  PLAIT_KIND_OPERAND, /**< Tensor|Scalar */
  PLAIT_KIND_TENSORS, PLAIT_KIND_SCALAR, PLAIT_KIND_INT, PLAIT_KIND_INTS, PLAIT_KIND_FLOAT,
  PLAIT_KIND_FLOATS, PLAIT_KIND_BOOL, PLAIT_KIND_STRING, PLAIT_KIND_DTYPE, PLAIT_KIND_DEVICE,
  PLAIT_KIND_GENERATOR,
};

/** Flags of a ::plait_arg. */
enum {
  PLAIT_ARG_OPTIONAL = 1,     /**< `T?`: None is accepted */
  PLAIT_ARG_WRITES = 2,       /**< `!`: the operator writes to it */
  PLAIT_ARG_ALIASES = 4,      /**< `(a)`: a result may share its memory */
  PLAIT_ARG_KEYWORD_ONLY = 8, /**< it stands after `*` */
  PLAIT_ARG_VARARGS = 16,     /**< `int[]*`: f(x, 1, 2) means f(x, (1, 2)) */
  PLAIT_ARG_DEFAULT = 32,     /**< it has a default */
};

/** One argument of a schema, or one result, which has no name and no default.
 *
 * ::plait_arg_at and ::plait_result_at find an entry of a list, as the struct may grow. */
typedef struct plait_arg {
  const char *name;
  const char *second; /**< `dim|axis`: "axis"; else NULL */
  uint8_t kind;       /**< plait_kind */
  uint8_t flags;      /**< PLAIT_ARG_* */
  char alias;         /**< 'a', or 0 */
  uint8_t length;     /**< `int[2]`: 2, and one int stands for all of them; 0: any length */
  int32_t alias_arg;  /**< of a result: index of the argument that it aliases, or -1 */
  plait_value value;  /**< the default */
} plait_arg;

/** Flags of a ::plait_op_def. */
enum {
  PLAIT_OP_VIEW = 1,       /**< the shape function makes the results; there is no kernel */
  PLAIT_OP_POINTWISE = 2,  /**< out[i] depends on in[..][i] only: an output may be an input */
  PLAIT_OP_INPLACE = 4,    /**< has the form name_ */
  PLAIT_OP_OUT = 8,        /**< has the form out= */
  PLAIT_OP_COMPOSITE = 16, /**< `decompose` runs above the layers unless a backend has a kernel */
  PLAIT_OP_RANDOM = 32,    /**< draws from a generator */
  PLAIT_OP_ANY_DEVICE = 64, /**< its tensors may be on several devices; runs on that of the first */
  PLAIT_OP_INTERNAL = 128,  /**< a part of other operators, without a public name */
  PLAIT_OP_FUNCTION = 256,  /**< a function of the package: plait.name */
  PLAIT_OP_METHOD = 512,    /**< a method of tensors, and so is name_; the first argument is one */
  PLAIT_OP_FUNCTION_INPLACE = 1024, /**< name_ is a function of the package too */
  PLAIT_OP_ZERO_PRESERVING = 2048,  /**< maps each element of one tensor, and 0 to 0; since 0.5 */
  /** The output may be exactly the first input, if all kernels are those of plug-ins with
   * PLAIT_PLUGIN_OVERWRITES. Since 0.5. */
  PLAIT_OP_OVERWRITES = 1 << 30,
};

/** What a derivative reads. plait_op_def::saves answers it before the call is recorded.
 *
 * Arguments that hold tensors (Tensor, Tensor?, Tensor|Scalar, each entry of a Tensor[]) are
 * numbered in the order of the schema; from position 63 on all share bit 63. */
typedef struct plait_needs {
  /** The sizeof, set by the caller, who zeroes the rest; `saves` fills what lies within. */
  uint64_t size;
  uint64_t in;   /**< bits of inputs whose values are read */
  uint64_t out;  /**< bits of outputs whose values are read */
  uint64_t meta; /**< bits of inputs of which only shape, dtype and device are read */
} plait_needs;

/** One vector-Jacobian product: gradients of the inputs from gradients of the outputs. */
typedef struct plait_vjp {
  uint32_t size;
  uint16_t n_in, n_out;
  const struct plait_op *op;
  struct plait_thread *thread;
  /** As those of the call, but only what `saves` named is there: other tensors are PLAIT_NONE,
   * and inputs in plait_needs::meta are meta tensors. */
  const plait_value *in, *out;
  plait_tensor *const *gy; /**< n_out gradients, never NULL: the engine fills missing ones with 0 */
  uint64_t need;           /**< bits of the wanted gradients, numbered as in ::plait_needs */
  plait_tensor **gx;       /**< a result for each position, preset to NULL; the caller owns it */
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** Bits of the entries of `gy` that the engine filled with 0, as nothing used these outputs: a
   * derivative need not compute what is multiplied by them. An entry from position 64 on has no
   * bit. Since 0.5. */
  uint64_t zero;
#endif
} plait_vjp;

/** What a call costs by the definition of its operator, whatever a kernel does. */
typedef struct plait_cost {
  uint64_t size;          /**< sizeof, set by the caller */
  /** Of floating-point numbers; an addition is one, a multiplication one. */
  uint64_t operations;
  uint64_t read, written; /**< bytes */
} plait_cost;

/** Definition of an operator: all but its kernels.
 *
 * A component passes it to plait_runtime::define and keeps it until the process ends. */
typedef struct plait_op_def {
  plait_header h;
  const char *schema, /**< docs/design/0003 has the grammar */
      *doc;           /**< text for users, or NULL */
  uint64_t flags;     /**< PLAIT_OP_* */
  /** Or NULL, there is a decomposition: check the arguments and make the results.
   *
   * It makes results by plait_runtime::result or plait_runtime::view, and converts arguments by
   * plait_runtime::cast. It runs before every kernel. */
  plait_kernel shape;
  /** NULL if and only if `vjp` is: say what the derivative reads for the gradients in `need`. */
  void (*saves)(const plait_call *, uint64_t need, plait_needs *);
  /** Or NULL, there is no derivative, or only that of the decomposition: compute gradients. */
  plait_status (*vjp)(plait_vjp *);
  /** Or NULL, forward mode has no rule of its own here: compute tangents.
   *
   * `in` has the arguments, then as many tangents (PLAIT_NONE where zero), then the results;
   * `out` gets the tangents of the results. */
  plait_kernel jvp;
  /** Or NULL, there is a shape function: compute the operator by calls of others.
   *
   * The form is FUNCTION. If the only result has a target, out[0] is PLAIT_NONE, its `n` is the
   * form of the caller and its `u.t` the target, where the last call may write (since 0.5). */
  plait_kernel decompose;
  /** Or NULL: the rule of vmap in code. Reserved, and NULL, before 0.5.
   *
   * Each tensor of `in` has all samples along one more dimension in front. The rule calls other
   * operators and gives results that have this dimension, too. `batching` is the same as data. */
  plait_kernel batch;
  /** Or NULL: correct what plait_runtime::cost counts from the sizes of the tensors. */
  void (*cost)(const plait_call *, plait_cost *);
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** Or NULL: how one call computes all samples of a batch. Since 0.5.
   *
   * A letter for the kind of the rule, then one for each argument (docs/design/0043). */
  const char *batching;
  /** Or NULL: the result of a call on the parts of tensors that several ranks hold. Since 0.5.
   *
   * A letter for the kind of the rule, then one for each argument (docs/design/0039). */
  const char *sharding;
#endif
} plait_op_def;

/** A defined operator.
 *
 * The runtime creates it. A component looks it up once, when it is loaded, and keeps the
 * pointer. The runtime publishes new tables when kernels come and go; old tables stay valid. */
typedef struct plait_op {
  plait_header h;
  const char *name;   /**< "max.dim" */
  const char *schema; /**< "max.dim(Tensor self, int dim|axis, ...) -> (Tensor, Tensor)" */
  const char *doc;    /**< or NULL */
  const plait_op_def *def;
  const plait_arg *args, *results; /**< ::plait_arg_at and ::plait_result_at give an entry */
  uint16_t n_args, n_results;
  uint32_t arg_size;                 /**< bytes of an entry of `args` and `results` */
  uint64_t flags;                    /**< PLAIT_OP_* */
  uint64_t layer_mask;               /**< bits of the layers that have an entry here */
  const plait_entry *const *layer;   /**< 64 entries or NULL, one for each layer */
  const plait_entry *const *backend; /**< n_backend entries or NULL, by DLDeviceType */
  uint64_t n_backend;
  const struct plait_op *next; /**< the next overload of the same base name, or NULL */
} plait_op;

/** Return argument `i` of an operator, which must be below `n_args`. */
static inline const plait_arg *plait_arg_at(const plait_op *op, uint64_t i) {
  return (const plait_arg *)((const char *)op->args + i * op->arg_size);
}

/** Return result `i` of an operator, which must be below `n_results`. */
static inline const plait_arg *plait_result_at(const plait_op *op, uint64_t i) {
  return (const plait_arg *)((const char *)op->results + i * op->arg_size);
}

/* ---- observers ----------------------------------------------------------------------------- */

/** Kinds of events that observers get. */
enum plait_event_kind {
  PLAIT_EVENT_OP = 1,          /**< an operator call */
  PLAIT_EVENT_ALLOC = 2,       /**< a storage got memory */
  PLAIT_EVENT_FREE = 4,        /**< a storage gave its memory back */
  PLAIT_EVENT_BACKWARD = 8,    /**< a backward pass */
  PLAIT_EVENT_RANGE = 16,      /**< a named part of a program */
  PLAIT_EVENT_NODE = 32,       /**< a node of a backward pass */
  PLAIT_EVENT_COLLECTIVE = 64, /**< a collective */
  PLAIT_EVENT_DATA = 128,      /**< the host waits for a batch */
};

/** One event. It is valid during the call of the observer. */
typedef struct plait_event {
  uint32_t size, kind;
  /** OP: the call; at its end the results are there, and since 0.5 `launch`, if it has a kernel. */
  const plait_call *call;
  const char *name;       /**< OP, NODE, RANGE, COLLECTIVE, DATA */
  uint64_t a, b;          /**< ALLOC, FREE: bytes and address; NODE: `a` is plait_thread::node */
  DLDevice device;
} plait_event;

/** A profiler, logger or memory timeline. Several may run at once (plait_runtime::observe). */
typedef struct plait_observer {
  plait_header h;
  void *ctx;
  uint64_t kinds; /**< bits of plait_event_kind that it wants */
  /** Get the begin of an event, on the thread where it happens.
   * @param token a value that `end` gets back; NULL for ALLOC and FREE, which have no end */
  void (*begin)(void *ctx, const plait_event *, uint64_t *token);
  /** Or NULL, the observer wants no ends: get the end of an event and its status. */
  void (*end)(void *ctx, const plait_event *, uint64_t token, plait_status);
} plait_observer;

/* ---- errors -------------------------------------------------------------------------------- */

/** An error. plait_runtime::raise and its kin create it. */
typedef struct plait_error {
  plait_object o;
  plait_status code;   /**< negative */
  uint32_t reserved;
  const char *message; /**< "softmax: `dim` must be in [-2, 1] for shape (2, 3); got 2" */
  const char *origin;  /**< the operator or component, or NULL */
  plait_object *cause; /**< another error, or NULL */
  plait_object *host;  /**< the exception of the host language, or NULL */
} plait_error;

/* ---- roles --------------------------------------------------------------------------------- */

/** Role "executor": one thread pool for all components, so that none needs OpenMP.
 *
 * It works in a child after a fork. */
typedef struct plait_executor {
  plait_header h;
  const char *name;
  void *ctx;
  /** Return the number of threads that may run at once, with the calling one; 1 on a worker. */
  uint32_t (*width)(void *ctx);
  /** Call fn(arg, i) for every i in [0, n) and return when all calls are done.
   *
   * The calling thread takes part. A nested call runs on the calling thread. What `fn` computes
   * for i must not depend on the number of threads. */
  void (*parallel)(void *ctx, uint64_t n, void (*fn)(void *arg, uint64_t i), void *arg);
  /** Or NULL, the number of threads is fixed: set it. */
  void (*set_width)(void *ctx, uint32_t);
} plait_executor;

/** A generator of random numbers: (seed, offset) names a position in a stream of numbers.
 *
 * The runtime creates it (plait_runtime::generator_new). */
typedef struct plait_generator {
  plait_object o;
  uint64_t seed;
  uint64_t offset; /**< in blocks of four 32-bit words; atomic */
  DLDevice device;
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** What the role "rng" keeps for the generator, owned; or NULL. Its lock is the role's. Since
   * 0.5. */
  plait_object *state;
#endif
} plait_generator;

/** Role "rng": the source of the bits from which kernels compute random numbers. */
typedef struct plait_rng {
  plait_header h;
  const char *name;
  void *ctx;
  /** Take blocks of four 32-bit words from the stream of a generator.
   * @param generator NULL means the default generator
   * @param blocks number of blocks
   * @param seed the stream
   * @param offset the first block in it */
  void (*reserve)(void *ctx, plait_generator *, uint64_t blocks, uint64_t *seed, uint64_t *offset);
  /** Return the default generator, borrowed. */
  plait_generator *(*default_generator)(void *ctx);
  /** Or NULL, kernels compute Philox 4x32-10 (Salmon et al. 2011) themselves: fill words.
   *
   * It fills 4 * `blocks` words, those of the blocks `offset`, `offset` + 1, ... of the stream
   * `seed`. The same arguments give the same words, on any thread.
   * @param turn 0, or the number of the further draw from the same block (rejection methods) */
  void (*fill)(void *ctx, uint64_t seed, uint64_t offset, uint32_t turn, uint64_t blocks,
               uint32_t *words);
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** Or NULL, all devices draw from one generator: return the default generator of a device,
   * borrowed. It must not need the driver. The runtime passes it to kernels of random operators
   * that were called without a generator. Since 0.5. */
  plait_generator *(*device_generator)(void *ctx, DLDevice);
  /** Or NULL, the state is `seed` and `offset` of the generator, 16 bytes: return the number of bytes
   * of a state. A table with it also has the three functions after it. Since 0.5. */
  uint64_t (*state_size)(void *ctx, plait_generator *);
  /** NULL only without `state_size`: write the state of a generator. Since 0.5. */
  plait_status (*get_state)(void *ctx, struct plait_thread *, plait_generator *, void *state,
                            uint64_t nbytes);
  /** NULL only without `state_size`: set it; a state that is none is an error. Since 0.5. */
  plait_status (*set_state)(void *ctx, struct plait_thread *, plait_generator *, const void *state,
                            uint64_t nbytes);
  /** NULL only without `state_size`: begin the stream of numbers of a seed. `seed` and `offset` of
   * the generator are set already. Since 0.5. */
  plait_status (*set_seed)(void *ctx, struct plait_thread *, plait_generator *, uint64_t seed);
#endif
} plait_rng;

/** The line of a program that made a call. It never holds a frame. Frozen at 16 bytes. */
typedef struct plait_site {
  plait_object *code; /**< code object of the host, a reference, or NULL */
  int64_t offset;     /**< offset of the instruction in it */
} plait_site;

/** Role "host": what a host language gives an engine. */
typedef struct plait_host {
  plait_header h;
  const char *name;
  void *ctx;
  /** Return a new counted object around an object of the host.
   *
   * It may be released on any thread, with or without the GIL. */
  plait_object *(*hold)(void *ctx, void *object);
  /** Return the object of the host, borrowed; NULL if `hold` did not make the argument. */
  void *(*object)(void *ctx, plait_object *);
  /** Call a callable that `hold` made with tensors; it returns tensors.
   * @param in n_in tensors, borrowed; NULL stands for None
   * @param out n_out results, which the caller owns; NULL stands for None */
  plait_status (*apply)(void *ctx, struct plait_thread *, plait_object *callable,
                        plait_tensor *const *in, uint32_t n_in, plait_tensor **out, uint32_t n_out);
  /** Fill the site of the innermost frame of the user; `code` is NULL when it is unknown. */
  void (*site)(void *ctx, plait_site *);
  /** Write "file.py:12 in forward" into `text`, cut to `size` bytes with the NUL. */
  void (*describe)(void *ctx, const plait_site *, char *text, uint64_t size);
  /** Return 1 if a signal (Ctrl-C) has come, with its error in the thread; else 0. Any thread. */
  int (*interrupted)(void *ctx);
  /** Call fn(arg), and release the global lock of the host meanwhile if this thread holds it. */
  void (*unlocked)(void *ctx, void (*fn)(void *arg), void *arg);
  /** Give up slot[1] of a tensor that owned its wrapper and is freed. Any thread, any lock. */
  void (*release)(void *ctx, void *wrapper);
} plait_host;

/** Flags of plait_engine::backward. */
enum {
  PLAIT_BACKWARD_RETAIN = 1,       /**< the graph stays usable after the pass */
  PLAIT_BACKWARD_CREATE = 2,       /**< the pass is recorded, for derivatives of derivatives */
  PLAIT_BACKWARD_ALLOW_UNUSED = 4, /**< an input that the roots do not depend on is no error */
  /** Leaves among `inputs` accumulate, with their hooks, and get NULL in gx. An engine that does
   * not know the flag fills gx, and the caller adds it up. */
  PLAIT_BACKWARD_ACCUMULATE = 8
};

/** Role "engine": automatic differentiation. */
typedef struct plait_engine {
  plait_header h;
  const char *name;
  void *ctx;
  /** Number of its bit in plait_tensor::layers, which tensors that require grad have, no others. */
  uint64_t layer;
  /** Return whether calls of this thread are recorded. */
  int (*enabled)(void *ctx, struct plait_thread *);
  /** Switch recording on or off for this thread. */
  void (*set_enabled)(void *ctx, struct plait_thread *, int);
  /** Make a tensor require grad (1) or stop that (0, leaves only). */
  plait_status (*set_requires_grad)(void *ctx, struct plait_thread *, plait_tensor *, int);
  /** Return whether the tensor is a leaf: no recorded operator computed it. */
  int (*is_leaf)(void *ctx, plait_tensor *);
  /** Give the accumulated gradient: a new reference, or NULL. */
  plait_status (*grad)(void *ctx, struct plait_thread *, plait_tensor *, plait_tensor **out);
  /** Replace the gradient; NULL removes it. Shape, dtype and device must be those of the tensor. */
  plait_status (*set_grad)(void *ctx, struct plait_thread *, plait_tensor *, plait_tensor *grad);
  /** Return a new reference to the node that computed the tensor (`grad_fn`), or NULL. */
  plait_object *(*node)(void *ctx, plait_tensor *);
  /** Return the name of a node, which stays valid, or NULL if it is no node of this engine. */
  const char *(*node_name)(void *ctx, plait_object *);
  /** Keep the gradient of a tensor that is no leaf, too. */
  plait_status (*retain_grad)(void *ctx, struct plait_thread *, plait_tensor *);
  /** Cut the history of a tensor off, in place. */
  plait_status (*detach_)(void *ctx, struct plait_thread *, plait_tensor *);
  /** Run a backward pass.
   * @param roots n_roots tensors that are differentiated
   * @param grads their gradients; an entry, or the list, may be NULL for a scalar root: 1
   * @param inputs NULL: gradients are accumulated into the leaves. Else n_inputs tensors, whose
   *        gradients go to gx, and no leaf is changed
   * @param flags PLAIT_BACKWARD_*
   * @param gx n_inputs results, which the caller owns; NULL where a tensor is unused */
  plait_status (*backward)(void *ctx, struct plait_thread *, plait_tensor *const *roots,
                           plait_tensor *const *grads, uint32_t n_roots,
                           plait_tensor *const *inputs, uint32_t n_inputs, uint64_t flags,
                           plait_tensor **gx);
  /** Record a node that the host language wrote: it becomes the history of the outputs.
   * @param name for messages
   * @param callable maps n_out gradients to one for each input
   * @param node a new reference, or NULL where nothing requires grad */
  plait_status (*record)(void *ctx, struct plait_thread *, const char *name, plait_object *callable,
                         plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs,
                         uint32_t n_out, plait_object **node);
} plait_engine;

/** Flags of a ::plait_device. */
enum {
  /** The driver runs when the table is provided, with its threads and locks: the device counts as
   * used, and a child of a later fork refuses it. Without the flag it counts as used from the first
   * allocation, stream or event on, and a child that was forked before may use it. Since 0.5. */
  PLAIT_DEVICE_STARTED = 1,
};

/** Flags of plait_device::copy. */
enum {
  /** The host memory is pinned and stays unchanged until the copy is done: `copy` need not wait. */
  PLAIT_COPY_ASYNC = 1,
};

/** The oldest error of a device that was not reported yet.
 *
 * The caller sets `size` and zeroes the rest; the device fills the fields within `size`. */
typedef struct plait_device_error {
  uint64_t size;
  plait_status code; /**< negative */
  uint32_t fatal;    /**< 1: the device does no more work */
  uint64_t launch;   /**< plait_call::launch of the kernel that found it, or 0 */
  char text[256];    /**< ends with NUL; the runtime puts the name of the operator before it */
} plait_device_error;

/** How another process of this machine opens memory of a device.
 *
 * The caller sets `size`; the device fills the fields within it. */
typedef struct plait_shared_memory {
  uint64_t size;
  uint64_t offset; /**< of the bytes in what the other process opens */
  int32_t fd;      /**< a file descriptor to send, or -1; the caller of `share` duplicates it */
  uint32_t length; /**< bytes of `handle` that are used */
  char handle[128];
} plait_shared_memory;

/** Flags of ::plait_device_properties. */
enum {
  PLAIT_DEVICE_UNIFIED = 1, /**< host and device have one memory */
  PLAIT_DEVICE_PEERS = 2,   /**< devices of this type read one another's memory */
};

/** What a device is. The caller sets `size` and zeroes the rest. Since 0.5. */
typedef struct plait_device_properties {
  uint64_t size;
  uint64_t memory;         /**< bytes */
  uint64_t flags;          /**< PLAIT_DEVICE_UNIFIED, PLAIT_DEVICE_PEERS */
  uint64_t shared_memory;  /**< bytes of fast memory that the threads of a block share; or 0 */
  uint32_t major, minor;   /**< version of the instruction set, such as 9.0 */
  uint32_t units;          /**< number of multiprocessors */
  uint32_t threads;        /**< number of threads that a multiprocessor holds; or 0 */
  char name[128];          /**< of the product; ends with NUL */
  uint8_t uuid[16];        /**< or zeros */
} plait_device_properties;

/** Kinds of a ::plait_activity. */
enum plait_activity_kind {
  PLAIT_ACTIVITY_KERNEL = 1, PLAIT_ACTIVITY_COPY = 2, PLAIT_ACTIVITY_FILL = 3,
};

/** Something that a device did, as its own clock measured it. Since 0.5. */
typedef struct plait_activity {
  uint32_t size, kind;  /**< sizeof, set by the device; plait_activity_kind */
  uint64_t launch;      /**< plait_call::launch of the call that it belongs to, or 0 */
  uint64_t begin, end;  /**< nanoseconds of the host's CLOCK_MONOTONIC */
  uint64_t queued;      /**< when the host put it into the stream, by the same clock, or 0 */
  uint64_t stream;      /**< a number that work of one stream has in common; 0: the default one */
  uint64_t nbytes;      /**< of a copy; else 0 */
  const char *name;     /**< of the kernel; valid during the call */
  DLDevice device;
} plait_activity;

/** Role "device": a device type other than the CPU, which needs no table.
 *
 * Arguments belong to this device: streams and events have the `native` that this table filled.
 * The functions may be called from any thread. */
typedef struct plait_device {
  plait_header h;
  const char *name; /**< "cuda": the devices are called "cuda:0", "cuda:1", ... */
  void *ctx;
  uint64_t flags; /**< PLAIT_DEVICE_*; 0 before 0.5 */
  /** Return the number of devices.
   *
   * The runtime asks at every call, and in a child of a fork, so it should read a variable. */
  int32_t (*count)(void *ctx);
  /** Copy bytes between the host and a device, or between two devices of this type.
   *
   * The copy runs behind the work in the stream, which belongs to `from`, or to `to` if `from`
   * is the host. Without PLAIT_COPY_ASYNC, host memory has been read or written when the
   * function returns. Device memory may be used in the stream without a wait. Errors that are found
   * later, and records, name plait_thread::launch.
   * @param flags PLAIT_COPY_ASYNC or 0 */
  plait_status (*copy)(void *ctx, struct plait_thread *, void *dst, DLDevice to, const void *src,
                       DLDevice from, uint64_t nbytes, plait_stream *, uint64_t flags);
  /** Wait until the work in all streams of the device is done. */
  plait_status (*synchronize)(void *ctx, struct plait_thread *, DLDevice);
  /** Wait until the work in the stream is done. */
  plait_status (*stream_synchronize)(void *ctx, struct plait_thread *, DLDevice, plait_stream *);
  /** Or NULL, there are default streams only: fill `native` of a new stream.
   *
   * A table with it also has `stream_free`, `stream_query` and `event_new`. */
  plait_status (*stream_new)(void *ctx, struct plait_thread *, plait_stream *);
  /** NULL only without `stream_new`: free a stream. Its work is done in any case; this may wait. */
  void (*stream_free)(void *ctx, plait_stream *);
  /** NULL only without `stream_new`: set `done` to 1 if the work in the stream is done, else 0. */
  plait_status (*stream_query)(void *ctx, struct plait_thread *, DLDevice, plait_stream *,
                               int32_t *done);
  /** Or NULL, calls return when their work is done, so that every event is reached at once: fill
   * `native` of a new event. A table with it also has the five functions after it. */
  plait_status (*event_new)(void *ctx, struct plait_thread *, plait_device_event *);
  /** NULL only without `event_new`: free an event. */
  void (*event_free)(void *ctx, plait_device_event *);
  /** NULL only without `event_new`: put the event behind the work in the stream. An event that
   * was recorded before moves. */
  plait_status (*event_record)(void *ctx, struct plait_thread *, plait_device_event *,
                               plait_stream *);
  /** NULL only without `event_new`: set `done` to 1 if the event is reached, else 0. */
  plait_status (*event_query)(void *ctx, struct plait_thread *, plait_device_event *,
                              int32_t *done);
  /** NULL only without `event_new`: let the host wait for the event. */
  plait_status (*event_wait)(void *ctx, struct plait_thread *, plait_device_event *);
  /** NULL only without `event_new`: let later work in the stream wait for the event as it is
   * recorded now. The host does not wait. */
  plait_status (*stream_wait)(void *ctx, struct plait_thread *, DLDevice, plait_stream *,
                              plait_device_event *);
  /** Or NULL, the device has no clock: give the time between two events that are reached. */
  plait_status (*event_elapsed)(void *ctx, struct plait_thread *, plait_device_event *from,
                                plait_device_event *to, double *milliseconds);
  /** Or NULL, any host memory will do: allocate pinned host memory. */
  plait_status (*pinned_alloc)(void *ctx, struct plait_thread *, uint64_t nbytes, void **data);
  /** NULL only without `pinned_alloc`: free it. */
  void (*pinned_free)(void *ctx, void *data, uint64_t nbytes);
  /** Or NULL, kernels find all errors before they return: take the oldest error.
   *
   * The runtime asks at every call on the device and after every wait. It tells the error to the
   * thread that made the launch, and to another thread that waits for the stream of the launch.
   * @return 1 and the error, which is not reported again; or 0 */
  int32_t (*take_error)(void *ctx, DLDevice, plait_device_error *);
  /** Or NULL, other processes cannot open its memory: describe memory for another process.
   *
   * The caller keeps the storage until no process has it open, and has waited for work that
   * writes to it.
   * @param data that of a storage */
  plait_status (*share)(void *ctx, struct plait_thread *, DLDevice, void *data, uint64_t nbytes,
                        plait_shared_memory *);
  /** NULL only without `share`: open memory of another process, once for each memory.
   *
   * The function borrows the file descriptor.
   * @param data its address in this process
   * @param opened a value that `share_close` gets back */
  plait_status (*share_open)(void *ctx, struct plait_thread *, DLDevice,
                             const plait_shared_memory *, uint64_t nbytes, void **data,
                             void **opened);
  /** NULL only without `share`: close what `share_open` opened. Any thread. */
  void (*share_close)(void *ctx, DLDevice, void *data, uint64_t nbytes, void *opened);
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** Or NULL: start the driver. The runtime calls it once in a process, before the first call,
   * allocation, stream or event of the type, and without the lock of the host language. If it
   * fails, that use fails, and the next one calls it again. It must not use the device through the
   * runtime. With PLAIT_DEVICE_STARTED it is not called. Since 0.5. */
  plait_status (*start)(void *ctx, struct plait_thread *);
  /** Or NULL: describe a device. Since 0.5. */
  plait_status (*properties)(void *ctx, struct plait_thread *, DLDevice,
                             plait_device_properties *);
  /** Or NULL, any priority will do: give the lowest and the highest one of streams. Lower numbers
   * are served first, so `highest` is at most `lowest`; 0 lies between them. The runtime refuses
   * streams with others. Since 0.5. */
  plait_status (*priorities)(void *ctx, struct plait_thread *, DLDevice, int32_t *lowest,
                             int32_t *highest);
  /** Or NULL: take memory from the driver, for an allocator that caches it. A table with it also has
   * the two functions after it. Since 0.5.
   * @return PLAIT_MEMORY_ERROR without an error object if there is no memory */
  plait_status (*memory_alloc)(void *ctx, struct plait_thread *, DLDevice, uint64_t nbytes,
                               void **data);
  /** NULL only without `memory_alloc`: give memory back, once work that may use it is done. Any
   * thread. Since 0.5. */
  void (*memory_free)(void *ctx, DLDevice, void *data, uint64_t nbytes);
  /** NULL only without `memory_alloc`: give the free and the total bytes of a device, of all
   * processes. Since 0.5. */
  plait_status (*memory_info)(void *ctx, struct plait_thread *, DLDevice, uint64_t *free_bytes,
                              uint64_t *total_bytes);
  /** Or NULL: describe an event with PLAIT_EVENT_SHARED for another process. The function keeps
   * `fd`; the caller duplicates it. Since 0.5. */
  plait_status (*event_share)(void *ctx, struct plait_thread *, plait_device_event *,
                              plait_shared_memory *);
  /** NULL only without `event_share`: fill `native` of a new event from the description of another
   * process. Since 0.5. */
  plait_status (*event_open)(void *ctx, struct plait_thread *, const plait_shared_memory *,
                             plait_device_event *);
  /** Or NULL, nothing can be recorded: from now on record the work of the stream, and of those that
   * wait for its events, instead of doing it. A table with it also has the four functions after it.
   * Since 0.5. */
  plait_status (*capture_begin)(void *ctx, struct plait_thread *, DLDevice, plait_stream *);
  /** NULL only without `capture_begin`: end that and give the recorded graph; NULL after work that
   * cannot be recorded, with an error. Since 0.5. */
  plait_status (*capture_end)(void *ctx, struct plait_thread *, DLDevice, plait_stream *,
                              void **graph);
  /** NULL only without `capture_begin`: return whether work in the stream is recorded. Since 0.5. */
  int32_t (*capture_query)(void *ctx, DLDevice, plait_stream *);
  /** NULL only without `capture_begin`: do what was recorded, in the stream. Since 0.5. */
  plait_status (*graph_launch)(void *ctx, struct plait_thread *, void *graph, DLDevice,
                               plait_stream *);
  /** NULL only without `capture_begin`: free a graph. Any thread. Since 0.5. */
  void (*graph_free)(void *ctx, void *graph);
  /** Or NULL, rows of the profiler are the gaps between events: record what the device does. A table
   * with it also has `activity_stop`. Since 0.5. */
  plait_status (*activity_start)(void *ctx, struct plait_thread *, DLDevice);
  /** NULL only without `activity_start`: wait for the device, end that and report each record, in
   * any order. Since 0.5. */
  plait_status (*activity_stop)(void *ctx, struct plait_thread *, DLDevice,
                                void (*each)(void *arg, const plait_activity *), void *arg);
  /** Or NULL: give the number of the device that has the memory at an address, which may be that of
   * another library. Since 0.5.
   * @return PLAIT_VALUE_ERROR with an error if no device of the type has it */
  plait_status (*memory_device)(void *ctx, struct plait_thread *, const void *data,
                                int32_t *device);
#endif
} plait_device;

/* ---- collectives --------------------------------------------------------------------------- */

/** Reductions of a collective. */
enum plait_reduction {
  PLAIT_REDUCE_SUM = 0, PLAIT_REDUCE_AVERAGE = 1, PLAIT_REDUCE_PRODUCT = 2, PLAIT_REDUCE_MIN = 3,
  PLAIT_REDUCE_MAX = 4,
  PLAIT_REDUCE_AND = 5, PLAIT_REDUCE_OR = 6, PLAIT_REDUCE_XOR = 7, /**< of bits */
};

/** Kinds of collectives.
 *
 * Tensors in `in` and `out` are dense and have one size and dtype. An output may be an input.
 * The caller calls plait_runtime::touched for outputs. */
enum plait_collective_kind {
  PLAIT_ALL_REDUCE = 1,     /**< out: the reduction of all members' in, the same bits everywhere */
  PLAIT_BROADCAST = 2,      /**< out: root's in; the others' in is not read and may be missing */
  PLAIT_REDUCE = 3,         /**< root's out: the reduction of all members' in */
  PLAIT_ALL_GATHER = 4,     /**< out[i]: member i's in */
  PLAIT_GATHER = 5,         /**< root's out[i]: member i's in */
  PLAIT_SCATTER = 6,        /**< out: root's in[rank] */
  PLAIT_REDUCE_SCATTER = 7, /**< out: the reduction of all members' in[rank] */
  PLAIT_ALL_TO_ALL = 8,     /**< out[i]: member i's in[rank] */
  PLAIT_SEND = 9,           /**< in goes to member `peer`; messages of one tag arrive in order */
  PLAIT_RECEIVE = 10,       /**< out comes from member `peer` */
  PLAIT_BARRIER = 11,       /**< done when all members have called it */
};

/** What one member asks for.
 *
 * Pointers are borrowed for the call; the tensors are borrowed while the collective runs. */
typedef struct plait_collective {
  uint32_t size; /**< sizeof, set by the caller; what lies behind it counts as 0 */
  uint32_t kind; /**< plait_collective_kind */
  plait_tensor *const *in, *const *out;
  uint32_t n_in, n_out;
  uint32_t reduction; /**< plait_reduction */
  uint32_t peer;      /**< the root of BROADCAST, REDUCE, GATHER, SCATTER; or the other member */
  int64_t tag;        /**< of SEND, RECEIVE; since 0.4 of others too: all members give the same */
  double timeout;     /**< seconds until it fails; 0: the timeout of the communicator */
} plait_collective;

/** A group of processes and the rank of this one. The provider creates it. */
typedef struct plait_communicator {
  plait_object o;
  const struct plait_collectives *table; /**< its provider */
  uint32_t rank, size;
} plait_communicator;

/** A collective that runs. The provider creates it. Releasing it does not stop the collective. */
typedef struct plait_work {
  plait_object o;
  const struct plait_collectives *table; /**< its provider */
} plait_work;

/** Role "communicator": collectives between processes, for one device type.
 *
 * Several providers exist at once, each under its name; plait_runtime::provider finds one. All
 * members of a group call the same collectives in the same order. */
typedef struct plait_collectives {
  plait_header h;
  const char *name; /**< "shared_memory" */
  void *ctx;
  /** Join a group and wait for all members.
   * @param where the name of the group, in the form of the provider ("unix:...",
   *        "tcp://host:port"); all members give the same
   * @param rank that of this process
   * @param size the number of members
   * @param timeout seconds to wait; also the default timeout of every collective */
  plait_status (*open)(void *ctx, struct plait_thread *, const char *where, uint32_t rank,
                       uint32_t size, double timeout, plait_communicator **);
  /** Form new groups, a collective of all members: those with one `color` become a group.
   *
   * Members are ordered by `key` and then by rank. The result is NULL for a negative color. */
  plait_status (*split)(void *ctx, struct plait_thread *, plait_communicator *, int64_t color,
                        int64_t key, plait_communicator **);
  /** End all collectives of the group in every member, running and later ones. When it returns,
   * the others have been told: a process that ends behind it has aborted, and is not lost.
   * @param why the text of their error */
  void (*abort)(void *ctx, plait_communicator *, const char *why);
  /** Begin a collective.
   *
   * On a device it runs behind the work in the stream, and later work there sees its result.
   * @param work NULL: the function returns when the collective is done, or on a device when it
   *        is in the stream. Else a new reference
   * @return PLAIT_NOT_IMPLEMENTED for a kind that the provider does not have */
  plait_status (*start)(void *ctx, struct plait_thread *, plait_communicator *,
                        const plait_collective *, plait_stream *, plait_work **work);
  /** Set `done` to 1 if the collective is done, else 0; return its error if it failed. */
  plait_status (*query)(void *ctx, struct plait_thread *, plait_work *, int32_t *done);
  /** Let the host, on a device its current stream, wait until it is done; give its error. */
  plait_status (*wait)(void *ctx, struct plait_thread *, plait_work *);
  /** As `abort`, because the user interrupts this member, which counts as lost. Since 0.5; may be
   * NULL.
   * @param where the function that the user interrupts */
  void (*interrupt)(void *ctx, plait_communicator *, const char *where);
} plait_collectives;

/** Limits. PLAIT_TOKENS is the `room` that plait_runtime::begin needs. */
enum {
  PLAIT_MAX_DEVICE_TYPES = 32, PLAIT_MAX_DIMS = 64, PLAIT_MAX_ARGS = 32, PLAIT_MAX_RESULTS = 8,
  PLAIT_TOKENS = 17
};

/** Address of the table that fills a role now.
 *
 * plait_runtime::role gives it once, and it stays valid for ever. A component reads the table by
 * ::PLAIT_ROLE for each use, because plug-ins come and go while other threads call; old tables
 * stay valid. The table is NULL where nobody fills the role. "executor", "rng" and the
 * "allocator" of the CPU are always filled. */
typedef const plait_header *const *plait_role;

/** Read the table of type `T` at a ::plait_role, which may be NULL. */
#define PLAIT_ROLE(T, role) ((const T *)(role ? __atomic_load_n(role, __ATOMIC_ACQUIRE) : NULL))

/* ---- threads ------------------------------------------------------------------------------- */

/** The state of one thread that calls plait, from plait_runtime::thread. Only that thread uses
 * it. */
typedef struct plait_thread {
  plait_header h;
  const struct plait_runtime *runtime;
  plait_error *error; /**< the last error, owned, or NULL */
  uint64_t excluded;  /**< bits of the layers that this thread skips: no_grad sets autograd's bit */
  uint64_t included;  /**< bits of the layers that see every call, whatever the tensors say */
  void *slot[4];      /**< 0: the engine; 1: level of forward mode; 2: place.h; 3: warning.h */
  /** Of results of calls that have no tensor and name none; default: the CPU. */
  DLDevice device;
  uint64_t node;      /**< written by the engine: number of the newest node of this thread, or 0 */
  /** Number of the latest copy by plait_device::copy, which its errors and records name; since 0.5. */
  uint64_t launch;
} plait_thread;

/* ---- plug-ins ------------------------------------------------------------------------------ */

/** Flags of a ::plait_plugin. */
enum {
  /** The plug-in is the default of a package. Its roles, kernels and layers rank below those of
   * plug-ins without the flag, which a user chose, in whatever order they are loaded. Among
   * equals the latest counts; what the runtime brings itself ranks last. */
  PLAIT_PLUGIN_DEFAULT = 1,
  /** Its kernels of operators with PLAIT_OP_OVERWRITES may get the first input as the output: they
   * read what they need before they write over it. Since 0.5. */
  PLAIT_PLUGIN_OVERWRITES = 2,
};

/** A plug-in. A shared library exports one as `const plait_plugin plait_plugin_v1`. */
typedef struct plait_plugin {
  plait_header h;
  const char *name, *version; /**< a name is loaded once */
  uint64_t flags;             /**< PLAIT_PLUGIN_* */
  /** Or NULL: register what the plug-in brings. If it fails, the runtime takes all of that back. */
  plait_status (*init)(const struct plait_runtime *, const struct plait_plugin *);
  /** Or NULL: stop threads, and wait for work in flight, before the process exits.
   *
   * plait_runtime::quiesce calls it, once. The devices of the plug-in refuse every use from then
   * on, and none of their functions is called. Libraries are never unloaded. */
  void (*quiesce)(void);
} plait_plugin;

/** One line of plait_runtime::report. */
typedef struct plait_record {
  const char *kind; /**< "role", "kernel", "layer", "plugin", "observer", "fallback" */
  const char *name, *provider, *version;
  int32_t active;       /**< 1: it is in force */
  uint32_t device_type; /**< of kernels, roles of devices and fallbacks; else 0 */
  uint64_t count;       /**< of fallbacks: number of calls that ran on the CPU instead */
} plait_record;

/** Slots of plait_runtime::implement: a DLDeviceType, or PLAIT_SLOT_LAYER + the bit of a layer. */
enum { PLAIT_SLOT_LAYER = 0x100 };

/** Flags in `wanted` of plait_runtime::layer. */
enum {
  /** The layer only looks at calls, such as a recorder or a profiler: its functions hand each call
   * to `call_below`, unchanged, and keep none of its tensors. A composite that has a kernel is not
   * taken apart for it. Since 0.5. */
  PLAIT_LAYER_PASSIVE = 0x100,
};

/** Bits of plait_runtime::settings. */
enum {
  PLAIT_SETTING_BATCH_INVARIANT = 1, /**< rows of a result do not depend on the other rows */
  /** Products of float32 may round their operands to 10 bits of mantissa (TF32). Since 0.5. */
  PLAIT_SETTING_TF32_PRODUCTS = 2,
  /** Convolutions of float32 may not do that. Since 0.5. */
  PLAIT_SETTING_EXACT_CONVOLUTIONS = 4,
  /** The same bits from run to run on every device, or an error. Since 0.5. */
  PLAIT_SETTING_DETERMINISTIC = 8,
};

/* ---- the runtime --------------------------------------------------------------------------- */

/** The functions of the runtime. There is one in a process; components get a pointer to it. */
typedef struct plait_runtime {
  plait_header h;
  const char *path; /**< of its library */
  /** Return the state of the calling thread, which the runtime frees when the thread ends. */
  plait_thread *(*thread)(void);
  /** Return where the table of a role is found, or NULL if there is no such role.
   * @param device_type counts for "allocator", "device" and "communicator" only */
  plait_role (*role)(const char *name, int32_t device_type);
  /** Return the table that fills a role under the name `name`, in force or not; NULL if none
   * does. */
  const plait_header *(*provider)(const char *role, const char *name, int32_t device_type);

  /** Define an operator; an unsound definition or a known name is an error.
   * @param def must stay valid until the process ends
   * @param op the operator; may be NULL */
  plait_status (*define)(plait_thread *, const plait_op_def *, const plait_op **);
  /** Return an operator, or NULL; "max" gives the first overload of that base name.
   *
   * In `init` it is NULL where the package that defines the operator is loaded later.
   * `implement_named` does not depend on the order. */
  const plait_op *(*op)(const char *name);
  /** List all operators in the order of definition.
   * @param room length of `list`
   * @return the number of operators, which may exceed `room` */
  uint64_t (*ops)(const plait_op **list, uint64_t room);
  /** Register a kernel or a layer function. The latest is asked first and may decline.
   *
   * The kernel of a composite runs where no layer watches its inputs, or where the operator has
   * a derivative of its own. Its results get the shapes that the decomposition gives on meta
   * tensors. A view has no kernel.
   * @param op NULL: all operators, also later ones. In the slot of a device such a kernel serves
   *        operators that have no kernel there and no decomposition
   * @param slot a DLDeviceType, or PLAIT_SLOT_LAYER + bit
   * @param ctx stored in the entry
   * @param plugin the plug-in that brings it; NULL: the one whose `init` runs, if any
   * @param undo a number for `retract`; may be NULL */
  plait_status (*implement)(plait_thread *, const plait_op *, uint32_t slot, plait_kernel,
                            void *ctx, const plait_plugin *, uint64_t *undo);
  /** Take back a registration of `implement` or `provide`. Running calls finish with it. */
  plait_status (*retract)(plait_thread *, uint64_t undo);
  /** Reserve the layer `name`, or find it if it is reserved.
   *
   * A higher bit runs earlier. Bits below 16, and 36 to 39 (since 0.5), are for tensors whose bytes
   * have another meaning; such a layer also sees aliases of its tensors (since 0.4).
   * @param wanted the preferred bit, with PLAIT_LAYER_*; the next free bit above it is taken
   * @param bit the bit in plait_tensor::layers */
  plait_status (*layer)(plait_thread *, const char *name, uint32_t wanted, uint32_t *bit);
  /** Call an operator. It fills `todo` from the tensors and the thread and runs the layers. */
  plait_status (*call)(plait_call *);
  /** Continue a call within a layer: run the layers that `todo` still holds, then the kernel.
   *
   * Since 0.5 call->self is afterwards the kernel that served the call; NULL if none did, as for a
   * view or a decomposition. */
  plait_status (*call_below)(plait_call *);
  /** Run the decomposition of a call, whose operators all layers see.
   *
   * It is for a layer that cannot serve the operator itself. An in-place form reads copies of
   * what it overwrites.
   * @return PLAIT_NOT_IMPLEMENTED if there is no decomposition */
  plait_status (*decompose)(plait_call *);

  /** In a shape function: make result `i`, dense in C order, or check the target of the call. */
  plait_status (*result)(plait_call *, uint32_t i, DLDataType, int32_t ndim, const int64_t *shape);
  /** In a shape function: as `result`, with strides in elements for a new tensor. */
  plait_status (*result_strided)(plait_call *, uint32_t i, DLDataType, int32_t ndim,
                                 const int64_t *shape, const int64_t *strides);
  /** In a shape function: make result `i` a view of `base`, within the bounds of its storage.
   *
   * For a result of type Tensor[], each call appends a tensor.
   * @param offset in elements, from the first element of `base` */
  plait_status (*view)(plait_call *, uint32_t i, plait_tensor *base, int32_t ndim,
                       const int64_t *shape, const int64_t *strides, int64_t offset);
  /** In a shape function: let the kernel see argument `i`, a tensor or list, in this dtype. */
  plait_status (*cast)(plait_call *, uint32_t i, DLDataType);

  /** Create a tensor with a storage of its own; its bytes are uninitialised.
   * @param strides in elements; NULL: C order */
  plait_status (*tensor_new)(plait_thread *, DLDataType, int32_t ndim, const int64_t *shape,
                             const int64_t *strides, DLDevice, plait_tensor **);
  /** Create a tensor on a storage, which it retains; bytes outside of the storage are an error.
   * @param data address of the first element
   * @param strides in elements; NULL: C order */
  plait_status (*tensor_on)(plait_thread *, plait_storage *, void *data, DLDataType, int32_t ndim,
                            const int64_t *shape, const int64_t *strides, plait_tensor **);
  /** Create another handle of the same bytes. Of the layers it keeps those below 16 (since 0.4)
   * and 36 to 39 (since 0.5). */
  plait_status (*tensor_alias)(plait_thread *, plait_tensor *, plait_tensor **);
  /** Create a storage with memory from the allocator of the device. */
  plait_status (*storage_new)(plait_thread *, DLDevice, uint64_t nbytes, plait_storage **);
  /** Create a storage of bytes that belong to somebody else.
   * @param flags PLAIT_STORAGE_*; PLAIT_STORAGE_EXTERNAL is added
   * @param release called as release(block) when the storage is freed, on any thread; or NULL.
   *        It is not called if this function fails */
  plait_status (*storage_wrap)(plait_thread *, void *data, uint64_t nbytes, DLDevice,
                               uint64_t flags, void (*release)(void *), void *block,
                               plait_storage **);
  /** Give a tensor the bytes, shape and dtype of another one (`p.data = q`).
   *
   * It fails while a call of another thread uses the tensor, on a host without a global lock. */
  plait_status (*tensor_repoint)(plait_thread *, plait_tensor *, plait_tensor *source);
  /** Create a value of type Tensor[] that owns references to `n` tensors, of which some may be
   * NULL. */
  plait_status (*tensors)(plait_thread *, plait_tensor *const *, uint32_t n, plait_value *);
  /** Release what an owned value holds and make it PLAIT_NONE. */
  void (*release_value)(plait_value *);
  /** Count a write in place that no operator call did; calls count their own writes. */
  void (*touched)(plait_storage *);
  /** Return a new generator at offset 0, or NULL without an error if there is no memory. */
  plait_generator *(*generator_new)(uint64_t seed);

  /* Devices. A device whose calls return when their work is done needs no streams: it has its
   * default stream only, and an event is reached when it is recorded. For the CPU these functions
   * do nothing, and their results are NULL. */

  /** Give the number of devices of a type: 0 if nobody brings it, 1 for the CPU. */
  plait_status (*device_count)(plait_thread *, DLDeviceType, int32_t *);
  /** Create a stream; NULL where the device has only its default stream. */
  plait_status (*stream_new)(plait_thread *, DLDevice, int32_t priority, plait_stream **);
  /** Create a stream object for a stream of other code, which frees `native` after this object. */
  plait_status (*stream_wrap)(plait_thread *, DLDevice, void *native, plait_stream **);
  /** Return the current stream of the thread on the device, borrowed; NULL: the default stream. */
  plait_stream *(*stream)(plait_thread *, DLDevice);
  /** Set the current stream of the thread on the device.
   * @param stream NULL: the default stream
   * @param previous the one before, which the caller releases; may be NULL */
  plait_status (*set_stream)(plait_thread *, DLDevice, plait_stream *, plait_stream **previous);
  /** Set `done` to 1 if the work in the stream is done, else 0. */
  plait_status (*stream_query)(plait_thread *, DLDevice, plait_stream *, int32_t *done);
  /** Wait for the work in the stream. A signal ends the wait with an error. */
  plait_status (*stream_synchronize)(plait_thread *, DLDevice, plait_stream *);
  /** Wait for the work in all streams of the device. A signal ends the wait with an error. */
  plait_status (*synchronize)(plait_thread *, DLDevice);
  /** Create an event.
   * @param flags PLAIT_EVENT_* */
  plait_status (*event_new)(plait_thread *, DLDevice, uint64_t flags, plait_device_event **);
  /** Put the event behind the work in the stream. */
  plait_status (*event_record)(plait_thread *, plait_device_event *, plait_stream *);
  /** Set `done` to 1 if the event is reached or was never recorded, else 0. */
  plait_status (*event_query)(plait_thread *, plait_device_event *, int32_t *done);
  /** Let the host wait for the event. A signal ends the wait with an error. */
  plait_status (*event_wait)(plait_thread *, plait_device_event *);
  /** Let later work in the stream wait for the event; the host waits if the types differ. */
  plait_status (*stream_wait)(plait_thread *, DLDevice, plait_stream *, plait_device_event *);
  /** Wait for two events with PLAIT_EVENT_TIMED of one device and give the time between them. */
  plait_status (*event_elapsed)(plait_thread *, plait_device_event *from, plait_device_event *to,
                                double *milliseconds);
  /** Note that work in the stream uses the storage. A call does that for its tensors. */
  void (*record_use)(plait_storage *, plait_stream *);
  /** Create a storage on the CPU from which the device copies without a wait. */
  plait_status (*pinned_new)(plait_thread *, DLDevice for_device, uint64_t nbytes,
                             plait_storage **);
  /** Give the tensor itself, retained, if it is on the CPU; else a copy there, which has arrived.
   *
   * It is the only way from a device to code of the host. A meta tensor is an error. */
  plait_status (*host_copy)(plait_thread *, plait_tensor *, plait_tensor **);
  /** Let operators without a kernel for the device type run on the CPU, on copies (1), or not (0,
   * the default). */
  plait_status (*set_fallback)(plait_thread *, DLDeviceType, int32_t on);

  /** Set the error of the thread.
   * @param code negative
   * @param origin the operator or component, which begins the text; or NULL
   * @param format as that of printf
   * @return `code`, for the caller to return; PLAIT_MEMORY_ERROR if there is no memory */
  plait_status (*raise)(plait_thread *, plait_status code, const char *origin, const char *format,
                        ...);
  /** As `raise`, with the operator of the call as the origin. */
  plait_status (*fail)(const plait_call *, plait_status code, const char *format, ...);
  /** Set an exception of the host language as the error of the thread.
   * @param exception a reference that the function takes over
   * @param message its text, or NULL
   * @return PLAIT_HOST_ERROR */
  plait_status (*raise_host)(plait_thread *, plait_object *exception, const char *message);
  /** Remove the error of the thread. */
  void (*clear)(plait_thread *);

  /** Register a table for a role. The latest one of the highest rank is in force
   * (::plait_plugin).
   *
   * There is one "device" for each type: a second one is refused.
   * @param device_type that of "allocator", "device" and "communicator"; other roles ignore it
   * @param plugin the plug-in that brings it; NULL: the one whose `init` runs, if any
   * @param undo a number for `retract`; may be NULL */
  plait_status (*provide)(plait_thread *, const char *role, int32_t device_type,
                          const plait_header *table, const plait_plugin *, uint64_t *undo);
  /** Switch an observer on (1) or off (0). At most PLAIT_TOKENS - 1 run at once. */
  plait_status (*observe)(plait_thread *, const plait_observer *, int on);
  /** The kinds that some observer wants; atomic. Test it before `emit` or `begin`. */
  uint64_t *observed;
  /** Send an event that has no end to the observers. */
  void (*emit)(const plait_event *);
  /** Send the begin of an event.
   * @param tokens an array for `end`
   * @param room its length, PLAIT_TOKENS
   * @return the number of tokens, for `end` */
  uint64_t (*begin)(const plait_event *, uint64_t *tokens, uint64_t room);
  /** Send the end of an event to the observers that got its begin. */
  void (*end)(const plait_event *, const uint64_t *tokens, uint64_t n, plait_status);
  /** Load the plug-in of a shared library, once for each path. */
  plait_status (*load)(plait_thread *, const char *path);
  /** Start a plug-in that is in memory. It does nothing if the plug-in is loaded. */
  plait_status (*attach)(plait_thread *, const plait_plugin *);
  /** List what is registered.
   * @param room length of `list`
   * @param record_size sizeof(plait_record)
   * @return the number of records, which may exceed `room` */
  uint64_t (*report)(plait_record *list, uint64_t room, uint64_t record_size);
  /** Take back every kernel, layer function, role and observer of a plug-in.
   *
   * What it lent (memory, tables in use) stays valid, and it can be loaded again. The function
   * fails while tensors have memory of its device. */
  plait_status (*detach)(plait_thread *, const char *plugin);
  /** The dtype of floats of the host, and of floats that operators make of integers or of
   * nothing. The host may set it. */
  DLDataType *default_dtype;
  /** PLAIT_SETTING_*: what the user asks of all kernels; atomic. */
  uint64_t *settings;
  /** Give the cost of a call that has its results.
   *
   * Read: each element of the tensors among the arguments once. Written: the results, unless the
   * operator makes views. Operations: one for each element that a pointwise operator writes.
   * Then plait_op_def::cost corrects the numbers. */
  void (*cost)(const plait_call *, plait_cost *);
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /** Stop all plug-ins, the latest first, before the process ends. Since 0.5.
   *
   * A host calls it at its own end, which is before the libraries of drivers end. Without that, a
   * handler of `exit` does it, which was registered behind the `init` of each plug-in. */
  void (*quiesce)(void);
  /** As `implement`, for the operator of that name ("adam_step", "max.dim"), even if it is defined
   * later. Since 0.5.
   *
   * A kernel counts from the definition on. One for an operator that makes views is never called;
   * it is refused where the operator is there. */
  plait_status (*implement_named)(plait_thread *, const char *name, uint32_t slot, plait_kernel,
                                  void *ctx, const plait_plugin *, uint64_t *undo);
  /** Begin to use a device: start its driver at the first use. An error says why it cannot be used.
   * Since 0.5.
   *
   * Calls, allocations, streams and events do it themselves. A component that calls functions of
   * the table ::plait_device itself, such as `properties`, does it before. */
  plait_status (*use_device)(plait_thread *, DLDevice);
  /** Describe an event that was made with PLAIT_EVENT_SHARED for another process. Since 0.5.
   * @param description the caller sets `size`, and duplicates `fd` before the event is freed */
  plait_status (*event_share)(plait_thread *, plait_device_event *, plait_shared_memory *);
  /** Create an event from the description of another process. Since 0.5. */
  plait_status (*event_open)(plait_thread *, DLDevice, const plait_shared_memory *,
                             plait_device_event **);
#endif
} plait_runtime;

/** Return the runtime: the function that libplait_abi.so exports.
 * @return NULL if another copy runs in this process; ::plait_runtime_refusal says which */
const plait_runtime *plait_runtime_v0(void);

/** Return why ::plait_runtime_v0 returned NULL. */
const char *plait_runtime_refusal(void);

/* What components were compiled against does not move. */
PLAIT_ASSERT(sizeof(plait_value) == 16, "plait_value");
PLAIT_ASSERT(sizeof(plait_object) == 16, "plait_object");
PLAIT_ASSERT(sizeof(plait_site) == 16, "plait_site");
PLAIT_ASSERT(offsetof(plait_storage, release) == 72, "plait_storage");
PLAIT_ASSERT(offsetof(plait_tensor, base) == 120, "plait_tensor");
PLAIT_ASSERT(offsetof(plait_tensor, dl) == 16 && offsetof(plait_tensor, storage) == 64,
             "plait_tensor");
PLAIT_ASSERT(offsetof(plait_call, launch) == 88, "plait_call");

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_ABI_H */

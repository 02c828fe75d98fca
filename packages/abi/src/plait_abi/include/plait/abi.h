/* clang-format off */
/* plait's C ABI: the joint that every component hangs on. Plain C11: no Python, no C++ types, no implicit padding.
 * A component runs on every later runtime of its major version: structs grow at their end alone, whoever writes one
 * says how much of it there is, and whoever reads it asks before it reads a field that its writer may not know.
 * docs/design/0019 has the rules. Every struct is documented where it stands; docs/ quotes this file. */
#ifndef PLAIT_ABI_H
#define PLAIT_ABI_H
#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLAIT_ABI_MAJOR 0
#define PLAIT_ABI_MINOR 5

/* The version that a component is compiled for: that of this header, or an older one (-DPLAIT_TARGET='PLAIT_VERSION(1,0)'),
 * whose structs it then sees. The component runs on runtimes of that version and of later ones. */
#define PLAIT_VERSION(major, minor) ((major) * 1000 + (minor))
#ifndef PLAIT_TARGET
#define PLAIT_TARGET PLAIT_VERSION(PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR)
#endif
#if PLAIT_TARGET < PLAIT_VERSION(0, 3) || PLAIT_TARGET > PLAIT_VERSION(PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR)
#error "PLAIT_TARGET must be a version from 0.3 on that this header knows"
#endif

/* ---- status ---------------------------------------------------------------------------------------------------- */
/* 0 is success; 1 makes the runtime ask the next provider; negative codes are errors whose object is in
 * plait_thread::error. The codes are the kinds of exception that host languages map them to. */
typedef int32_t plait_status;
enum {
  PLAIT_OK = 0,
  PLAIT_DECLINE = 1, /* of kernels alone: everywhere else it is an error */
  PLAIT_ERROR = -1,           /* RuntimeError */
  PLAIT_SHAPE_ERROR = -2,     /* ShapeError(ValueError, RuntimeError) */
  PLAIT_DTYPE_ERROR = -3,     /* DTypeError(TypeError, RuntimeError) */
  PLAIT_VALUE_ERROR = -4,     /* ValueError */
  PLAIT_INDEX_ERROR = -5,     /* IndexError */
  PLAIT_TYPE_ERROR = -6,      /* TypeError */
  PLAIT_MEMORY_ERROR = -7,    /* OutOfMemoryError(MemoryError, RuntimeError) */
  PLAIT_NOT_IMPLEMENTED = -8, /* NotImplementedError */
  PLAIT_HOST_ERROR = -9,      /* the exception of the host language held in plait_error::host */
  PLAIT_TIMEOUT_ERROR = -10,  /* TimeoutError */
};

typedef struct plait_header { /* first member of every table that crosses a component border */
  uint32_t size;              /* sizeof on the writer's side */
  uint16_t major, minor;
} plait_header;
#define PLAIT_HEADER(T) {(uint32_t)sizeof(T), PLAIT_TARGET / 1000, PLAIT_TARGET % 1000}
/* Whether a table has the field and it isn't NULL; and whether a struct of which `size` bytes are there has it. */
#define PLAIT_HAS(T, p, f) ((p)->h.size >= offsetof(T, f) + sizeof((p)->f) && (p)->f)
#define PLAIT_KNOWS(T, size, f) ((size) >= offsetof(T, f) + sizeof(((T *)0)->f))

/* Flags: who doesn't know one of the low 32 bits may ignore it. One of the high 32 bits must be understood: whoever
 * takes the struct refuses it otherwise, and names the bit. */
#define PLAIT_MUST_UNDERSTAND 0xffffffff00000000u

struct plait_runtime;
struct plait_thread;
struct plait_op;
struct plait_plugin;
struct plait_allocator;
struct plait_device;
struct plait_stream;

/* ---- counted objects ------------------------------------------------------------------------------------------- */
/* Components count inline, so this struct, what the two functions do and the order of their atomics never change. */
typedef struct plait_object { /* everything that is counted; its type's drop frees it, on whatever thread */
  uint64_t refs;              /* atomic */
  const struct plait_type *type;
} plait_object;

typedef struct plait_type {
  plait_header h;
  const char *name;
  void (*drop)(plait_object *); /* called once, when the count reaches 0 */
} plait_type;

static inline void plait_retain_object(plait_object *o) { __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED); }
static inline void plait_release_object(plait_object *o) {
  if (!o) return;
  /* a sole owner needs no read-modify-write: nobody else can be counting */
  if (__atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) == 1 || __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) == 1)
    o->type->drop(o);
}
/* for anything whose first member is a plait_object; `p` is evaluated once, and plait_release accepts NULL */
#define plait_retain(p) plait_retain_object((plait_object *)(p))
#define plait_release(p) plait_release_object((plait_object *)(p))

/* ---- streams and events ---------------------------------------------------------------------------------------- */
/* A device runs the work of one stream in order, and returns before it is done. Streams and events are made by
 * runtime->stream_new and event_new; the device's table fills `native`. Where a pointer to a stream is NULL, the default
 * stream of the device is meant, which always exists. */
typedef struct plait_stream { /* the runtime makes it */
  plait_object o;
  DLDevice device;
  void *native;     /* the device's own, such as a cudaStream_t */
  int32_t priority; /* lower numbers are served first; 0 is the usual one */
  uint32_t reserved;
} plait_stream;

enum { /* flags of a plait_device_event */
  PLAIT_EVENT_TIMED = 1, /* it will be asked when it was reached: runtime->event_elapsed */
};
typedef struct plait_device_event { /* a point in a stream, reached when all work before it is done; the runtime makes it */
  plait_object o;
  DLDevice device;
  void *native;   /* the device's own, such as a cudaEvent_t */
  uint64_t flags; /* PLAIT_EVENT_TIMED */
} plait_device_event;

/* ---- memory ---------------------------------------------------------------------------------------------------- */
#define PLAIT_META ((DLDeviceType)0) /* shapes without bytes; DLPack leaves 0 unused */

enum { /* plait_storage::flags */
  PLAIT_STORAGE_READONLY = 1, /* writes are an error (a read-only NumPy array, a mapped file) */
  PLAIT_STORAGE_EXTERNAL = 2, /* somebody else's bytes; release(block) tells the owner */
  PLAIT_STORAGE_SHARED = 4,   /* visible to other processes */
  PLAIT_STORAGE_MAPPED = 8,
  PLAIT_STORAGE_EXPORTED = 16, /* handed out through DLPack or the buffer protocol: writes there are unseen */
  PLAIT_STORAGE_PINNED = 32,   /* memory of the host that a device copies from and to without waiting */
};

/* Only the runtime makes storages and tensors; what lies behind the fields here is its own, and may grow. */
typedef struct plait_storage { /* bytes; a storage never moves; freed by the allocator that made them */
  plait_object o;
  void *data;
  uint64_t nbytes;
  uint64_t version; /* atomic; every in-place write through any handle raises it. Caches compare all of it. The low 32
                     * bits count the writes that differentiation checks, the high 32 bits those through handles with
                     * PLAIT_TENSOR_DATA, see notes 0002 */
  uint64_t flags;
  DLDevice device;
  const struct plait_allocator *allocator; /* NULL: external */
  void *block;                             /* the allocator's, or the owner's context for release */
  void (*release)(void *block);            /* external memory: called on any thread, without the GIL */
} plait_storage;

enum { /* plait_tensor::flags */
  PLAIT_TENSOR_VIEW = 1,          /* made by an operator whose schema aliases its input */
  PLAIT_TENSOR_OWNS_WRAPPER = 2,  /* slot[1] is a strong reference: the wrapper was resurrected (see notes 0001) */
  PLAIT_TENSOR_WRAPPED_NUMBER = 4, /* a 0-d tensor that stands for a number of the host: promotes weakly */
  PLAIT_TENSOR_CUT = 8, /* a view, and views of it, that a layer watching `base` did not see made (it was switched off) or
                         * that it gave another history: its writes are not the base's, see notes 0006 */
  PLAIT_TENSOR_DATA = 16, /* made by `x.data`, and what is made of that: its writes are not checked against x's history */
};

typedef struct plait_tensor { /* fields are read, not called for */
  plait_object o;
  DLTensor dl;            /* data includes the offset (byte_offset is 0); strides are never NULL and are signed */
  plait_storage *storage; /* never NULL; a meta tensor's has data NULL */
  uint64_t layers;        /* bits of the layers that want to see operators on this tensor */
  uint64_t flags;
  void *slot[4];          /* 0 the engine's, 1 host wrapper (weak), 2 forward mode's, 3 a plait_sparse (sparse.h); all but 1 owned */
  struct plait_tensor *base; /* of a view by any operator but detach: the tensor it was made from, at the root; owned */
} plait_tensor;

typedef struct plait_alloc_stats { /* who asks sets `size` and zeroes the rest; the allocator fills what lies within it */
  uint64_t size;
  uint64_t live_bytes, live_blocks, cached_bytes, peak_bytes, allocations, system_allocations, largest_cached;
} plait_alloc_stats;

/* Tables of roles: a function may be NULL where its comment begins with "or NULL", which says what that means;
 * `provide` refuses a table without one of the others. `ctx` is handed back as it is. */
typedef struct plait_allocator { /* role "allocator", one for each device type */
  plait_header h;
  const char *name;
  void *ctx;
  /* at least 64-byte aligned; *block is handed back to free; PLAIT_MEMORY_ERROR without an error object when full. Any
   * other status but PLAIT_OK is taken for that, too. The memory is for work in the stream, and what earlier work in
   * that stream still does to it does not matter: a block freed there may be given out again at once */
  plait_status (*alloc)(void *ctx, DLDevice, uint64_t nbytes, plait_stream *, void **data, void **block);
  void (*free)(void *ctx, void *data, uint64_t nbytes, void *block); /* any thread */
  void (*trim)(void *ctx); /* or NULL, it caches nothing: give cached memory back to the system */
  void (*stats)(void *ctx, DLDevice, plait_alloc_stats *); /* or NULL, nothing is counted */
  uint64_t inline_below; /* storages of fewer bytes may live beside their plait_storage; 0: it wants to see them all */
  /* or NULL, its device has one stream: work in another stream than that of `alloc` uses the block. After `free` it is
   * given out again only when the work that is in that stream by then is done */
  void (*record_use)(void *ctx, void *data, void *block, plait_stream *);
  void (*reset_peak)(void *ctx, DLDevice); /* or NULL, the peak is that of the process: `peak_bytes` begins at what lives */
} plait_allocator;

/* ---- values and calls ------------------------------------------------------------------------------------------ */
enum plait_tag {
  PLAIT_NONE = 0,
  PLAIT_TENSOR = 1,  /* u.t */
  PLAIT_BOOL = 2,    /* u.i; BOOL..COMPLEX are also what a Scalar or a number for a Tensor|Scalar arrives as (weak) */
  PLAIT_INT = 3,     /* u.i */
  PLAIT_FLOAT = 4,   /* u.f */
  /* what u.fs, u.is, u.ts and u.s of an argument point to is borrowed for the call: who keeps it copies it */
  PLAIT_COMPLEX = 5, /* u.fs, const double[2]: real and imaginary part */
  PLAIT_INTS = 6,    /* u.is, n of them */
  PLAIT_FLOATS = 7,  /* u.fs, n of them */
  PLAIT_TENSORS = 8, /* u.ts; entries may be NULL where the schema says Tensor?[] */
  PLAIT_STRING = 9,  /* u.s, n bytes, NUL-terminated */
  PLAIT_DTYPE = 10,
  PLAIT_DEVICE = 11,
  PLAIT_OBJECT = 12, /* u.o: a Generator */
};

typedef struct plait_value { /* one argument or result: 16 bytes for ever. Pointers are borrowed for the call */
  int32_t tag;
  uint32_t n; /* length of lists and strings */
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

enum plait_form { PLAIT_FUNCTION = 0, PLAIT_INPLACE = 1, PLAIT_OUT = 2 };

typedef struct plait_call { /* one operator call: inputs borrowed, outputs owned by the caller */
  uint32_t size;              /* sizeof on the caller's side: what lies behind it counts as 0 */
  uint16_t n_in, n_out;
  const struct plait_op *op;
  plait_value *in;  /* one for each argument of the schema, in its order, defaults filled in */
  plait_value *out; /* FUNCTION: none on entry. INPLACE: out[0] is in[0] (retained). OUT: the targets (retained) */
  struct plait_thread *thread; /* all context arrives here; a kernel never reads thread-local storage */
  const struct plait_entry *self; /* the entry that is running; self->prev is what it wraps */
  uint64_t todo;                  /* layers still to run */
  plait_stream *stream; /* the thread's current one on `device`; a kernel puts its work there and returns */
  uint32_t form; /* plait_form */
  uint32_t reserved;
  DLDevice device; /* where the call runs; set before shape functions and kernels see the call */
  uint64_t owned;  /* bits of the inputs that runtime->cast replaced; the runtime's own */
  uint64_t launch; /* number of the call on a device that isn't the CPU; its errors are told with it (take_error) */
} plait_call;

typedef plait_status (*plait_kernel)(plait_call *);

typedef struct plait_entry { /* a registered kernel; prev is what it wraps or falls back to */
  plait_kernel fn;
  void *ctx;
  const struct plait_plugin *who;
  const struct plait_entry *prev;
} plait_entry;

/* ---- operators ------------------------------------------------------------------------------------------------- */
enum plait_kind { /* types of the schema grammar, docs/design/0003 */
  PLAIT_KIND_TENSOR = 1, PLAIT_KIND_OPERAND, /* Tensor|Scalar */
  PLAIT_KIND_TENSORS, PLAIT_KIND_SCALAR, PLAIT_KIND_INT, PLAIT_KIND_INTS, PLAIT_KIND_FLOAT, PLAIT_KIND_FLOATS,
  PLAIT_KIND_BOOL, PLAIT_KIND_STRING, PLAIT_KIND_DTYPE, PLAIT_KIND_DEVICE, PLAIT_KIND_GENERATOR,
};
enum { /* plait_arg::flags */
  PLAIT_ARG_OPTIONAL = 1,     /* T? : None is accepted */
  PLAIT_ARG_WRITES = 2,       /* ! */
  PLAIT_ARG_ALIASES = 4,      /* (a) */
  PLAIT_ARG_KEYWORD_ONLY = 8, /* after * */
  PLAIT_ARG_VARARGS = 16,     /* int[]* : f(x, 1, 2) is f(x, (1, 2)) */
  PLAIT_ARG_DEFAULT = 32,
};

typedef struct plait_arg { /* one argument of a schema; also used for results (name and default unused); may grow:
                            * plait_arg_at and plait_result_at step over a list of them */
  const char *name;
  const char *second;  /* dim|axis: "axis", or NULL */
  uint8_t kind;        /* plait_kind */
  uint8_t flags;
  char alias;          /* 'a', or 0 */
  uint8_t length;      /* int[2]: 2, where one int stands for all of them; 0: any length */
  int32_t alias_arg;   /* results: index of the argument that this one aliases, or -1 */
  plait_value value;   /* the default */
} plait_arg;

enum { /* plait_op_def::flags */
  PLAIT_OP_VIEW = 1,       /* the shape function makes the results; there is no kernel */
  PLAIT_OP_POINTWISE = 2,  /* out[i] depends on in[..][i] alone: an output may be exactly an input */
  PLAIT_OP_INPLACE = 4,    /* has the form name_ */
  PLAIT_OP_OUT = 8,        /* has the form out= */
  PLAIT_OP_COMPOSITE = 16, /* decompose runs above the layers unless a backend has a kernel of its own */
  PLAIT_OP_RANDOM = 32,    /* draws from a generator */
  PLAIT_OP_ANY_DEVICE = 64, /* its tensors may be on several devices (copies); it runs where the first one is */
  PLAIT_OP_INTERNAL = 128,  /* a part of other operators: no public name */
  PLAIT_OP_FUNCTION = 256,  /* a function of the package: plait.name */
  PLAIT_OP_METHOD = 512,    /* a method of tensors: its first argument is one. The form name_ is a method too */
  PLAIT_OP_FUNCTION_INPLACE = 1024, /* name_ is a function of the package too */
  PLAIT_OP_ZERO_PRESERVING = 2048,  /* a function of each element of one tensor, whose value at 0 is 0 */
};

typedef struct plait_needs { /* what a derivative will read, answered before the call is recorded */
  uint64_t size; /* set by who asks, who zeroes the rest; `saves` sets what lies within it */
  uint64_t in;   /* bits of tensor inputs whose values are read */
  uint64_t out;  /* bits of outputs whose values are read */
  uint64_t meta; /* bits of tensor inputs of which only shape, dtype and device are read */
} plait_needs;

typedef struct plait_vjp { /* one vector-Jacobian product. in and out look like the call's, but only what `saves` named
                            * is there (other tensors are PLAIT_NONE); `meta` inputs arrive as meta tensors */
  uint32_t size;
  uint16_t n_in, n_out;
  const struct plait_op *op;
  struct plait_thread *thread;
  const plait_value *in, *out;
  plait_tensor *const *gy; /* n_out; never NULL: the engine fills undefined ones with zeros */
  uint64_t need;           /* bits of the gradients wanted; inputs are numbered through, a Tensor[] counts its length */
  plait_tensor **gx;       /* one for each bit position of need, preset to NULL; owned by the caller */
} plait_vjp;

typedef struct plait_cost { /* what a call does by the operator's definition, whatever its kernel does; see runtime->cost */
  uint64_t size;          /* set by who asks */
  uint64_t operations;    /* of floating-point numbers: an addition is one, a multiplication is one */
  uint64_t read, written; /* bytes */
} plait_cost;

typedef struct plait_op_def { /* all that an operator is, kernels apart; must outlive the process' use of it */
  plait_header h;
  const char *schema, *doc; /* doc: or NULL */
  uint64_t flags;           /* PLAIT_OP_* */
  /* or NULL if it has a decomposition: validates; makes the results with runtime->result or ->view; casts with
   * runtime->cast */
  plait_kernel shape;
  void (*saves)(const plait_call *, uint64_t need, plait_needs *); /* NULL if and only if vjp is */
  plait_status (*vjp)(plait_vjp *); /* or NULL: not differentiable, or only through its decomposition */
  plait_kernel jvp;       /* or NULL. in: primals, then as many tangents (NONE where zero), then results; out: tangents */
  plait_kernel decompose; /* or NULL if it has a shape function: the operator as calls of others */
  /* or NULL: the rule of vmap in code. Each tensor of `in` has all samples along one more dimension in front; the rule
   * calls other operators and gives results that have them, too. `batching` says the same without code */
  plait_kernel batch;
  void (*cost)(const plait_call *, plait_cost *); /* or NULL: corrects what runtime->cost counts by itself */
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
  /* or NULL: how one call computes all samples of a batch. A letter for the kind of the rule, then one for each argument;
   * docs/design/0043 lists them */
  const char *batching;
  /* or NULL: what a call on the parts of tensors that several ranks hold gives. A letter for the kind of the rule, then
   * one for each argument; docs/design/0039 lists them */
  const char *sharding;
#endif
} plait_op_def;

typedef struct plait_op { /* looked up once, at load; its tables are immutable and republished on change */
  plait_header h;
  const char *name;   /* "max.dim" */
  const char *schema; /* "max.dim(Tensor self, int dim|axis, bool keepdim|keepdims=False) -> (Tensor, Tensor)" */
  const char *doc;
  const plait_op_def *def;
  const plait_arg *args, *results; /* plait_arg_at and plait_result_at give one */
  uint16_t n_args, n_results;
  uint32_t arg_size;               /* of an entry of args and results */
  uint64_t flags;
  uint64_t layer_mask;                 /* layers that have an entry here */
  const plait_entry *const *layer;     /* [64] */
  const plait_entry *const *backend;   /* [n_backend], by DLDeviceType */
  uint64_t n_backend;
  const struct plait_op *next;         /* the next overload of the same base name, in order of definition */
} plait_op;
static inline const plait_arg *plait_arg_at(const plait_op *op, uint64_t i) {
  return (const plait_arg *)((const char *)op->args + i * op->arg_size);
}
static inline const plait_arg *plait_result_at(const plait_op *op, uint64_t i) {
  return (const plait_arg *)((const char *)op->results + i * op->arg_size);
}

/* ---- events ---------------------------------------------------------------------------------------------------- */
enum plait_event_kind {
  PLAIT_EVENT_OP = 1, PLAIT_EVENT_ALLOC = 2, PLAIT_EVENT_FREE = 4, PLAIT_EVENT_BACKWARD = 8, PLAIT_EVENT_RANGE = 16,
  PLAIT_EVENT_NODE = 32, PLAIT_EVENT_COLLECTIVE = 64, PLAIT_EVENT_DATA = 128,
};
typedef struct plait_event {
  uint32_t size, kind;
  const plait_call *call;  /* OP: at end its results are there */
  const char *name;        /* OP, NODE, RANGE, COLLECTIVE, DATA (the host waits for a batch) */
  uint64_t a, b;           /* ALLOC, FREE: bytes and data address; NODE: its number, as in plait_thread::node */
  DLDevice device;
} plait_event;

typedef struct plait_observer { /* profilers, loggers, memory timelines: any number at once */
  plait_header h;
  void *ctx;
  uint64_t kinds;
  void (*begin)(void *ctx, const plait_event *, uint64_t *token); /* ALLOC and FREE have only this one */
  void (*end)(void *ctx, const plait_event *, uint64_t token, plait_status); /* or NULL, it wants none */
} plait_observer;

/* ---- errors ---------------------------------------------------------------------------------------------------- */
typedef struct plait_error { /* the runtime makes it */
  plait_object o;
  plait_status code;
  uint32_t reserved;
  const char *message; /* "softmax: `dim` must be in [-2, 1] for shape (2, 3); got 2" */
  const char *origin;  /* the operator or component, or NULL */
  plait_object *cause; /* another error, or NULL */
  plait_object *host;  /* the host language's own exception, or NULL */
} plait_error;

/* ---- roles ----------------------------------------------------------------------------------------------------- */
typedef struct plait_executor { /* role "executor": one thread pool for all; fork-safe; nobody links OpenMP */
  plait_header h;
  const char *name;
  void *ctx;
  uint32_t (*width)(void *ctx); /* threads that may run at once, the caller's included; 1 on a worker */
  /* runs fn(arg, i) for every i in [0, n) and returns when all are done; the caller takes part; nested calls run
   * in the caller. What i computes must not depend on the number of threads. */
  void (*parallel)(void *ctx, uint64_t n, void (*fn)(void *arg, uint64_t i), void *arg);
  void (*set_width)(void *ctx, uint32_t); /* or NULL, its width is fixed */
} plait_executor;

typedef struct plait_generator { /* counter-based random numbers: (seed, offset) names a position in one stream; the
                                  * runtime makes it */
  plait_object o;
  uint64_t seed;
  uint64_t offset; /* atomic; in blocks of four 32-bit words */
  DLDevice device;
} plait_generator;

typedef struct plait_rng { /* role "rng": kernels draw bits here, and make numbers of them */
  plait_header h;
  const char *name;
  void *ctx;
  /* takes `blocks` blocks of 4 x 32 bits of the generator's stream (NULL: the default generator) */
  void (*reserve)(void *ctx, plait_generator *, uint64_t blocks, uint64_t *seed, uint64_t *offset);
  plait_generator *(*default_generator)(void *ctx); /* borrowed */
  /* or NULL, kernels compute Philox 4x32-10 (Salmon et al. 2011) themselves: fills 4 x `blocks` words, those of the blocks
   * `offset`, `offset` + 1, ... of the stream that `seed` names. The same arguments give the same words, on any thread.
   * `turn` is 0, or counts the further words that one block is asked for (rejection methods) */
  void (*fill)(void *ctx, uint64_t seed, uint64_t offset, uint32_t turn, uint64_t blocks, uint32_t *words);
} plait_rng;

typedef struct plait_site { /* where a call was made: never holds a frame; 16 bytes for ever */
  plait_object *code;       /* the host's code object, counted, or NULL */
  int64_t offset;           /* instruction offset within it */
} plait_site;

typedef struct plait_host { /* role "host": what a host language gives an engine */
  plait_header h;
  const char *name;
  void *ctx;
  /* a counted object around one of the host's; dropping it is safe on any thread, with or without the GIL */
  plait_object *(*hold)(void *ctx, void *object);
  void *(*object)(void *ctx, plait_object *); /* borrowed; NULL if it isn't one of hold's */
  /* calls a held callable with tensors (NULL: None) and gets tensors (NULL: None) back; the caller owns out */
  plait_status (*apply)(void *ctx, struct plait_thread *, plait_object *callable, plait_tensor *const *in, uint32_t n_in,
                        plait_tensor **out, uint32_t n_out);
  void (*site)(void *ctx, plait_site *);  /* of the innermost user frame; code NULL when unknown */
  /* "file.py:12 in forward" into text (truncated) */
  void (*describe)(void *ctx, const plait_site *, char *text, uint64_t size);
  int (*interrupted)(void *ctx); /* may be called from any thread: a signal waits (Ctrl-C) */
  /* run fn(arg) without the host's global lock, if this thread holds it */
  void (*unlocked)(void *ctx, void (*fn)(void *arg), void *arg);
  void (*release)(void *ctx, void *wrapper); /* gives up slot[1] of a dying tensor that owned it; any thread, any lock */
} plait_host;

enum { /* flags of plait_engine::backward */
  PLAIT_BACKWARD_RETAIN = 1,
  PLAIT_BACKWARD_CREATE = 2,
  PLAIT_BACKWARD_ALLOW_UNUSED = 4,
  /* leaves among `inputs` accumulate, hooks and all, and have NULL in gx; an engine that doesn't know it fills gx, which
   * the caller then adds up */
  PLAIT_BACKWARD_ACCUMULATE = 8
};

typedef struct plait_engine { /* role "engine": automatic differentiation */
  plait_header h;
  const char *name;
  void *ctx;
  uint64_t layer; /* the bit (its number) in plait_tensor::layers; set exactly on tensors that require grad */
  int (*enabled)(void *ctx, struct plait_thread *);
  void (*set_enabled)(void *ctx, struct plait_thread *, int);
  plait_status (*set_requires_grad)(void *ctx, struct plait_thread *, plait_tensor *, int);
  int (*is_leaf)(void *ctx, plait_tensor *);
  plait_status (*grad)(void *ctx, struct plait_thread *, plait_tensor *, plait_tensor **out); /* new or NULL */
  plait_status (*set_grad)(void *ctx, struct plait_thread *, plait_tensor *, plait_tensor *grad);
  plait_object *(*node)(void *ctx, plait_tensor *); /* new reference to grad_fn, or NULL */
  const char *(*node_name)(void *ctx, plait_object *);
  plait_status (*retain_grad)(void *ctx, struct plait_thread *, plait_tensor *);
  plait_status (*detach_)(void *ctx, struct plait_thread *, plait_tensor *);
  /* inputs NULL: accumulate into the leaves; else their gradients go to gx (NULL where unused) and no leaf is touched */
  plait_status (*backward)(void *ctx, struct plait_thread *, plait_tensor *const *roots, plait_tensor *const *grads,
                           uint32_t n_roots, plait_tensor *const *inputs, uint32_t n_inputs, uint64_t flags,
                           plait_tensor **gx);
  /* a node written in the host language: outputs' history becomes `callable`, which maps n_out gradients to one for
   * each of the inputs; `saved` is kept alive by the node */
  plait_status (*record)(void *ctx, struct plait_thread *, const char *name, plait_object *callable,
                         plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs, uint32_t n_out,
                         plait_object **node);
} plait_engine;

enum { /* flags of plait_device::copy */
  /* the memory on the host is pinned and stays as it is until the copy is done: it need not be waited for */
  PLAIT_COPY_ASYNC = 1,
};

typedef struct plait_device_error { /* what went wrong on a device since it was last asked */
  uint64_t size;       /* set by who asks, who zeroes the rest; the device fills what lies within it */
  plait_status code;   /* negative */
  uint32_t fatal;      /* the device does no more work */
  uint64_t launch;     /* plait_call::launch of the kernel that found it, or 0 */
  char text[256];      /* without the operator's name, which is put before it; NUL-terminated */
} plait_device_error;

typedef struct plait_shared_memory { /* how another process of this machine finds memory of a device */
  uint64_t size;     /* set by who asks; the device fills what lies within it */
  uint64_t offset;   /* of the bytes within what is opened */
  int32_t fd;        /* a descriptor that goes along, or -1; whoever calls `share` copies it, `share_open` borrows its own */
  uint32_t length;   /* of what is used of `handle` */
  char handle[128];
} plait_shared_memory;

/* Role "device", one for each device type but the CPU, which needs none. What each function is given belongs to this
 * device: streams and events have the `native` that it made. Functions may be called from any thread. */
typedef struct plait_device {
  plait_header h;
  const char *name; /* "cuda"; devices are called "cuda:0", "cuda:1" ... */
  void *ctx;
  uint64_t flags; /* none yet */
  int32_t (*count)(void *ctx);
  /* Copies bytes between the host and a device or between two of its devices, behind the work in the stream, which is
   * one of `from` unless that is the host. Without PLAIT_COPY_ASYNC the host's memory has been read or written when it
   * returns. Memory of a device may be used in the stream without waiting for it */
  plait_status (*copy)(void *ctx, struct plait_thread *, void *dst, DLDevice to, const void *src, DLDevice from,
                       uint64_t nbytes, plait_stream *, uint64_t flags);
  plait_status (*synchronize)(void *ctx, struct plait_thread *, DLDevice); /* waits for all streams */
  plait_status (*stream_synchronize)(void *ctx, struct plait_thread *, DLDevice, plait_stream *);
  /* or NULL, the default streams are all there are; fills `native`. With the two behind it and `event_new`, or without */
  plait_status (*stream_new)(void *ctx, struct plait_thread *, plait_stream *);
  void (*stream_free)(void *ctx, plait_stream *); /* may wait; its work is done in any case */
  plait_status (*stream_query)(void *ctx, struct plait_thread *, DLDevice, plait_stream *, int32_t *done);
  /* or NULL, it works as it is called, so that every event is reached at once. Then the five behind it are not asked for.
   * Fills `native` */
  plait_status (*event_new)(void *ctx, struct plait_thread *, plait_device_event *);
  void (*event_free)(void *ctx, plait_device_event *);
  /* puts the event behind the work in the stream; one that was recorded before is moved */
  plait_status (*event_record)(void *ctx, struct plait_thread *, plait_device_event *, plait_stream *);
  plait_status (*event_query)(void *ctx, struct plait_thread *, plait_device_event *, int32_t *done);
  plait_status (*event_wait)(void *ctx, struct plait_thread *, plait_device_event *); /* the host waits */
  /* later work in the stream begins when the event, as it is recorded now, is reached; the host does not wait */
  plait_status (*stream_wait)(void *ctx, struct plait_thread *, DLDevice, plait_stream *, plait_device_event *);
  /* or NULL, it has no clock: milliseconds between two events that have been reached */
  plait_status (*event_elapsed)(void *ctx, struct plait_thread *, plait_device_event *from, plait_device_event *to,
                                double *milliseconds);
  /* or NULL, any memory of the host will do; then `pinned_free` is NULL, too */
  plait_status (*pinned_alloc)(void *ctx, struct plait_thread *, uint64_t nbytes, void **data);
  void (*pinned_free)(void *ctx, void *data, uint64_t nbytes);
  /* or NULL, its kernels find all errors before they return: 1 and the oldest error that was not told yet, or 0. Asked
   * at every call on the device and behind every wait */
  int32_t (*take_error)(void *ctx, DLDevice, plait_device_error *);
  /* or NULL, other processes cannot have its memory; then the two behind it are NULL, too. `data` is that of a storage,
   * which the caller keeps until no process has it open; the caller has waited for work that writes there */
  plait_status (*share)(void *ctx, struct plait_thread *, DLDevice, void *data, uint64_t nbytes, plait_shared_memory *);
  /* in another process, once for each memory: where it is seen there; `opened` is handed back to close */
  plait_status (*share_open)(void *ctx, struct plait_thread *, DLDevice, const plait_shared_memory *, uint64_t nbytes,
                             void **data, void **opened);
  void (*share_close)(void *ctx, DLDevice, void *data, uint64_t nbytes, void *opened); /* any thread */
} plait_device;

/* ---- collectives ----------------------------------------------------------------------------------------------- */
enum plait_reduction {
  PLAIT_REDUCE_SUM = 0, PLAIT_REDUCE_AVERAGE = 1, PLAIT_REDUCE_PRODUCT = 2, PLAIT_REDUCE_MIN = 3, PLAIT_REDUCE_MAX = 4,
  PLAIT_REDUCE_AND = 5, PLAIT_REDUCE_OR = 6, PLAIT_REDUCE_XOR = 7, /* of bits */
};

enum plait_collective_kind { /* in[] and out[] are dense, of one size and dtype; out may be in; the caller calls `touched` */
  PLAIT_ALL_REDUCE = 1,     /* out: the reduction of all members' in, the same bits everywhere */
  PLAIT_BROADCAST = 2,      /* out: root's in; the others' in is not looked at and may be missing */
  PLAIT_REDUCE = 3,         /* root's out: the reduction of all members' in */
  PLAIT_ALL_GATHER = 4,     /* out[i]: member i's in */
  PLAIT_GATHER = 5,         /* root's out[i]: member i's in */
  PLAIT_SCATTER = 6,        /* out: root's in[rank] */
  PLAIT_REDUCE_SCATTER = 7, /* out: the reduction of all members' in[rank] */
  PLAIT_ALL_TO_ALL = 8,     /* out[i]: member i's in[rank] */
  PLAIT_SEND = 9,           /* in goes to member `peer`; messages of one tag arrive in order */
  PLAIT_RECEIVE = 10,       /* out comes from member `peer` */
  PLAIT_BARRIER = 11,       /* done when all members have come */
};

typedef struct plait_collective { /* what one member asks for; pointers are borrowed for the call, tensors while it runs */
  uint32_t size; /* set by who asks: what lies behind it counts as 0 */
  uint32_t kind; /* plait_collective_kind */
  plait_tensor *const *in, *const *out;
  uint32_t n_in, n_out;
  uint32_t reduction; /* plait_reduction */
  uint32_t peer;      /* the root of BROADCAST, REDUCE, GATHER and SCATTER; the other member of SEND and RECEIVE */
  int64_t tag;        /* of SEND and RECEIVE; of others a number that all members give alike, or their calls differ */
  double timeout;     /* seconds until it fails; 0: the communicator's */
} plait_collective;

typedef struct plait_communicator { /* a group of processes, and this one's rank in it; counted; the provider makes it */
  plait_object o;
  const struct plait_collectives *table;
  uint32_t rank, size;
} plait_communicator;

typedef struct plait_work { /* a collective that runs; counted; the provider makes it. Dropping it does not stop it */
  plait_object o;
  const struct plait_collectives *table;
} plait_work;

/* Role "communicator". Providers stand side by side, each for a device type, under their names: runtime->provider finds
 * one. All members of a group call the same collectives in the same order. */
typedef struct plait_collectives {
  plait_header h;
  const char *name; /* "shared_memory" */
  void *ctx;
  /* joins the group that all members name by `where`, whose form is the provider's own ("unix:...", "tcp://host:port");
   * waits for all of them, at most `timeout` seconds, which then is that of every collective */
  plait_status (*open)(void *ctx, struct plait_thread *, const char *where, uint32_t rank, uint32_t size, double timeout,
                       plait_communicator **);
  /* a collective: members of one `color` form a group, ranked by `key` and then by rank; NULL where color is negative */
  plait_status (*split)(void *ctx, struct plait_thread *, plait_communicator *, int64_t color, int64_t key,
                        plait_communicator **);
  /* ends all collectives of the group, running and later ones, in every member, with an error that has this text */
  void (*abort)(void *ctx, plait_communicator *, const char *why);
  /* begins a collective. On a device it is behind the work in `stream`, and what follows there sees its result. `work`
   * NULL: returns when it is done, or, on a device, when it is in the stream. PLAIT_NOT_IMPLEMENTED for a kind that it
   * has not */
  plait_status (*start)(void *ctx, struct plait_thread *, plait_communicator *, const plait_collective *, plait_stream *,
                        plait_work **work);
  plait_status (*query)(void *ctx, struct plait_thread *, plait_work *, int32_t *done); /* its error, if it failed */
  plait_status (*wait)(void *ctx, struct plait_thread *, plait_work *); /* the host waits; its error, if it failed */
} plait_collectives;

enum { PLAIT_MAX_DEVICE_TYPES = 32, PLAIT_MAX_DIMS = 64, PLAIT_MAX_ARGS = 32, PLAIT_MAX_RESULTS = 8, PLAIT_TOKENS = 17 };

/* Where the table of a role in force is found: runtime->role gives it once, it stays for ever, and is read for each use,
 * because plug-ins come and go while other threads call. Old tables stay valid. NULL where nobody fills the role: always
 * filled are "executor", "rng" and the CPU's "allocator". */
typedef const plait_header *const *plait_role;
#define PLAIT_ROLE(T, role) ((const T *)(role ? __atomic_load_n(role, __ATOMIC_ACQUIRE) : NULL))

typedef struct plait_thread { /* one for each thread that calls plait, from runtime->thread(); the runtime makes it */
  plait_header h;
  const struct plait_runtime *runtime;
  plait_error *error;   /* of the last failure; owned */
  uint64_t excluded;    /* layers that this thread skips: no_grad sets autograd's bit */
  uint64_t included;    /* layers that see every call on this thread, whatever the tensors say */
  void *slot[4];        /* 0 the engine's, 1 the level of forward mode, 2 place.h, 3 free */
  DLDevice device;      /* of results of calls that name none and have no tensor; the CPU unless it is set */
  uint64_t node;        /* number of the newest node that the engine has recorded on this thread, or 0: it writes it */
} plait_thread;

/* ---- plug-ins and the runtime ---------------------------------------------------------------------------------- */
enum { /* plait_plugin::flags */
  /* A package brings this as its default: its roles, kernels and layers stand behind those of plug-ins without the
   * flag, which a user chose, whatever is loaded first. Among equals the latest counts; the runtime's own come last. */
  PLAIT_PLUGIN_DEFAULT = 1,
};

typedef struct plait_plugin { /* a shared library exports one as `const plait_plugin plait_plugin_v1` */
  plait_header h;
  const char *name, *version;
  uint64_t flags; /* PLAIT_PLUGIN_* */
  /* or NULL: registers what the plug-in brings. If it fails, all that it registered is taken back */
  plait_status (*init)(const struct plait_runtime *, const struct plait_plugin *);
  void (*quiesce)(void); /* or NULL: stop threads before exit; libraries are never unloaded */
} plait_plugin;

typedef struct plait_record { /* one line of the report */
  const char *kind;           /* "role", "kernel", "layer", "plugin", "observer", "fallback" */
  const char *name, *provider, *version;
  int32_t active;
  uint32_t device_type; /* of kernels, of the roles that devices have, and of fallbacks; else 0 */
  uint64_t count;       /* of fallbacks: calls that ran on the CPU instead */
} plait_record;

enum { PLAIT_SLOT_LAYER = 0x100 }; /* implement's slot: a DLDeviceType, or PLAIT_SLOT_LAYER + bit */

enum { /* plait_runtime::settings */
  PLAIT_SETTING_BATCH_INVARIANT = 1, /* rows of a result have the same bits whatever other rows there are */
};

typedef struct plait_runtime { /* the one singleton; components get a pointer to it and never link to it */
  plait_header h;
  const char *path; /* of the library that this is */
  plait_thread *(*thread)(void);
  /* NULL if there is no such role. The device type counts for "allocator", "device" and "communicator" alone */
  plait_role (*role)(const char *name, int32_t device_type);
  /* the table under which `name` fills a role, whether it is the one in force or not; NULL if there is none */
  const plait_header *(*provider)(const char *role, const char *name, int32_t device_type);

  /* operators */
  plait_status (*define)(plait_thread *, const plait_op_def *, const plait_op **);
  const plait_op *(*op)(const char *name); /* NULL if unknown; "max" gives the first overload */
  uint64_t (*ops)(const plait_op **list, uint64_t room); /* all, in order of definition; returns how many there are */
  /* op NULL: every operator, also those that are defined later; in a device's slot the kernel then serves what has no
   * kernel there and no decomposition. *undo is for `retract`. A view has no kernel: its slots are refused. The
   * kernel of a composite runs where no layer watches its inputs or the operator has a derivative of its own; its results
   * are made for it, of the shapes that a run of the decomposition on meta tensors gives */
  plait_status (*implement)(plait_thread *, const plait_op *, uint32_t slot, plait_kernel, void *ctx,
                            const plait_plugin *, uint64_t *undo);
  plait_status (*retract)(plait_thread *, uint64_t undo);
  /* reserves a layer; `wanted` is its bit's preferred position: higher ones run earlier; the next free one is taken.
   * Those below 16 serve tensors whose bytes mean something else, and see their aliases, too */
  plait_status (*layer)(plait_thread *, const char *name, uint32_t wanted, uint32_t *bit);
  plait_status (*call)(plait_call *);       /* fills todo from the tensors and the thread, then runs */
  plait_status (*call_below)(plait_call *); /* runs what call->todo still holds, then the kernel */
  /* runs the decomposition, whose calls all layers see; for a layer that can't serve the operator itself. An in-place
   * form reads copies of what it overwrites. PLAIT_NOT_IMPLEMENTED if there is none */
  plait_status (*decompose)(plait_call *);

  /* for shape functions */
  plait_status (*result)(plait_call *, uint32_t i, DLDataType, int32_t ndim, const int64_t *shape);
  /* as `result`, with strides in elements for a fresh result (dense in another order) */
  plait_status (*result_strided)(plait_call *, uint32_t i, DLDataType, int32_t ndim, const int64_t *shape,
                                 const int64_t *strides);
  /* a view of base; offset in elements relative to base's data; for a result of type Tensor[]: appends one more */
  plait_status (*view)(plait_call *, uint32_t i, plait_tensor *base, int32_t ndim, const int64_t *shape,
                       const int64_t *strides, int64_t offset);
  plait_status (*cast)(plait_call *, uint32_t i, DLDataType); /* the kernel sees in[i] in this dtype */

  /* objects; each gives a new reference */
  plait_status (*tensor_new)(plait_thread *, DLDataType, int32_t ndim, const int64_t *shape, const int64_t *strides,
                             DLDevice, plait_tensor **); /* strides NULL: C order; bytes are uninitialised */
  plait_status (*tensor_on)(plait_thread *, plait_storage *, void *data, DLDataType, int32_t ndim, const int64_t *shape,
                            const int64_t *strides, plait_tensor **); /* data: first element; bounds are checked */
  plait_status (*tensor_alias)(plait_thread *, plait_tensor *, plait_tensor **); /* same bytes, new handle; of layers those below 16 */
  plait_status (*storage_new)(plait_thread *, DLDevice, uint64_t nbytes, plait_storage **);
  plait_status (*storage_wrap)(plait_thread *, void *data, uint64_t nbytes, DLDevice, uint64_t flags,
                               void (*release)(void *), void *block, plait_storage **);
  /* re-points the handle at another's bytes, shape and dtype (p.data = q) */
  plait_status (*tensor_repoint)(plait_thread *, plait_tensor *, plait_tensor *source);
  plait_status (*tensors)(plait_thread *, plait_tensor *const *, uint32_t n, plait_value *); /* owned Tensor[] value */
  void (*release_value)(plait_value *); /* releases what an owned value holds and makes it NONE */
  void (*touched)(plait_storage *); /* for writers outside dispatch: `!` marks and forms are bumped by call */
  plait_generator *(*generator_new)(uint64_t seed);

  /* devices. A device that works as it is called needs no streams: then there is the default one alone, and events are
   * reached when they are recorded. None of these is for the CPU, where they do nothing and give NULL */
  plait_status (*device_count)(plait_thread *, DLDeviceType, int32_t *); /* 0 if nobody brings the device */
  plait_status (*stream_new)(plait_thread *, DLDevice, int32_t priority, plait_stream **);
  /* a stream that somebody else made; it is theirs to free, after this one */
  plait_status (*stream_wrap)(plait_thread *, DLDevice, void *native, plait_stream **);
  plait_stream *(*stream)(plait_thread *, DLDevice); /* the thread's current one, borrowed */
  /* makes a stream of the device, or NULL, the thread's current one; the caller owns `previous`, which may be NULL */
  plait_status (*set_stream)(plait_thread *, DLDevice, plait_stream *, plait_stream **previous);
  plait_status (*stream_query)(plait_thread *, DLDevice, plait_stream *, int32_t *done);
  plait_status (*stream_synchronize)(plait_thread *, DLDevice, plait_stream *);
  plait_status (*synchronize)(plait_thread *, DLDevice); /* all streams */
  plait_status (*event_new)(plait_thread *, DLDevice, uint64_t flags, plait_device_event **);
  plait_status (*event_record)(plait_thread *, plait_device_event *, plait_stream *);
  plait_status (*event_query)(plait_thread *, plait_device_event *, int32_t *done); /* 1 if it was never recorded */
  plait_status (*event_wait)(plait_thread *, plait_device_event *);
  plait_status (*stream_wait)(plait_thread *, DLDevice, plait_stream *, plait_device_event *);
  plait_status (*event_elapsed)(plait_thread *, plait_device_event *from, plait_device_event *to, double *milliseconds);
  /* says that work in the stream uses the storage; dispatch does it for the tensors of a call */
  void (*record_use)(plait_storage *, plait_stream *);
  plait_status (*pinned_new)(plait_thread *, DLDevice for_device, uint64_t nbytes, plait_storage **);
  /* the tensor itself (retained) if it is on the CPU, else a copy there, whose values have arrived when it returns: the one
   * way from a device to code of the host. Meta tensors are refused */
  plait_status (*host_copy)(plait_thread *, plait_tensor *, plait_tensor **);
  /* whether operators that a device has no kernel for run on the CPU, on copies; off unless it is set */
  plait_status (*set_fallback)(plait_thread *, DLDeviceType, int32_t on);

  /* errors: the return value is `code`, to be handed on */
  plait_status (*raise)(plait_thread *, plait_status code, const char *origin, const char *format, ...);
  plait_status (*fail)(const plait_call *, plait_status code, const char *format, ...); /* origin: the operator */
  plait_status (*raise_host)(plait_thread *, plait_object *exception, const char *message);
  void (*clear)(plait_thread *);

  /* roles, observers, plug-ins */
  /* device_type is that of "allocator", "device" and "communicator"; the other roles are one for all devices and ignore
   * it. There is one "device" for each type: a second one is refused while the first is there */
  plait_status (*provide)(plait_thread *, const char *role, int32_t device_type, const plait_header *table,
                          const plait_plugin *, uint64_t *undo);
  plait_status (*observe)(plait_thread *, const plait_observer *, int on);
  uint64_t *observed; /* the kinds that anybody watches: test before `emit` */
  void (*emit)(const plait_event *);
  uint64_t (*begin)(const plait_event *, uint64_t *tokens, uint64_t room); /* room: PLAIT_TOKENS */
  void (*end)(const plait_event *, const uint64_t *tokens, uint64_t n, plait_status);
  plait_status (*load)(plait_thread *, const char *path);            /* once a path; its plait_plugin_v1 */
  plait_status (*attach)(plait_thread *, const plait_plugin *);      /* a plug-in that is already in memory */
  uint64_t (*report)(plait_record *list, uint64_t room, uint64_t record_size); /* record_size: sizeof(plait_record) */
  /* takes back every kernel, layer, role and observer that the plug-in of this name registered; what it lent (memory,
   * tables in use) stays valid, and loading it again starts it anew. Refused while tensors have memory of its device */
  plait_status (*detach)(plait_thread *, const char *plugin);
  /* of the host's floats, and of floats that operators make of integers or of nothing; the host may set it */
  DLDataType *default_dtype;
  uint64_t *settings; /* PLAIT_SETTING_*: what the user asks of all kernels */
  /* what a call did that has its results. Read: the tensors among the arguments, each element once; written: the results
   * of operators that make no views; operations: one for each element that a pointwise operator writes; then as the
   * operator's `cost` corrects it */
  void (*cost)(const plait_call *, plait_cost *);
} plait_runtime;

/* What libplait_abi.so exports. NULL if another copy runs in this process: plait_runtime_refusal says which. */
const plait_runtime *plait_runtime_v0(void);
const char *plait_runtime_refusal(void);

PLAIT_ASSERT(sizeof(plait_value) == 16, "plait_value");
PLAIT_ASSERT(sizeof(plait_object) == 16, "plait_object");
PLAIT_ASSERT(sizeof(plait_site) == 16, "plait_site");
PLAIT_ASSERT(offsetof(plait_storage, release) == 72, "plait_storage");
PLAIT_ASSERT(offsetof(plait_tensor, base) == 120, "plait_tensor");
PLAIT_ASSERT(offsetof(plait_tensor, dl) == 16 && offsetof(plait_tensor, storage) == 64, "plait_tensor");
PLAIT_ASSERT(offsetof(plait_call, launch) == 88, "plait_call");

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_ABI_H */

/* clang-format off */
/** @file
 * Run a saved graph of plait from C or C++, without Python: load, run, train, save.
 *
 * ```c
 * plait_run *run;
 * plait_run_tensor y = {.size = sizeof y};
 * int code = plait_run_open("mnist.safetensors", NULL, &run);
 * if (!code) code = plait_run_set(run, PLAIT_RUN_INPUT, 0, image, sizeof image, 0);
 * if (!code) code = plait_run_execute(run);
 * if (!code) code = plait_run_get(run, PLAIT_RUN_OUTPUT, 0, &y);
 * if (code) fprintf(stderr, "%s\n", plait_run_error(run));
 * else use(y.data, y.nbytes);
 * plait_run_close(run);
 * ```
 *
 * A file is one of safetensors with the graph in its metadata. A graph has inputs, which the
 * program sets; outputs; weights, which are parameters, buffers, states of an optimizer and
 * constants; and numbers, such as a learning rate. Each has a name, and an index from 0. A graph
 * that was saved for training computes gradients and changes its weights at each run. Sizes that
 * the graph has free, such as the number of rows of a batch, are numbers too, behind the others.
 *
 * A graph that draws random numbers, as dropout does, has one more number, the last one: its name
 * is "generator.seed". To set it begins the stream of this seed, as manual_seed() does in Python:
 *
 * ```c
 * double seed = 7;
 * plait_run_set(run, PLAIT_RUN_NUMBER, plait_run_find(run, PLAIT_RUN_NUMBER, "generator.seed"),
 *               &seed, sizeof seed, 0);
 * ```
 *
 * The generator belongs to the process: all handles draw from it. Until a seed is set, it has a
 * random one. Files do not keep it.
 *
 * A file is only data: to open it executes nothing of it, and a damaged or forged one is an error.
 * To run it costs the time and memory that its author chose: a loop runs until its condition is
 * false, and nothing stops it from outside.
 *
 * The header is C99 and includes no other header of plait. Link with libplait_run.so, which loads
 * the libraries of the runtime at the first ::plait_run_open.
 *
 * Threads. Different handles may be used by different threads at once; one handle is used by one
 * thread at a time. The kernels of all handles share one pool of threads.
 *
 * Versions. A struct grows only at its end; the caller sets its member `size`. */
#ifndef PLAIT_RUN_H
#define PLAIT_RUN_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PLAIT_RUN_API
#define PLAIT_RUN_API __attribute__((visibility("default")))
#endif

/** A graph that was loaded. */
typedef struct plait_run plait_run;

/** Results of functions: 0, or a negative number that says what kind of error it is.
 *
 * ::plait_run_error has the text. The numbers are those of `plait_status` in plait/abi.h. */
enum {
  PLAIT_RUN_OK = 0,
  PLAIT_RUN_ERROR = -1,        /**< of a file, a library, or another kind */
  PLAIT_RUN_SHAPE_ERROR = -2,
  PLAIT_RUN_DTYPE_ERROR = -3,
  PLAIT_RUN_VALUE_ERROR = -4,  /**< an argument is wrong */
  PLAIT_RUN_INDEX_ERROR = -5,  /**< there is no such input, output, weight or number */
  PLAIT_RUN_MEMORY_ERROR = -7, /**< the system has no memory, or the limit is reached */
};

/** What an index counts. */
enum { PLAIT_RUN_INPUT = 1, PLAIT_RUN_OUTPUT = 2, PLAIT_RUN_WEIGHT = 3, PLAIT_RUN_NUMBER = 4 };

/** Flags of ::plait_run_settings. */
enum {
  /** Weights are read from the file when they are first used, and stay shared with other processes
   * until they are written to. The file must not be cut meanwhile; it may be replaced by a rename,
   * as ::plait_run_save does. Otherwise weights are copied to memory, where kernels may keep them
   * in a faster layout too. */
  PLAIT_RUN_MAP_WEIGHTS = 1,
};

/** How a process runs graphs. Set members that are not used to 0. */
typedef struct plait_run_settings {
  uint64_t size; /**< sizeof(plait_run_settings) */
  /** Folders with the libraries of plait, separated by colons. In each, a library lies directly, or
   * in `plait_core/lib` and so on, as where packages of Python are installed. NULL: the folder of
   * libplait_run.so, and the one where its package is installed. It counts in the first call of a
   * process. */
  const char *libraries;
  /** Bytes that the tensors and the scratch memory of all graphs of the process may take. The first
   * ::plait_run_execute of a graph refuses to run if it needs more, as ::plait_run_memory tells it,
   * and so is an allocation beyond an error. 0: as before; at first there is no limit. */
  uint64_t memory_limit;
  uint32_t threads; /**< of the process, with the calling one. 0: as before; at first one a core */
  uint32_t flags;   /**< PLAIT_RUN_MAP_WEIGHTS */
} plait_run_settings;

/** A description of a tensor.
 *
 * What it points to belongs to the handle, and is valid until the next call that executes, sets or
 * closes. */
typedef struct plait_run_tensor {
  uint64_t size;          /**< sizeof(plait_run_tensor), set by the caller */
  const char *name;
  const char *dtype;      /**< "float32", "int64", "bool", "bfloat16", "complex64", ... */
  const int64_t *shape;   /**< `ndim` sizes */
  const int64_t *strides; /**< `ndim` distances between elements, in elements */
  const void *data;       /**< the first element, in host memory; or NULL (::plait_run_get) */
  uint64_t nbytes;        /**< number of elements times bytes of one */
  int32_t ndim;           /**< -1, and `dtype` is NULL, if they are known only behind a run */
  uint32_t item_size;     /**< bytes of an element */
} plait_run_tensor;

/** Open a file, check its graph, load its weights and plan its memory. Nothing of it is executed.
 *
 * @param path of the file
 * @param settings may be NULL
 * @param run the handle, which ::plait_run_close frees; also after an error, for its text. NULL if
 *        there is no memory at all */
PLAIT_RUN_API int plait_run_open(const char *path, const plait_run_settings *settings,
                                 plait_run **run);

/** Open a file whose bytes are in memory, as ::plait_run_open does. Weights are copied from it.
 *
 * @param data the bytes, which may be freed after the call
 * @param nbytes their number */
PLAIT_RUN_API int plait_run_open_memory(const void *data, uint64_t nbytes,
                                        const plait_run_settings *settings, plait_run **run);

/** Free the handle and all memory that its tensors have. NULL is allowed. */
PLAIT_RUN_API void plait_run_close(plait_run *run);

/** Return the text of the last error of the handle, which is valid until its next call; "" if there
 * was none. */
PLAIT_RUN_API const char *plait_run_error(const plait_run *run);

/** Return the number of inputs, outputs, weights or numbers; 0 for a handle that was not opened.
 *
 * @param kind ::PLAIT_RUN_INPUT, ::PLAIT_RUN_OUTPUT, ::PLAIT_RUN_WEIGHT or ::PLAIT_RUN_NUMBER */
PLAIT_RUN_API uint32_t plait_run_count(const plait_run *run, int kind);

/** Return the index of the input, output, weight or number of that name, or -1. */
PLAIT_RUN_API int plait_run_find(const plait_run *run, int kind, const char *name);

/** Describe an input, an output, a weight or a number, which is a float64 without dimensions.
 *
 * Shapes are those for the sizes that are set; at first, those of the recording.
 * plait_run_tensor::data is NULL for an input that was not set, and for an output before the first
 * run. An output is valid until the next run, which may write to the same memory.
 * A tensor of another device is copied to the host.
 * @param tensor the caller sets its `size` */
PLAIT_RUN_API int plait_run_get(plait_run *run, int kind, uint32_t index, plait_run_tensor *tensor);

/** Flags of ::plait_run_set. */
enum {
  /** The graph reads an input from `data` at each run, without a copy. The memory must stay valid
   * until the input is set again or the handle is closed, and be aligned for the dtype; the caller
   * may change it between runs. A graph that writes to its input refuses to run. */
  PLAIT_RUN_BORROW = 1,
};

/** Set an input, a weight or a number to a copy of `data`. It stays set for later runs.
 *
 * If one size of an input is free, it may have any number of bytes that fits a value of that size,
 * which the call then sets.
 *
 * A number, such as a learning rate, is a `double`. One that is an integer in the graph takes only
 * whole values; a seed is a whole value from 0 on. A free size changes the shapes that ::plait_run_get gives. An input that had
 * another shape is no longer set, and outputs are gone. Sizes may be set one after the other:
 * whether they fit together is checked at the next call of another kind. What was planned for
 * sizes is kept, for the last eight.
 * @param kind ::PLAIT_RUN_INPUT, ::PLAIT_RUN_WEIGHT or ::PLAIT_RUN_NUMBER
 * @param data all elements in C order, of the dtype and shape that ::plait_run_get gives
 * @param nbytes their number of bytes, which must be exact
 * @param flags ::PLAIT_RUN_BORROW, of inputs only, or 0 */
PLAIT_RUN_API int plait_run_set(plait_run *run, int kind, uint32_t index, const void *data,
                                uint64_t nbytes, uint32_t flags);

/** Run the graph once. All inputs must be set.
 *
 * After the first run a graph whose shapes do not depend on values allocates no memory. Exceptions:
 * weights that stay the same are copied to a faster layout in the second run, without
 * PLAIT_RUN_MAP_WEIGHTS; a branch allocates when it is first chosen; a library for matrix products
 * (PLAIT_BLAS_LIBRARY) may allocate.
 *
 * A run of a training graph is one step: it changes weights and numbers. After an error there are
 * no outputs, and weights that the graph changes may have changed. */
PLAIT_RUN_API int plait_run_execute(plait_run *run);

/** Write graph, weights and numbers as they are now to a file.
 *
 * A file at `path` is replaced when the new one is complete, and stays as it is after an error. */
PLAIT_RUN_API int plait_run_save(plait_run *run, const char *path);

/** Give the bytes that ::plait_run_save would write.
 *
 * @param data the first byte, which belongs to the handle and is valid until the next call of this
 *        function, or until the handle is closed
 * @param nbytes their number */
PLAIT_RUN_API int plait_run_save_memory(plait_run *run, const void **data, uint64_t *nbytes);

/** Return the most bytes that a run takes at once: inputs, weights, outputs and values in between,
 * scratch memory of kernels, and weights that kernels keep in a faster layout. Values for other
 * sizes that the handle keeps are in it.
 *
 * It is known before the first run: the first call for the sizes that are set calls each kernel,
 * once or twice, with zeros, which takes about as long as two runs and less memory than one. Not in
 * it are values whose shape depends on values, and lists of the graph itself. 0 for a handle that
 * was not opened, and after an error, such as of a memory limit; ::plait_run_error has the text. */
PLAIT_RUN_API uint64_t plait_run_memory(const plait_run *run);

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_RUN_H */

/* clang-format off */
/** @file
 * The role "compiler": what makes programs of graphs.
 *
 * A plug-in that provides this table (plait_runtime::provide) compiles the graphs of
 * `plait_graph.compile(..., frozen=True)` and `plait_graph.load` from then on, in place of
 * plait-graph's own programs. That one is a provider too, under the name "plait_graph":
 *
 * ```c
 * const plait_compiler *own =
 *     (const plait_compiler *)runtime->provider("compiler", "plait_graph", 0);
 * ```
 *
 * The graph is JSON, which the design note 0051 describes. It was checked before: names, operators,
 * arguments, and that it is no larger than what plait-graph itself runs.
 *
 * Functions return a status, and set the text of an error by plait_runtime::raise. They may be called
 * from any thread; those of one program are not called at the same time. */
#ifndef PLAIT_COMPILER_H
#define PLAIT_COMPILER_H
#include <plait/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A program of a provider. */
typedef struct plait_compiled plait_compiled;

/** Role "compiler". */
typedef struct plait_compiler {
  plait_header h;
  const char *name;
  void *ctx; /**< the first argument of all functions */
  /** Make a program of a graph. Nothing of the graph is computed.
   * @param graph the text, of `nbytes` bytes, which a null character follows; valid during the call
   * @param program the result, which `release` frees
   * @return PLAIT_DECLINE if the provider does not take this graph: plait-graph's own program runs
   *         it */
  plait_status (*create)(void *ctx, plait_thread *, const char *graph, uint64_t nbytes,
                         plait_compiled **program);
  /** Set the weights, in the order of the graph, which the program retains.
   *
   * It is called before the first run, and again when weights are replaced. Elements of weights may
   * change between runs; plait_storage::version tells of it. The program writes to those that the
   * graph writes to. */
  plait_status (*bind)(void *ctx, plait_thread *, plait_compiled *, plait_tensor *const *weights,
                       uint64_t n);
  /** Compute the outputs.
   *
   * Shapes, dtypes and devices of the inputs must be those of the graph; others are an error.
   * Afterwards each number has grown by its step.
   * @param outputs an array, which is filled with new references: to new tensors, or to views of
   *        inputs and weights where the graph returns such. */
  plait_status (*run)(void *ctx, plait_thread *, plait_compiled *, plait_tensor *const *inputs,
                      uint64_t n_inputs, plait_tensor **outputs, uint64_t n_outputs);
  /** Give the value of a number in the next run. */
  plait_status (*number)(void *ctx, plait_thread *, plait_compiled *, uint32_t index,
                         double *value);
  /** Set the value of a number in the next run. */
  plait_status (*set_number)(void *ctx, plait_thread *, plait_compiled *, uint32_t index,
                             double value);
  /** Return the bytes that values within the program take during a run; 0 if they are not known. */
  uint64_t (*planned_bytes)(void *ctx, plait_compiled *);
  /** Free a program. */
  void (*release)(void *ctx, plait_compiled *);
} plait_compiler;

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_COMPILER_H */

// Graphs: work of streams that is recorded once and done again at a cost of one launch.
#include "host/capture.h"

#include <vector>

#include "host/activity.h"
#include "host/allocator.h"
#include "host/device.h"

namespace plait::cuda {
namespace {

using driver::api;

constexpr size_t kMostGenerators = 16;  // that one graph draws from

// What kernels of a graph draw from one generator, in each run.
struct Draws {
  plait_generator *generator;  // retained
  uint64_t blocks;
};

struct RecordedGraph {
  DLDevice device;
  driver::Stream stream;  // where the recording began
  driver::GraphExec exec;
  void *words, *block;  // two words of the device for each generator; see capture.h
  std::vector<Draws> draws;
  std::vector<void *> pinned;  // memory of the host that its copies use, for as long as it lives
  driver::Event done;          // behind the latest run, if there is such memory
};
constexpr uint64_t kWordBytes = 2 * sizeof(uint64_t) * kMostGenerators;

struct Recordings {
  ForkMutex mutex;
  std::vector<RecordedGraph *> list;  // those that are being recorded
  std::atomic<size_t> number{0};
};
Recordings &recordings() {
  static auto *all = new Recordings();  // used until the process ends
  return *all;
}

void free_graph(RecordedGraph *g) {
  const bool is_usable = use_quietly(g->device);
  if (is_usable && g->exec) api.graph_exec_destroy(g->exec);
  const plait_allocator *memory = allocator_table();
  if (is_usable && g->words) memory->free(memory->ctx, g->words, kWordBytes, g->block);
  for (const Draws &each : g->draws) plait_release(each.generator);
  if (is_usable && g->done) {
    api.event_synchronize(g->done);
    api.event_destroy(g->done);
  }
  for (void *each : g->pinned) release_pinned(each);
  delete g;
}

plait_status begin(void *, plait_thread *thread, DLDevice device, plait_stream *s) try {
  if (!native(s))
    return runtime->raise(thread, PLAIT_VALUE_ERROR, "cuda",
                          "work of the default stream cannot be recorded; record another stream");
  PLAIT_TRY(use(thread, device));
  auto *g = new RecordedGraph{device, native(s), nullptr, nullptr, nullptr, {}, {}, nullptr};
  const plait_allocator *memory = allocator_table();
  const plait_status status =
      memory->alloc(memory->ctx, device, kWordBytes, s, &g->words, &g->block);
  if (status != PLAIT_OK) {
    g->words = nullptr;
    free_graph(g);
    return thread->error ? status
                         : runtime->raise(thread, status, "cuda", "out of memory for a graph");
  }
  // relaxed: the allocator may ask for memory meanwhile, and other threads may do anything
  const driver::Result result = api.capture_begin(g->stream, driver::kCaptureRelaxed);
  if (result != driver::kSuccess) {
    free_graph(g);
    return fail_on(thread, device, result, "recording a stream");
  }
  Recordings &all = recordings();
  const std::lock_guard<ForkMutex> hold(all.mutex);
  all.list.push_back(g);
  all.number = all.list.size();
  return PLAIT_OK;
} catch (const std::bad_alloc &) {
  return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda", "out of memory for a graph");
}

// The recording that began in the stream leaves the list.
RecordedGraph *take_recording(DLDevice device, driver::Stream stream) {
  Recordings &all = recordings();
  const std::lock_guard<ForkMutex> hold(all.mutex);
  for (size_t i = 0; i < all.list.size(); i++) {
    RecordedGraph *g = all.list[i];
    if (g->stream != stream || g->device.device_id != device.device_id) continue;
    all.list.erase(all.list.begin() + int64_t(i));
    all.number = all.list.size();
    return g;
  }
  return nullptr;
}

plait_status end(void *, plait_thread *thread, DLDevice device, plait_stream *s, void **out) {
  *out = nullptr;
  PLAIT_TRY(use(thread, device));
  RecordedGraph *g = take_recording(device, native(s));
  if (!g)
    return runtime->raise(thread, PLAIT_VALUE_ERROR, "cuda",
                          "no recording began in this stream of cuda:%d", int(device.device_id));
  driver::Graph graph = nullptr;
  driver::Result result = api.capture_end(g->stream, &graph);
  const char *what = "ending the recording of a stream";
  if (result == driver::kSuccess && graph) {
    result = api.graph_instantiate(&g->exec, graph, 0);
    what = "making a graph of a recording";
  }
  if (graph) api.graph_destroy(graph);
  if (result == driver::kSuccess && g->exec) return *out = g, PLAIT_OK;
  free_graph(g);
  if (result == driver::kCaptureUnjoined)
    return runtime->raise(thread, PLAIT_ERROR, "cuda",
                          "%s: another stream joined the recording and was not waited for; let the "
                          "recorded stream wait for it at the end",
                          what);
  if (result == driver::kCaptureInvalidated || result == driver::kSuccess)
    return runtime->raise(thread, PLAIT_ERROR, "cuda",
                          "%s: something in it cannot be recorded, such as a wait of the host for "
                          "the device",
                          what);
  return fail_on(thread, device, result, what);
}

int32_t query(void *, DLDevice device, plait_stream *s) {
  if (!use_quietly(device)) return 0;
  int status = driver::kNotCapturing;
  return native(s) && api.capture_status(native(s), &status) == driver::kSuccess &&
         status != driver::kNotCapturing;
}

// Sets the words of a graph for one run: each generator gives the numbers that the run draws.
plait_status set_words(plait_thread *thread, const RecordedGraph *g, driver::Stream stream) {
  static const plait_role role = runtime->role("rng", 0);
  const plait_rng *rng = PLAIT_ROLE(plait_rng, role);
  for (size_t i = 0; i < g->draws.size(); i++) {
    uint64_t words[2];  // the offset and the seed
    rng->reserve(rng->ctx, g->draws[i].generator, g->draws[i].blocks, &words[1], &words[0]);
    for (int half = 0; half < 4; half++)
      PLAIT_CUDA(thread, g->device, "running a graph",
                 fill_words(driver::Address(g->words) + 16 * i + 4 * uint64_t(half),
                            unsigned(words[half / 2] >> (half % 2 * 32)), 1, stream));
  }
  return PLAIT_OK;
}

plait_status graph_launch(void *, plait_thread *thread, void *graph, DLDevice device,
                          plait_stream *s) {
  auto *g = static_cast<RecordedGraph *>(graph);
  if (g->device.device_id != device.device_id)
    return runtime->raise(thread, PLAIT_VALUE_ERROR, "cuda",
                          "a graph that was recorded on cuda:%d cannot run on cuda:%d",
                          int(g->device.device_id), int(device.device_id));
  PLAIT_TRY(use(thread, device));
  const Activity measure(device, native(s), PLAIT_ACTIVITY_KERNEL, "graph", 0);
  PLAIT_TRY(set_words(thread, g, native(s)));
  used_state(device.device_id).reported = 0;  // launches of a graph keep their numbers
  PLAIT_CUDA(thread, device, "running a graph", graph_launch(g->exec, native(s)));
  if (g->pinned.empty()) return PLAIT_OK;
  if (!g->done)
    PLAIT_CUDA(thread, device, "running a graph", event_create(&g->done, driver::kEventNoTiming));
  PLAIT_CUDA(thread, device, "running a graph", event_record(g->done, native(s)));
  return PLAIT_OK;
}

void graph_free(void *, void *graph) { free_graph(static_cast<RecordedGraph *>(graph)); }

// Under the lock: the recording that a stream takes part in. A stream that joined one counts to the
// latest of its device.
RecordedGraph *recording_of(DLDevice device, driver::Stream stream) {
  RecordedGraph *latest = nullptr;
  for (RecordedGraph *each : recordings().list) {
    if (each->device.device_id != device.device_id) continue;
    if (each->stream == stream) return each;
    latest = each;
  }
  int status = driver::kNotCapturing;
  return latest && api.capture_status(stream, &status) == driver::kSuccess &&
                 status != driver::kNotCapturing
             ? latest
             : nullptr;
}

// The generator that a call names, else the default one of its device.
plait_generator *generator_of(const plait_call *c, const plait_rng *rng) {
  for (int i = 0; i < c->n_in; i++)
    if (plait_arg_at(c->op, uint64_t(i))->kind == PLAIT_KIND_GENERATOR &&
        c->in[i].tag == PLAIT_OBJECT)
      return reinterpret_cast<plait_generator *>(c->in[i].u.o);
  return PLAIT_HAS(plait_rng, rng, device_generator) ? rng->device_generator(rng->ctx, c->device)
                                                     : rng->default_generator(rng->ctx);
}

// Blocks for a kernel of a recording: it counts on from those of the kernels before.
plait_status reserve_in(const plait_call *c, RecordedGraph *g, plait_generator *generator,
                        uint64_t blocks, RandomPart *out) try {
  size_t i = 0;
  while (i < g->draws.size() && g->draws[i].generator != generator) i++;
  if (i == kMostGenerators)
    return PLAIT_FAIL(c, PLAIT_ERROR, "a graph can draw from at most %zu generators",
                      kMostGenerators);
  if (i == g->draws.size()) {
    g->draws.push_back({generator, 0});
    plait_retain(generator);
  }
  *out = {generator->seed, g->draws[i].blocks, static_cast<uint64_t *>(g->words) + 2 * i};
  g->draws[i].blocks += blocks;
  return PLAIT_OK;
} catch (const std::bad_alloc &) {
  return PLAIT_FAIL(c, PLAIT_MEMORY_ERROR, "out of memory for a graph");
}

}  // namespace

plait_status reserve_blocks(const plait_call *c, int64_t blocks, RandomPart *out) {
  static const plait_role role = runtime->role("rng", 0);
  const plait_rng *rng = PLAIT_ROLE(plait_rng, role);
  plait_generator *generator = generator_of(c, rng);
  Recordings &all = recordings();
  if (PLAIT_UNLIKELY(all.number.load(std::memory_order_acquire) != 0)) {
    PLAIT_TRY(use(c->thread, c->device));
    const std::lock_guard<ForkMutex> hold(all.mutex);
    if (RecordedGraph *g = recording_of(c->device, stream_of(c)))
      return reserve_in(c, g, generator, uint64_t(blocks), out);
  }
  out->base = nullptr;
  rng->reserve(rng->ctx, generator, uint64_t(blocks), &out->seed, &out->offset);
  return PLAIT_OK;
}

void keep_for_graph(DLDevice device, driver::Stream stream, const void *host) {
  Recordings &all = recordings();
  if (PLAIT_LIKELY(all.number.load(std::memory_order_acquire) == 0)) return;
  const std::lock_guard<ForkMutex> hold(all.mutex);
  if (RecordedGraph *g = recording_of(device, stream)) hold_pinned(host, g->pinned);
}

void add_capture(plait_device &t) {
  t.capture_begin = begin;
  t.capture_end = end;
  t.capture_query = query;
  t.graph_launch = graph_launch;
  t.graph_free = graph_free;
}

}  // namespace plait::cuda

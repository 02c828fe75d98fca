// Devices, streams, events, copies and errors that are found late.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "testing.hpp"

namespace {

// A device that works as it is called, on memory of the host, and writes down what it is asked.
namespace mini {
std::vector<std::string> log;
plait_device_error error;
int64_t next_stream = 0;
int32_t count(void *) { return 2; }
std::string name(const plait_stream *s) {
  return s ? std::to_string(int64_t(reinterpret_cast<intptr_t>(s->native))) : "default";
}
plait_status copy(void *, plait_thread *, void *to, DLDevice, const void *from, DLDevice,
                  uint64_t n, plait_stream *s, uint64_t flags) {
  std::memcpy(to, from, n);
  log.push_back("copy on " + name(s) + (flags & PLAIT_COPY_ASYNC ? ", async" : ""));
  return PLAIT_OK;
}
plait_status synchronize(void *, plait_thread *, DLDevice) { return PLAIT_OK; }
plait_status stream_synchronize(void *, plait_thread *, DLDevice, plait_stream *) {
  return PLAIT_OK;
}
plait_status stream_new(void *, plait_thread *, plait_stream *s) {
  s->native = reinterpret_cast<void *>(++next_stream);
  return PLAIT_OK;
}
void stream_free(void *, plait_stream *s) { log.push_back("free " + name(s)); }
plait_status stream_query(void *, plait_thread *, DLDevice, plait_stream *, int32_t *done) {
  *done = 1;
  return PLAIT_OK;
}
plait_status event_new(void *, plait_thread *, plait_device_event *) { return PLAIT_OK; }
void event_free(void *, plait_device_event *) {}
plait_status event_record(void *, plait_thread *, plait_device_event *, plait_stream *s) {
  log.push_back("record on " + name(s));
  return PLAIT_OK;
}
plait_status event_query(void *, plait_thread *, plait_device_event *, int32_t *done) {
  *done = 1;
  return PLAIT_OK;
}
plait_status event_wait(void *, plait_thread *, plait_device_event *) { return PLAIT_OK; }
plait_status stream_wait(void *, plait_thread *, DLDevice, plait_stream *s, plait_device_event *) {
  log.push_back(name(s) + " waits");
  return PLAIT_OK;
}
int32_t take_error(void *, DLDevice, plait_device_error *out) {
  if (!error.code) return 0;
  *out = error;
  if (!error.fatal) error.code = 0;
  return 1;
}
plait_device table = [] {
  plait_device t{};
  t.h = PLAIT_HEADER(plait_device);
  t.name = "mini";
  t.count = count;
  t.copy = copy;
  t.synchronize = synchronize;
  t.stream_synchronize = stream_synchronize;
  t.stream_new = stream_new;
  t.stream_free = stream_free;
  t.stream_query = stream_query;
  t.event_new = event_new;
  t.event_free = event_free;
  t.event_record = event_record;
  t.event_query = event_query;
  t.event_wait = event_wait;
  t.stream_wait = stream_wait;
  t.take_error = take_error;
  return t;
}();
plait_status alloc(void *, DLDevice, uint64_t n, plait_stream *s, void **data, void **block) {
  *data = *block = std::aligned_alloc(64, (n + 63) / 64 * 64);
  log.push_back("alloc for " + name(s));
  return PLAIT_OK;
}
void free_block(void *, void *data, uint64_t, void *) { std::free(data); }
void record_use(void *, void *, void *, plait_stream *s) { log.push_back("used on " + name(s)); }
const plait_allocator memory = [] {
  plait_allocator t{};
  t.h = PLAIT_HEADER(plait_allocator);
  t.name = "mini";
  t.alloc = alloc;
  t.free = free_block;
  t.record_use = record_use;
  return t;
}();
uint64_t launched;
plait_status twice(plait_call *c) {
  launched = c->launch;
  log.push_back("twice on " + name(c->stream));
  return twice_kernel(c);
}
plait_status init(const plait_runtime *r, const plait_plugin *self) {
  plait_status s = r->provide(th, "device", kDLExtDev, &table.h, self, nullptr);
  if (s >= 0) s = r->provide(th, "allocator", kDLExtDev, &memory.h, self, nullptr);
  for (const auto &[op, kernel] : {std::pair<const char *, plait_kernel>{"twice", twice},
                                   {"clone", clone_kernel},
                                   {"copy_", copy_kernel}})
    if (s >= 0) s = r->implement(th, r->op(op), kDLExtDev, kernel, nullptr, self, nullptr);
  return s;
}
const plait_plugin plugin{PLAIT_HEADER(plait_plugin), "mini", "1", 0, init, nullptr};
constexpr DLDevice zero{kDLExtDev, 0}, one{kDLExtDev, 1};

void start() {
  define("copy_(Tensor(a)! self, Tensor src, bool non_blocking=False) -> Tensor(a)!",
         PLAIT_OP_ANY_DEVICE, copy_shape, copy_kernel);
  define("clone(Tensor self) -> Tensor", 0, like_shape, clone_kernel);
  define("twice(Tensor self) -> Tensor", PLAIT_OP_INPLACE, like_shape, twice_kernel);
  define("only_host(Tensor self) -> Tensor", PLAIT_OP_INPLACE, like_shape, twice_kernel);
  check(rt->attach(th, &plugin));
}
Tensor make_on(DLDevice d, std::vector<float> values) {
  Tensor t;
  const Dims size{int64_t(values.size())};
  check(rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, d, t.out()));
  const Tensor host = make(size, values);
  plait_value out = none();
  check(run("copy_", {value(t), value(host)}, &out));
  rt->release_value(&out);
  return t;
}
}  // namespace mini

TEST(calls_run_on_the_threads_stream) {
  mini::start();
  plait_stream *s = nullptr;
  check(rt->stream_new(th, mini::zero, 0, &s));
  REQUIRE(!rt->stream(th, mini::zero) && s->native);
  {
    const Tensor x = mini::make_on(mini::zero, {1, 2});
    mini::log.clear();
    plait_value out;
    {
      const StreamGuard guard(th, mini::zero, s);
      REQUIRE(rt->stream(th, mini::zero) == s && !rt->stream(th, mini::one));
      check(run("twice", {value(x)}, &out));
    }
    REQUIRE(!rt->stream(th, mini::zero));
    // the result is the stream's own; the input was made for the default one
    REQUIRE((mini::log == std::vector<std::string>{"alloc for 1", "used on 1", "twice on 1"}));
    Tensor here;
    check(rt->host_copy(th, out.u.t, here.out()));
    REQUIRE(here.device().device_type == kDLCPU && here.data<float>()[1] == 4);
    REQUIRE(mini::log.back() == "copy on default" && mini::log[3] == "used on default");
    rt->release_value(&out);
  }
  REQUIRE(rt->set_stream(th, mini::one, s, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"mini:0", "mini:1"}));
  plait_release(s);
  REQUIRE(mini::log.back() == "free 1");
  const DLDevice third{kDLExtDev, 2};
  REQUIRE(rt->stream_new(th, third, 0, &s) == PLAIT_VALUE_ERROR && error_has({"mini:2", "2"}));
  Tensor t;
  const Dims size{1};
  REQUIRE(rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, third, t.out()) ==
              PLAIT_VALUE_ERROR &&
          error_has({"mini:2"}));
}
TEST(copies_between_devices_wait_on_both_sides) {
  mini::start();
  const Tensor x = mini::make_on(mini::zero, {1, 2, 3});
  plait_stream *a = nullptr, *b = nullptr;
  check(rt->stream_new(th, mini::zero, 0, &a));
  check(rt->stream_new(th, mini::one, 0, &b));
  const StreamGuard first(th, mini::zero, a), second(th, mini::one, b);
  Tensor y;
  const Dims size{3};
  check(rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, mini::one, y.out()));
  mini::log.clear();
  plait_value out = none();
  check(run("copy_", {value(y), value(x)}, &out));
  rt->release_value(&out);
  REQUIRE((mini::log == std::vector<std::string>{"record on 2", "1 waits", "used on 1", "copy on 1",
                                                 "record on 1", "2 waits"}));
  REQUIRE(y.data<float>()[2] == 3);  // this device's memory is the host's
  plait_release(a);
  plait_release(b);
}
TEST(pinned_memory_is_copied_without_waiting) {
  mini::start();
  const Tensor x = mini::make_on(mini::zero, {5, 6});
  plait_storage *s = nullptr;
  check(rt->pinned_new(th, mini::zero, 8, &s));
  REQUIRE(s->device.device_type == kDLCPU && s->flags & PLAIT_STORAGE_PINNED);
  Tensor host;
  const Dims size{2};
  check(rt->tensor_on(th, s, s->data, dtype::float32, 1, size.data(), nullptr, host.out()));
  plait_release(s);
  plait_value out = none();
  check(run("copy_", {value(host), value(x), value(true)}, &out));
  rt->release_value(&out);
  REQUIRE(mini::log.back() == "record on default");
  REQUIRE(mini::log[mini::log.size() - 2] == "copy on default, async");
  REQUIRE(host.data<float>()[1] == 6);
  check(run("copy_", {value(make({2})), value(x), value(true)}, &out));
  rt->release_value(&out);
  REQUIRE(mini::log.back() == "copy on default");  // not pinned: it is waited for
}
TEST(late_errors_name_their_operator) {
  mini::start();
  const Tensor x = mini::make_on(mini::zero, {1});
  plait_value out;
  check(run("twice", {value(x)}, &out));
  rt->release_value(&out);
  mini::error = {sizeof mini::error, PLAIT_INDEX_ERROR, 0, mini::launched, "index 7 is too large"};
  REQUIRE(run("clone", {value(x)}, &out) == PLAIT_INDEX_ERROR &&
          error_has({"twice: index 7 is too large", "mini:0"}));
  check(run("clone", {value(x)}, &out));
  rt->release_value(&out);
  mini::error = {sizeof mini::error, PLAIT_ERROR, 1, 0, "no power"};
  REQUIRE(rt->synchronize(th, mini::zero) == PLAIT_ERROR &&
          error_has({"mini:0 failed", "no power", "twice, clone"}));
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_ERROR && error_has({"no power"}));
  mini::error.code = 0;
}
TEST(a_device_that_is_used_stays_and_comes_alone) {
  mini::start();
  static const plait_plugin other{PLAIT_HEADER(plait_plugin), "other", "1", 0, mini::init, nullptr};
  REQUIRE(rt->attach(th, &other) == PLAIT_VALUE_ERROR && error_has({"`mini`", "already"}));
  {
    const Tensor x = mini::make_on(mini::zero, {1});
    REQUIRE(rt->detach(th, "mini") == PLAIT_ERROR && error_has({"mini", "1 storages"}));
  }
  check(rt->detach(th, "mini"));
  Tensor t;
  const Dims size{1};
  REQUIRE(rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, mini::zero, t.out()) ==
              PLAIT_NOT_IMPLEMENTED &&
          error_has({"ext:0"}));
  check(rt->attach(th, &mini::plugin));
  plait_device half = mini::table;
  half.event_wait = nullptr;
  check(rt->detach(th, "mini"));
  REQUIRE(rt->provide(th, "device", kDLExtDev, &half.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"`event_wait`", "`event_new`"}));
}
TEST(devices_have_names_and_types_of_their_own) {
  define_basics();
  plait_device d = mini::table;
  const auto refused = [&](const char *name, int32_t type, const char *text) {
    d.name = name;
    return rt->provide(th, "device", type, &d.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
           error_has({text});
  };
  REQUIRE(refused("fast", kDLCPU, "the CPU"));
  for (const char *name : {"", "a:1", "a\n", "\xff", "1a"})
    REQUIRE(refused(name, kDLExtDev, "letters, digits and underscores"));
  for (const char *name : {"cpu", "meta", "cuda"}) REQUIRE(refused(name, kDLExtDev, name));
  d.name = "mine";
  uint64_t undo = 0;
  check(rt->provide(th, "device", kDLExtDev, &d.h, nullptr, &undo));
  plait_device second = d;
  REQUIRE(rt->provide(th, "device", kDLWebGPU, &second.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"`mine`", "type 12"}));
  check(rt->retract(th, undo));
}
TEST(the_cpu_serves_what_a_device_lacks_if_asked_to) {
  mini::start();
  const Tensor x = mini::make_on(mini::zero, {1, 2});
  plait_value out = none();
  REQUIRE(run("only_host", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED &&
          error_has({"only_host", "mini:0", "fallback"}));
  check(rt->set_fallback(th, kDLExtDev, 1));
  check(run("only_host", {value(x)}, &out));
  REQUIRE(out.u.t->dl.device.device_type == kDLExtDev && *at(out.u.t, 1) == 4);
  rt->release_value(&out);
  const uint64_t version = x->storage->version;
  REQUIRE(run_into("only_host", x, x, PLAIT_INPLACE) == PLAIT_OK && *at(x.get(), 1) == 4 &&
          x->storage->version > version);
  plait_record all[200];
  const uint64_t n = rt->report(all, 200, sizeof all[0]);
  bool counted = false;
  for (uint64_t i = 0; i < n && i < 200; i++)
    counted |= !std::strcmp(all[i].kind, "fallback") && !std::strcmp(all[i].name, "only_host") &&
               all[i].count == 2 && all[i].device_type == kDLExtDev;
  REQUIRE(counted);
  check(rt->set_fallback(th, kDLExtDev, 0));
  REQUIRE(run("only_host", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED);
}
TEST(a_device_is_dead_in_the_child_of_a_fork) {
  mini::start();
  plait_stream *s = nullptr;
  check(rt->stream_new(th, mini::zero, 0, &s));
  Tensor x = mini::make_on(mini::zero, {1});
  const pid_t child = fork();
  if (child == 0) {
    mini::log.clear();
    plait_value out;
    REQUIRE(run("twice", {value(x)}, &out) == PLAIT_ERROR && error_has({"mini:0", "forked"}));
    Tensor t;
    const Dims size{1};
    REQUIRE(rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, mini::one, t.out()) ==
            PLAIT_ERROR);
    REQUIRE(rt->host_copy(th, x.get(), t.out()) == PLAIT_ERROR && error_has({"spawn"}));
    REQUIRE(rt->synchronize(th, mini::zero) == PLAIT_ERROR);
    plait_release(s);
    x = Tensor();
    REQUIRE(mini::log.empty());  // nothing is given back to a device that isn't there
    std::_Exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  plait_value out;
  check(run("twice", {value(x)}, &out));
  rt->release_value(&out);
  plait_release(s);
}
TEST(a_thread_has_a_default_device) {
  mini::start();
  define(
      "none_given() -> Tensor", 0,
      [](plait_call *c) -> plait_status {
        const int64_t one = 1;
        return rt->result(c, 0, dtype::float32, 1, &one);
      },
      nullptr);
  check(rt->implement(
      th, rt->op("none_given"), kDLExtDev, [](plait_call *) -> plait_status { return PLAIT_OK; },
      nullptr, nullptr, nullptr));
  th->device = mini::one;
  plait_value out;
  check(run("none_given", {}, &out));
  REQUIRE(out.u.t->dl.device.device_type == kDLExtDev && out.u.t->dl.device.device_id == 1);
  rt->release_value(&out);
  th->device = kCpu;
}

namespace mini {
std::atomic<int> starts{0};
std::atomic<bool> is_started{false}, must_fail{false};
plait_status start_driver(void *, plait_thread *thread) {
  starts++;
  if (must_fail) return rt->raise(thread, PLAIT_ERROR, "mini", "no driver");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  is_started = true;
  return PLAIT_OK;
}
plait_status priorities(void *, plait_thread *, DLDevice, int32_t *lowest, int32_t *highest) {
  *lowest = 0, *highest = -3;
  return PLAIT_OK;
}
}  // namespace mini

TEST(a_driver_starts_once_at_the_first_use_and_again_after_a_failure) {
  mini::table.start = mini::start_driver;
  mini::table.priorities = mini::priorities;
  mini::must_fail = true;
  mini::start();
  int32_t n = 0;
  check(rt->device_count(th, kDLExtDev, &n));
  REQUIRE(n == 2 && mini::starts == 0);
  plait_device_event *e = nullptr;
  REQUIRE(rt->event_new(th, mini::zero, 0, &e) == PLAIT_ERROR && error_has({"mini", "no driver"}));
  REQUIRE(rt->use_device(th, mini::one) == PLAIT_ERROR && mini::starts == 2);
  rt->clear(th);
  mini::must_fail = false;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&] {
      // nobody goes on before the driver has started
      if (rt->use_device(rt->thread(), mini::zero) < 0 || !mini::is_started) failed++;
    });
  for (std::thread &each : threads) each.join();
  REQUIRE(failed == 0 && mini::starts == 3);
  plait_stream *s = nullptr;
  REQUIRE(rt->stream_new(th, mini::zero, 1, &s) == PLAIT_VALUE_ERROR &&
          error_has({"`priority`", "-3", "0", "got 1"}));
  check(rt->stream_new(th, mini::zero, -3, &s));
  REQUIRE(s->priority == -3);
  plait_release(s);
  REQUIRE(rt->event_new(th, mini::zero, PLAIT_EVENT_SHARED, &e) == PLAIT_NOT_IMPLEMENTED &&
          error_has({"mini:0", "other processes"}));
  REQUIRE(rt->event_new(th, mini::zero, PLAIT_EVENT_SHARED | PLAIT_EVENT_TIMED, &e) ==
          PLAIT_VALUE_ERROR);
  REQUIRE(mini::starts == 3);
}

TEST(a_child_of_a_process_that_started_a_driver_is_refused) {
  mini::table.start = mini::start_driver;
  mini::start();
  const auto in_child = [] {
    const pid_t child = fork();
    if (child == 0) {
      const plait_status s = rt->use_device(th, mini::zero);
      std::_Exit(s == PLAIT_OK ? 0 : error_has({"forked"}) ? 1 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  REQUIRE(in_child() == 0);  // the child starts one of its own
  check(rt->use_device(th, mini::zero));
  REQUIRE(in_child() == 1);
}

TEST(tables_with_half_a_group_of_functions_are_refused) {
  const auto refused = [](plait_device t, const char *text) {
    uint64_t undo = 0;
    return rt->provide(th, "device", kDLExtDev, &t.h, nullptr, &undo) == PLAIT_VALUE_ERROR &&
           error_has({text});
  };
  plait_device t = mini::table;
  t.memory_alloc = [](void *, plait_thread *, DLDevice, uint64_t, void **) -> plait_status {
    return PLAIT_MEMORY_ERROR;
  };
  REQUIRE(refused(t, "`memory_free`"));
  t = mini::table;
  t.capture_query = nullptr;
  t.capture_begin = [](void *, plait_thread *, DLDevice, plait_stream *) -> plait_status {
    return PLAIT_OK;
  };
  REQUIRE(refused(t, "`capture_end`"));
  t = mini::table;
  t.activity_start = [](void *, plait_thread *, DLDevice) -> plait_status { return PLAIT_OK; };
  REQUIRE(refused(t, "`activity_stop`"));
  plait_allocator a = mini::memory;
  a.pool_new = [](void *, DLDevice) -> void * { return nullptr; };
  REQUIRE(rt->provide(th, "allocator", kDLExtDev, &a.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"`pool_use`"}));
  plait_rng r = *reinterpret_cast<const plait_rng *>(*rt->role("rng", 0));
  r.state_size = [](void *, plait_generator *) -> uint64_t { return 8; };
  REQUIRE(rt->provide(th, "rng", 0, &r.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"`set_seed`"}));
}

namespace mini {
plait_object *drawn_from;
plait_status draw(plait_call *c) {
  drawn_from = c->in[1].tag == PLAIT_OBJECT ? c->in[1].u.o : nullptr;
  return PLAIT_OK;
}
plait_generator *own_generator;
}  // namespace mini

TEST(random_kernels_draw_from_the_generator_of_their_device) {
  mini::start();
  const plait_op *op = define("noise(Tensor self, *, Generator? generator=None) -> Tensor",
                              PLAIT_OP_RANDOM, like_shape, mini::draw);
  check(rt->implement(th, op, kDLExtDev, mini::draw, nullptr, nullptr, nullptr));
  mini::own_generator = rt->generator_new(5);
  static plait_rng rng = *reinterpret_cast<const plait_rng *>(*rt->role("rng", 0));
  rng.device_generator = [](void *, DLDevice) { return mini::own_generator; };
  check(rt->provide(th, "rng", 0, &rng.h, nullptr, nullptr));
  const Tensor there = mini::make_on(mini::zero, {1}), here = make({1});
  plait_generator *mine = rt->generator_new(1);
  const auto draws = [&](const Tensor &t, plait_generator *g) {
    plait_value out = none(), given = none();
    if (g) given.tag = PLAIT_OBJECT, given.u.o = &g->o;
    check(run("noise", {value(t), given}, &out));
    rt->release_value(&out);
    return mini::drawn_from;
  };
  REQUIRE(draws(there, nullptr) == &mini::own_generator->o);
  REQUIRE(draws(there, mine) == &mine->o);
  REQUIRE(!draws(here, nullptr));
  plait_release(mine);
}

}  // namespace

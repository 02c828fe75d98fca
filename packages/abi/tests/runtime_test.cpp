// The runtime without Python: test_runtime.py runs every TEST in a process of its own.
#include <plait/plait.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>
#include <vector>

using namespace plait;

namespace {

const plait_runtime *rt;
plait_thread *th;
constexpr DLDevice kCpu{kDLCPU, 0};

std::map<std::string, std::function<void()>> &tests() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}
struct Added {
  Added(const char *name, std::function<void()> f) { tests()[name] = std::move(f); }
};
#define TEST(name)                              \
  void test_##name();                           \
  const Added added_##name(#name, test_##name); \
  void test_##name()
#define REQUIRE(condition)                                                      \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::printf("line %d: %s is false\n", __LINE__, #condition);              \
      if (th && th->error) std::printf("last error: %s\n", th->error->message); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

bool error_has(std::initializer_list<const char *> parts) {
  if (!th->error) return false;
  for (const char *p : parts)
    if (!std::strstr(th->error->message, p)) {
      std::printf("`%s` lacks `%s`\n", th->error->message, p);
      return false;
    }
  return true;
}

Tensor make(Dims shape, std::vector<float> values = {}, DType dtype = dtype::float32) {
  Tensor t;
  check(rt->tensor_new(th, dtype, int32_t(shape.size()), shape.data(), nullptr, kCpu, t.out()));
  for (size_t i = 0; i < values.size(); i++) t.data<float>()[i] = values[i];
  return t;
}

// Three small operators: copy_ and clone, which dispatch itself needs, and a pointwise `twice`.
plait_status copy_shape(plait_call *c) {
  return numel(c->in[0].u.t) == numel(c->in[1].u.t)
             ? PLAIT_OK
             : rt->fail(c, PLAIT_SHAPE_ERROR, "sizes differ");
}
plait_status like_shape(plait_call *c) {
  const plait_tensor *t = c->in[0].u.t;
  return rt->result(c, 0, t->dl.dtype, t->dl.ndim, t->dl.shape);
}
float *at(const plait_tensor *t, int64_t i) {  // up to two dimensions, any strides
  int64_t offset = 0;
  for (int d = t->dl.ndim - 1; d >= 0; d--) {
    offset += i % t->dl.shape[d] * t->dl.strides[d];
    i /= t->dl.shape[d];
  }
  return static_cast<float *>(t->dl.data) + offset;
}
plait_status copy_kernel(plait_call *c) {
  for (int64_t i = 0, n = numel(c->in[0].u.t); i < n; i++)
    *at(c->in[0].u.t, i) = *at(c->in[1].u.t, i);
  return PLAIT_OK;
}
plait_status clone_kernel(plait_call *c) {
  for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
    *at(c->out[0].u.t, i) = *at(c->in[0].u.t, i);
  return PLAIT_OK;
}
plait_status twice_kernel(plait_call *c) {
  for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
    *at(c->out[0].u.t, i) = 2 * *at(c->in[0].u.t, i);
  return PLAIT_OK;
}
plait_status reverse_kernel(plait_call *c) {  // not pointwise: the output may not overlap the input
  for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
    *at(c->out[0].u.t, i) = *at(c->in[0].u.t, n - 1 - i);
  return PLAIT_OK;
}

const plait_op *define(const char *schema, uint64_t flags, plait_kernel shape, plait_kernel kernel,
                       plait_kernel decompose = nullptr) {
  auto *def = new plait_op_def{PLAIT_HEADER(plait_op_def),
                               schema,
                               "",
                               flags,
                               shape,
                               nullptr,
                               nullptr,
                               nullptr,
                               decompose,
                               nullptr};
  const plait_op *op = nullptr;
  check(rt->define(th, def, &op));
  if (kernel) check(rt->implement(th, op, kDLCPU, kernel, nullptr, nullptr, nullptr));
  return op;
}
void define_basics() {
  define("copy_(Tensor(a)! self, Tensor src) -> Tensor(a)!", 0, copy_shape, copy_kernel);
  define("clone(Tensor self) -> Tensor", 0, like_shape, clone_kernel);
  define("twice(Tensor self) -> Tensor", PLAIT_OP_POINTWISE | PLAIT_OP_INPLACE | PLAIT_OP_OUT,
         like_shape, twice_kernel);
  define("reverse(Tensor self) -> Tensor", PLAIT_OP_INPLACE | PLAIT_OP_OUT, like_shape,
         reverse_kernel);
}
plait_status run(const char *name, std::vector<plait_value> in, plait_value *out,
                 uint32_t form = PLAIT_FUNCTION) {
  try {
    call(th, rt->op(name), in.data(), in.size(), out, form);
    return PLAIT_OK;
  } catch (const Error &e) {
    return e.status;
  }
}
plait_status run_into(const char *name, const Tensor &in, const Tensor &target,
                      uint32_t form = PLAIT_OUT) {
  plait_value out = value(target);
  return run(name, {value(in)}, &out, form);
}

// Handles.

TEST(tensors_of_many_dimensions) {
  const Tensor t = make({2, 1, 3, 1, 2, 2, 1});
  REQUIRE(t.ndim() == 7 && t.numel() == 24 && t.stride(0) == 12 && is_contiguous(t.get()));
  const std::vector<int64_t> too_many(65, 1);
  plait_tensor *out = nullptr;
  REQUIRE(rt->tensor_new(th, dtype::float32, 65, too_many.data(), nullptr, kCpu, &out) ==
          PLAIT_SHAPE_ERROR);
  REQUIRE(error_has({"64", "65"}));
}
TEST(bad_sizes_are_errors) {
  plait_tensor *out = nullptr;
  const Dims negative{2, -1}, huge{int64_t(1) << 40, int64_t(1) << 40};
  REQUIRE(rt->tensor_new(th, dtype::float32, 2, negative.data(), nullptr, kCpu, &out) ==
          PLAIT_SHAPE_ERROR);
  REQUIRE(error_has({"negative", "(2, -1)"}));
  REQUIRE(rt->tensor_new(th, dtype::float32, 2, huge.data(), nullptr, kCpu, &out) ==
          PLAIT_SHAPE_ERROR);
  const Dims large{int64_t(1) << 60};
  REQUIRE(rt->tensor_new(th, dtype::uint8, 1, large.data(), nullptr, kCpu, &out) ==
          PLAIT_MEMORY_ERROR);
  REQUIRE(error_has({"out of memory", "requested", "cached"}));
}
TEST(views_stay_inside_their_storage) {
  const Tensor t = make({4});
  plait_tensor *out = nullptr;
  const Dims size{3}, step{2}, back{-1};
  REQUIRE(rt->tensor_on(th, t->storage, t->dl.data, t.dtype(), 1, size.data(), step.data(), &out) ==
          PLAIT_SHAPE_ERROR);
  REQUIRE(out == nullptr && error_has({"(3,)", "(2,)", "16 bytes"}));
  REQUIRE(rt->tensor_on(th, t->storage, t.data<float>() + 3, t.dtype(), 1, size.data(), back.data(),
                        &out) == PLAIT_OK);
  plait_release(out);
}
TEST(repoint_keeps_the_handle) {
  Tensor a = make({2}, {1, 2}), b = make({3, 1, 1, 1, 1, 1}, {3, 4, 5});
  plait_tensor *before = a.get();
  check(rt->tensor_repoint(th, a.get(), b.get()));
  REQUIRE(a.get() == before && a.ndim() == 6 && a->storage == b->storage &&
          a.data<float>()[2] == 5);
  check(rt->tensor_repoint(th, b.get(), make({1}, {7}).get()));
  REQUIRE(b.ndim() == 1 && a.size(0) == 3);
}
TEST(memory_is_freed_at_once) {
  plait_alloc_stats before{}, during{}, after{};
  before.size = during.size = after.size = sizeof before;
  const plait_allocator *a = role<plait_allocator>(th->runtime, kDLCPU);
  a->stats(a->ctx, &before);
  {
    const Tensor t = make({1000});
    a->stats(a->ctx, &during);
  }
  a->stats(a->ctx, &after);
  REQUIRE(during.live_bytes == before.live_bytes + 4000 && after.live_bytes == before.live_bytes);
}
TEST(handles_cross_threads) {
  std::vector<std::thread> workers;
  std::vector<std::vector<Tensor>> made(4);
  for (auto &list : made)
    workers.emplace_back([&list] {
      plait_thread *mine = rt->thread();
      const Dims size{8};
      for (int i = 0; i < 500; i++) {
        Tensor t;
        check(rt->tensor_new(mine, dtype::float32, 1, size.data(), nullptr, kCpu, t.out()));
        list.push_back(t);
      }
    });
  for (auto &w : workers) w.join();
  for (auto &list : made) REQUIRE(list.size() == 500);
  made.clear();  // freed on one thread, made on another
}

// Schemas.

TEST(schemas_are_parsed) {
  const plait_op *op = define(
      "parse.me(Tensor(a)! self, Tensor|Scalar other, int[2] size=1, int[]? dim|axis=None, "
      "float[]*? f=None, *, "
      "str mode=\"mean\", dtype? dtype=float32, float p=2, Generator? generator=None) -> "
      "(Tensor(a)!, Tensor)",
      0, like_shape, nullptr);
  REQUIRE(op->n_args == 9 && op->n_results == 2 && std::string(op->name) == "parse.me");
  REQUIRE(op->args[0].flags == (PLAIT_ARG_WRITES | PLAIT_ARG_ALIASES) &&
          op->args[1].kind == PLAIT_KIND_OPERAND);
  REQUIRE(op->args[2].length == 2 && op->args[2].value.n == 2 && op->args[2].value.u.is[1] == 1);
  REQUIRE(std::string(op->args[3].second) == "axis" && (op->args[3].flags & PLAIT_ARG_OPTIONAL));
  REQUIRE(op->args[4].flags & PLAIT_ARG_VARARGS);
  REQUIRE(std::string(op->args[5].value.u.s) == "mean" &&
          (op->args[5].flags & PLAIT_ARG_KEYWORD_ONLY));
  REQUIRE(same(op->args[6].value.u.dtype, dtype::float32) && op->args[7].value.tag == PLAIT_FLOAT);
  REQUIRE(op->results[0].alias_arg == 0 && op->results[1].alias_arg == -1);
  REQUIRE(rt->op("parse") == op && rt->op("parse.me") == op && rt->op("nobody") == nullptr);
}
TEST(bad_schemas_are_errors) {
  for (const char *bad :
       {"x", "x(Tensor)", "x(Tenso self) -> Tensor", "x(Tensor self) -> Tensor(b)",
        "x(Tensor self) -> ", "x(int! n) -> Tensor", "x(Tensor self=) -> Tensor",
        "x(bool[] b) -> Tensor", "x(Tensor a) -> Tensor y z"}) {
    const plait_op_def def{PLAIT_HEADER(plait_op_def),
                           bad,
                           "",
                           0,
                           like_shape,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr};
    const plait_op *op = nullptr;
    REQUIRE(rt->define(th, &def, &op) == PLAIT_ERROR);
    REQUIRE(error_has({"define: schema", bad, "position"}));
  }
}
TEST(a_name_is_defined_once) {
  define_basics();
  const plait_op_def def{PLAIT_HEADER(plait_op_def),
                         "twice(Tensor self) -> Tensor",
                         "",
                         0,
                         like_shape,
                         nullptr,
                         nullptr,
                         nullptr,
                         nullptr,
                         nullptr};
  REQUIRE(rt->define(th, &def, nullptr) == PLAIT_VALUE_ERROR && error_has({"twice", "already"}));
}
TEST(a_method_takes_a_tensor_first) {
  for (const char *bad :
       {"few() -> Tensor", "many(Tensor[] self) -> Tensor", "n(int self) -> ()"}) {
    const plait_op_def def{PLAIT_HEADER(plait_op_def),
                           bad,
                           "",
                           PLAIT_OP_METHOD,
                           like_shape,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr};
    REQUIRE(rt->define(th, &def, nullptr) == PLAIT_VALUE_ERROR);
    REQUIRE(error_has({"define", "first argument of a method must be a Tensor"}));
  }
}

// Forms of a call, writes and versions.

TEST(one_definition_gives_three_forms) {
  define_basics();
  const Tensor x = make({3}, {1, 2, 3});
  plait_value out = none();
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK &&
          static_cast<float *>(out.u.t->dl.data)[2] == 6);
  REQUIRE(x->storage->version == 0);
  rt->release_value(&out);
  REQUIRE(run_into("twice", x, x, PLAIT_INPLACE) == PLAIT_OK && x.data<float>()[2] == 6 &&
          x->storage->version == 1);
  const Tensor empty = make({0}), wrong = make({2});
  REQUIRE(run_into("twice", x, empty) == PLAIT_OK && empty.size(0) == 3 &&
          empty.data<float>()[0] == 4);
  REQUIRE(run_into("twice", x, wrong) == PLAIT_SHAPE_ERROR &&
          error_has({"twice", "out", "(3,)", "(2,)"}));
  const Tensor whole = make({3}, {}, dtype::int64);
  REQUIRE(run_into("twice", x, whole) == PLAIT_DTYPE_ERROR && error_has({"float32", "int64"}));
}
TEST(overlap_goes_through_a_temporary) {
  define_basics();
  Tensor x = make({4}, {1, 2, 3, 4});
  REQUIRE(run_into("reverse", x, x, PLAIT_INPLACE) == PLAIT_OK);
  REQUIRE(x.data<float>()[0] == 4 && x.data<float>()[3] == 1);
  Tensor head, tail;  // out = x[1:], in = x[:-1]
  const Dims three{3}, one{1};
  check(rt->tensor_on(th, x->storage, x.data<float>(), x.dtype(), 1, three.data(), one.data(),
                      head.out()));
  check(rt->tensor_on(th, x->storage, x.data<float>() + 1, x.dtype(), 1, three.data(), one.data(),
                      tail.out()));
  REQUIRE(run_into("twice", head, tail) == PLAIT_OK);
  REQUIRE(x.data<float>()[1] == 8 && x.data<float>()[2] == 6 && x.data<float>()[3] == 4);
  plait_value out = none();
  REQUIRE(run("copy_", {value(head), value(tail)}, &out) == PLAIT_OK && out.u.t == head.get());
  REQUIRE(x.data<float>()[0] == 8 && x.data<float>()[1] == 6 && x.data<float>()[2] == 4);
  rt->release_value(&out);
}
TEST(what_must_not_be_written_is_refused) {
  define_basics();
  const Tensor x = make({3}, {1, 2, 3});
  x->storage->flags |= PLAIT_STORAGE_READONLY;
  REQUIRE(run_into("twice", x, x, PLAIT_INPLACE) == PLAIT_VALUE_ERROR &&
          error_has({"twice_:", "self", "read-only", "clone"}));
  plait_value out = none();
  REQUIRE(run("copy_", {value(x), value(make({3}))}, &out) == PLAIT_VALUE_ERROR &&
          x->storage->version == 0);
  const Tensor y = make({1}, {1});
  Tensor wide;
  const Dims three{3}, zero{0};
  check(rt->tensor_on(th, y->storage, y->dl.data, y.dtype(), 1, three.data(), zero.data(),
                      wide.out()));
  REQUIRE(run_into("twice", wide, wide, PLAIT_INPLACE) == PLAIT_VALUE_ERROR &&
          error_has({"expanded", "(3,)"}));
}

// Kernel chains, layers, observers and roles.

int asked;
TEST(a_provider_may_decline) {
  define_basics();
  uint64_t undo = 0;
  const auto decline = [](plait_call *) -> plait_status {
    asked++;
    return PLAIT_DECLINE;
  };
  check(rt->implement(th, rt->op("twice"), kDLCPU, decline, nullptr, nullptr, &undo));
  const Tensor x = make({1}, {2});
  plait_value out = none();
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK && asked == 1 &&
          static_cast<float *>(out.u.t->dl.data)[0] == 4);
  rt->release_value(&out);
  check(rt->retract(th, undo));
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK && asked == 1);
  rt->release_value(&out);
  REQUIRE(rt->retract(th, undo) == PLAIT_VALUE_ERROR);
  define("lonely(Tensor self) -> Tensor", 0, like_shape, nullptr);
  REQUIRE(run("lonely", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED &&
          error_has({"lonely", "no kernel", "float32"}));
}
TEST(calls_meet_the_old_kernels_or_the_new_ones) {
  define_basics();
  const auto decline = [](plait_call *) -> plait_status { return PLAIT_DECLINE; };
  const auto pass = [](plait_call *c) -> plait_status { return rt->call_below(c); };
  uint32_t bit = 0;
  check(rt->layer(th, "coming and going", 10, &bit));
  bool done = false;
  std::vector<std::thread> callers;
  std::string failed[2];
  for (std::string &mine : failed)
    callers.emplace_back([&mine, &done, bit] {
      plait_thread *own = rt->thread();
      const plait_op *twice = rt->op("twice");
      own->included = uint64_t(1) << bit;
      float two = 2;
      plait_storage *storage = nullptr;
      Tensor x;
      check(rt->storage_wrap(own, &two, sizeof two, kCpu, 0, nullptr, nullptr, &storage));
      const int64_t one = 1;
      check(rt->tensor_on(own, storage, &two, dtype::float32, 1, &one, nullptr, x.out()));
      while (!__atomic_load_n(&done, __ATOMIC_RELAXED) && mine.empty()) {
        const plait_value in[] = {value(x)};
        plait_value out[PLAIT_MAX_RESULTS];
        try {
          call(own, twice, in, 1, out);
          rt->release_value(out);
        } catch (const Error &) {
          mine = own->error->message;
        }
      }
      plait_release(storage);
    });
  for (int i = 0; i < 20000; i++) {
    uint64_t kernel = 0, layer = 0;
    check(rt->implement(th, rt->op("twice"), kDLCPU, decline, nullptr, nullptr, &kernel));
    check(
        rt->implement(th, rt->op("twice"), PLAIT_SLOT_LAYER + bit, pass, nullptr, nullptr, &layer));
    check(rt->retract(th, layer));
    check(rt->retract(th, kernel));
  }
  __atomic_store_n(&done, true, __ATOMIC_RELAXED);
  for (std::thread &t : callers) t.join();
  for (const std::string &f : failed)
    if (!f.empty()) std::printf("%s\n", f.c_str());
  REQUIRE(failed[0].empty() && failed[1].empty());
}
std::string order;
TEST(layers_run_from_the_top_and_can_be_excluded) {
  define_basics();
  uint32_t low = 0, high = 0;
  check(rt->layer(th, "low", 10, &low));
  check(rt->layer(th, "high", 10, &high));
  REQUIRE(low == 10 && high == 11);
  const auto note = [](plait_call *c) -> plait_status {
    order += static_cast<const char *>(c->self->ctx);
    return rt->call_below(c);
  };
  check(rt->implement(th, nullptr, PLAIT_SLOT_LAYER + low, note, const_cast<char *>("L"), nullptr,
                      nullptr));
  check(rt->implement(th, nullptr, PLAIT_SLOT_LAYER + high, note, const_cast<char *>("H"), nullptr,
                      nullptr));
  const Tensor x = make({1}, {2});
  const auto go = [&x] {
    plait_value out = none();
    order.clear();
    REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK);
    rt->release_value(&out);
    return order;
  };
  REQUIRE(go() == "");
  x->layers = uint64_t(1) << low | uint64_t(1) << high;
  REQUIRE(go() == "HL");
  th->excluded = uint64_t(1) << high;
  REQUIRE(go() == "L");
  th->excluded = 0;
  x->layers = 0;
  th->included = uint64_t(1) << high;
  REQUIRE(go() == "H");
}
int begun, ended;
TEST(observers_see_calls_until_they_leave) {
  define_basics();
  const plait_observer o{PLAIT_HEADER(plait_observer), nullptr, PLAIT_EVENT_OP | PLAIT_EVENT_ALLOC,
                         [](void *, const plait_event *e, uint64_t *token) {
                           if (e->kind == PLAIT_EVENT_OP) begun++, *token = 42;
                         },
                         [](void *, const plait_event *e, uint64_t token, plait_status s) {
                           if (e->kind == PLAIT_EVENT_OP && token == 42 && s == PLAIT_OK) ended++;
                         }};
  check(rt->observe(th, &o, 1));
  const Tensor x = make({1}, {2});
  plait_value out = none();
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK && begun == 1 && ended == 1);
  rt->release_value(&out);
  check(rt->observe(th, &o, 0));
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK && begun == 1 && *rt->observed == 0);
  rt->release_value(&out);
}
int lent;
TEST(an_allocator_can_be_replaced_and_taken_back) {
  const plait_allocator mine{
      PLAIT_HEADER(plait_allocator),
      "mine",
      nullptr,
      [](void *, DLDevice, uint64_t n, plait_stream *, void **data, void **block) -> plait_status {
        lent++;
        *data = *block = std::aligned_alloc(64, (n + 63) / 64 * 64);
        return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
      },
      [](void *, void *data, uint64_t, void *) { lent--, std::free(data); },
      nullptr,
      nullptr,
      0,
      nullptr};
  uint64_t undo = 0;
  check(rt->provide(th, "allocator", kDLCPU, &mine.h, nullptr, &undo));
  Tensor small = make({1}, {1}), large = make({100});
  REQUIRE(lent == 2);
  check(rt->retract(th, undo));
  const Tensor after = make({100});
  REQUIRE(lent == 2);
  small = large = Tensor();  // freed by the allocator that made them
  REQUIRE(lent == 0);
}
const plait_plugin chosen_plugin{PLAIT_HEADER(plait_plugin), "chosen", "1", 0, nullptr, nullptr};
const plait_plugin default_plugin{PLAIT_HEADER(plait_plugin), "default", "1",
                                  PLAIT_PLUGIN_DEFAULT,       nullptr,   nullptr};
TEST(a_default_takes_no_role_from_what_was_chosen_before) {
  const plait_executor *built_in = role<plait_executor>(th->runtime);
  plait_executor mine = *built_in, theirs = *built_in, later = *built_in;
  uint64_t of_mine = 0, of_theirs = 0, of_later = 0;
  check(rt->provide(th, "executor", 0, &mine.h, &chosen_plugin, &of_mine));
  check(rt->provide(th, "executor", 0, &theirs.h, &default_plugin, &of_theirs));
  REQUIRE(role<plait_executor>(th->runtime) == &mine);
  check(rt->provide(th, "executor", 0, &later.h, &chosen_plugin, &of_later));
  REQUIRE(role<plait_executor>(th->runtime) == &later);  // among equals the latest
  check(rt->retract(th, of_later));
  REQUIRE(role<plait_executor>(th->runtime) == &mine);
  check(rt->retract(th, of_mine));
  REQUIRE(role<plait_executor>(th->runtime) == &theirs);
  check(rt->retract(th, of_theirs));
  REQUIRE(role<plait_executor>(th->runtime) == built_in);
}
int order_asked;
TEST(a_default_kernel_is_asked_after_one_that_was_chosen_before) {
  define_basics();
  const auto first = [](plait_call *) -> plait_status {
    order_asked = order_asked * 10 + 1;
    return PLAIT_DECLINE;
  };
  const auto second = [](plait_call *) -> plait_status {
    order_asked = order_asked * 10 + 2;
    return PLAIT_DECLINE;
  };
  const plait_op *op = rt->op("twice");
  uint64_t undo[2] = {};
  check(rt->implement(th, op, kDLCPU, first, nullptr, &chosen_plugin, undo));
  check(rt->implement(th, op, kDLCPU, second, nullptr, &default_plugin, undo + 1));
  const Tensor x = make({2}, {1, 2});
  plait_value out;
  order_asked = 0;
  check(run("twice", {value(x)}, &out));
  rt->release_value(&out);
  REQUIRE(order_asked ==
          1);  // then the kernel that the test defined, which is not a default either
  for (const uint64_t u : undo) check(rt->retract(th, u));
}
int calls_of_plugin, events_of_plugin;
plait_status plugin_init(const plait_runtime *r, const plait_plugin *self) {
  static const plait_observer o{PLAIT_HEADER(plait_observer), nullptr, PLAIT_EVENT_OP,
                                [](void *, const plait_event *, uint64_t *) { events_of_plugin++; },
                                nullptr};
  const auto count = [](plait_call *) -> plait_status {
    calls_of_plugin++;
    return PLAIT_DECLINE;
  };
  check(r->implement(th, r->op("twice"), kDLCPU, count, nullptr, self, nullptr));
  return r->observe(th, &o, 1);
}
TEST(a_plugin_can_be_detached_and_comes_back) {
  define_basics();
  static const plait_plugin p{PLAIT_HEADER(plait_plugin), "counting", "1", 0, plugin_init, nullptr};
  const Tensor x = make({1}, {2});
  const auto go = [&x] {
    plait_value out = none();
    check(run("twice", {value(x)}, &out));
    rt->release_value(&out);
  };
  for (int round = 1; round <= 2; round++) {
    check(rt->attach(th, &p));
    check(rt->attach(th, &p));  // once is enough
    go();
    REQUIRE(calls_of_plugin == round && events_of_plugin == round);
    check(rt->detach(th, "counting"));
    go();
    REQUIRE(calls_of_plugin == round && events_of_plugin == round);
  }
  REQUIRE(rt->detach(th, "counting") == PLAIT_VALUE_ERROR && error_has({"counting"}));
}
plait_status failing_init(const plait_runtime *r, const plait_plugin *self) {
  static const plait_observer o{PLAIT_HEADER(plait_observer), nullptr, PLAIT_EVENT_OP,
                                [](void *, const plait_event *, uint64_t *) { events_of_plugin++; },
                                nullptr};
  static plait_executor mine = *role<plait_executor>(r);
  static const plait_op_def def{PLAIT_HEADER(plait_op_def),
                                "half_way(Tensor self) -> Tensor",
                                "",
                                0,
                                like_shape,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr};
  const auto count = [](plait_call *) -> plait_status {
    calls_of_plugin++;
    return PLAIT_DECLINE;
  };
  check(r->define(th, &def, nullptr));
  check(r->implement(th, r->op("twice"), kDLCPU, count, nullptr, self, nullptr));
  check(r->provide(th, "executor", 0, &mine.h, nullptr, nullptr));  // found by whose `init` runs
  check(r->observe(th, &o, 1));
  return r->raise(th, PLAIT_VALUE_ERROR, self->name, "no licence");
}
TEST(a_plugin_whose_init_fails_leaves_nothing) {
  define_basics();
  static const plait_plugin p{PLAIT_HEADER(plait_plugin), "half", "1", 0, failing_init, nullptr};
  const plait_executor *before = role<plait_executor>(rt);
  const uint64_t operators = rt->ops(nullptr, 0),
                 records = rt->report(nullptr, 0, sizeof(plait_record));
  for (int round = 0; round < 2; round++) {
    REQUIRE(rt->attach(th, &p) == PLAIT_VALUE_ERROR && error_has({"half", "no licence"}));
    REQUIRE(role<plait_executor>(rt) == before && !rt->op("half_way"));
    REQUIRE(rt->ops(nullptr, 0) == operators);
    REQUIRE(rt->report(nullptr, 0, sizeof(plait_record)) == records);
  }
  plait_value out;
  check(run("twice", {value(make({1}, {2}))}, &out));
  rt->release_value(&out);
  REQUIRE(calls_of_plugin == 0 && events_of_plugin == 0);
}
TEST(an_init_that_fails_without_a_text_is_named) {
  static const plait_plugin p{
      PLAIT_HEADER(plait_plugin),
      "mute",
      "1",
      0,
      [](const plait_runtime *, const plait_plugin *) -> plait_status { return PLAIT_ERROR; },
      nullptr};
  REQUIRE(rt->attach(th, &p) == PLAIT_ERROR && error_has({"mute", "status -1"}));
}
TEST(two_plugins_of_one_name_are_refused) {
  static const plait_plugin one{PLAIT_HEADER(plait_plugin), "same", "1", 0, nullptr, nullptr};
  static const plait_plugin two{PLAIT_HEADER(plait_plugin), "same", "2", 0, nullptr, nullptr};
  check(rt->attach(th, &one));
  REQUIRE(rt->attach(th, &two) == PLAIT_VALUE_ERROR && error_has({"same", "version 1"}));
  check(rt->detach(th, "same"));
  check(rt->attach(th, &two));
  check(rt->detach(th, "same"));
  static const plait_plugin nameless{PLAIT_HEADER(plait_plugin), nullptr, "2", 0, nullptr, nullptr};
  REQUIRE(rt->attach(th, &nameless) == PLAIT_VALUE_ERROR && error_has({"name"}));
}
TEST(tables_without_a_function_are_refused) {
  plait_executor executor = *role<plait_executor>(rt);
  executor.parallel = nullptr;
  REQUIRE(rt->provide(th, "executor", 0, &executor.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"executor", "`parallel`"}));
  plait_allocator allocator = *role<plait_allocator>(rt, kDLCPU);
  allocator.free = nullptr;
  REQUIRE(rt->provide(th, "allocator", kDLCPU, &allocator.h, nullptr, nullptr) ==
              PLAIT_VALUE_ERROR &&
          error_has({"allocator", "`free`"}));
  allocator = *role<plait_allocator>(rt, kDLCPU);
  allocator.h.size = 24;
  REQUIRE(rt->provide(th, "allocator", kDLCPU, &allocator.h, nullptr, nullptr) ==
              PLAIT_VALUE_ERROR &&
          error_has({"allocator", "24 bytes"}));
  REQUIRE(rt->provide(th, "allocator", kDLCPU, nullptr, nullptr, nullptr) == PLAIT_VALUE_ERROR);
  REQUIRE(rt->provide(th, "optimiser", 0, &allocator.h, nullptr, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"`optimiser`"}));
  REQUIRE(!rt->role("optimiser", 0) && !rt->role("device", -1) && !rt->role("device", 1 << 20));
  const plait_observer blind{PLAIT_HEADER(plait_observer), nullptr, PLAIT_EVENT_OP, nullptr,
                             nullptr};
  REQUIRE(rt->observe(th, &blind, 1) == PLAIT_VALUE_ERROR && error_has({"`begin`"}));
}
TEST(memory_that_breaks_its_contract_is_an_error) {
  define_basics();
  static plait_status status;
  static void *given;
  static const plait_allocator bad{
      PLAIT_HEADER(plait_allocator),
      "bad",
      nullptr,
      [](void *, DLDevice, uint64_t, plait_stream *, void **data, void **block) -> plait_status {
        *data = given, *block = nullptr;
        return status;
      },
      [](void *, void *, uint64_t, void *) {},
      nullptr,
      nullptr,
      0,
      nullptr};
  alignas(64) static char room[256];
  uint64_t undo = 0;
  check(rt->provide(th, "allocator", kDLCPU, &bad.h, nullptr, &undo));
  const Dims size{4};
  const auto ask = [&size] {
    Tensor t;
    return rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, kCpu, t.out());
  };
  status = 1, given = room;
  REQUIRE(ask() == PLAIT_MEMORY_ERROR);
  status = PLAIT_OK, given = nullptr;
  REQUIRE(ask() == PLAIT_ERROR && error_has({"`bad`", "64"}));
  given = room + 8;
  REQUIRE(ask() == PLAIT_ERROR && error_has({"`bad`", "64"}));
  given = room;
  REQUIRE(ask() == PLAIT_OK);
  check(rt->retract(th, undo));
}
TEST(a_kernel_that_says_nothing_is_named) {
  define_basics();
  static plait_status status;
  const auto mute = [](plait_call *) { return status; };
  const plait_op *op = rt->op("twice");
  check(rt->implement(th, op, kDLCPU, mute, nullptr, &chosen_plugin, nullptr));
  const Tensor x = make({2}, {1, 2});
  plait_value out;
  rt->raise(th, PLAIT_ERROR, "earlier", "an error of another call");
  for (const plait_status s : {int(PLAIT_SHAPE_ERROR), int(PLAIT_HOST_ERROR), -77, 2}) {
    status = s;
    const plait_status seen = run("twice", {value(x)}, &out);
    REQUIRE(seen == (s == PLAIT_SHAPE_ERROR ? s : PLAIT_ERROR));
    REQUIRE(error_has({"twice", "status", std::to_string(s).c_str()}));
  }
}
TEST(definitions_that_contradict_themselves_are_refused) {
  plait_op_def def{PLAIT_HEADER(plait_op_def),
                   "odd(Tensor self) -> Tensor",
                   "",
                   0,
                   like_shape,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr};
  def.flags = uint64_t(1) << 40;
  REQUIRE(rt->define(th, &def, nullptr) == PLAIT_VALUE_ERROR && error_has({"odd", "bit 40"}));
  def.flags = uint64_t(1) << 30;  // may be ignored
  REQUIRE(rt->define(th, &def, nullptr) == PLAIT_OK);
  plait_op_def other = def;
  other.schema = "odder(Tensor self) -> Tensor";
  other.batch = like_shape;
  REQUIRE(rt->define(th, &other, nullptr) == PLAIT_VALUE_ERROR && error_has({"odder", "`batch`"}));
  other.batch = nullptr;
  other.vjp = [](plait_vjp *) -> plait_status { return PLAIT_OK; };
  REQUIRE(rt->define(th, &other, nullptr) == PLAIT_VALUE_ERROR && error_has({"odder", "`saves`"}));
  other.vjp = nullptr, other.shape = nullptr;
  REQUIRE(rt->define(th, &other, nullptr) == PLAIT_VALUE_ERROR && error_has({"odder", "shape"}));
  const plait_op *view =
      define("look(Tensor(a) self) -> Tensor(a)", PLAIT_OP_VIEW, like_shape, nullptr);
  REQUIRE(rt->implement(th, view, kDLCPU, twice_kernel, nullptr, nullptr, nullptr) ==
              PLAIT_VALUE_ERROR &&
          error_has({"look", "view"}));
}
int catch_all_calls;
TEST(a_kernel_for_all_operators_serves_what_nothing_else_does) {
  define_basics();
  const auto doubling = [](plait_call *c) -> plait_status {
    catch_all_calls++;
    return std::strncmp(c->op->name, "twice", 5) ? PLAIT_DECLINE : twice_kernel(c);
  };
  const auto parts = [](plait_call *c) -> plait_status {
    return try_call(c->thread, rt->op("twice"), c->in, 1, c->out);
  };
  define("by_parts(Tensor self) -> Tensor", PLAIT_OP_COMPOSITE, nullptr, nullptr, parts);
  uint64_t undo = 0;
  check(rt->implement(th, nullptr, kDLCPU, doubling, nullptr, &chosen_plugin, &undo));
  define("twice_later(Tensor self) -> Tensor", 0, like_shape, nullptr);
  define("never(Tensor self) -> Tensor", 0, like_shape, nullptr);
  const Tensor x = make({2}, {1, 2});
  plait_value out;
  for (const char *name : {"twice", "by_parts"}) {  // what has a kernel or parts is not its affair
    check(run(name, {value(x)}, &out));
    rt->release_value(&out);
  }
  REQUIRE(catch_all_calls == 0);
  check(run("twice_later", {value(x)}, &out));
  REQUIRE(catch_all_calls == 1 && *at(out.u.t, 1) == 4);
  rt->release_value(&out);
  REQUIRE(run("never", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED &&
          error_has({"never", "no kernel"}));
  check(rt->retract(th, undo));
  REQUIRE(run("twice_later", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED && catch_all_calls == 2);
}
int fused_calls;
TEST(a_kernel_of_a_composite_runs) {
  define_basics();
  const plait_op *op = define("four_times(Tensor self, *, Tensor? like=None) -> Tensor",
                              PLAIT_OP_COMPOSITE | PLAIT_OP_INPLACE | PLAIT_OP_OUT, nullptr,
                              nullptr, [](plait_call *c) -> plait_status {
                                if (c->in[1].tag == PLAIT_TENSOR)
                                  return rt->fail(c, PLAIT_SHAPE_ERROR, "`like` does not fit");
                                plait_value two;
                                plait_status s =
                                    try_call(c->thread, rt->op("twice"), c->in, 1, &two);
                                if (s < 0) return s;
                                s = try_call(c->thread, rt->op("twice"), &two, 1, c->out);
                                rt->release_value(&two);
                                return s;
                              });
  const auto fused = [](plait_call *c) -> plait_status {
    fused_calls++;
    if (*at(c->in[0].u.t, 0) < 0) return PLAIT_DECLINE;
    for (int64_t i = 0, n = numel(c->out[0].u.t); i < n; i++)
      *at(c->out[0].u.t, i) = 4 * *at(c->in[0].u.t, i);
    return PLAIT_OK;
  };
  check(rt->implement(th, op, kDLCPU, fused, nullptr, &chosen_plugin, nullptr));
  const Tensor x = make({2, 3}, {1, 2, 3, 4, 5, 6});
  plait_value out;
  check(run("four_times", {value(x)}, &out));
  REQUIRE(fused_calls == 1 && out.u.t->dl.ndim == 2 && *at(out.u.t, 5) == 24);
  rt->release_value(&out);
  REQUIRE(run("four_times", {value(x), value(x)}, &out) == PLAIT_SHAPE_ERROR &&
          error_has({"four_times", "`like`"}) && fused_calls == 1);  // the arguments are validated
  const Tensor target = make({2, 3});
  REQUIRE(run_into("four_times", x, target) == PLAIT_OK && *at(target.get(), 1) == 8);
  REQUIRE(run_into("four_times", x, make({4})) == PLAIT_SHAPE_ERROR && fused_calls == 2);
  REQUIRE(run_into("four_times", x, x, PLAIT_INPLACE) == PLAIT_OK && *at(x.get(), 1) == 8);
  REQUIRE(fused_calls == 3);
  check(run("four_times", {value(make({1}, {-1}))}, &out));  // declined: its decomposition serves
  REQUIRE(fused_calls == 4 && *at(out.u.t, 0) == -4);
  rt->release_value(&out);
}
TEST(a_call_of_an_older_size_is_refused_or_understood) {
  define_basics();
  const Tensor x = make({1}, {3});
  plait_value in[] = {value(x)}, out[] = {none()};
  plait_call c{};
  c.n_in = c.n_out = 1;
  c.op = rt->op("twice");
  c.in = in, c.out = out, c.thread = th;
  c.size = 8;
  REQUIRE(rt->call(&c) == PLAIT_VALUE_ERROR && error_has({"twice", "8 bytes"}));
  c.size = sizeof c;
  check(rt->call(&c));
  rt->release_value(out);
}
plait_status defines_one(const plait_runtime *r, const plait_plugin *self) {
  static const plait_op_def def{PLAIT_HEADER(plait_op_def),
                                "of_a_plugin(Tensor self) -> Tensor",
                                "",
                                0,
                                like_shape,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr};
  const plait_op *op = nullptr;
  const plait_status s = r->define(th, &def, &op);
  return s < 0 ? s : r->implement(th, op, kDLCPU, twice_kernel, nullptr, self, nullptr);
}
TEST(a_plugin_that_defines_operators_can_come_again) {
  static const plait_plugin mine{PLAIT_HEADER(plait_plugin), "mine", "1", 0, defines_one, nullptr};
  static const plait_plugin other{
      PLAIT_HEADER(plait_plugin), "other", "1", 0, defines_one, nullptr};
  check(rt->attach(th, &mine));
  const plait_op *op = rt->op("of_a_plugin");
  check(rt->detach(th, "mine"));
  plait_value out;
  const Tensor x = make({1}, {3});
  REQUIRE(run("of_a_plugin", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED);
  check(rt->attach(th, &mine));
  REQUIRE(rt->op("of_a_plugin") == op && run("of_a_plugin", {value(x)}, &out) == PLAIT_OK &&
          *at(out.u.t, 0) == 6);
  rt->release_value(&out);
  REQUIRE(rt->attach(th, &other) == PLAIT_ERROR || rt->attach(th, &other) == PLAIT_VALUE_ERROR);
  REQUIRE(error_has({"of_a_plugin", "already"}));
}
TEST(other_versions_are_refused_with_both_named) {
  plait_plugin old{PLAIT_HEADER(plait_plugin), "old", "9", 0, nullptr, nullptr};
  old.h.minor = 77;
  const std::string own = std::to_string(PLAIT_ABI_MAJOR) + "." + std::to_string(PLAIT_ABI_MINOR);
  REQUIRE(rt->attach(th, &old) == PLAIT_ERROR && error_has({"old", "0.77", own.c_str()}));
  plait_executor table = *role<plait_executor>(th->runtime);
  table.h.major = 5;
  REQUIRE(rt->provide(th, "executor", 0, &table.h, nullptr, nullptr) == PLAIT_ERROR &&
          error_has({("5." + std::to_string(PLAIT_ABI_MINOR)).c_str()}));
  REQUIRE(rt->load(th, "nowhere.so") == PLAIT_VALUE_ERROR && error_has({"nowhere.so"}));
}

// Devices and decompositions.

TEST(devices_must_agree) {
  define_basics();
  define("both(Tensor a, Tensor b) -> Tensor", 0, like_shape, clone_kernel);
  Tensor meta;
  const Dims size{3};
  check(rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, DLDevice{PLAIT_META, 0},
                       meta.out()));
  plait_value out = none();
  REQUIRE(run("both", {value(make({3})), value(meta)}, &out) == PLAIT_VALUE_ERROR &&
          error_has({"both", "one device", "`b`"}));
  REQUIRE(run("twice", {value(meta)}, &out) == PLAIT_OK && out.u.t->dl.data == nullptr &&
          out.u.t->dl.shape[0] == 3);
  rt->release_value(&out);
}

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
plait_device table{PLAIT_HEADER(plait_device),
                   "mini",
                   nullptr,
                   0,
                   count,
                   copy,
                   synchronize,
                   stream_synchronize,
                   stream_new,
                   stream_free,
                   stream_query,
                   event_new,
                   event_free,
                   event_record,
                   event_query,
                   event_wait,
                   stream_wait,
                   nullptr,
                   nullptr,
                   nullptr,
                   take_error};
plait_status alloc(void *, DLDevice, uint64_t n, plait_stream *s, void **data, void **block) {
  *data = *block = std::aligned_alloc(64, (n + 63) / 64 * 64);
  log.push_back("alloc for " + name(s));
  return PLAIT_OK;
}
void free_block(void *, void *data, uint64_t, void *) { std::free(data); }
void record_use(void *, void *, void *, plait_stream *s) { log.push_back("used on " + name(s)); }
const plait_allocator memory{PLAIT_HEADER(plait_allocator),
                             "mini",
                             nullptr,
                             alloc,
                             free_block,
                             nullptr,
                             nullptr,
                             0,
                             record_use};
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

plait_status four_times(plait_call *c) {
  const Operator twice(rt, "twice");
  return border(c->thread, "four_times", [&]() -> plait_status {
    c->out[0] = value(twice(c->thread, twice(c->thread, Tensor::share(c->in[0].u.t))).release());
    return PLAIT_OK;
  });
}
TEST(a_composite_has_all_forms) {
  define_basics();
  define("four_times(Tensor self) -> Tensor", PLAIT_OP_COMPOSITE | PLAIT_OP_INPLACE | PLAIT_OP_OUT,
         nullptr, nullptr, four_times);
  const Tensor x = make({2}, {1, 2}), empty = make({0});
  plait_value out = none();
  REQUIRE(run("four_times", {value(x)}, &out) == PLAIT_OK &&
          static_cast<float *>(out.u.t->dl.data)[1] == 8);
  rt->release_value(&out);
  REQUIRE(run_into("four_times", x, empty) == PLAIT_OK && empty.size(0) == 2 &&
          empty.data<float>()[0] == 4);
  REQUIRE(run_into("four_times", x, x, PLAIT_INPLACE) == PLAIT_OK && x.data<float>()[1] == 8 &&
          x->storage->version == 1);
}

}  // namespace

int main(int argc, char **argv) {
  rt = plait_runtime_v0();
  if (!rt || argc != 2 || !tests().count(argv[1])) return 2;
  th = rt->thread();
  try {
    tests()[argv[1]]();
  } catch (const Error &) {
    std::printf("%s\n", th->error->message);
    return 1;
  }
  return 0;
}

// Plug-ins and the tables of roles that they provide.
#include "testing.hpp"

namespace {

int lent;
TEST(an_allocator_can_be_replaced_and_taken_back) {
  plait_allocator own{};
  own.h = PLAIT_HEADER(plait_allocator);
  own.name = "mine";
  own.alloc = [](void *, DLDevice, uint64_t n, plait_stream *, void **data,
                 void **block) -> plait_status {
    lent++;
    *data = *block = std::aligned_alloc(64, (n + 63) / 64 * 64);
    return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
  };
  own.free = [](void *, void *data, uint64_t, void *) { lent--, std::free(data); };
  uint64_t undo = 0;
  check(rt->provide(th, "allocator", kDLCPU, &own.h, nullptr, &undo));
  Tensor small = make({1}, {1}), large = make({100});
  REQUIRE(lent == 2);
  check(rt->retract(th, undo));
  const Tensor after = make({100});
  REQUIRE(lent == 2);
  small = large = Tensor();  // freed by the allocator that made them
  REQUIRE(lent == 0);
}
const plait_plugin default_plugin{PLAIT_HEADER(plait_plugin), "default", "1",
                                  PLAIT_PLUGIN_DEFAULT,       nullptr,   nullptr};
TEST(a_default_takes_no_role_from_what_was_chosen_before) {
  const plait_executor *built_in = role<plait_executor>(th->runtime);
  plait_executor own = *built_in, theirs = *built_in, later = *built_in;
  uint64_t of_mine = 0, of_theirs = 0, of_later = 0;
  check(rt->provide(th, "executor", 0, &own.h, &chosen_plugin, &of_mine));
  check(rt->provide(th, "executor", 0, &theirs.h, &default_plugin, &of_theirs));
  REQUIRE(role<plait_executor>(th->runtime) == &own);
  check(rt->provide(th, "executor", 0, &later.h, &chosen_plugin, &of_later));
  REQUIRE(role<plait_executor>(th->runtime) == &later);  // among equals the latest
  check(rt->retract(th, of_later));
  REQUIRE(role<plait_executor>(th->runtime) == &own);
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
  static plait_executor own = *role<plait_executor>(r);
  static const plait_op_def def = definition("half_way(Tensor self) -> Tensor", 0, like_shape);
  const auto count = [](plait_call *) -> plait_status {
    calls_of_plugin++;
    return PLAIT_DECLINE;
  };
  check(r->define(th, &def, nullptr));
  check(r->implement(th, r->op("twice"), kDLCPU, count, nullptr, self, nullptr));
  check(r->provide(th, "executor", 0, &own.h, nullptr, nullptr));  // found by whose `init` runs
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
  static void *buffer;
  static plait_allocator bad{};
  bad.h = PLAIT_HEADER(plait_allocator);
  bad.name = "bad";
  bad.alloc = [](void *, DLDevice, uint64_t, plait_stream *, void **data,
                 void **block) -> plait_status {
    *data = buffer, *block = nullptr;
    return status;
  };
  bad.free = [](void *, void *, uint64_t, void *) {};
  alignas(64) static char room[256];
  uint64_t undo = 0;
  check(rt->provide(th, "allocator", kDLCPU, &bad.h, nullptr, &undo));
  const Dims size{4};
  const auto ask = [&size] {
    Tensor t;
    return rt->tensor_new(th, dtype::float32, 1, size.data(), nullptr, kCpu, t.out());
  };
  status = 1, buffer = room;
  REQUIRE(ask() == PLAIT_MEMORY_ERROR && error_has({"out of memory"}));
  status = PLAIT_MEMORY_ERROR;
  REQUIRE(ask() == PLAIT_MEMORY_ERROR && error_has({"out of memory"}));
  status = PLAIT_VALUE_ERROR;
  REQUIRE(ask() == PLAIT_VALUE_ERROR && error_has({"`alloc`", "`bad`", "-4"}));
  static bool raises = false;
  bad.alloc = [](void *, DLDevice, uint64_t, plait_stream *, void **data,
                 void **block) -> plait_status {
    *data = buffer, *block = nullptr;
    if (!raises) return status;
    return rt->raise(rt->thread(), status, "bad", "the driver was lost");
  };
  raises = true;
  for (const plait_status each : {PLAIT_VALUE_ERROR, PLAIT_MEMORY_ERROR})
    REQUIRE((status = each, ask()) == each && error_has({"bad: the driver was lost"}));
  raises = false;
  bad.h.minor = 4;  // which knew one error
  status = PLAIT_VALUE_ERROR;
  REQUIRE(ask() == PLAIT_MEMORY_ERROR && error_has({"out of memory"}));
  status = PLAIT_OK, buffer = nullptr;
  REQUIRE(ask() == PLAIT_ERROR && error_has({"`bad`", "64"}));
  buffer = room + 8;
  REQUIRE(ask() == PLAIT_ERROR && error_has({"`bad`", "64"}));
  buffer = room;
  REQUIRE(ask() == PLAIT_OK);
  check(rt->retract(th, undo));
}
plait_status defines_one(const plait_runtime *r, const plait_plugin *self) {
  static const plait_op_def def = definition("of_a_plugin(Tensor self) -> Tensor", 0, like_shape);
  const plait_op *op = nullptr;
  const plait_status s = r->define(th, &def, &op);
  return s < 0 ? s : r->implement(th, op, kDLCPU, twice_kernel, nullptr, self, nullptr);
}
TEST(a_plugin_that_defines_operators_can_come_again) {
  static const plait_plugin own{PLAIT_HEADER(plait_plugin), "mine", "1", 0, defines_one, nullptr};
  static const plait_plugin other{
      PLAIT_HEADER(plait_plugin), "other", "1", 0, defines_one, nullptr};
  check(rt->attach(th, &own));
  const plait_op *op = rt->op("of_a_plugin");
  check(rt->detach(th, "mine"));
  plait_value out;
  const Tensor x = make({1}, {3});
  REQUIRE(run("of_a_plugin", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED);
  check(rt->attach(th, &own));
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

}  // namespace

// Calls: forms, writes, kernels, layers, observers and composites.
#include "testing.hpp"

namespace {

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
  REQUIRE(run_into("twice", x, wrong) == PLAIT_OK && wrong.size(0) == 3 &&
          wrong.data<float>()[2] == 12);
  float theirs[2] = {};
  Ref<plait_storage> storage = Ref<plait_storage>::steal(nullptr);
  check(rt->storage_wrap(
      th, theirs, sizeof theirs, {kDLCPU, 0}, 0, [](void *) {}, nullptr, storage.out()));
  Tensor foreign;  // memory of others keeps its shape
  const Dims two{2}, dense{1};
  check(rt->tensor_on(th, storage.get(), theirs, dtype::float32, 1, two.data(), dense.data(),
                      foreign.out()));
  REQUIRE(run_into("twice", x, foreign) == PLAIT_SHAPE_ERROR &&
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

int request;
TEST(a_provider_may_decline) {
  define_basics();
  uint64_t undo = 0;
  const auto decline = [](plait_call *) -> plait_status {
    request++;
    return PLAIT_DECLINE;
  };
  check(rt->implement(th, rt->op("twice"), kDLCPU, decline, nullptr, nullptr, &undo));
  const Tensor x = make({1}, {2});
  plait_value out = none();
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK && request == 1 &&
          static_cast<float *>(out.u.t->dl.data)[0] == 4);
  rt->release_value(&out);
  check(rt->retract(th, undo));
  REQUIRE(run("twice", {value(x)}, &out) == PLAIT_OK && request == 1);
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
          error_has({"never", "declined"}));
  check(rt->retract(th, undo));
  REQUIRE(run("twice_later", {value(x)}, &out) == PLAIT_NOT_IMPLEMENTED && catch_all_calls == 2);
}
std::vector<const plait_entry *> served;
int fused, parts;
TEST(a_passive_layer_changes_nothing_and_sees_who_served_a_call) {
  define_basics();
  const plait_op *op =
      define("twice_twice(Tensor self) -> Tensor", PLAIT_OP_COMPOSITE | PLAIT_OP_INPLACE,
             like_shape, nullptr, [](plait_call *c) -> plait_status {
               parts++;
               plait_value two;
               plait_status s = try_call(c->thread, rt->op("twice"), c->in, 1, &two);
               if (s >= 0) s = try_call(c->thread, rt->op("twice"), &two, 1, c->out);
               rt->release_value(&two);
               return s;
             });
  const auto kernel = [](plait_call *c) -> plait_status {
    fused++;
    for (int64_t i = 0; i < numel(c->out[0].u.t); i++)
      *at(c->out[0].u.t, i) = 4 * *at(c->in[0].u.t, i);
    return PLAIT_OK;
  };
  const auto note = [](plait_call *c) -> plait_status {
    const plait_status s = rt->call_below(c);
    served.push_back(c->self);
    return s;
  };
  uint64_t undo = 0;
  check(rt->implement(th, op, kDLCPU, kernel, nullptr, nullptr, &undo));
  const Tensor x = make({1}, {2});
  const auto go = [&](plait_form form) {
    plait_value out = none();
    fused = parts = 0;
    served.clear();
    if (form == PLAIT_INPLACE) {
      const float before = *at(x.get(), 0);
      REQUIRE(run_into("twice_twice", x, x, form) == PLAIT_OK && *at(x.get(), 0) == 4 * before);
      return;
    }
    REQUIRE(run("twice_twice", {value(x)}, &out) == PLAIT_OK &&
            *at(out.u.t, 0) == 4 * *at(x.get(), 0));
    rt->release_value(&out);
  };
  uint32_t passive = 0, active = 0;
  check(rt->layer(th, "recorder", 40 | PLAIT_LAYER_PASSIVE, &passive));
  check(rt->layer(th, "changer", 41, &active));
  REQUIRE(passive == 40);
  for (const uint32_t bit : {passive, active})
    check(rt->implement(th, nullptr, PLAIT_SLOT_LAYER + bit, note, nullptr, nullptr, nullptr));
  for (const plait_form form : {PLAIT_FUNCTION, PLAIT_INPLACE}) {
    x->layers = uint64_t(1) << passive;
    go(form);
    REQUIRE(fused == 1 && !parts && served.size() == 1 && served[0] == op->backend[kDLCPU]);
    x->layers = uint64_t(1) << passive | uint64_t(1) << active;
    go(form);
    REQUIRE(!fused && parts == 1 && served.size() >= 2);
    for (const plait_entry *each : served) REQUIRE(each && each != op->backend[kDLCPU]);
  }
  check(rt->retract(th, undo));
  x->layers = uint64_t(1) << passive;
  go(PLAIT_FUNCTION);  // by its parts, of which the layer sees those that have its bit
  REQUIRE(!fused && parts == 1 && served.size() == 1 &&
          served[0] == rt->op("twice")->backend[kDLCPU]);
  x->layers = 0;
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
  const Tensor other = make({4});
  REQUIRE(run_into("four_times", x, other) == PLAIT_OK && other.ndim() == 2 && fused_calls == 3);
  REQUIRE(run_into("four_times", x, x, PLAIT_INPLACE) == PLAIT_OK && *at(x.get(), 1) == 8);
  REQUIRE(fused_calls == 4);
  check(run("four_times", {value(make({1}, {-1}))}, &out));  // declined: its decomposition serves
  REQUIRE(fused_calls == 5 && *at(out.u.t, 0) == -4);
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

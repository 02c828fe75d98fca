// Tensors, views and storages as handles of C.
#include "testing.hpp"

namespace {

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
  a->stats(a->ctx, kCpu, &before);
  {
    const Tensor t = make({1000});
    a->stats(a->ctx, kCpu, &during);
  }
  a->stats(a->ctx, kCpu, &after);
  REQUIRE(during.live_bytes == before.live_bytes + 4000 && after.live_bytes == before.live_bytes);
}
TEST(handles_cross_threads) {
  std::vector<std::thread> workers;
  std::vector<std::vector<Tensor>> result(4);
  for (auto &list : result)
    workers.emplace_back([&list] {
      plait_thread *own = rt->thread();
      const Dims size{8};
      for (int i = 0; i < 500; i++) {
        Tensor t;
        check(rt->tensor_new(own, dtype::float32, 1, size.data(), nullptr, kCpu, t.out()));
        list.push_back(t);
      }
    });
  for (auto &w : workers) w.join();
  for (auto &list : result) REQUIRE(list.size() == 500);
  result.clear();  // freed on one thread, made on another
}

}  // namespace

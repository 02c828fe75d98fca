// Definitions of operators: schemas, names and flags.
#include "testing.hpp"

namespace {

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
    const plait_op_def def = definition(bad, 0, like_shape);
    const plait_op *op = nullptr;
    REQUIRE(rt->define(th, &def, &op) == PLAIT_ERROR);
    REQUIRE(error_has({"define: schema", bad, "position"}));
  }
}
TEST(a_name_is_defined_once) {
  define_basics();
  const plait_op_def def = definition("twice(Tensor self) -> Tensor", 0, like_shape);
  REQUIRE(rt->define(th, &def, nullptr) == PLAIT_VALUE_ERROR && error_has({"twice", "already"}));
}
TEST(a_method_takes_a_tensor_first) {
  for (const char *bad :
       {"few() -> Tensor", "many(Tensor[] self) -> Tensor", "n(int self) -> ()"}) {
    const plait_op_def def = definition(bad, PLAIT_OP_METHOD, like_shape);
    REQUIRE(rt->define(th, &def, nullptr) == PLAIT_VALUE_ERROR);
    REQUIRE(error_has({"define", "first argument of a method must be a Tensor"}));
  }
}
TEST(definitions_that_contradict_themselves_are_refused) {
  plait_op_def def = definition("odd(Tensor self) -> Tensor", 0, like_shape);
  def.flags = uint64_t(1) << 40;
  REQUIRE(rt->define(th, &def, nullptr) == PLAIT_VALUE_ERROR && error_has({"odd", "bit 40"}));
  def.flags = uint64_t(1) << 30;  // may be ignored
  REQUIRE(rt->define(th, &def, nullptr) == PLAIT_OK);
  plait_op_def other = def;
  other.schema = "odder(Tensor self) -> Tensor";
  other.batching = "s";
  REQUIRE(rt->define(th, &other, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"odder", "`batching`", "each of 1 arguments", "\"s\""}));
  other.batching = nullptr, other.sharding = "ee.";
  REQUIRE(rt->define(th, &other, nullptr) == PLAIT_VALUE_ERROR &&
          error_has({"odder", "`sharding`", "\"ee.\""}));
  other.sharding = nullptr;
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

}  // namespace

// Operators, the kernels behind them and the layers above them. The tables that dispatch reads are
// immutable: a change builds a new one and publishes it. Old ones are kept, because a call may
// still use them.
#include <algorithm>
#include <cstring>

#include "runtime.hpp"

namespace plait::abi {

ForkMutex registry_mutex;
std::atomic<const plait_op *> op_cast{nullptr}, op_copy{nullptr}, op_clone{nullptr},
    op_dense{nullptr}, op_detach{nullptr};

namespace {

// Never destroyed: threads of plug-ins may call while the process ends.
auto &by_name = *new std::unordered_map<std::string, Op *>;
auto &all_ops = *new std::vector<Op *>;
auto &layer_bits = *new std::unordered_map<std::string, uint32_t>;
std::atomic<uint64_t> layers_without_elements{0}, passive_bits{0};
auto &for_all_ops = *new std::vector<Registration>;  // layers and kernels registered with op NULL
auto &for_names = *new std::vector<Registration>;  // those that `implement_named` registered
uint64_t undo_counter = 0;

using Table = const plait_entry *;

// The registrations for one operator, the oldest first.
std::vector<Registration> registrations_of(const Op *op) {
  std::vector<Registration> all = op->registrations;
  for (const Registration &r : for_names)
    if (r.name == op->parsed.name) all.push_back(r);
  std::sort(all.begin(), all.end(),
            [](const Registration &a, const Registration &b) { return a.id < b.id; });
  return all;
}

// Builds one chain for each slot: the latest registration is called first, and packages' defaults
// after all others.
void publish(Op *op) {
  std::vector<Table> backend, layer;
  uint64_t mask = 0, own_mask = 0;
  const auto add = [&](const Registration &r) {
    const bool is_layer = r.slot >= PLAIT_SLOT_LAYER;
    std::vector<Table> &table = is_layer ? layer : backend;
    table.resize(is_layer ? 64 : PLAIT_MAX_DEVICE_TYPES, nullptr);
    const uint32_t i = is_layer ? r.slot - PLAIT_SLOT_LAYER : r.slot;
    table[i] = new plait_entry{r.entry.fn, r.entry.ctx, r.entry.who, table[i]};
    if (is_layer) mask |= uint64_t(1) << i;
  };
  // A kernel for all operators serves those that nothing else does, and is called last.
  const bool served = op->flags & PLAIT_OP_VIEW || op->def->decompose;
  for (const Registration &r : for_all_ops)
    if (r.slot < PLAIT_SLOT_LAYER && !served) add(r);
  const std::vector<Registration> own = registrations_of(op);
  const bool is_view = op->flags & PLAIT_OP_VIEW;
  for (const bool defaults : {true, false}) {
    const auto add_some = [&](const Registration &r, bool kernels) {
      if ((kernels || r.slot >= PLAIT_SLOT_LAYER) && is_default(r.entry.who) == defaults) add(r);
    };
    for (const Registration &r : for_all_ops) add_some(r, false);
    for (const Registration &r : own) add_some(r, !is_view);
  }
  for (const Registration &r : own)
    if (r.slot >= PLAIT_SLOT_LAYER) own_mask |= uint64_t(1) << (r.slot - PLAIT_SLOT_LAYER);
  static const Table empty[64] = {};
  static_assert(PLAIT_MAX_DEVICE_TYPES <= 64, "the empty table serves both");
  const auto keep = [](const std::vector<Table> &v) -> Table const * {
    if (v.empty()) return empty;
    auto *copy = new Table[v.size()];
    std::copy(v.begin(), v.end(), copy);
    return copy;
  };
  // One store replaces a table, and the size of tables is fixed at the definition, so a call sees
  // the old chain or the new one. A layer that was removed may still be in the mask of a running
  // call: it has no entry, and the call skips it.
  __atomic_store_n(&op->backend, keep(backend), __ATOMIC_RELEASE);
  __atomic_store_n(&op->layer, keep(layer), __ATOMIC_RELEASE);
  __atomic_store_n(&op->own_layers, own_mask, __ATOMIC_RELEASE);
  __atomic_store_n(&op->layer_mask, mask, __ATOMIC_RELEASE);
}

void name_op(Op *op, const plait_op_def *def) {
  op->schema_text = def->schema;
  op->doc_text = def->doc ? def->doc : "";
  op->h = PLAIT_HEADER(plait_op);
  op->name = op->parsed.name.c_str();
  op->schema = op->schema_text.c_str();
  op->doc = op->doc_text.c_str();
  op->def = def;
  op->args = op->parsed.args.data();
  op->results = op->parsed.results.data();
  op->arg_size = sizeof(plait_arg);
  op->n_args = uint16_t(op->parsed.args.size());
  op->n_results = uint16_t(op->parsed.results.size());
  op->flags = def->flags;
  op->n_backend = PLAIT_MAX_DEVICE_TYPES;
  op->writes = false;
  for (const plait_arg &a : op->parsed.args) op->writes |= (a.flags & PLAIT_ARG_WRITES) != 0;
}

bool is_sound(plait_thread *thread, const plait_op_def *def) {
  if (!size_fits(thread, def->schema, def->h, PLAIT_END_OF(plait_op_def, cost))) return false;
  if (!flags_fit(thread, def->schema, def->flags, 0)) return false;
  const char *wrong = nullptr;
  if (!def->shape && !def->decompose) wrong = "a shape function or a decomposition is required";
  if (!def->saves != !def->vjp) wrong = "`saves` and `vjp` are given together";
  if (wrong) raise(thread, PLAIT_VALUE_ERROR, "define", "%s: %s", def->schema, wrong);
  return !wrong;
}

// A rule that is data has a letter for its kind and one for each argument.
bool has_letters(plait_thread *thread, const Op &op, const char *field, const char *rule) {
  if (strlen(rule) == 1u + op.n_args) return true;
  raise(thread, PLAIT_VALUE_ERROR, "define",
        "%s: `%s` must have a letter for its kind and one for each of %d arguments, got \"%s\"",
        op.schema, field, op.n_args, rule);
  return false;
}

bool rules_fit(plait_thread *thread, const Op &op) {
  const plait_op_def *def = op.def;
  return (!PLAIT_HAS(plait_op_def, def, batching) ||
          has_letters(thread, op, "batching", def->batching)) &&
         (!PLAIT_HAS(plait_op_def, def, sharding) ||
          has_letters(thread, op, "sharding", def->sharding));
}

// Takes an operator out of the lists. Calls that hold it go on: it is never freed.
void undefine(Op *op) {
  all_ops.erase(std::find(all_ops.begin(), all_ops.end(), op));
  const auto first = by_name.find(op->parsed.base);
  if (first->second != op) {
    plait_op *before = first->second;
    while (before->next != op) before = const_cast<plait_op *>(before->next);
    __atomic_store_n(&before->next, op->next, __ATOMIC_RELEASE);
  } else if (op->next) {
    first->second = const_cast<Op *>(static_cast<const Op *>(op->next));
  } else {
    by_name.erase(first);
  }
  if (const auto full = by_name.find(op->parsed.name); full != by_name.end() && full->second == op)
    by_name.erase(full);
  for (auto *known : {&op_cast, &op_copy, &op_clone, &op_dense, &op_detach}) {
    const plait_op *own = op;
    known->compare_exchange_strong(own, nullptr);
  }
}

}  // namespace

uint64_t next_undo() { return ++undo_counter; }

plait_status define(plait_thread *thread, const plait_op_def *def, const plait_op **out) {
  return border(thread, "define", [&]() -> plait_status {
    if (!version_fits(thread, "an operator definition", def->h)) return PLAIT_ERROR;
    if (!def->schema)
      return raise(thread, PLAIT_VALUE_ERROR, "define", "an operator must have a schema");
    if (!is_sound(thread, def)) return PLAIT_VALUE_ERROR;
    auto op = std::make_unique<Op>();
    static_cast<plait_op &>(*op) = plait_op{};
    parse_schema(def->schema, op->parsed);
    name_op(op.get(), def);
    if (!rules_fit(thread, *op)) return PLAIT_VALUE_ERROR;
    op->who = initialising();
    const int first = op->n_args ? op->args[0].kind : 0;
    if ((op->flags & PLAIT_OP_METHOD) && first != PLAIT_KIND_TENSOR && first != PLAIT_KIND_OPERAND)
      return raise(thread, PLAIT_VALUE_ERROR, "define",
                   "%s: the first argument of a method must be a Tensor", op->name);
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    const auto known = by_name.find(op->parsed.name);
    const bool is_again = known != by_name.end() && known->second->def == def &&
                          known->second->who && known->second->who == op->who;
    if (is_again) {  // a plug-in that was detached starts anew
      if (out) *out = known->second;
      return PLAIT_OK;
    }
    if (known != by_name.end())
      return raise(thread, PLAIT_VALUE_ERROR, "define", "operator `%s` is already defined",
                   op->name);
    publish(op.get());
    Op *result = op.release();  // operators live as long as the process
    if (const auto first = by_name.find(result->parsed.base); first != by_name.end()) {
      plait_op *last = first->second;
      while (last->next) last = const_cast<plait_op *>(last->next);
      last->next = result;
    } else {
      by_name[result->parsed.base] = result;
    }
    by_name.emplace(result->parsed.name, result);
    all_ops.push_back(result);
    if (result->parsed.name == "cast") op_cast = result;
    if (result->parsed.name == "copy_") op_copy = result;
    if (result->parsed.name == "clone") op_clone = result;
    if (result->parsed.name == "dense") op_dense = result;
    if (result->parsed.name == "detach") op_detach = result;
    if (out) *out = result;
    return PLAIT_OK;
  });
}

const plait_op *find_op(const char *name) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

uint64_t list_ops(const plait_op **list, uint64_t room) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  for (uint64_t i = 0; i < room && i < all_ops.size(); i++) list[i] = all_ops[i];
  return all_ops.size();
}

namespace {

plait_status check_registration(plait_thread *thread, const plait_op *op, uint32_t slot,
                                plait_kernel fn) {
  const bool is_layer = slot >= PLAIT_SLOT_LAYER && slot < PLAIT_SLOT_LAYER + 64;
  if (!fn || (!is_layer && slot >= PLAIT_MAX_DEVICE_TYPES))
    return raise(thread, PLAIT_VALUE_ERROR, "implement",
                 "a function and a device type or layer are required");
  if (op && !is_layer && op->flags & PLAIT_OP_VIEW)
    return raise(thread, PLAIT_VALUE_ERROR, "implement",
                 "`%s` makes views in its shape function: a kernel for it would never run",
                 op->name);
  return PLAIT_OK;
}

}  // namespace

plait_status implement(plait_thread *thread, const plait_op *op, uint32_t slot, plait_kernel fn,
                       void *ctx, const plait_plugin *plugin, uint64_t *undo) {
  return border(thread, "implement", [&]() -> plait_status {
    if (const plait_status s = check_registration(thread, op, slot, fn); s < 0) return s;
    if (!plugin) plugin = initialising();
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    const Registration r{next_undo(), slot, {fn, ctx, plugin, nullptr}, ""};
    if (undo) *undo = r.id;
    if (op) {
      auto *own = const_cast<Op *>(static_cast<const Op *>(op));
      own->registrations.push_back(r);
      publish(own);
    } else {
      for_all_ops.push_back(r);
      for (Op *each : all_ops) publish(each);
    }
    return PLAIT_OK;
  });
}

plait_status implement_named(plait_thread *thread, const char *name, uint32_t slot, plait_kernel fn,
                             void *ctx, const plait_plugin *plugin, uint64_t *undo) {
  return border(thread, "implement", [&]() -> plait_status {
    if (!name)
      return raise(thread, PLAIT_VALUE_ERROR, "implement", "the name of an operator is required");
    if (!plugin) plugin = initialising();
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    const auto known = by_name.find(name);
    Op *op = known != by_name.end() && known->second->parsed.name == name ? known->second : nullptr;
    if (const plait_status s = check_registration(thread, op, slot, fn); s < 0) return s;
    for_names.push_back({next_undo(), slot, {fn, ctx, plugin, nullptr}, name});
    if (undo) *undo = for_names.back().id;
    if (op) publish(op);
    return PLAIT_OK;
  });
}

plait_status retract(plait_thread *thread, uint64_t undo) {
  return border(thread, "retract", [&]() -> plait_status {
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    const auto drop = [undo](std::vector<Registration> &list) {
      const auto it = std::find_if(list.begin(), list.end(),
                                   [undo](const Registration &r) { return r.id == undo; });
      if (it == list.end()) return false;
      list.erase(it);
      return true;
    };
    if (drop(for_all_ops) || drop(for_names)) {
      for (Op *each : all_ops) publish(each);
      return PLAIT_OK;
    }
    for (Op *op : all_ops) {
      if (!drop(op->registrations)) continue;
      publish(op);
      return PLAIT_OK;
    }
    if (retract_role(undo)) return PLAIT_OK;
    return raise(thread, PLAIT_VALUE_ERROR, "retract", "nothing is registered under %llu",
                 (unsigned long long)undo);
  });
}

void undefine_ops_of(const plait_plugin *who) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  const std::vector<Op *> ops = all_ops;
  for (Op *op : ops)
    if (op->who == who) undefine(op);
}

void retract_ops_of(const plait_plugin *who) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  const auto drop = [who](std::vector<Registration> &list) {
    const auto end = std::remove_if(list.begin(), list.end(),
                                    [who](const Registration &r) { return r.entry.who == who; });
    const bool any = end != list.end();
    list.erase(end, list.end());
    return any;
  };
  const bool everywhere = drop(for_all_ops) | drop(for_names);
  for (Op *op : all_ops)
    if (drop(op->registrations) || everywhere) publish(op);
}

bool has_no_elements(const plait_tensor *t) {
  return t->layers & layers_without_elements.load(std::memory_order_relaxed);
}

uint64_t passive_layers() { return passive_bits.load(std::memory_order_relaxed); }

plait_status layer(plait_thread *thread, const char *name, uint32_t position, uint32_t *bit) {
  const uint32_t required = position & ~uint32_t(PLAIT_LAYER_PASSIVE);
  return border(thread, "layer", [&]() -> plait_status {
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    if (const auto it = layer_bits.find(name); it != layer_bits.end()) {
      *bit = it->second;
      return PLAIT_OK;
    }
    uint64_t taken = 0;
    for (const auto &[_, b] : layer_bits) taken |= uint64_t(1) << b;
    for (uint32_t b = required; b < 64; b++) {
      const bool others = sees_aliases(b) && !sees_aliases(required);  // such layers are kept apart
      if (others || taken >> b & 1) continue;
      layer_bits[name] = *bit = b;
      if (b < 16 && strcmp(name, "python") != 0)
        layers_without_elements.fetch_or(uint64_t(1) << b, std::memory_order_relaxed);
      if (position & PLAIT_LAYER_PASSIVE)
        passive_bits.fetch_or(uint64_t(1) << b, std::memory_order_relaxed);
      return PLAIT_OK;
    }
    return raise(thread, PLAIT_ERROR, "layer", "no free layer at or above position %u for `%s`",
                 required, name);
  });
}

void report_ops(std::vector<plait_record> &list) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  for (const auto &[name, bit] : layer_bits)
    list.push_back({"layer", name.c_str(), "", "", 1, bit, 0});
  for (const Op *op : all_ops) {
    for (uint32_t type = 0; type < op->n_backend; type++)
      for (const plait_entry *e = op->backend[type]; e;
           e = e->prev)  // whether it is active: called first
        list.push_back({"kernel", op->name, e->who ? e->who->name : "",
                        e->who ? e->who->version : "", e == op->backend[type], type, 0});
  }
}

}  // namespace plait::abi

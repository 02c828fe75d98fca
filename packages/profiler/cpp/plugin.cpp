// libplait_profiler: the recorder as plain C functions.
#include <plait/plait.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "interning.hpp"
#include "journal.hpp"
#include "profiler.h"
#include "recorder.hpp"

namespace plait::profiler {
namespace {

// PLAIT_PROFILE_JOURNAL, in a process that was started while its parent is profiled, is the sum of
// the kinds to record, ":" and the parent's folder. It records from the beginning to its end.
plait_status init(const plait_runtime *r, const plait_plugin *) {
  set_runtime(r);
  const char *setting = std::getenv("PLAIT_PROFILE_JOURNAL");
  const char *folder = setting ? std::strchr(setting, ':') : nullptr;
  if (!folder) return PLAIT_OK;
  set_journal_folder(folder + 1);
  begin_journal();
  if (!in_journal()) return PLAIT_OK;
  static Session *whole;
  return start(std::strtoull(setting, nullptr, 10), 1 << 22, false, &whole);
}

Table *table_of(char letter) {
  switch (letter) {
    case 's': return &signatures;
    case 'c': return &contexts;
    case 'm': return &modules;
    case 'k': return &stacks;
    default: return nullptr;
  }
}

}  // namespace
}  // namespace plait::profiler

using namespace plait::profiler;
#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "plait_profiler", "0.2.0", 0, init, nullptr};

PLAIT_EXPORT plait_status plait_profiler_start(uint64_t kinds, uint64_t capacity, int stacks,
                                               plait_profiler_session **out) {
  return start(kinds, capacity, stacks != 0, out);
}
PLAIT_EXPORT plait_status plait_profiler_stop(plait_profiler_session *session) {
  return stop(session);
}
PLAIT_EXPORT void plait_profiler_free(plait_profiler_session *session) { delete session; }

PLAIT_EXPORT const void *plait_profiler_rows(const plait_profiler_session *session,
                                             uint64_t *count) {
  *count = session->rows.size();
  return session->rows.data();
}
PLAIT_EXPORT void plait_profiler_times(const plait_profiler_session *session, uint64_t *begin,
                                       uint64_t *end) {
  *begin = session->begin;
  *end = session->end;
}
PLAIT_EXPORT uint64_t plait_profiler_dropped(const plait_profiler_session *session,
                                             uint64_t (*pairs)[2], uint64_t room) {
  uint64_t i = 0;
  for (const auto &[kind, n] : session->dropped) {
    if (i < room) pairs[i][0] = kind, pairs[i][1] = n;
    i++;
  }
  return i;
}
PLAIT_EXPORT uint64_t plait_profiler_reserved(const plait_profiler_session *session,
                                              uint64_t (*pairs)[2], uint64_t room) {
  for (uint64_t i = 0; i < std::min<uint64_t>(room, session->reserved.size()); i++) {
    pairs[i][0] = session->reserved[i].first;
    pairs[i][1] = session->reserved[i].second;
  }
  return session->reserved.size();
}

PLAIT_EXPORT void plait_profiler_texts(char table, void (*visit)(void *, const char *, uint64_t),
                                       void *ctx) {
  const Table *texts = table_of(table);
  if (!texts) return;
  for (const std::string &text : texts->texts()) visit(ctx, text.c_str(), text.size());
}

PLAIT_EXPORT int plait_profiler_is_recording(void) { return is_recording(); }
PLAIT_EXPORT uint32_t plait_profiler_find(char table, uint64_t hash) {
  const Table *texts = table_of(table);
  return texts ? texts->find(hash) : 0;
}
PLAIT_EXPORT uint32_t plait_profiler_add(char table, uint64_t hash, const char *text) {
  Table *texts = table_of(table);
  return texts ? texts->number(hash, [&] { return std::string(text); }) : 0;
}
PLAIT_EXPORT uint32_t plait_profiler_set_module(uint32_t number) { return set_module(number); }
PLAIT_EXPORT void plait_profiler_set_stack_function(uint32_t (*f)(void)) { set_stack_function(f); }
PLAIT_EXPORT void plait_profiler_mark(const plait_storage *storage, uint32_t category) {
  mark(storage, category);
}
PLAIT_EXPORT void plait_profiler_set_journal(const char *folder) { set_journal_folder(folder); }

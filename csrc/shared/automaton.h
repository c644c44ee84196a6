// The arena: one opaque, position-independent block of tables that a token automaton runs on.
//
// Layout, all int32 unless said otherwise, offsets in bytes from the start of the arena:
//   Header
//   classes  uint16 [tokens]          token -> class; tokens beyond the table reset
//   root     int32  [classes]         next state of state 0
//   rows     int32  [states + 1]      exceptions of a state: entries rows[s] .. rows[s + 1)
//   bases    int32  [states]          -1: an absent class goes where root goes; else to this state
//   entries  {int32 class, next} []   sorted by class; see bases for absent classes
//   events   int32  [states]          event set that ends on entering the state, or -1
//   set_rows int32  [sets + 1], set_items int32 []    the triggers of each event set
//   bias_rows int32 [states + 1]      bias entries of a state
//   bias     {int32 token, float value} []
//   floor    float  [states]          added to every token that has no entry: 0 or -inf
//   flags    uint8  [states]          1: the overlay has ended
// Most tokens act in every state as they act in the root (measured: 99.4 % of a table's entries),
// so a state stores its exceptions alone.
#pragma once

#include <cstdint>
#include <cstring>

namespace zerolayer {

constexpr uint32_t kArenaMagic = 0x315a4c41;  // "ALZ1"
constexpr uint32_t kArenaVersion = 1;

struct ArenaHeader {
  uint32_t magic, version;
  uint64_t bytes;
  uint64_t checksum;  // of everything after the header
  int32_t tokens, classes, states, entries, sets, set_items, biases;
  int32_t start;
  int32_t reset;    // state after a token that is no text
  int32_t overlay;  // 1: an overlay arena
  int64_t at_classes, at_root, at_rows, at_bases, at_entries, at_events, at_set_rows, at_set_items,
      at_bias_rows, at_bias, at_floor, at_flags;
};

struct ArenaEntry {
  int32_t cls, next;
};

struct ArenaBias {
  int32_t token;
  float value;
};

inline uint64_t arena_checksum(const uint8_t* p, uint64_t n) {  // FNV-1a
  uint64_t h = 1469598103934665603ull;
  for (uint64_t i = 0; i < n; ++i) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}

struct Arena {
  const uint8_t* base = nullptr;
  const ArenaHeader* header = nullptr;

  template <class T>
  const T* at(int64_t offset) const {
    return reinterpret_cast<const T*>(base + offset);
  }

  int32_t step(int32_t state, int64_t token) const {
    if (token < 0 || token >= header->tokens) return header->reset;
    const int32_t cls = at<uint16_t>(header->at_classes)[token];
    const int32_t* rows = at<int32_t>(header->at_rows);
    const ArenaEntry* entries = at<ArenaEntry>(header->at_entries);
    int32_t low = rows[state], high = rows[state + 1];
    while (low < high) {
      const int32_t middle = (low + high) / 2;
      if (entries[middle].cls < cls)
        low = middle + 1;
      else
        high = middle;
    }
    if (low < rows[state + 1] && entries[low].cls == cls) return entries[low].next;
    const int32_t base = at<int32_t>(header->at_bases)[state];
    return base >= 0 ? base : at<int32_t>(header->at_root)[cls];
  }

  int32_t event(int32_t state) const { return at<int32_t>(header->at_events)[state]; }
};

// The cheap check that every op makes: is this an arena at all, of this version and this size?
inline const char* open_arena(const void* data, int64_t bytes, Arena& arena) {
  if (bytes < static_cast<int64_t>(sizeof(ArenaHeader))) return "automaton is too short";
  arena.base = static_cast<const uint8_t*>(data);
  arena.header = reinterpret_cast<const ArenaHeader*>(arena.base);
  if (arena.header->magic != kArenaMagic) return "automaton has no valid header";
  if (arena.header->version != kArenaVersion) return "automaton has an unknown version";
  if (arena.header->bytes != static_cast<uint64_t>(bytes)) return "automaton is truncated";
  return nullptr;
}

// The full check, once, where an arena enters: checksum, then every offset, index and row.
inline const char* validate_arena(const void* data, int64_t bytes) {
  Arena a;
  if (const char* error = open_arena(data, bytes, a)) return error;
  const ArenaHeader& h = *a.header;
  if (arena_checksum(a.base + sizeof(ArenaHeader), bytes - sizeof(ArenaHeader)) != h.checksum)
    return "automaton is altered: its checksum differs";
  if (h.tokens < 0 || h.classes < 1 || h.states < 1 || h.entries < 0 || h.sets < 0 ||
      h.set_items < 0 || h.biases < 0)
    return "automaton has a negative size";
  auto inside = [&](int64_t offset, int64_t count, int64_t size) {
    return offset >= static_cast<int64_t>(sizeof(ArenaHeader)) && offset % 8 == 0 &&
           count <= bytes / size && offset <= bytes - count * size;
  };
  const int64_t n = h.states;
  if (!inside(h.at_classes, h.tokens, 2) || !inside(h.at_root, h.classes, 4) ||
      !inside(h.at_rows, n + 1, 4) || !inside(h.at_bases, n, 4) ||
      !inside(h.at_entries, h.entries, 8) || !inside(h.at_events, n, 4) ||
      !inside(h.at_set_rows, int64_t(h.sets) + 1, 4) || !inside(h.at_set_items, h.set_items, 4) ||
      !inside(h.at_bias_rows, n + 1, 4) || !inside(h.at_bias, h.biases, 8) ||
      !inside(h.at_floor, n, 4) || !inside(h.at_flags, n, 1))
    return "automaton has a table outside its bytes";
  auto state_ok = [&](int32_t s) { return s >= 0 && s < h.states; };
  auto rows_ok = [&](int64_t at, int64_t count, int32_t end) {
    const int32_t* rows = a.at<int32_t>(at);
    if (rows[0] != 0 || rows[count] != end) return false;
    for (int64_t i = 0; i < count; ++i)
      if (rows[i] > rows[i + 1]) return false;
    return true;
  };
  if (!rows_ok(h.at_rows, n, h.entries) || !rows_ok(h.at_set_rows, h.sets, h.set_items) ||
      !rows_ok(h.at_bias_rows, n, h.biases))
    return "automaton has rows out of order";
  if (!state_ok(h.start) || !state_ok(h.reset)) return "automaton starts outside its states";
  for (int64_t i = 0; i < h.tokens; ++i)
    if (a.at<uint16_t>(h.at_classes)[i] >= h.classes) return "automaton has an unknown class";
  for (int64_t i = 0; i < h.classes; ++i)
    if (!state_ok(a.at<int32_t>(h.at_root)[i])) return "automaton leads outside its states";
  for (int64_t i = 0; i < h.entries; ++i)
    if (!state_ok(a.at<ArenaEntry>(h.at_entries)[i].next))
      return "automaton leads outside its states";
  for (int64_t i = 0; i < n; ++i)
    if (a.at<int32_t>(h.at_bases)[i] < -1 || a.at<int32_t>(h.at_bases)[i] >= h.states)
      return "automaton leads outside its states";
  for (int64_t i = 0; i < n; ++i)
    if (a.at<int32_t>(h.at_events)[i] < -1 || a.at<int32_t>(h.at_events)[i] >= h.sets)
      return "automaton has an unknown event";
  return nullptr;
}

}  // namespace zerolayer

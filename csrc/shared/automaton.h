// The arena: one opaque, position-independent block of tables that a token automaton runs on.
//
// Layout, int32 unless said otherwise, offsets in bytes from the start of the arena, 8-byte
// aligned:
//   Header
//   classes  [tokens]           2 * class + 1 where the token begins with a byte of no word, else
//                               2 * class; tokens beyond the table reset
//   states   ArenaState []      see step()
//   rows     [rows][classes]    next states, stored whole
//   cells    ArenaCell []       next states that differ from a state's row, all states interleaved
//   pairs    ArenaPair []       a next state of `states + i` is pairs[i]: a state and an event
//   set_rows [sets + 1], set_items []                the triggers of each event
// and in overlays
//   flags       uint8  [states]     1: the overlay has ended
//   floors      float  [states]     added to every token that has no entry: 0 or -inf
//   hub_of      [states]            which hub's bias entries count where the state has none
//   hub_rows    [hubs + 1], bias_rows [states + 1]   ranges of bias entries
//   bias        {int32 token, float value} []        sorted by token in each range
//
// Measured: 99.4 % of all entries of a whole table are those of a few rows. So a state names a row
// and keeps its exceptions in `cells`, at a displacement where no other state's collide: one load
// and one comparison. A small automaton has a row of its own for every state.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace zerolayer {

constexpr uint32_t kArenaMagic = 0x315a4c41;  // "ALZ1"
constexpr uint32_t kArenaVersion = 2;

struct ArenaHeader {
  uint32_t magic, version;
  uint64_t bytes;
  uint64_t checksum;  // of everything after the header
  int32_t tokens, classes, states, rows, cells, pairs, sets, set_items, hubs, biases;
  int32_t triggers;  // set items are below it
  int32_t exceptions;
  int32_t start;
  int32_t reset;    // state after a token that is no text
  int32_t overlay;  // 1: an overlay arena
  int32_t unused;
  int64_t at_classes, at_states, at_rows, at_cells, at_pairs, at_set_rows, at_set_items, at_flags,
      at_floors, at_hub_of, at_hub_rows, at_bias_rows, at_bias;
};

struct ArenaState {
  int32_t row;
  int32_t cells;    // displacement in `cells`, -1: no exceptions
  int32_t pending;  // event if the next byte is none of a word, -1: none
};

struct ArenaCell {
  int32_t state, next;  // whose cell this is, -1: nobody's
};

struct ArenaPair {
  int32_t state, event;
};

struct ArenaBias {
  int32_t token;
  float value;
};

inline uint64_t arena_checksum(const uint8_t* p, uint64_t n) {  // FNV-1a over words of 8 bytes
  uint64_t h = 1469598103934665603ull;
  for (uint64_t i = 0; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    h = (h ^ word) * 1099511628211ull;
  }
  return h;
}

struct Arena {
  struct Step {
    int32_t state, event;  // event -1: none
  };

  const uint8_t* base = nullptr;
  const ArenaHeader* header = nullptr;

  template <class T>
  const T* at(int64_t offset) const {
    return reinterpret_cast<const T*>(base + offset);
  }

  Step step(int32_t state, int64_t token) const {
    const ArenaHeader& h = *header;
    if (token < 0 || token >= h.tokens) return {h.reset, -1};
    const int32_t code = at<int32_t>(h.at_classes)[token], cls = code >> 1;
    const ArenaState from = at<ArenaState>(h.at_states)[state];
    int32_t next = at<int32_t>(h.at_rows)[static_cast<int64_t>(from.row) * h.classes + cls];
    bool usual = true;
    if (from.cells >= 0) {
      const ArenaCell cell = at<ArenaCell>(h.at_cells)[from.cells + cls];
      if (cell.state == state) {
        next = cell.next;
        usual = false;
      }
    }
    if (next >= h.states) {
      const ArenaPair pair = at<ArenaPair>(h.at_pairs)[next - h.states];
      return {pair.state, pair.event};
    }
    return {next, usual && (code & 1) ? from.pending : -1};
  }
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

// The full check, once, where an arena enters: checksum, then every number that leads somewhere.
inline const char* validate_arena(const void* data, int64_t bytes) {
  Arena a;
  if (const char* error = open_arena(data, bytes, a)) return error;
  const ArenaHeader& h = *a.header;
  if (bytes % 8 != 0) return "automaton is truncated";
  if (arena_checksum(a.base + sizeof(ArenaHeader), bytes - sizeof(ArenaHeader)) != h.checksum)
    return "automaton is altered: its checksum differs";
  for (const int32_t size : {h.tokens, h.cells, h.pairs, h.sets, h.set_items, h.hubs, h.biases,
                             h.triggers, h.exceptions})
    if (size < 0) return "automaton has a negative size";
  if (h.classes < 1 || h.states < 1 || h.rows < 1) return "automaton has no states";
  if (h.overlay != 0 && h.overlay != 1) return "automaton is of an unknown kind";
  const int64_t all = int64_t(h.states) + h.pairs;
  if (all > INT32_MAX) return "automaton has too many states";
  auto inside = [&](int64_t offset, int64_t count, int64_t size) {
    return offset >= static_cast<int64_t>(sizeof(ArenaHeader)) && offset % 8 == 0 &&
           offset <= bytes && count <= (bytes - offset) / size;
  };
  const int64_t n = h.states, marked = h.overlay ? n : 0;
  if (int64_t(h.rows) > bytes / h.classes) return "automaton has a table outside its bytes";
  if (!inside(h.at_classes, h.tokens, 4) || !inside(h.at_states, n, sizeof(ArenaState)) ||
      !inside(h.at_rows, int64_t(h.rows) * h.classes, 4) ||
      !inside(h.at_cells, h.cells, sizeof(ArenaCell)) ||
      !inside(h.at_pairs, h.pairs, sizeof(ArenaPair)) ||
      !inside(h.at_set_rows, int64_t(h.sets) + 1, 4) || !inside(h.at_set_items, h.set_items, 4) ||
      !inside(h.at_flags, marked, 1) || !inside(h.at_floors, marked, 4) ||
      !inside(h.at_hub_of, marked, 4) || !inside(h.at_hub_rows, int64_t(h.hubs) + 1, 4) ||
      !inside(h.at_bias_rows, marked + 1, 4) || !inside(h.at_bias, h.biases, sizeof(ArenaBias)))
    return "automaton has a table outside its bytes";
  auto below = [](int64_t value, int64_t end) { return value >= 0 && value < end; };
  auto each = [](const auto* items, int64_t count, auto check) {
    for (int64_t i = 0; i < count; ++i)
      if (!check(items[i])) return false;
    return true;
  };
  auto ranges = [&](int64_t at, int64_t count, int64_t first, int64_t end) {
    const int32_t* rows = a.at<int32_t>(at);
    if (rows[0] != first || rows[count] != end) return false;
    for (int64_t i = 0; i < count; ++i)
      if (rows[i] > rows[i + 1]) return false;
    return true;
  };
  if (!below(h.start, n) || !below(h.reset, n)) return "automaton starts outside its states";
  if (!each(a.at<int32_t>(h.at_classes), h.tokens,
            [&](int32_t code) { return code >= 0 && code >> 1 < h.classes; }))
    return "automaton has an unknown class";
  if (!each(a.at<ArenaState>(h.at_states), n, [&](const ArenaState& s) {
        return below(s.row, h.rows) && s.pending >= -1 && s.pending < h.sets &&
               (s.cells == -1 || (s.cells >= 0 && int64_t(s.cells) + h.classes <= h.cells));
      }))
    return "automaton has a state without its tables";
  if (!each(a.at<int32_t>(h.at_rows), int64_t(h.rows) * h.classes,
            [&](int32_t next) { return below(next, all); }) ||
      !each(a.at<ArenaCell>(h.at_cells), h.cells, [&](const ArenaCell& c) {
        return c.state == -1 || (below(c.state, n) && below(c.next, all));
      }))
    return "automaton leads outside its states";
  if (!each(a.at<ArenaPair>(h.at_pairs), h.pairs,
            [&](const ArenaPair& p) { return below(p.state, n) && below(p.event, h.sets); }))
    return "automaton has an unknown event";
  if (!ranges(h.at_set_rows, h.sets, 0, h.set_items)) return "automaton has rows out of order";
  if (!each(a.at<int32_t>(h.at_set_items), h.set_items,
            [&](int32_t trigger) { return below(trigger, h.triggers); }))
    return "automaton has an unknown trigger";
  const int32_t* hub_rows = a.at<int32_t>(h.at_hub_rows);
  if (!ranges(h.at_hub_rows, h.hubs, 0, hub_rows[h.hubs]) ||
      !ranges(h.at_bias_rows, marked, hub_rows[h.hubs], h.biases))
    return "automaton has rows out of order";
  if (!each(a.at<uint8_t>(h.at_flags), marked, [](uint8_t flag) { return flag <= 1; }) ||
      !each(a.at<float>(h.at_floors), marked,
            [](float f) { return f == 0.0f || (std::isinf(f) && f < 0); }) ||
      !each(a.at<int32_t>(h.at_hub_of), marked, [&](int32_t hub) { return below(hub, h.hubs); }))
    return "automaton has a state without its tables";
  if (!each(a.at<ArenaBias>(h.at_bias), h.biases, [&](const ArenaBias& b) {
        return below(b.token, h.tokens) && (std::isfinite(b.value) || b.value < 0);
      }))
    return "automaton has a bias for no token or of no value";
  auto ascending = [&](const int32_t* rows, int64_t count) {
    const ArenaBias* bias = a.at<ArenaBias>(h.at_bias);
    for (int64_t r = 0; r < count; ++r)
      for (int32_t i = rows[r] + 1; i < rows[r + 1]; ++i)
        if (bias[i - 1].token >= bias[i].token) return false;
    return true;
  };
  if (!ascending(hub_rows, h.hubs) || !ascending(a.at<int32_t>(h.at_bias_rows), marked))
    return "automaton has rows out of order";
  return nullptr;
}

}  // namespace zerolayer

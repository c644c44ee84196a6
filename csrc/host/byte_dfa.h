// A deterministic automaton over bytes. Most states act on most bytes as one of a few hubs does
// (nothing has begun yet), so a state stores what differs from its hub alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace zerolayer {

inline bool word_byte(uint8_t b) {
  return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_';
}

struct VectorHash {
  size_t operator()(const std::vector<int32_t>& v) const {
    uint64_t h = 1469598103934665603ull;
    for (int32_t x : v) h = (h ^ static_cast<uint32_t>(x)) * 1099511628211ull;
    return h ^ (h >> 32);
  }
};

struct ByteDfa {
  enum Tag : uint8_t {
    kPlain,
    kSoft,      // no token may end here
    kFavoured,  // steer: tokens that lead here get the bonus
    kDone,      // the overlay has ended
  };

  std::array<uint8_t, 256> byte_class{};  // bytes that no state tells apart share a class
  int32_t classes = 1;
  std::vector<int32_t> hubs;  // state of each hub
  std::vector<int32_t> full;  // [hubs][classes]: next states of the hubs
  // Per state:
  std::vector<int32_t> hub;  // which hub it follows where it has no entry
  std::vector<int32_t> rows{0};
  std::vector<std::pair<int32_t, int32_t>> entries;  // (byte class, next)
  std::vector<int32_t> accept;                       // event set on entering, or -1
  std::vector<int32_t> pending;                      // event set before a byte of no word, or -1
  std::vector<int32_t> special;                      // next state on a control token
  std::vector<uint8_t> tag;

  std::vector<std::vector<int32_t>> sets;  // event sets: sorted triggers
  int32_t start = 0, reset = 0;
  int32_t dead = -1;  // overlays: where forbidden bytes lead
  int32_t done = -1;  // overlays: where a forbidden token leads if it comes all the same

  int32_t states() const { return static_cast<int32_t>(hub.size()); }

  int32_t next(int32_t state, uint8_t byte) const {
    const int32_t cls = byte_class[byte];
    for (int32_t i = rows[state]; i < rows[state + 1]; ++i)
      if (entries[i].first == cls) return entries[i].second;
    return full[static_cast<size_t>(hub[state]) * classes + cls];
  }
};

// The smallest automaton in which equivalent states of one hub are one state (Moore's partition
// refinement over the entries alone; a state's hub tells whether it follows a word byte).
ByteDfa minimised(const ByteDfa& dfa);

}  // namespace zerolayer

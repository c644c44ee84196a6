// One sequence's place in an automaton, stepped on the host a token at a time.
//
// An op call costs several microseconds before the kernel runs; a step itself is a few loads. So
// the engines' per-token path steps here, and whole batches go through scan_tokens.
#pragma once

#include <cstdint>

#include "../shared/automaton.h"

namespace zerolayer {

class Watcher {
 public:
  // The arena and the state belong to the caller and outlive the watcher. The state lies where an
  // op can read it, so that apply_decisions needs no copy; it is set to the arena's start.
  Watcher(const Arena& arena, int32_t* state);

  // Takes one token; the event that it ends, or -1. Same as scan_tokens on a stream of one.
  // Throws std::out_of_range where the caller has put the state outside the automaton.
  int32_t step(int64_t token);

  // Whether the state is one in which an overlay has ended.
  bool ended() const;

  int32_t state() const { return *state_; }
  void set_state(int32_t state);

 private:
  void check(int32_t state) const;

  Arena arena_;
  int32_t* state_;
};

}  // namespace zerolayer

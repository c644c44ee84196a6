#include "watcher.h"

#include <stdexcept>
#include <string>

namespace zerolayer {

Watcher::Watcher(const Arena& arena, int32_t* state) : arena_(arena), state_(state) {
  *state_ = arena_.header->start;
}

int32_t Watcher::step(int64_t token) {
  check(*state_);
  *state_ = arena_.step(*state_, token);
  return arena_.event(*state_);
}

bool Watcher::ended() const {
  check(*state_);
  return arena_.at<uint8_t>(arena_.header->at_flags)[*state_] != 0;
}

void Watcher::set_state(int32_t state) {
  check(state);
  *state_ = state;
}

void Watcher::check(int32_t state) const {
  if (state < 0 || state >= arena_.header->states)
    throw std::out_of_range("the state is " + std::to_string(state) + ", the automaton has " +
                            std::to_string(arena_.header->states) + " states");
}

}  // namespace zerolayer

// Compiles phrases and renderings into token automata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zerolayer {

// Bytes of every token; absent for control tokens, which reset.
using Vocabulary = std::vector<std::optional<std::string>>;

// A phrase as alternatives per position: each element is a list of byte strings, one of which
// must come next. `left`, `right`: the byte before / after must be no word byte.
struct Phrase {
  int32_t trigger = 0;
  std::vector<std::vector<std::string>> positions;
  std::vector<bool> repeat;  // the position may come several times (white space)
  std::vector<bool> optional;
  bool left = false, right = false;
};

std::string compile_triggers(const std::vector<Phrase>& phrases, const Vocabulary& vocabulary);

// `renderings`: what may be said; `values`: beginnings of any value, at a word's start;
// `leads`: texts after which the value has to follow at once. bonus: 0 forbids everything else
// (enforce), above 0 favours the renderings (steer).
std::string compile_overlay(const std::vector<std::string>& renderings,
                            const std::vector<std::string>& values,
                            const std::vector<std::string>& leads,
                            const std::vector<std::string>& tails, const Vocabulary& vocabulary,
                            float bonus);

}  // namespace zerolayer

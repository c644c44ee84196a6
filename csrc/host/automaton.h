// Compiles patterns and renderings into token automata: bytes first (ByteDfa), then composed with
// a vocabulary into an arena (shared/automaton.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vocabulary.h"

namespace zerolayer {

// A regular expression over code points in postfix order, operations and operands in one row:
//   kSet n lo hi ...  one code point out of n ranges
//   kCat n, kAlt n    the last n expressions, one after the other / one of them
//   kRepeat lo hi     the last expression, lo to hi times; hi -1: without end
struct Pattern {
  enum Op : int32_t { kSet, kCat, kAlt, kRepeat };
  int32_t trigger = 0;
  std::vector<int32_t> program;
  bool left = false, right = false;  // the byte before / after must be no word byte
  bool bounded = false;              // refused on its own where its automaton grows too large
};

// `dummy_prefix`: the first blank of a text is the tokenizer's and not the text's.
// Throws std::length_error where an automaton or its tables would grow too large.
std::string compile_triggers(const std::vector<Pattern>& patterns, const HeldVocabulary& vocabulary,
                             bool dummy_prefix);

// `renderings`: what may be said; `growing`: those of them that end in a number; `values`:
// beginnings of other values, at a word's start; `leads`: texts after which the value has to follow
// at once; `tails`: what would change a growing one. bonus: 0 forbids everything else (enforce),
// above 0 favours the renderings (steer).
std::string compile_overlay(const std::vector<std::string>& renderings,
                            const std::vector<std::string>& growing,
                            const std::vector<std::string>& values,
                            const std::vector<std::string>& leads,
                            const std::vector<std::string>& tails, const HeldVocabulary& vocabulary,
                            float bonus);

}  // namespace zerolayer

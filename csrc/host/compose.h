// From an automaton over bytes and a vocabulary to an arena.
#pragma once

#include <string>

#include "byte_dfa.h"
#include "vocabulary.h"

namespace zerolayer {

// `overlay`: tokens that lead to the dead state are forbidden (bonus 0), or those that lead into a
// favoured one gain `bonus`.
std::string compose(const ByteDfa& dfa, const HeldVocabulary& vocabulary, float bonus,
                    bool overlay);

}  // namespace zerolayer

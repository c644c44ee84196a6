// A tokenizer's vocabulary as bytes, and as a trie that is built once and walked per automaton.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zerolayer {

// Bytes of every token; absent for control tokens, which reset.
using Vocabulary = std::vector<std::optional<std::string>>;

// Depth-first order: a node's subtree, and the tokens that end in it, are contiguous.
class VocabularyTrie {
 public:
  struct Node {
    uint8_t byte;
    int32_t depth;
    int32_t end;          // first node after the subtree
    int32_t first_token;  // tokens that end in the subtree: order[first_token .. last_token)
    int32_t own_tokens;   // how many of them end in this node itself
    int32_t last_token;
  };

  explicit VocabularyTrie(const Vocabulary& vocabulary) {
    std::vector<std::pair<std::string_view, int32_t>> sorted;
    for (size_t t = 0; t < vocabulary.size(); ++t) {
      if (vocabulary[t] && !vocabulary[t]->empty())
        sorted.emplace_back(*vocabulary[t], static_cast<int32_t>(t));
      else
        specials.push_back(static_cast<int32_t>(t));
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<int32_t> path;
    std::string_view last;
    auto close = [&](size_t depth) {
      while (path.size() > depth) {
        nodes[path.back()].end = static_cast<int32_t>(nodes.size());
        nodes[path.back()].last_token = static_cast<int32_t>(order.size());
        path.pop_back();
      }
    };
    for (const auto& [text, token] : sorted) {
      size_t common = 0;
      while (common < last.size() && common < text.size() && last[common] == text[common]) ++common;
      close(common);
      for (size_t i = common; i < text.size(); ++i) {
        path.push_back(static_cast<int32_t>(nodes.size()));
        nodes.push_back({static_cast<uint8_t>(text[i]), static_cast<int32_t>(i), 0,
                         static_cast<int32_t>(order.size()), 0, 0});
        depth = std::max(depth, static_cast<int32_t>(i) + 1);
      }
      order.push_back(token);
      ++nodes[path.back()].own_tokens;
      last = text;
    }
    close(0);
    first.fill(-1);
    for (int32_t n = 0; n < static_cast<int32_t>(nodes.size()); n = nodes[n].end)
      first[nodes[n].byte] = n;
  }

  std::vector<Node> nodes;
  std::vector<int32_t> order, specials;
  std::array<int32_t, 256> first;  // node of the first byte, or -1
  int32_t depth = 0;
};

struct HeldVocabulary {
  explicit HeldVocabulary(Vocabulary list) : tokens(std::move(list)), trie(tokens) {}

  Vocabulary tokens;
  VocabularyTrie trie;
};

}  // namespace zerolayer

// A pattern as a nondeterministic automaton over bytes: Thompson's construction, with classes of
// code points cut into UTF-8 byte ranges whose common tails are shared.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "automaton.h"

namespace zerolayer {

struct NfaEdge {
  uint8_t low, high;
  int32_t to;
};

struct NfaNode {
  std::vector<NfaEdge> edges;
  std::vector<int32_t> empty;  // steps that take no byte
  int32_t pattern = -1;        // the pattern that is complete here
};

class Nfa {
 public:
  using Ranges = std::vector<std::pair<int32_t, int32_t>>;

  // Adds a pattern; returns its first node.
  int32_t add(const Pattern& pattern, int32_t index) {
    program_ = &pattern.program;
    parse();
    const int32_t first = node();
    nodes[build(parts_.back(), first)].pattern = index;
    return first;
  }

  std::vector<NfaNode> nodes;

 private:
  struct Part {
    int32_t op, low = 0, high = 0;
    Ranges ranges;
    std::vector<Part> parts;
  };

  int32_t node() {
    if (nodes.size() >= kMaxNodes) throw std::length_error("too many positions");
    nodes.emplace_back();
    return static_cast<int32_t>(nodes.size()) - 1;
  }

  void parse() {
    parts_.clear();
    const std::vector<int32_t>& p = *program_;
    size_t at = 0;
    auto take = [&] {
      if (at >= p.size()) throw std::invalid_argument("a pattern's program ends early");
      return p[at++];
    };
    while (at < p.size()) {
      Part part{take()};
      const int32_t count = take();
      if (part.op == Pattern::kRepeat) {
        part.low = count;
        part.high = take();
      } else if (part.op == Pattern::kSet) {
        for (int32_t i = 0; i < count; ++i) {
          const int32_t low = take();
          part.ranges.emplace_back(low, take());
        }
      }
      const int32_t own = part.op == Pattern::kSet ? 0 : part.op == Pattern::kRepeat ? 1 : count;
      if (own < 0 || static_cast<size_t>(own) > parts_.size())
        throw std::invalid_argument("a pattern's program lacks an operand");
      part.parts.assign(parts_.end() - own, parts_.end());
      parts_.resize(parts_.size() - own);
      parts_.push_back(std::move(part));
    }
    if (parts_.size() != 1) throw std::invalid_argument("a pattern's program is no expression");
  }

  // Adds the part behind the node `at`; returns the node after it.
  int32_t build(const Part& part, int32_t at) {
    switch (part.op) {
      case Pattern::kSet: return build_set(part.ranges, at);
      case Pattern::kCat:
        for (const Part& p : part.parts) at = build(p, at);
        return at;
      case Pattern::kAlt: {
        const int32_t end = node();
        for (const Part& p : part.parts) {
          const int32_t last = build(p, branch(at));
          nodes[last].empty.push_back(end);
        }
        return end;
      }
      default: break;
    }
    for (int32_t i = 0; i < part.low; ++i) at = build(part.parts[0], at);
    const int32_t end = node();
    if (part.high < 0) {
      const int32_t loop = branch(at);
      nodes[build(part.parts[0], loop)].empty.push_back(loop);
      nodes[loop].empty.push_back(end);
      return end;
    }
    for (int32_t i = part.low; i < part.high; ++i) {
      nodes[at].empty.push_back(end);
      at = build(part.parts[0], branch(at));
    }
    nodes[at].empty.push_back(end);
    return end;
  }

  int32_t branch(int32_t at) {
    const int32_t to = node();
    nodes[at].empty.push_back(to);
    return to;
  }

  int32_t build_set(const Ranges& ranges, int32_t at) {
    const int32_t end = node();
    tails_.clear();
    // Code points of one to four bytes; surrogates have no UTF-8.
    static constexpr struct {
      int32_t low, high, tail;
      uint8_t lead;
    } kLengths[] = {{0x0, 0x7F, 0, 0x00},
                    {0x80, 0x7FF, 1, 0xC0},
                    {0x800, 0xD7FF, 2, 0xE0},
                    {0xE000, 0xFFFF, 2, 0xE0},
                    {0x10000, 0x10FFFF, 3, 0xF0}};
    for (const auto& length : kLengths) {
      Ranges inside;
      for (auto [low, high] : ranges) {
        low = std::max(low, length.low);
        high = std::min(high, length.high);
        if (low <= high) inside.emplace_back(low, high);
      }
      lead(inside, length.tail, length.lead, at, end);
    }
    return end;
  }

  // Edges over the leading byte of values with `tail` continuation bytes after it.
  void lead(const Ranges& ranges, int32_t tail, int32_t mark, int32_t at, int32_t end) {
    std::map<int32_t, Ranges> by_lead;
    const int32_t size = 1 << (6 * tail);
    for (auto [low, high] : ranges)
      for (int32_t h = low / size; h <= high / size; ++h)
        by_lead[h].emplace_back(std::max(low - h * size, 0), std::min(high - h * size, size - 1));
    for (const auto& [h, rest] : by_lead) {
      const int32_t to = tail == 0 ? end : rest_of(rest, tail, end);
      const auto byte = static_cast<uint8_t>(mark + h);
      auto& edges = nodes[at].edges;
      if (!edges.empty() && edges.back().to == to && edges.back().high + 1 == byte)
        edges.back().high = byte;
      else
        edges.push_back({byte, byte, to});
    }
  }

  int32_t rest_of(const Ranges& ranges, int32_t tail, int32_t end) {
    if (auto it = tails_.find({tail, ranges}); it != tails_.end()) return it->second;
    const int32_t at = node();
    lead(ranges, tail - 1, 0x80, at, end);
    tails_[{tail, ranges}] = at;
    return at;
  }

  static constexpr size_t kMaxNodes = 1u << 24;
  const std::vector<int32_t>* program_ = nullptr;
  std::vector<Part> parts_;
  std::map<std::pair<int32_t, Ranges>, int32_t> tails_;
};

}  // namespace zerolayer

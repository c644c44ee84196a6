// Moore's refinement: states start in blocks by what they announce, and blocks split until all
// states of a block lead to the same blocks.
#include "byte_dfa.h"

#include <algorithm>
#include <unordered_map>

namespace zerolayer {

ByteDfa minimised(const ByteDfa& dfa) {
  const int32_t n = dfa.states();
  std::vector<int32_t> block(n), fresh(n), key;
  std::unordered_map<std::vector<int32_t>, int32_t, VectorHash> ids;
  for (int32_t s = 0; s < n; ++s) {
    key = {dfa.accept[s], dfa.pending[s], dfa.hub[s], dfa.tag[s]};
    block[s] = ids.try_emplace(key, static_cast<int32_t>(ids.size())).first->second;
  }
  auto blocks = static_cast<int32_t>(ids.size());
  // States that are alone in their block stay so; only the others are compared again.
  std::vector<int32_t> open(n);
  for (int32_t s = 0; s < n; ++s) open[s] = s;
  while (true) {
    ids.clear();
    std::vector<bool> taken(blocks);
    int32_t count = blocks;
    for (const int32_t s : open) {
      key = {block[s], block[dfa.special[s]]};
      for (int32_t i = dfa.rows[s]; i < dfa.rows[s + 1]; ++i) {
        const auto [cls, next] = dfa.entries[i];
        const int32_t usual = dfa.full[static_cast<size_t>(dfa.hub[s]) * dfa.classes + cls];
        if (block[next] == block[usual]) continue;
        key.push_back(cls);
        key.push_back(block[next]);
      }
      auto [it, first] = ids.try_emplace(key, 0);
      if (first) {  // the first part of a block keeps its number
        it->second = taken[block[s]] ? count++ : block[s];
        taken[block[s]] = true;
      }
      fresh[s] = it->second;
    }
    for (const int32_t s : open) block[s] = fresh[s];
    if (count == blocks) break;
    blocks = count;
    std::vector<int32_t> size(blocks);
    for (const int32_t s : open) ++size[block[s]];
    open.erase(
        std::remove_if(open.begin(), open.end(), [&](int32_t s) { return size[block[s]] == 1; }),
        open.end());
  }

  std::vector<int32_t> first(blocks, -1);
  for (int32_t s = n - 1; s >= 0; --s) first[block[s]] = s;
  ByteDfa out;
  out.byte_class = dfa.byte_class;
  out.classes = dfa.classes;
  out.sets = dfa.sets;
  for (const int32_t s : dfa.hubs) out.hubs.push_back(block[s]);
  for (const int32_t s : dfa.full) out.full.push_back(block[s]);
  for (const int32_t s : first) {
    out.hub.push_back(dfa.hub[s]);
    for (int32_t i = dfa.rows[s]; i < dfa.rows[s + 1]; ++i) {
      const auto [cls, next] = dfa.entries[i];
      const size_t at = static_cast<size_t>(dfa.hub[s]) * dfa.classes + cls;
      if (block[next] != out.full[at]) out.entries.emplace_back(cls, block[next]);
    }
    out.rows.push_back(static_cast<int32_t>(out.entries.size()));
    out.accept.push_back(dfa.accept[s]);
    out.pending.push_back(dfa.pending[s]);
    out.special.push_back(block[dfa.special[s]]);
    out.tag.push_back(dfa.tag[s]);
  }
  out.start = block[dfa.start];
  out.reset = block[dfa.reset];
  out.dead = dfa.dead < 0 ? -1 : block[dfa.dead];
  out.done = dfa.done < 0 ? -1 : block[dfa.done];
  return out;
}

}  // namespace zerolayer

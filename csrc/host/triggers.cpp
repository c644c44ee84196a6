// Triggers: all patterns in one automaton over bytes.
//
// 1. The patterns, each from its beginning, are determinised together: a trie where they are
//    literals ("anchored" states).
// 2. A match may begin anywhere, so a state of the whole is the set of anchored states that are
//    under way, one for each place where a match has begun: few, as most beginnings die at once.
// 3. That automaton is minimised.
#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "byte_dfa.h"
#include "compose.h"
#include "nfa.h"

namespace zerolayer {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kMaxStates = 1 << 20;
// One regular expression alone; "a.{12}" needs some 4,000 states, "a.{20}" a million.
constexpr int32_t kMaxOwnStates = 1 << 14;
constexpr int64_t kMaxOwnWork = 1 << 26;

class TriggerCompiler {
 public:
  TriggerCompiler(const std::vector<Pattern>& patterns, bool dummy_prefix, int32_t max_states,
                  int64_t max_work)
      : patterns_(patterns), max_states_(max_states), max_work_(max_work) {
    for (size_t i = 0; i < patterns.size(); ++i) {
      const int32_t first = nfa_.add(patterns[i], static_cast<int32_t>(i));
      begins_[0].push_back(first);  // after a byte of no word
      if (!patterns[i].left) begins_[1].push_back(first);
      words_ = words_ || patterns[i].left;
    }
    classify_bytes(dummy_prefix);
    anchor();
    join();
    if (dummy_prefix) skip_first_blank();
  }

  ByteDfa take() { return std::move(dfa_); }

 private:
  // Anchored states: sorted node sets, their transitions in `rows`, sorted by class.
  struct Anchored {
    std::vector<std::pair<int32_t, int32_t>> row;
    Ids accept, pending;  // triggers
  };

  void work(size_t steps) {
    work_ += static_cast<int64_t>(steps);
    if (max_work_ > 0 && work_ > max_work_) throw std::length_error("too many states");
  }

  void classify_bytes(bool dummy_prefix) {
    std::array<bool, 257> cut{};
    auto split = [&](int32_t low, int32_t high) { cut[low] = cut[high + 1] = true; };
    for (const NfaNode& node : nfa_.nodes)
      for (const NfaEdge& e : node.edges) split(e.low, e.high);
    for (int32_t b = 1; b < 256; ++b)
      if (word_byte(static_cast<uint8_t>(b)) != word_byte(static_cast<uint8_t>(b - 1)))
        cut[b] = true;
    if (dummy_prefix) split(' ', ' ');
    int32_t cls = 0;
    for (int32_t b = 0; b < 256; ++b) {
      if (b > 0 && cut[b]) ++cls;
      dfa_.byte_class[b] = static_cast<uint8_t>(cls);
    }
    dfa_.classes = cls + 1;
    word_class_.resize(dfa_.classes);
    for (int32_t b = 0; b < 256; ++b)
      word_class_[dfa_.byte_class[b]] = words_ && word_byte(static_cast<uint8_t>(b));
  }

  // Nodes that take a byte or end a pattern; those that only lead on are left out.
  Ids closed(Ids nodes) {
    Ids out;
    ++stamp_;
    seen_.resize(nfa_.nodes.size(), 0);
    while (!nodes.empty()) {
      const int32_t n = nodes.back();
      nodes.pop_back();
      if (seen_[n] == stamp_) continue;
      seen_[n] = stamp_;
      const NfaNode& node = nfa_.nodes[n];
      if (!node.edges.empty() || node.pattern >= 0) out.push_back(n);
      nodes.insert(nodes.end(), node.empty.begin(), node.empty.end());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  int32_t anchored(Ids nodes) {
    nodes = closed(std::move(nodes));
    work(nodes.size());
    auto [it, fresh] = anchored_ids_.try_emplace(nodes, static_cast<int32_t>(anchored_.size()));
    if (fresh) {
      if (it->second >= max_states_) throw std::length_error("too many states");
      anchored_.emplace_back();
      node_sets_.push_back(&it->first);  // references into an unordered_map stay valid
    }
    return it->second;
  }

  void anchor() {
    for (int w = 0; w < 2; ++w) begin_[w] = anchored(begins_[w]);
    std::vector<std::pair<int32_t, int32_t>> steps;
    for (size_t a = 0; a < anchored_.size(); ++a) {
      steps.clear();
      Ids accept, pending;
      for (const int32_t n : *node_sets_[a]) {
        const NfaNode& node = nfa_.nodes[n];
        for (const NfaEdge& e : node.edges)
          for (int32_t c = dfa_.byte_class[e.low]; c <= dfa_.byte_class[e.high]; ++c)
            steps.emplace_back(c, e.to);
        if (node.pattern < 0) continue;
        const Pattern& p = patterns_[node.pattern];
        (p.right ? pending : accept).push_back(p.trigger);
      }
      work(steps.size());
      std::sort(steps.begin(), steps.end());
      std::vector<std::pair<int32_t, int32_t>> row;
      for (size_t i = 0; i < steps.size();) {
        Ids to;
        const int32_t cls = steps[i].first;
        for (; i < steps.size() && steps[i].first == cls; ++i)
          if (to.empty() || to.back() != steps[i].second) to.push_back(steps[i].second);
        row.emplace_back(cls, anchored(std::move(to)));
      }
      anchored_[a] = {std::move(row), std::move(accept), std::move(pending)};
    }
  }

  // The whole: sets of anchored states; the last element tells whether a word byte came before.
  int32_t state(Ids key) {
    work(key.size());
    auto [it, fresh] = ids_.try_emplace(std::move(key), static_cast<int32_t>(keys_.size()));
    if (fresh) {
      if (it->second >= max_states_) throw std::length_error("too many states");
      keys_.push_back(&it->first);
    }
    return it->second;
  }

  int32_t target(Ids to, int32_t cls, int32_t word) {
    if (const int32_t begun = follow(begin_[word], cls); begun >= 0) to.push_back(begun);
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    to.push_back(word_class_[cls]);
    return state(std::move(to));
  }

  int32_t follow(int32_t a, int32_t cls) const {
    const auto& row = anchored_[a].row;
    const auto it = std::lower_bound(row.begin(), row.end(), std::make_pair(cls, -1));
    return it != row.end() && it->first == cls ? it->second : -1;
  }

  int32_t event_set(Ids triggers) {
    if (triggers.empty()) return -1;
    std::sort(triggers.begin(), triggers.end());
    triggers.erase(std::unique(triggers.begin(), triggers.end()), triggers.end());
    auto [it, fresh] = set_ids_.try_emplace(triggers, static_cast<int32_t>(dfa_.sets.size()));
    if (fresh) dfa_.sets.push_back(std::move(triggers));
    return it->second;
  }

  void join() {
    const int32_t words = words_ ? 2 : 1;
    for (int32_t w = 0; w < words; ++w) dfa_.hubs.push_back(state({w}));
    for (int32_t w = 0; w < words; ++w)
      for (int32_t c = 0; c < dfa_.classes; ++c) dfa_.full.push_back(target({}, c, w));
    std::vector<std::pair<int32_t, int32_t>> steps;
    for (size_t s = 0; s < keys_.size(); ++s) {
      const Ids key = *keys_[s];
      const int32_t word = key.back();
      Ids accept, pending;
      steps.clear();
      for (size_t i = 0; i + 1 < key.size(); ++i) {
        const Anchored& a = anchored_[key[i]];
        steps.insert(steps.end(), a.row.begin(), a.row.end());
        accept.insert(accept.end(), a.accept.begin(), a.accept.end());
        pending.insert(pending.end(), a.pending.begin(), a.pending.end());
      }
      work(steps.size());
      std::sort(steps.begin(), steps.end());
      for (size_t i = 0; i < steps.size();) {
        Ids to;
        const int32_t cls = steps[i].first;
        for (; i < steps.size() && steps[i].first == cls; ++i) to.push_back(steps[i].second);
        const int32_t next = target(std::move(to), cls, word);
        if (next != dfa_.full[static_cast<size_t>(word) * dfa_.classes + cls])
          dfa_.entries.emplace_back(cls, next);
      }
      dfa_.rows.push_back(static_cast<int32_t>(dfa_.entries.size()));
      dfa_.hub.push_back(word);
      dfa_.accept.push_back(event_set(std::move(accept)));
      dfa_.pending.push_back(event_set(std::move(pending)));
      dfa_.special.push_back(0);
      dfa_.tag.push_back(ByteDfa::kPlain);
    }
  }

  // The state before the first byte takes one blank without leaving.
  void skip_first_blank() {
    const int32_t first = dfa_.states(), blank = dfa_.byte_class[' '];
    if (dfa_.full[blank] != 0) dfa_.entries.emplace_back(blank, 0);
    dfa_.rows.push_back(static_cast<int32_t>(dfa_.entries.size()));
    dfa_.hub.push_back(0);
    dfa_.accept.push_back(-1);
    dfa_.pending.push_back(-1);
    dfa_.special.push_back(0);
    dfa_.tag.push_back(ByteDfa::kPlain);
    std::fill(dfa_.special.begin(), dfa_.special.end(), first);
    dfa_.start = dfa_.reset = first;
  }

  const std::vector<Pattern>& patterns_;
  int32_t max_states_;
  int64_t max_work_, work_ = 0;
  bool words_ = false;  // whether any pattern begins at a word's start only
  Nfa nfa_;
  Ids begins_[2];
  int32_t begin_[2] = {0, 0};
  std::vector<int32_t> word_class_;
  std::vector<Anchored> anchored_;
  std::vector<const Ids*> node_sets_, keys_;
  std::unordered_map<Ids, int32_t, VectorHash> anchored_ids_, ids_, set_ids_;
  std::vector<int32_t> seen_;
  int32_t stamp_ = 0;
  ByteDfa dfa_;
};

}  // namespace

std::string compile_triggers(const std::vector<Pattern>& patterns, const HeldVocabulary& vocabulary,
                             bool dummy_prefix) {
  for (const Pattern& p : patterns) {
    if (!p.bounded) continue;
    try {
      TriggerCompiler({p}, false, kMaxOwnStates, kMaxOwnWork);
    } catch (const std::length_error&) {
      throw std::length_error("trigger " + std::to_string(p.trigger) + " alone needs more than " +
                              std::to_string(kMaxOwnStates) + " states");
    }
  }
  TriggerCompiler compiler(patterns, dummy_prefix, kMaxStates, 0);
  return compose(minimised(compiler.take()), vocabulary, 0.0f, false);
}

}  // namespace zerolayer

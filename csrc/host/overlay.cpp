// Overlays: what may follow a trigger.
//
// Modes of a state: Free, text without a value; Word, a value that is a word has just been
// completed and may still turn out to be the beginning of another word ("ten" of "tenant"); Await,
// a lead was said and the value must come; Inside a rendering; Tail, a rendering is complete and
// what follows must not change it; Done; Dead, what is forbidden.
#include <map>
#include <stdexcept>
#include <tuple>

#include "automaton.h"
#include "byte_dfa.h"
#include "compose.h"

namespace zerolayer {
namespace {

constexpr size_t kMaxStates = 1u << 16;
constexpr int32_t kMaxBlanks = 3;  // blanks and Markdown marks before a value

// Texts as a trie; a node knows what ends in it and whether a rendering goes on below it.
class TextTrie {
 public:
  enum Kind : int32_t { kValue = 1, kLead = 2, kRendering = 4, kTail = 8, kGrowing = 16 };
  struct Node {
    std::map<uint8_t, int32_t> children;
    int32_t ends = 0;
    bool to_rendering = false;
    bool starts_word = false;
  };

  TextTrie() : nodes(1) {}

  void add(const std::vector<std::string>& texts, Kind kind) {
    for (const std::string& text : texts) {
      int32_t at = 0;
      for (const char c : text) {
        if (kind == kRendering) nodes[at].to_rendering = true;
        const auto [it, fresh] = nodes[at].children.try_emplace(static_cast<uint8_t>(c),
                                                                static_cast<int32_t>(nodes.size()));
        const int32_t to = it->second;
        if (fresh) {
          nodes.emplace_back();
          const auto first = static_cast<uint8_t>(text[0]);
          nodes[to].starts_word = word_byte(first) && !(first >= '0' && first <= '9');
        }
        at = to;
      }
      if (at != 0) nodes[at].ends |= kind;
    }
  }

  int32_t child(int32_t node, uint8_t byte) const {
    const auto it = nodes[node].children.find(byte);
    return it == nodes[node].children.end() ? -1 : it->second;
  }

  std::vector<Node> nodes;
};

class OverlayCompiler {
 public:
  OverlayCompiler(const std::vector<std::string>& renderings,
                  const std::vector<std::string>& growing, const std::vector<std::string>& values,
                  const std::vector<std::string>& leads, const std::vector<std::string>& tails,
                  bool strict) {
    texts_.add(renderings, TextTrie::kRendering);
    texts_.add(growing, TextTrie::kGrowing);
    texts_.add(values, TextTrie::kValue);
    texts_.add(leads, TextTrie::kLead);
    tails_.add(tails, TextTrie::kTail);
    State done{kDone}, dead{kDead}, glued{kTail};
    glued.word = glued.fresh = true;
    for (const bool word : {false, true}) {
      State free{kFree};
      free.word = word;
      hub(free);
    }
    dfa_.done = hub(done);
    dfa_.dead = hub(dead);
    hub(glued);
    dfa_.start = id(State{kFree});
    dfa_.reset = dfa_.done;
    for (int32_t b = 0; b < 256; ++b) dfa_.byte_class[b] = static_cast<uint8_t>(b);
    dfa_.classes = 256;
    for (const int32_t h : dfa_.hubs)
      for (int32_t b = 0; b < 256; ++b) dfa_.full.push_back(next(h, static_cast<uint8_t>(b)));
    for (size_t s = 0; s < states_.size(); ++s) tabulate(static_cast<int32_t>(s), strict);
  }

  ByteDfa take() { return std::move(dfa_); }

 private:
  enum Mode : int32_t { kFree, kWord, kAwait, kInside, kTail, kDone, kDead };

  struct State {
    explicit State(Mode m) : mode(m) {}
    Mode mode;
    std::vector<int32_t> texts, tails;  // nodes of the tries that are under way, sorted
    bool word = false;                  // the byte before was a word byte
    bool lead = false;                  // Free: a lead that ends in a letter is complete
    bool fresh = false;                 // Tail: only word bytes since the rendering was complete
    int32_t blanks = 0;
    bool operator<(const State& o) const {
      return std::tie(mode, texts, tails, word, lead, fresh, blanks) <
             std::tie(o.mode, o.texts, o.tails, o.word, o.lead, o.fresh, o.blanks);
    }
  };

  int32_t id(State s) {
    std::sort(s.texts.begin(), s.texts.end());
    std::sort(s.tails.begin(), s.tails.end());
    auto [it, fresh] = ids_.try_emplace(std::move(s), static_cast<int32_t>(states_.size()));
    if (fresh) {
      if (states_.size() >= kMaxStates) throw std::length_error("an overlay has too many states");
      states_.push_back(&it->first);
    }
    return it->second;
  }

  int32_t hub(const State& s) {
    dfa_.hubs.push_back(id(s));
    return dfa_.hubs.back();
  }

  int32_t hub_of(const State& s) const {
    switch (s.mode) {
      case kFree:
      case kWord: return s.word ? 1 : 0;
      case kTail: return s.fresh && s.word ? 4 : 2;
      case kDone: return 2;
      default: return 3;
    }
  }

  void tabulate(int32_t s, bool strict) {
    const State& state = *states_[s];
    const int32_t h = hub_of(state);
    for (int32_t b = 0; b < 256; ++b) {
      const int32_t to = next(s, static_cast<uint8_t>(b));
      if (to != dfa_.full[h * 256 + b]) dfa_.entries.emplace_back(b, to);
    }
    dfa_.rows.push_back(static_cast<int32_t>(dfa_.entries.size()));
    dfa_.hub.push_back(h);
    dfa_.accept.push_back(-1);
    dfa_.pending.push_back(-1);
    const bool open = state.mode == kAwait || state.mode == kInside || state.mode == kDead;
    dfa_.special.push_back(strict && open ? dfa_.dead : dfa_.done);
    switch (state.mode) {
      case kWord: dfa_.tag.push_back(ByteDfa::kSoft); break;
      case kInside:
      case kTail: dfa_.tag.push_back(ByteDfa::kFavoured); break;
      case kDone: dfa_.tag.push_back(ByteDfa::kDone); break;
      default: dfa_.tag.push_back(ByteDfa::kPlain);
    }
  }

  int32_t next(int32_t s, uint8_t b) {
    const State& from = *states_[s];
    switch (from.mode) {
      case kFree:
      case kWord: return from_free(from, b);
      case kAwait: return from_await(from, b);
      case kInside: return from_inside(from, b);
      case kTail: return from_tail(from, b);
      case kDone: return dfa_.done;
      default: return dfa_.dead;
    }
  }

  // Nodes after the byte, of texts under way and, where `begin`, of those that begin with it.
  std::vector<int32_t> advance(const State& from, uint8_t b, bool begin) const {
    std::vector<int32_t> on;
    for (const int32_t n : from.texts)
      if (const int32_t to = texts_.child(n, b); to >= 0) on.push_back(to);
    if (begin && !(from.word && word_byte(b)))
      if (const int32_t to = texts_.child(0, b); to >= 0) on.push_back(to);
    return on;
  }

  int32_t from_free(const State& from, uint8_t b) {
    const bool word = word_byte(b);
    if (from.mode == kWord && !word) return dfa_.dead;
    if (from.lead && !word) {
      State await{kAwait};
      await.word = from.word;
      return from_await(await, b);
    }
    State to{kFree};
    to.word = word;
    State inside{kInside};
    inside.word = word;
    bool value = false, other_word = false;
    std::vector<int32_t> complete;
    for (const int32_t n : advance(from, b, true)) {
      const auto& node = texts_.nodes[n];
      if (node.ends & TextTrie::kLead) {
        if (!word) return id(State{kAwait});
        to.lead = true;
      }
      if (node.ends & TextTrie::kRendering) complete.push_back(n);
      if (node.ends & TextTrie::kValue) {
        value = true;
        other_word = node.starts_word && word;
      }
      if (node.to_rendering) inside.texts.push_back(n);
      if (!node.children.empty()) to.texts.push_back(n);
    }
    if (!complete.empty()) return id(tail(complete, inside.texts, b));
    if (value && !inside.texts.empty()) return id(inside);
    if (value && !other_word) return dfa_.dead;
    if (b == '!' || b == '?' || b == '\n') return dfa_.done;
    if (value) to.mode = kWord;
    return id(to);
  }

  int32_t from_await(const State& from, uint8_t b) {
    const int32_t made = into_rendering(from, b, true);
    if (made >= 0) return made;
    if ((b != ' ' && b != '*') || from.blanks >= kMaxBlanks) return dfa_.dead;
    State to{kAwait};
    to.blanks = from.blanks + 1;
    return id(to);
  }

  int32_t from_inside(const State& from, uint8_t b) {
    const int32_t made = into_rendering(from, b, false);
    return made >= 0 ? made : dfa_.dead;
  }

  int32_t into_rendering(const State& from, uint8_t b, bool begin) {
    State to{kInside};
    to.word = word_byte(b);
    std::vector<int32_t> complete;
    for (const int32_t n : advance(from, b, begin)) {
      if (texts_.nodes[n].ends & TextTrie::kRendering) complete.push_back(n);
      if (texts_.nodes[n].to_rendering) to.texts.push_back(n);
    }
    if (!complete.empty()) return id(tail(complete, to.texts, b));
    return to.texts.empty() ? -1 : id(to);
  }

  // A rendering is complete. Longer ones may go on, longer other values must not.
  State tail(const std::vector<int32_t>& complete, const std::vector<int32_t>& longer,
             uint8_t b) const {
    State to{kTail};
    to.texts = longer;
    for (const int32_t n : complete) {
      const auto& node = texts_.nodes[n];
      if (!node.to_rendering && !node.children.empty()) to.texts.push_back(n);
      if (node.ends & TextTrie::kGrowing) to.tails.assign(1, 0);
    }
    to.word = word_byte(b);
    to.fresh = true;
    return to;
  }

  int32_t from_tail(const State& from, uint8_t b) {
    State to{kTail};
    to.word = word_byte(b);
    to.fresh = from.fresh && from.word && to.word;
    for (const int32_t n : from.tails) {
      const int32_t at = tails_.child(n, b);
      if (at < 0) continue;
      if (tails_.nodes[at].ends) return dfa_.dead;
      to.tails.push_back(at);
    }
    std::vector<int32_t> complete, longer;
    for (const int32_t n : advance(from, b, false)) {
      const auto& node = texts_.nodes[n];
      if (node.ends & TextTrie::kRendering) complete.push_back(n);
      if (!complete.empty()) {
        if (node.to_rendering) longer.push_back(n);
        continue;
      }
      if (node.ends & TextTrie::kValue) return dfa_.dead;
      if (!node.children.empty()) to.texts.push_back(n);
    }
    if (!complete.empty()) return id(tail(complete, longer, b));
    // A word byte must not glue to the value.
    if (to.texts.empty() && to.tails.empty()) return to.fresh ? dfa_.dead : dfa_.done;
    return id(to);
  }

  TextTrie texts_, tails_;
  std::map<State, int32_t> ids_;
  std::vector<const State*> states_;
  ByteDfa dfa_;
};

}  // namespace

std::string compile_overlay(const std::vector<std::string>& renderings,
                            const std::vector<std::string>& growing,
                            const std::vector<std::string>& values,
                            const std::vector<std::string>& leads,
                            const std::vector<std::string>& tails, const HeldVocabulary& vocabulary,
                            float bonus) {
  OverlayCompiler compiler(renderings, growing, values, leads, tails, bonus <= 0);
  return compose(minimised(compiler.take()), vocabulary, bonus, true);
}

}  // namespace zerolayer

// Subset construction over bytes, then composition with the vocabulary.
//
// Bytes first, tokens second: a phrase is found however the tokenizer cuts it, also in the middle
// of a UTF-8 character. A composed state is a pair (byte state, event set): a token may pass
// several events on its way, and all of them belong to the state that it ends in.
#include "automaton.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "../shared/automaton.h"

namespace zerolayer {
namespace {

constexpr int32_t kDead = -1;
constexpr int32_t kLikeRoot = -2;
constexpr size_t kMaxStates = 1u << 20;

bool word_byte(uint8_t b) {
  return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_';
}

// What a byte automaton is to the composition. Steps are tabulated a state at a time.
struct ByteMachine {
  struct Step {
    int32_t to = kDead;
    int32_t events = -1;  // index into `lists`, or -1
  };
  int32_t start = 0;
  int32_t reset = 0;
  std::function<const Step*(int32_t)> row;  // 256 steps of a state
  const std::vector<std::vector<int32_t>>* lists = nullptr;
  std::function<int32_t(int32_t)> after_special;  // kDead where no control token may come
  std::function<bool(int32_t)> absorbing = [](int32_t) { return false; };
  // Where most tokens lead from a state: kLikeRoot, kDead, or one state for all.
  std::function<int32_t(int32_t)> usual = [](int32_t) { return kLikeRoot; };
  std::function<bool(int32_t)> done = [](int32_t) { return false; };
  std::function<bool(int32_t, int32_t)> favoured = [](int32_t, int32_t) { return false; };
  int32_t fallback = 0;  // where a forbidden token leads if it comes all the same
};

// A vocabulary as a trie in depth-first order: a node's subtree, and its tokens, are contiguous.
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
      }
      order.push_back(token);
      ++nodes[path.back()].own_tokens;
      last = text;
    }
    close(0);
  }

  std::vector<Node> nodes;
  std::vector<int32_t> order, specials;
};

struct VectorHash {
  size_t operator()(const std::vector<int32_t>& v) const {
    uint64_t h = 1469598103934665603ull;
    for (int32_t x : v) h = (h ^ static_cast<uint32_t>(x)) * 1099511628211ull;
    return h;
  }
};

class Composer {
 public:
  Composer(const ByteMachine& machine, const VocabularyTrie& trie, size_t tokens, float bonus,
           bool overlay)
      : machine_(machine), trie_(trie), tokens_(tokens), bonus_(bonus), overlay_(overlay) {
    size_t depth = 1;
    for (const auto& node : trie.nodes) depth = std::max<size_t>(depth, node.depth + 2);
    path_.resize(depth);
    state_id(machine.start, -1);
    expand_root();
    fallback_ = state_id(machine.fallback, -1);
    reset_ = state_id(machine.reset, -1);
    for (size_t i = 1; i < states_.size(); ++i) expand(i);
  }

  std::string arena() const;

 private:
  struct State {
    int32_t byte_state;
    int32_t set;  // event set or -1
  };
  struct Row {
    int32_t base = kLikeRoot;                         // kLikeRoot, kDead or a state for all
    std::vector<std::pair<int32_t, int32_t>> unlike;  // (token, next), where it differs
  };
  struct Place {
    int32_t state = 0, root = 0;  // byte states after the path, from here and from the root
    int32_t events = -1;          // list of events on the path, -1 for none
    bool root_events = false;
  };

  int32_t merged(int32_t events, int32_t list) {
    if (list < 0) return events;
    std::vector<int32_t> all = events < 0 ? std::vector<int32_t>{} : sets_[events];
    const auto& more = (*machine_.lists)[list];
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    auto [it, fresh] = set_ids_.try_emplace(all, static_cast<int32_t>(sets_.size()));
    if (fresh) sets_.push_back(all);
    return it->second;
  }

  int32_t state_id(int32_t byte_state, int32_t set) {
    if (set < 0) {
      if (static_cast<size_t>(byte_state) >= plain_.size()) plain_.resize(byte_state + 1, -1);
      if (plain_[byte_state] >= 0) return plain_[byte_state];
    } else if (auto it = ids_.find({byte_state, set}); it != ids_.end()) {
      return it->second;
    }
    if (states_.size() >= kMaxStates) throw std::length_error("too many automaton states");
    const auto id = static_cast<int32_t>(states_.size());
    states_.push_back({byte_state, set});
    if (set < 0)
      plain_[byte_state] = id;
    else
      ids_[{byte_state, set}] = id;
    return id;
  }

  void expand_root() {
    root_.assign(tokens_, kDead);
    path_[0] = {machine_.start, machine_.start, -1, false};
    for (size_t n = 0; n < trie_.nodes.size();) {
      const auto& node = trie_.nodes[n];
      const Place& from = path_[node.depth];
      const ByteMachine::Step step = machine_.row(from.state)[node.byte];
      if (step.to == kDead) {
        n = node.end;
        continue;
      }
      Place& to = path_[node.depth + 1];
      to.state = step.to;
      to.events = merged(from.events, step.events);
      for (int32_t i = 0; i < node.own_tokens; ++i)
        root_[trie_.order[node.first_token + i]] = state_id(to.state, to.events);
      ++n;
    }
    const int32_t special = machine_.after_special(machine_.start);
    for (int32_t t : trie_.specials) root_[t] = special == kDead ? kDead : state_id(special, -1);
    row_of_[machine_.start] = 0;
    rows_.emplace_back();
    columns_.push_back(0);
  }

  // Next states of one state, stored where they differ from the usual. Walks the trie from here
  // and from the root at once: where both paths have met, the whole subtree is the root's.
  void expand(size_t i) {
    const int32_t byte_state = states_[i].byte_state;
    if (auto known = row_of_.find(byte_state); known != row_of_.end()) {
      columns_.push_back(known->second);
      return;
    }
    Row row;
    const int32_t usual = machine_.usual(byte_state);
    row.base = usual < 0 ? usual : state_id(usual, -1);
    const bool like_root = usual == kLikeRoot;
    path_[0] = {byte_state, machine_.start, -1, false};
    for (size_t n = 0; n < trie_.nodes.size();) {
      const auto& node = trie_.nodes[n];
      const Place& from = path_[node.depth];
      const ByteMachine::Step step = machine_.row(from.state)[node.byte];
      if (step.to == kDead) {
        if (usual != kDead)
          for (int32_t t = node.first_token; t < node.last_token; ++t)
            put(row, like_root, trie_.order[t], kDead);
        n = node.end;
        continue;
      }
      Place& to = path_[node.depth + 1];
      to.state = step.to;
      to.events = merged(from.events, step.events);
      to.root = kDead;
      to.root_events = from.root_events;
      if (like_root && from.root != kDead) {
        const ByteMachine::Step other = machine_.row(from.root)[node.byte];
        to.root = other.to;
        to.root_events = from.root_events || other.events >= 0;
        if (to.root == to.state && to.events < 0 && !to.root_events) {
          n = node.end;
          continue;
        }
      }
      if (usual >= 0 && to.state == usual && to.events < 0 && machine_.absorbing(usual)) {
        n = node.end;
        continue;
      }
      for (int32_t t = 0; t < node.own_tokens; ++t)
        put(row, like_root, trie_.order[node.first_token + t], state_id(to.state, to.events));
      ++n;
    }
    const int32_t special = machine_.after_special(byte_state);
    const int32_t target = special == kDead ? kDead : state_id(special, -1);
    for (int32_t t : trie_.specials)
      if (like_root || target != row.base) put(row, like_root, t, target);
    std::sort(row.unlike.begin(), row.unlike.end());
    row_of_[byte_state] = static_cast<int32_t>(rows_.size());
    columns_.push_back(static_cast<int32_t>(rows_.size()));
    rows_.push_back(std::move(row));
  }

  void put(Row& row, bool like_root, int32_t token, int32_t next) const {
    if (like_root && root_[token] == next) return;
    row.unlike.emplace_back(token, next);
  }

  int32_t alive(int32_t next) const { return next == kDead ? fallback_ : next; }

  void bias_of(const State& state, const Row& row, std::vector<ArenaBias>& bias,
               float& floor) const;

  const ByteMachine& machine_;
  const VocabularyTrie& trie_;
  size_t tokens_;
  float bonus_;
  bool overlay_;
  int32_t reset_ = 0, fallback_ = 0;
  std::vector<Place> path_;
  std::vector<State> states_;
  std::vector<int32_t> plain_;
  std::map<std::pair<int32_t, int32_t>, int32_t> ids_;
  std::map<std::vector<int32_t>, int32_t> set_ids_;
  std::vector<std::vector<int32_t>> sets_;
  std::unordered_map<int32_t, int32_t> row_of_;
  std::vector<int32_t> columns_;  // state -> row
  std::vector<int32_t> root_;     // next state of every token in the root, kDead where forbidden
  std::vector<Row> rows_;
};

template <class T>
int64_t append(std::string& out, const std::vector<T>& table) {
  out.resize((out.size() + 7) / 8 * 8);
  const auto at = static_cast<int64_t>(out.size());
  if (!table.empty())
    out.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(T));
  return at;
}

void Composer::bias_of(const State& state, const Row& row, std::vector<ArenaBias>& bias,
                       float& floor) const {
  floor = 0.0f;
  if (!overlay_) return;
  const float never = -std::numeric_limits<float>::infinity();
  const bool steer = bonus_ > 0;
  auto add = [&](int32_t token, int32_t next) {
    if (steer) {
      if (next != kDead && machine_.favoured(state.byte_state, states_[next].byte_state))
        bias.push_back({token, bonus_});
    } else if (floor == 0.0f && next == kDead) {
      bias.push_back({token, never});
    } else if (floor != 0.0f && next != kDead) {
      bias.push_back({token, 0.0f});
    }
  };
  if (!steer && row.base == kDead) floor = never;
  if (row.base != kLikeRoot) {
    for (auto [token, next] : row.unlike) add(token, next);
    return;
  }
  size_t at = 0;
  for (size_t t = 0; t < tokens_; ++t) {
    const auto token = static_cast<int32_t>(t);
    const bool own = at < row.unlike.size() && row.unlike[at].first == token;
    add(token, own ? row.unlike[at++].second : root_[t]);
  }
}

std::string Composer::arena() const {
  const size_t n = states_.size();
  // Tokens that act alike in every state share a class.
  std::vector<std::vector<int32_t>> signature(tokens_);
  for (size_t t = 0; t < tokens_; ++t) signature[t].push_back(alive(root_[t]));
  for (size_t r = 0; r < rows_.size(); ++r)
    for (auto [token, next] : rows_[r].unlike) {
      signature[token].push_back(static_cast<int32_t>(r));
      signature[token].push_back(alive(next));
    }
  std::vector<uint16_t> classes(tokens_);
  std::unordered_map<std::vector<int32_t>, int32_t, VectorHash> class_ids;
  std::vector<int32_t> root;
  for (size_t t = 0; t < tokens_; ++t) {
    auto [it, fresh] = class_ids.try_emplace(signature[t], static_cast<int32_t>(root.size()));
    if (fresh) root.push_back(signature[t][0]);
    if (it->second > 0xffff) throw std::length_error("more than 65,536 token classes");
    classes[t] = static_cast<uint16_t>(it->second);
  }
  if (root.empty()) root.push_back(0);
  std::vector<int32_t> rows{0}, bases, events, bias_rows{0};
  std::vector<ArenaEntry> entries;
  std::vector<ArenaBias> bias;
  std::vector<float> floors;
  std::vector<uint8_t> flags;
  for (size_t s = 0; s < n; ++s) {
    const Row& row = rows_[columns_[s]];
    const size_t first = entries.size();
    for (auto [token, next] : row.unlike) entries.push_back({classes[token], alive(next)});
    std::sort(entries.begin() + first, entries.end(),
              [](const ArenaEntry& a, const ArenaEntry& b) { return a.cls < b.cls; });
    entries.erase(
        std::unique(entries.begin() + first, entries.end(),
                    [](const ArenaEntry& a, const ArenaEntry& b) { return a.cls == b.cls; }),
        entries.end());
    rows.push_back(static_cast<int32_t>(entries.size()));
    bases.push_back(row.base == kLikeRoot ? -1 : alive(row.base));
    events.push_back(states_[s].set);
    flags.push_back(machine_.done(states_[s].byte_state) ? 1 : 0);
    float floor;
    bias_of(states_[s], row, bias, floor);
    bias_rows.push_back(static_cast<int32_t>(bias.size()));
    floors.push_back(floor);
  }
  std::vector<int32_t> set_rows{0}, set_items;
  for (const auto& set : sets_) {
    set_items.insert(set_items.end(), set.begin(), set.end());
    set_rows.push_back(static_cast<int32_t>(set_items.size()));
  }

  ArenaHeader h{};
  h.magic = kArenaMagic;
  h.version = kArenaVersion;
  h.tokens = static_cast<int32_t>(tokens_);
  h.classes = static_cast<int32_t>(root.size());
  h.states = static_cast<int32_t>(n);
  h.entries = static_cast<int32_t>(entries.size());
  h.sets = static_cast<int32_t>(sets_.size());
  h.set_items = static_cast<int32_t>(set_items.size());
  h.biases = static_cast<int32_t>(bias.size());
  h.start = 0;
  h.reset = reset_;
  h.overlay = overlay_ ? 1 : 0;
  std::string out(sizeof(ArenaHeader), '\0');
  h.at_classes = append(out, classes);
  h.at_root = append(out, root);
  h.at_rows = append(out, rows);
  h.at_bases = append(out, bases);
  h.at_entries = append(out, entries);
  h.at_events = append(out, events);
  h.at_set_rows = append(out, set_rows);
  h.at_set_items = append(out, set_items);
  h.at_bias_rows = append(out, bias_rows);
  h.at_bias = append(out, bias);
  h.at_floor = append(out, floors);
  h.at_flags = append(out, flags);
  out.resize((out.size() + 7) / 8 * 8);
  h.bytes = out.size();
  h.checksum = arena_checksum(reinterpret_cast<const uint8_t*>(out.data()) + sizeof(h),
                              out.size() - sizeof(h));
  std::memcpy(out.data(), &h, sizeof(h));
  return out;
}

// ---- triggers: a nondeterministic automaton per phrase, determinised together -----------------

struct NfaNode {
  std::vector<std::pair<uint8_t, int32_t>> edges;
  std::vector<int32_t> empty;  // steps that take no byte
  bool boundary = false;       // accept only if the next byte is no word byte
  int32_t trigger = -1;
};

class TriggerMachine {
 public:
  explicit TriggerMachine(const std::vector<Phrase>& phrases) {
    for (const Phrase& p : phrases) add(p);
    // The state's last element says whether the byte before was a word byte.
    start_ = id({}, false);
  }

  ByteMachine machine() {
    ByteMachine m;
    m.start = m.reset = m.fallback = start_;
    m.lists = &lists_;
    m.row = [this](int32_t s) { return row(s); };
    m.after_special = [this](int32_t) { return start_; };
    return m;
  }

 private:
  void add(const Phrase& p) {
    int32_t at = node();
    const int32_t first = at;
    for (size_t i = 0; i < p.positions.size(); ++i) {
      const int32_t to = node();
      for (const std::string& text : p.positions[i]) {
        int32_t from = at;
        for (size_t j = 0; j < text.size(); ++j) {
          const int32_t next = j + 1 == text.size() ? to : node();
          nodes_[from].edges.emplace_back(static_cast<uint8_t>(text[j]), next);
          from = next;
        }
      }
      if (p.repeat[i]) nodes_[to].empty.push_back(at);
      if (p.optional[i]) nodes_[at].empty.push_back(to);
      at = to;
    }
    nodes_[at].trigger = p.trigger;
    nodes_[at].boundary = p.right;
    auto& starts = p.left ? left_edges_ : anywhere_edges_;
    starts.insert(starts.end(), nodes_[first].edges.begin(), nodes_[first].edges.end());
  }

  int32_t node() {
    nodes_.emplace_back();
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  void close(std::set<int32_t>& set) const {
    std::vector<int32_t> open(set.begin(), set.end());
    while (!open.empty()) {
      const int32_t n = open.back();
      open.pop_back();
      for (int32_t e : nodes_[n].empty)
        if (set.insert(e).second) open.push_back(e);
    }
  }

  int32_t id(const std::set<int32_t>& set, bool word) {
    std::vector<int32_t> key(set.begin(), set.end());
    key.push_back(word ? 1 : 0);
    auto [it, fresh] = ids_.try_emplace(key, static_cast<int32_t>(sets_.size()));
    if (fresh) {
      if (sets_.size() >= kMaxStates) throw std::length_error("too many automaton states");
      sets_.push_back({set, word});
      memo_.emplace_back();
    }
    return it->second;
  }

  const ByteMachine::Step* row(int32_t s) {
    if (memo_[s] == nullptr) {
      auto made = std::make_unique<std::array<ByteMachine::Step, 256>>();
      for (int b = 0; b < 256; ++b) (*made)[b] = step(s, static_cast<uint8_t>(b));
      memo_[s] = std::move(made);
    }
    return memo_[s]->data();
  }

  ByteMachine::Step step(int32_t s, uint8_t b) {
    const auto [set, word] = sets_[s];
    std::vector<int32_t> events;
    std::set<int32_t> to;
    auto follow = [&](int32_t n, bool begun) {
      if (begun && nodes_[n].trigger >= 0 && nodes_[n].boundary && !word_byte(b))
        events.push_back(nodes_[n].trigger);
      for (auto [byte, next] : nodes_[n].edges)
        if (byte == b) to.insert(next);
    };
    for (int32_t n : set) follow(n, true);
    for (auto [byte, next] : anywhere_edges_)
      if (byte == b) to.insert(next);
    if (!word)
      for (auto [byte, next] : left_edges_)
        if (byte == b) to.insert(next);
    close(to);
    for (int32_t n : to)
      if (nodes_[n].trigger >= 0 && !nodes_[n].boundary) events.push_back(nodes_[n].trigger);
    ByteMachine::Step made;
    made.to = id(to, word_byte(b));
    if (!events.empty()) {
      made.events = static_cast<int32_t>(lists_.size());
      lists_.push_back(events);
    }
    return made;
  }

  std::vector<NfaNode> nodes_;
  std::vector<std::pair<uint8_t, int32_t>> left_edges_, anywhere_edges_;
  std::vector<std::vector<int32_t>> lists_;
  std::map<std::vector<int32_t>, int32_t> ids_;
  std::vector<std::pair<std::set<int32_t>, bool>> sets_;
  std::vector<std::unique_ptr<std::array<ByteMachine::Step, 256>>> memo_;
  int32_t start_ = 0;
};

// ---- overlays: what may follow a trigger --------------------------------------------------------

// Modes: Free text without a value; Await, a lead was said and the value must come; Inside a
// rendering; Tail, a rendering is complete and what follows must not change it; Done.
class OverlayMachine {
 public:
  enum Mode : int32_t { kFree, kAwait, kInside, kTail, kDone };

  OverlayMachine(const std::vector<std::string>& renderings, const std::vector<std::string>& values,
                 const std::vector<std::string>& leads, const std::vector<std::string>& tails,
                 bool strict)
      : renderings_(renderings), values_(values), leads_(leads), tails_(tails), strict_(strict) {
    State start{kFree, {}, false};
    start_ = id(start);
    done_ = id({kDone, {}, false});
  }

  ByteMachine machine() {
    ByteMachine m;
    m.start = start_;
    m.reset = m.fallback = done_;
    m.row = [this](int32_t s) { return row(s); };
    m.after_special = [this](int32_t s) {
      const int32_t mode = states_[s].mode;
      return strict_ && (mode == kAwait || mode == kInside) ? kDead : done_;
    };
    m.usual = [this](int32_t s) {
      switch (states_[s].mode) {
        case kFree: return kLikeRoot;
        case kAwait:
        case kInside: return kDead;
        default: return done_;
      }
    };
    m.absorbing = [this](int32_t s) { return s == done_; };
    m.done = [this](int32_t s) { return states_[s].mode == kDone; };
    m.favoured = [this](int32_t from, int32_t to) {
      return states_[from].mode != kDone &&
             (states_[to].mode == kInside || states_[to].mode == kTail);
    };
    return m;
  }

 private:
  // Progress in a text: kind (0 value, 1 lead, 2 rendering, 3 tail;
  // 4 counts blanks while a value is awaited), index, bytes read.
  using Item = std::array<int32_t, 3>;
  struct State {
    int32_t mode;
    std::vector<Item> items;
    bool word;  // the byte before was a word byte
    bool operator<(const State& o) const {
      return std::tie(mode, items, word) < std::tie(o.mode, o.items, o.word);
    }
  };

  const std::vector<std::string>& list(int32_t kind) const {
    return kind == 0 ? values_ : kind == 1 ? leads_ : kind == 2 ? renderings_ : tails_;
  }

  int32_t id(State s) {
    std::sort(s.items.begin(), s.items.end());
    s.items.erase(std::unique(s.items.begin(), s.items.end()), s.items.end());
    auto [it, fresh] = ids_.try_emplace(s, static_cast<int32_t>(states_.size()));
    if (fresh) {
      if (states_.size() >= kMaxStates) throw std::length_error("too many overlay states");
      states_.push_back(s);
      memo_.emplace_back();
    }
    return it->second;
  }

  const ByteMachine::Step* row(int32_t s) {
    if (memo_[s] == nullptr) {
      auto made = std::make_unique<std::array<ByteMachine::Step, 256>>();
      for (int b = 0; b < 256; ++b) (*made)[b].to = compute(s, static_cast<uint8_t>(b));
      memo_[s] = std::move(made);
    }
    return memo_[s]->data();
  }

  static bool starts_word(const std::string& text) {
    return word_byte(static_cast<uint8_t>(text[0]));
  }

  void begin(int32_t kind, bool word, std::vector<Item>& items) const {
    for (size_t i = 0; i < list(kind).size(); ++i)
      if (!list(kind)[i].empty() && !(word && starts_word(list(kind)[i])))
        items.push_back({kind, static_cast<int32_t>(i), 0});
  }

  // Items that take the byte; those that end are collected apart.
  void advance(const std::vector<Item>& items, uint8_t b, std::vector<Item>& on,
               std::vector<Item>& ended) const {
    for (Item item : items) {
      const std::string& text = list(item[0])[item[1]];
      if (static_cast<uint8_t>(text[item[2]]) != b) continue;
      ++item[2];
      (static_cast<size_t>(item[2]) == text.size() ? ended : on).push_back(item);
    }
  }

  int32_t compute(int32_t s, uint8_t b) {
    const State from = states_[s];
    const bool word = word_byte(b);
    switch (from.mode) {
      case kDone: return done_;
      case kFree: return from_free(from, b, word);
      case kAwait: return from_await(from, b, word);
      case kInside: return from_inside(from, b, word);
      default: return from_tail(from, b, word);
    }
  }

  int32_t from_free(const State& from, uint8_t b, bool word) {
    // A lead that was complete one byte ago counts once the word has ended.
    std::vector<Item> items;
    bool lead_ended = false;
    for (const Item& item : from.items) {
      const bool complete = static_cast<size_t>(item[2]) == list(item[0])[item[1]].size();
      if (complete && item[0] == 1) lead_ended = lead_ended || !word;
      if (!complete) items.push_back(item);
    }
    if (lead_ended) return from_await({kAwait, {}, from.word}, b, word);
    begin(0, from.word, items);
    begin(1, from.word, items);
    begin(2, from.word, items);
    std::vector<Item> on, ended;
    advance(items, b, on, ended);
    std::vector<Item> rendering, rest;
    for (const Item& item : on) (item[0] == 2 ? rendering : rest).push_back(item);
    bool bad = false, complete = false;
    for (const Item& item : ended) {
      if (item[0] == 0) bad = true;
      if (item[0] == 2) complete = true;
      if (item[0] == 1) {
        const auto last = static_cast<uint8_t>(leads_[item[1]].back());
        if (!word_byte(last)) return id({kAwait, {}, false});
        rest.push_back(item);
      }
    }
    if (complete) return id(tail_state(rendering, ended, word));
    if (bad) return rendering.empty() ? kDead : id({kInside, rendering, word});
    if (ends_sentence(b)) return done_;
    rest.insert(rest.end(), rendering.begin(), rendering.end());
    return id({kFree, rest, word});
  }

  int32_t from_await(const State& from, uint8_t b, bool word) {
    std::vector<Item> items;
    begin(2, from.word, items);
    std::vector<Item> on, ended;
    advance(items, b, on, ended);
    if (!ended.empty()) return id(tail_state(on, ended, word));
    if (!on.empty()) return id({kInside, on, word});
    // Blanks and Markdown marks may come before the value, a few of them.
    const int32_t seen = from.items.empty() ? 0 : from.items[0][1];
    if ((b == ' ' || b == '*') && seen < 3) return id({kAwait, {{4, seen + 1, 0}}, false});
    return kDead;
  }

  int32_t from_inside(const State& from, uint8_t b, bool word) {
    std::vector<Item> on, ended;
    advance(from.items, b, on, ended);
    if (!ended.empty()) return id(tail_state(on, ended, word));
    return on.empty() ? kDead : id({kInside, on, word});
  }

  // After a complete rendering: longer renderings go on; else what follows must not change it.
  State tail_state(const std::vector<Item>& on, const std::vector<Item>& ended, bool word) const {
    std::vector<Item> items;
    for (const Item& item : on)
      if (item[0] == 2) items.push_back(item);
    // A value that ends in a digit can still be changed by "," or " million"; "60 days" cannot.
    bool digit = false;
    for (const Item& item : ended)
      if (item[0] == 2) digit = digit || is_digit(renderings_[item[1]].back());
    if (digit)
      for (size_t i = 0; i < tails_.size(); ++i) items.push_back({3, static_cast<int32_t>(i), 0});
    return {kTail, items, word};
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  int32_t from_tail(const State& from, uint8_t b, bool word) {
    std::vector<Item> on, ended;
    advance(from.items, b, on, ended);
    for (const Item& item : ended)
      if (item[0] == 3) return kDead;
    if (!ended.empty()) return id(tail_state(on, ended, word));
    if (!on.empty()) return id({kTail, on, word});
    // The first byte after the value must not glue to it.
    if (from.word && word) return kDead;
    return done_;
  }

  static bool ends_sentence(uint8_t b) { return b == '!' || b == '?' || b == '\n'; }

  std::vector<std::string> renderings_, values_, leads_, tails_;
  bool strict_;
  std::map<State, int32_t> ids_;
  std::vector<State> states_;
  std::vector<std::unique_ptr<std::array<ByteMachine::Step, 256>>> memo_;
  int32_t start_ = 0, done_ = 0;
};

}  // namespace

std::string compile_triggers(const std::vector<Phrase>& phrases, const Vocabulary& vocabulary) {
  TriggerMachine triggers(phrases);
  const ByteMachine machine = triggers.machine();
  const VocabularyTrie trie(vocabulary);
  return Composer(machine, trie, vocabulary.size(), 0, false).arena();
}

std::string compile_overlay(const std::vector<std::string>& renderings,
                            const std::vector<std::string>& values,
                            const std::vector<std::string>& leads,
                            const std::vector<std::string>& tails, const Vocabulary& vocabulary,
                            float bonus) {
  OverlayMachine overlay(renderings, values, leads, tails, bonus <= 0);
  const ByteMachine machine = overlay.machine();
  const VocabularyTrie trie(vocabulary);
  return Composer(machine, trie, vocabulary.size(), bonus, true).arena();
}

}  // namespace zerolayer

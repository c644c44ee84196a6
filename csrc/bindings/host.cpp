// zerolayer._host: the automaton compiler for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "../host/automaton.h"
#include "../host/watcher.h"
#include "../shared/automaton.h"

namespace py = pybind11;

namespace {

// pybind11 would read Python bytes as UTF-8 text where it expects a string in an optional.
zerolayer::Vocabulary vocabulary_of(const py::list& tokens) {
  zerolayer::Vocabulary vocabulary;
  vocabulary.reserve(tokens.size());
  for (const py::handle& token : tokens) {
    if (token.is_none())
      vocabulary.emplace_back(std::nullopt);
    else
      vocabulary.emplace_back(std::string(py::cast<py::bytes>(token)));
  }
  return vocabulary;
}

struct HeldVocabulary {
  zerolayer::Vocabulary tokens;
};

std::vector<std::string> strings_of(const py::list& list) {
  std::vector<std::string> out;
  for (const py::handle& item : list) out.emplace_back(std::string(py::cast<py::bytes>(item)));
  return out;
}

zerolayer::Arena opened(const std::string& data) {
  zerolayer::Arena arena;
  const char* error = zerolayer::open_arena(data.data(), static_cast<int64_t>(data.size()), arena);
  if (error != nullptr) throw py::value_error(error);
  return arena;
}

// A watcher over memory that Python owns; the buffers keep it alive.
class HeldWatcher {
 public:
  HeldWatcher(const py::buffer& arena, const py::buffer& state)
      : arena_(arena.request()), state_(state.request(/*writable=*/true)), watcher_(made()) {}

  zerolayer::Watcher& operator*() { return watcher_; }

 private:
  zerolayer::Watcher made() const {
    if (arena_.ndim != 1 || arena_.itemsize != 1 || arena_.strides[0] != 1)
      throw py::value_error("the arena must be a contiguous row of uint8");
    if (state_.size != 1 || !state_.item_type_is_equivalent_to<int32_t>())
      throw py::value_error("the state must be one int32");
    zerolayer::Arena arena;
    const char* error = zerolayer::open_arena(arena_.ptr, arena_.size, arena);
    if (error != nullptr) throw py::value_error(error);
    return {arena, static_cast<int32_t*>(state_.ptr)};
  }

  py::buffer_info arena_, state_;
  zerolayer::Watcher watcher_;
};

}  // namespace

PYBIND11_MODULE(_host, m) {
  m.doc() = "Compiles phrases and renderings into token automata.";
  py::class_<HeldVocabulary>(m, "Vocabulary").def(py::init([](const py::list& tokens) {
    return HeldVocabulary{vocabulary_of(tokens)};
  }));
  m.def(
      "compile_triggers",
      [](const py::list& phrases, const HeldVocabulary& vocabulary) {
        std::vector<zerolayer::Phrase> list;
        for (const py::handle& item : phrases) {
          const auto entry = py::cast<py::tuple>(item);
          zerolayer::Phrase phrase;
          phrase.trigger = py::cast<int32_t>(entry[0]);
          for (const py::handle& position : py::cast<py::list>(entry[1])) {
            const auto parts = py::cast<py::tuple>(position);
            phrase.positions.push_back(strings_of(py::cast<py::list>(parts[0])));
            phrase.repeat.push_back(py::cast<bool>(parts[1]));
            phrase.optional.push_back(py::cast<bool>(parts[2]));
          }
          phrase.left = py::cast<bool>(entry[2]);
          phrase.right = py::cast<bool>(entry[3]);
          list.push_back(std::move(phrase));
        }
        return py::bytes(zerolayer::compile_triggers(list, vocabulary.tokens));
      },
      py::arg("phrases"), py::arg("vocabulary"));
  m.def(
      "compile_overlay",
      [](const py::list& renderings, const py::list& values, const py::list& leads,
         const py::list& tails, const HeldVocabulary& vocabulary, float bonus) {
        return py::bytes(zerolayer::compile_overlay(strings_of(renderings), strings_of(values),
                                                    strings_of(leads), strings_of(tails),
                                                    vocabulary.tokens, bonus));
      },
      py::arg("renderings"), py::arg("values"), py::arg("leads"), py::arg("tails"),
      py::arg("vocabulary"), py::arg("bonus"));
  m.def("validate", [](const std::string& data) -> std::optional<std::string> {
    const char* error = zerolayer::validate_arena(data.data(), static_cast<int64_t>(data.size()));
    return error == nullptr ? std::nullopt : std::optional<std::string>(error);
  });
  m.def("event_sets", [](const std::string& data) {
    const zerolayer::Arena arena = opened(data);
    const auto* rows = arena.at<int32_t>(arena.header->at_set_rows);
    const auto* items = arena.at<int32_t>(arena.header->at_set_items);
    std::vector<std::vector<int32_t>> sets;
    for (int32_t i = 0; i < arena.header->sets; ++i)
      sets.emplace_back(items + rows[i], items + rows[i + 1]);
    return sets;
  });
  m.def("info", [](const std::string& data) {
    const zerolayer::Arena arena = opened(data);
    py::dict info;
    info["states"] = arena.header->states;
    info["classes"] = arena.header->classes;
    info["start"] = arena.header->start;
    info["reset"] = arena.header->reset;
    info["bytes"] = arena.header->bytes;
    return info;
  });
  m.def("done_flags", [](const std::string& data) {
    const zerolayer::Arena arena = opened(data);
    return py::bytes(reinterpret_cast<const char*>(arena.base + arena.header->at_flags),
                     arena.header->states);
  });
  py::class_<HeldWatcher>(m, "Watcher")
      .def(py::init<const py::buffer&, const py::buffer&>(), py::arg("arena"), py::arg("state"))
      .def(
          "step", [](HeldWatcher& w, int64_t token) { return (*w).step(token); }, py::arg("token"))
      .def_property_readonly("ended", [](HeldWatcher& w) { return (*w).ended(); })
      .def_property(
          "state", [](HeldWatcher& w) { return (*w).state(); },
          [](HeldWatcher& w, int32_t state) { (*w).set_state(state); });
}

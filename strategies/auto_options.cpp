// SPDX-License-Identifier: MIT
#include "strategies/auto_options.h"

#include <fmt/format.h>

namespace convoy::inline strategies {
namespace {

void read_candidates(YamlMap& map, AutoOptions& options) {
  options.candidates_pos = map.pos("candidates");
  options.candidates = map.find("candidates");
  if (!options.candidates) return;
  const bool is_list = options.candidates->kind == YamlNode::Kind::sequence;
  if (!is_list || options.candidates->items.empty())
    map.fail("candidates", fmt::format("expected a list of strategies such as [{{kind: single}}], found {}",
                                       is_list ? "an empty list" : describe(*options.candidates)));
}

[[noreturn]] std::unique_ptr<Strategy> refuse(YamlMap& map) {
  map.fail("kind",
           "auto simulates other strategies to find the best; it cannot be a part of one, or a candidate");
}

}  // namespace

const Keys<AutoOptions>& auto_keys() {
  using Options = AutoOptions;
  static const Keys<Options> keys{
      choice_key<Options>(
          "objective", objective_names,
          "what is best: time (of equally many images), images/s, USD an epoch, J (of equally "
          "many images), or memory of the fullest device",
          &Options::objective)
          .at(&Options::objective_pos),
      list_key<Options>("candidates", "those of every kind",
                        forms::list(forms::section("strategies", "{kind, ...}"), "a list of strategies", 1),
                        "what is tried; a list of values for a key stands for each of them",
                        &read_candidates),
      optional_integer_key<Options>("budget", "all", 1, 1'000'000'000,
                                    "simulations at most; the others stay unknown", &Options::budget)};
  return keys;
}

StrategyEntry auto_entry() {
  return {"auto", "the best of many candidates of the strategies above, found by simulation",
          texts_of(auto_keys()), &refuse};
}

}  // namespace convoy::strategies

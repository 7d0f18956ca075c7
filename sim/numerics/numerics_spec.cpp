// SPDX-License-Identifier: MIT
#include "sim/numerics/numerics_spec.h"

#include "sim/base/key_parts.h"

namespace convoy::inline numerics {
namespace {

const Keys<NumericsSpec>& all_numerics_keys() {
  using Spec = NumericsSpec;
  static const Keys<Spec> keys{
      mapping_key<Spec>("data", "", "what is learnt from", data_keys(), &Spec::data).required(),
      integer_key<Spec>("steps", 1, 1'000'000, "of a global batch", &Spec::steps),
      optional_integer_key<Spec>("every", "20 times in all", 1, 1'000'000,
                                 "loss and accuracy are measured after so many steps, again and again",
                                 &Spec::every),
      number_key<Spec>("learning_rate", 0, 1000, "of the optimizer (training.optimizer)",
                       &Spec::learning_rate),
      integer_key<Spec>("seed", 0, 1'000'000'000,
                        "of the first weights, the order of the images, dropout and what is drawn",
                        &Spec::seed),
      choice_key<Spec>("precision", {"double", "single"},
                       "of all values: what the network computes, not what is simulated (training.precision)",
                       &Spec::precision)};
  return keys;
}

}  // namespace

NumericsSpec read_numerics(const YamlNode& node) {
  NumericsSpec spec;
  read_part(all_numerics_keys(), YamlMap(node, "numerics"), spec);
  return spec;
}

KeySection numerics_keys() {
  return {"numerics", "the network learns from real values, as the plan says", texts_of(all_numerics_keys())};
}

}  // namespace convoy::numerics

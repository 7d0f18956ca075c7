// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/quantity.h"

namespace convoy::inline base {

/// What may be written as the value of a key. The text for people (`convoy show keys`) and the JSON Schema for
/// editors (`convoy show schema`) are made from it. It describes the form of a value alone: what must hold
/// between several keys, or between a name and the catalogue, is checked by the readers.
struct ValueForm {
  enum class Kind : std::uint8_t {
    anything,
    text,      ///< any scalar
    name,      ///< one of `names`
    whole,     ///< a whole number in [min, max]
    number,    ///< a number in [min, max]
    quantity,  ///< a number with a unit of `dimension`
    list,      ///< of min to max values of the form inner[0]
    parts,     ///< a mapping of the key's `parts`
    before,    ///< a mapping of the keys before this one in its table, without those that are required
    entries,   ///< a mapping whose keys the user chooses, with values of the form inner[0]
    section,   ///< a value of the KeySection `section`
    either,    ///< a value of one of the forms `inner`
  };
  Kind kind = Kind::text;
  std::string values;  ///< for people: "a bandwidth", "1 to 32"
  std::vector<std::string> names = {};
  bool spelled = true;  ///< of a name: other spellings are understood (names.h)
  double min = 0, max = std::numeric_limits<double>::max();
  bool above_min = false;  ///< the value min itself is an error
  Dimension dimension = Dimension::bytes;
  std::vector<ValueForm> inner = {};
  std::string section = {};
  bool changes =
      false;  ///< of a section: keys that change a value of it, without the one that decides its kind

  /// The same with another text for people.
  ValueForm said(std::string text) &&;
};

/// Makers of forms, each with its usual text.
namespace forms {
ValueForm anything(std::string what);
/// @param what "a name", "a CSV file"
/// @param subject of `convoy show` whose names are meant ("models"); "": no such names
ValueForm text(std::string what, std::string subject = "");
/// One of several names: "ring | tree".
ValueForm name(std::vector<std::string> names);
/// The same without other spellings.
ValueForm exact_name(std::vector<std::string> names);
/// true or false.
ValueForm flag();
ValueForm whole(std::int64_t min, std::int64_t max);
ValueForm number(double min, double max = std::numeric_limits<double>::max());
/// @param positive zero is an error
ValueForm quantity(Dimension dimension, bool positive = false);
/// A share, up to 100 %.
ValueForm share(bool positive = false);
/// @param what "a list of names", "a list such as [0, 1]"
ValueForm list(ValueForm inner, std::string what, std::size_t least = 0);
/// @param what "{host, at}"
ValueForm parts(std::string what);
ValueForm before(std::string what);
ValueForm entries(ValueForm inner, std::string what);
/// @param what "{kind, ...}"
ValueForm section(std::string name, std::string what);
/// Keys that change a value of the section, one of several kinds: without the key that decides which.
ValueForm changes(std::string section, std::string what);
ValueForm either(std::vector<ValueForm> inner);
}  // namespace forms

}  // namespace convoy::base

// SPDX-License-Identifier: MIT
#include "sim/base/value_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sim/base/yaml_map.h"

namespace convoy::inline base {

ValueForm ValueForm::said(std::string text) && {
  values = std::move(text);
  return std::move(*this);
}

namespace forms {
namespace {

ValueForm of_kind(ValueForm::Kind kind, std::string values) {
  ValueForm form;
  form.kind = kind;
  form.values = std::move(values);
  return form;
}

}  // namespace

ValueForm anything(std::string what) { return of_kind(ValueForm::Kind::anything, std::move(what)); }

ValueForm text(std::string what, std::string subject) {
  ValueForm form = of_kind(ValueForm::Kind::text, std::move(what));
  form.section = std::move(subject);
  return form;
}

ValueForm name(std::vector<std::string> names) {
  ValueForm form = of_kind(ValueForm::Kind::name, fmt::format("{}", fmt::join(names, " | ")));
  form.names = std::move(names);
  return form;
}

ValueForm exact_name(std::vector<std::string> names) {
  ValueForm form = name(std::move(names));
  form.spelled = false;
  return form;
}

ValueForm flag() { return exact_name({"true", "false"}); }

ValueForm whole(std::int64_t min, std::int64_t max) {
  ValueForm form =
      of_kind(ValueForm::Kind::whole, max == YamlMap::max_integer ? fmt::format("a whole number from {}", min)
                                                                  : fmt::format("{} to {}", min, max));
  form.min = static_cast<double>(min);
  form.max = static_cast<double>(max);
  return form;
}

ValueForm number(double min, double max) {
  ValueForm form = of_kind(ValueForm::Kind::number, max == std::numeric_limits<double>::max()
                                                        ? fmt::format("a number from {:g}", min)
                                                        : fmt::format("{:g} to {:g}", min, max));
  form.min = min;
  form.max = max;
  return form;
}

ValueForm quantity(Dimension dimension, bool positive) {
  const std::string_view help = quantity_help(dimension);  // "a size such as 25MiB or 100MB"
  ValueForm form = of_kind(ValueForm::Kind::quantity, std::string(help.substr(0, help.find(" such as"))));
  form.dimension = dimension;
  form.above_min = positive;
  return form;
}

ValueForm share(bool positive) {
  ValueForm form = quantity(Dimension::fraction, positive).said("a share, up to 100%");
  form.max = 1;
  return form;
}

ValueForm list(ValueForm inner, std::string what, std::size_t least) {
  ValueForm form = of_kind(ValueForm::Kind::list, std::move(what));
  form.inner = {std::move(inner)};
  form.min = static_cast<double>(least);
  return form;
}

ValueForm parts(std::string what) { return of_kind(ValueForm::Kind::parts, std::move(what)); }

ValueForm before(std::string what) { return of_kind(ValueForm::Kind::before, std::move(what)); }

ValueForm entries(ValueForm inner, std::string what) {
  ValueForm form = of_kind(ValueForm::Kind::entries, std::move(what));
  form.inner = {std::move(inner)};
  return form;
}

ValueForm section(std::string name, std::string what) {
  ValueForm form = of_kind(ValueForm::Kind::section, std::move(what));
  form.section = std::move(name);
  return form;
}

ValueForm changes(std::string section, std::string what) {
  ValueForm form = forms::section(std::move(section), std::move(what));
  form.changes = true;
  return form;
}

ValueForm either(std::vector<ValueForm> inner) {
  ValueForm form = of_kind(ValueForm::Kind::either, "");
  for (const ValueForm& each : inner) form.values += (form.values.empty() ? "" : " | ") + each.values;
  form.inner = std::move(inner);
  return form;
}

}  // namespace forms

}  // namespace convoy::base

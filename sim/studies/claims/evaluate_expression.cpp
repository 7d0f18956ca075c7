// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <muParser.h>

#include <deque>

#include "sim/studies/claims/claim.h"

namespace convoy::inline studies {
namespace {

struct Names {
  const std::function<double(const std::string&)>& value_of;
  std::deque<double> values;  // muParser keeps their addresses
};

double* variable(const char* name, void* user) {
  auto& names = *static_cast<Names*>(user);
  return &names.values.emplace_back(names.value_of(name));
}

}  // namespace

double evaluate_expression(const std::string& expression, const SourcePos& pos,
                           const std::function<double(const std::string&)>& value_of) {
  Names names{value_of, {}};
  try {
    mu::Parser parser;
    parser.DefineNameChars("0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    parser.SetVarFactory(&variable, &names);
    parser.SetExpr(expression);
    return parser.Eval();
  } catch (const mu::Parser::exception_type& error) {
    throw InputError(pos, fmt::format("'{}' is no expression: {}", expression, error.GetMsg()));
  }
}

}  // namespace convoy::studies

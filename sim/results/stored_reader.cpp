// SPDX-License-Identifier: MIT
#include "sim/results/stored_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <iterator>

#include "sim/results/field_reader.h"
#include "sim/results/json_writer.h"

namespace convoy::inline results {
namespace {

namespace dom = simdjson::dom;

/// The value that simdjson has read. @throws JsonError if it could not
template <class Value>
Value taken(simdjson::simdjson_result<Value>&& result, std::string_view expected) {
  if (result.error() == simdjson::INCORRECT_TYPE) throw JsonError(fmt::format("expected {}", expected));
  if (result.error()) throw JsonError(simdjson::error_message(result.error()));
  return std::move(result).value_unsafe();
}

YamlNode yaml_of(const dom::element& value);

YamlNode yaml_scalar(std::string text, bool quoted) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = std::move(text);
  node.quoted = quoted;
  return node;
}

/// The same result as yaml_of_json gives for a value of a document.
YamlNode yaml_of(const dom::element& value) {
  YamlNode node;
  switch (value.type()) {
    case dom::element_type::ARRAY:
      node.kind = YamlNode::Kind::sequence;
      for (const dom::element item : dom::array(value)) node.items.push_back(yaml_of(item));
      return node;
    case dom::element_type::OBJECT:
      node.kind = YamlNode::Kind::mapping;
      for (const auto& [name, item] : dom::object(value)) node.entries.emplace_back(name, yaml_of(item));
      return node;
    case dom::element_type::STRING:
      return yaml_scalar(std::string(std::string_view(value)), true);
    case dom::element_type::BOOL:
      return yaml_scalar(bool(value) ? "true" : "false", false);
    case dom::element_type::NULL_VALUE:
      return node;
    default:
      return yaml_scalar(yaml_spelling(taken(value.get_double(), "a number")), false);
  }
}

}  // namespace

struct StoredReader::Document {
  dom::parser parser;
  dom::element present;  ///< the value to be read next
  struct Object {
    dom::object::iterator next, end;
  };
  struct List {
    dom::array::iterator next, end;
  };
  std::vector<Object> objects;  ///< the enclosing ones, outermost first
  std::vector<List> lists;      ///< likewise
};

StoredReader::StoredReader(const std::string& text) : document_(std::make_unique<Document>()) {
  document_->present = taken(document_->parser.parse(text), "an object");
}

StoredReader::~StoredReader() = default;

bool StoredReader::find(std::string_view name) {
  Document::Object& object = document_->objects.back();
  if (object.next == object.end || object.next.key() != name) return false;
  document_->present = object.next.value();
  ++object.next;
  return true;
}

void StoredReader::require(std::string_view name) {
  if (!find(name)) throw JsonError(fmt::format("'{}' is missing", name));
}

void StoredReader::enter_object() {
  const dom::object object = taken(document_->present.get_object(), "an object");
  document_->objects.push_back({object.begin(), object.end()});
}

void StoredReader::leave_object() {
  const Document::Object& object = document_->objects.back();
  if (object.next != object.end) throw JsonError(fmt::format("'{}' has no place here", object.next.key()));
  document_->objects.pop_back();
}

void StoredReader::enter_list() {
  const dom::array list = taken(document_->present.get_array(), "a list");
  document_->lists.push_back({list.begin(), list.end()});
}

bool StoredReader::next_item() {
  Document::List& list = document_->lists.back();
  if (list.next == list.end) return false;
  document_->present = *list.next;
  ++list.next;
  return true;
}

void StoredReader::leave_list() { document_->lists.pop_back(); }

std::size_t StoredReader::list_size() const {
  // simdjson's own count ends at 2^24 - 1.
  const dom::array list = taken(document_->present.get_array(), "a list");
  return static_cast<std::size_t>(std::distance(list.begin(), list.end()));
}

std::int64_t StoredReader::read_run(std::string& text) {
  read(text);
  return 1;
}

bool StoredReader::is_list() const { return document_->present.is_array(); }

bool StoredReader::is_null() const { return document_->present.is_null(); }

double StoredReader::signed_number() const {
  const double value = taken(document_->present.get_double(), "a number");
  if (!(std::abs(value) <= largest_result)) throw JsonError("a number that large is no result");
  return value;
}

void StoredReader::read(double& value) {
  value = signed_number();
  if (value < 0) throw JsonError("expected a number that is not below zero");
}

void StoredReader::read(std::int64_t& value) {
  value = taken(document_->present.get_int64(), "a whole number");
  if (value < 0) throw JsonError("expected a whole number that is not below zero");
}

void StoredReader::read(std::uint64_t& value) {  // written as the signed number of the same bits
  value = static_cast<std::uint64_t>(taken(document_->present.get_int64(), "a whole number"));
}

void StoredReader::read(bool& value) { value = taken(document_->present.get_bool(), "true or false"); }

void StoredReader::read(std::string& value) { value = taken(document_->present.get_string(), "text"); }

void StoredReader::read(std::array<double, 2>& bounds) {
  std::size_t count = 0;
  items([&] {
    if (count == bounds.size()) throw JsonError("expected two numbers, there are more");
    read(bounds[count++]);
  });
  if (count < bounds.size()) throw JsonError("expected two numbers, there are fewer");
}

void StoredReader::read(YamlNode& node) { node = yaml_of(document_->present); }

void StoredReader::gain(std::string_view name, double& number) {
  require(name);
  number = signed_number();
}

void StoredReader::gain(std::string_view name, std::optional<double>& number) {
  require(name);
  if (!is_null()) number = signed_number();
}

void StoredReader::nullable(std::string_view name, std::optional<double>& number) {
  require(name);
  if (!is_null()) read(number.emplace());
}

void StoredReader::range(std::string_view name, std::array<double, 2>& bounds) {
  require(name);
  read(bounds);
}

void StoredReader::nullable_range(std::string_view name, std::optional<std::array<double, 2>>& bounds) {
  require(name);
  if (!is_null()) read(bounds.emplace());
}

void StoredReader::texts(std::string_view name, std::vector<std::string>& texts) {
  require(name);
  items([&] { read(texts.emplace_back()); });
}

void StoredReader::map(std::string_view name, std::vector<std::pair<std::string, std::string>>& pairs) {
  require(name);
  for (const auto& [key, value] : taken(document_->present.get_object(), "an object"))
    pairs.emplace_back(key, taken(value.get_string(), "text"));
}

void StoredReader::yaml(std::string_view name, YamlNode& node) {
  require(name);
  read(node);
}

void StoredReader::memory(std::string_view name, std::array<double, memory_class_count>& bytes) {
  require(name);
  enter_object();
  for (std::size_t c = 0; c < memory_class_count; ++c) field(memory_class_names[c], bytes[c]);
  leave_object();
}

void StoredReader::null(std::string_view name) {
  require(name);
  if (!is_null()) throw JsonError(fmt::format("'{}' is not null", name));
}

}  // namespace convoy::results

// SPDX-License-Identifier: MIT
#include "python/arrow_stream.h"

#include <array>
#include <utility>
#include <vector>

#include "python/arrow.h"

namespace py = pybind11;

namespace convoy::bindings {
namespace {

using SharedTable = std::shared_ptr<const Table>;

/// What a schema or an array has beside its structure. A child may be moved out of its parent, so that each
/// has its own.
template <class Structure>
struct Holder {
  SharedTable table;
  std::array<const void*, 3> buffers{};
  std::vector<Structure> children;
  std::vector<Structure*> pointers;

  void point_to_children(Structure& parent) {
    for (Structure& child : children) pointers.push_back(&child);
    parent.n_children = static_cast<std::int64_t>(pointers.size());
    parent.children = pointers.data();
  }
};

/// Releases the children that nobody has moved out, then what the structure holds.
template <class Structure>
void release(Structure* structure) {
  auto* const held = static_cast<Holder<Structure>*>(structure->private_data);
  for (Structure& child : held->children)
    if (child.release) child.release(&child);
  structure->release = nullptr;
  delete held;
}

/// A structure that holds the table. Everything else of it is 0.
template <class Structure>
Holder<Structure>& hold(Structure& structure, const SharedTable& table) {
  structure = {};
  auto* const held = new Holder<Structure>{table, {}, {}, {}};
  structure.private_data = held;
  structure.release = &release<Structure>;
  return *held;
}

void fill_schema(const SharedTable& table, ArrowSchema& schema) {
  Holder<ArrowSchema>& held = hold(schema, table);
  schema.format = "+s";
  schema.name = "";
  held.children.resize(table->columns().size());
  for (std::size_t c = 0; c < held.children.size(); ++c) {
    ArrowSchema& child = held.children[c];
    hold(child, table);
    child.format = table->columns()[c].format();
    child.name = table->columns()[c].name.c_str();
    child.flags = arrow_flag_nullable;
  }
  held.point_to_children(schema);
}

void fill_column(const SharedTable& table, const Column& column, ArrowArray& array) {
  Holder<ArrowArray>& held = hold(array, table);
  array.length = static_cast<std::int64_t>(table->rows());
  array.null_count = static_cast<std::int64_t>(column.nulls);
  held.buffers = {column.nulls > 0 ? column.valid.data() : nullptr, column.values(), column.texts.data()};
  array.n_buffers = column.kind == Column::Kind::text ? 3 : 2;
  array.buffers = held.buffers.data();
}

void fill_array(const SharedTable& table, ArrowArray& array) {
  Holder<ArrowArray>& held = hold(array, table);
  array.length = static_cast<std::int64_t>(table->rows());
  array.n_buffers = 1;  // of a struct: which rows there are; none is missing
  array.buffers = held.buffers.data();
  held.children.resize(table->columns().size());
  for (std::size_t c = 0; c < held.children.size(); ++c)
    fill_column(table, table->columns()[c], held.children[c]);
  held.point_to_children(array);
}

struct Stream {
  SharedTable table;
  bool given = false;  ///< the one batch
};

Stream& held_by(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

void fill_stream(const SharedTable& table, ArrowArrayStream& stream) {
  stream.private_data = new Stream{table};
  stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    fill_schema(held_by(self).table, *out);
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    *out = {};  // without `release`: the end
    if (!std::exchange(held_by(self).given, true)) fill_array(held_by(self).table, *out);
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  stream.release = [](ArrowArrayStream* self) {
    delete static_cast<Stream*>(self->private_data);
    self->release = nullptr;
  };
}

/// A capsule that owns a structure, and releases it unless a reader has moved it out.
template <class Structure, class Fill>
py::capsule capsule_of(const char* name, Fill fill) {
  auto structure = std::make_unique<Structure>();
  fill(*structure);
  PyObject* const capsule = PyCapsule_New(structure.get(), name, [](PyObject* self) {
    auto* const owned = static_cast<Structure*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (owned->release) owned->release(owned);
    delete owned;
  });
  if (!capsule) throw py::error_already_set();
  structure.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace

py::capsule schema_capsule(const SharedTable& table) {
  return capsule_of<ArrowSchema>("arrow_schema", [&](ArrowSchema& schema) { fill_schema(table, schema); });
}

py::capsule stream_capsule(const SharedTable& table) {
  return capsule_of<ArrowArrayStream>("arrow_array_stream",
                                      [&](ArrowArrayStream& stream) { fill_stream(table, stream); });
}

}  // namespace convoy::bindings

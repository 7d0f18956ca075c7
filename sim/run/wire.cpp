// SPDX-License-Identifier: MIT
#include "sim/run/wire.h"

#include <sstream>
#include <stdexcept>

#include "sim/results/field_reader.h"
#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"

namespace convoy {
namespace {

constexpr auto span_fields = [](auto& archive, auto& span) {
  archive.field("name", span.name);
  archive.field("start_s", span.start_s);
  archive.field("end_s", span.end_s);
};

constexpr auto thread_fields = [](auto& archive, auto& thread) {
  archive.field("name", thread.name);
  archive.list("spans", thread.spans, span_fields);
};

constexpr auto memory_point_fields = [](auto& archive, auto& point) {
  archive.field("time_s", point.time_s);
  archive.memory("bytes", point.bytes);
};

constexpr auto memory_fields = [](auto& archive, auto& memory) {
  archive.field("name", memory.name);
  archive.list("points", memory.points, memory_point_fields);
};

constexpr auto process_fields = [](auto& archive, auto& process) {
  archive.field("name", process.name);
  archive.list("threads", process.threads, thread_fields);
  archive.list("memory", process.memory, memory_fields);
};

constexpr auto output_fields = [](auto& archive, auto& output) {
  archive.object("run", output.result, run_fields);
  archive.field("network_model", output.result.network_model);  // of the manifest in results.json
  archive.list("trace", output.trace, process_fields);
};

constexpr auto assessment_fields = [](auto& archive, auto& assessment) {
  archive.field("label", assessment.label);
  archive.field("images", assessment.images);
  archive.field("step_bound_s", assessment.step_bound_s);
  archive.field("energy_bound_j", assessment.energy_bound_j);
  archive.field("bound_text", assessment.bound_text);
  archive.nullable("price_usd_per_h", assessment.price_usd_per_h);
  archive.nullable("samples", assessment.samples);
  archive.field("peak_bytes", assessment.peak_bytes);
  archive.field("process_bytes", assessment.process_bytes);
  archive.field("fits", assessment.fits);
  archive.field("fullest", assessment.fullest);
  archive.field("fullest_size_bytes", assessment.fullest_size_bytes);
};

template <class T, class Fields>
std::string to_json(const T& value, Fields fields) {
  std::ostringstream out;
  {
    JsonWriter json(out, JsonWriter::Style::compact);
    FieldWriter archive(json);
    json.begin_object();
    fields(archive, value);
    json.end_object();
  }
  return std::move(out).str();
}

template <class T, class Fields>
T from_json(const std::string& bytes, Fields fields) {
  try {
    std::istringstream in(bytes);
    const Json document = parse_json(in, "", [](const std::string&, const Json&) {}, {});
    T value;
    FieldReader::whole(document, JsonPlace{}, value, fields);
    return value;
  } catch (const JsonError& error) {
    throw std::runtime_error(std::string("a worker's answer cannot be read: ") + error.what());
  }
}

}  // namespace

std::string encode(const RunOutput& output) { return to_json(output, output_fields); }
RunOutput decode_output(const std::string& bytes) { return from_json<RunOutput>(bytes, output_fields); }

std::string encode(const Assessment& assessment) { return to_json(assessment, assessment_fields); }
Assessment decode_assessment(const std::string& bytes) {
  return from_json<Assessment>(bytes, assessment_fields);
}

}  // namespace convoy

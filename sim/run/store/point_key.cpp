// SPDX-License-Identifier: MIT
#include "sim/run/store/point_key.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/base/data_path.h"
#include "sim/base/digest.h"
#include "sim/base/input_file.h"
#include "sim/replay/engine.h"
#include "sim/run/experiment.h"
#include "sim/run/manifest.h"

namespace convoy::inline runs {
namespace fs = std::filesystem;
namespace {

std::string content_of(const fs::path& file) {
  std::ifstream in = open_input(file);
  std::string content;
  for (char block[65536]; in.read(block, sizeof block) || in.gcount() > 0;)
    content.append(block, static_cast<std::size_t>(in.gcount()));
  return content;
}

void add_folder(const std::string& folder, std::vector<std::pair<std::string, std::string>>& files) {
  const std::string place = data_path(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(place))
    if (entry.is_regular_file())
      files.emplace_back((fs::path(folder) / entry.path().lexically_relative(place)).string(),
                         sha256(content_of(entry.path())));
}

/// The GNU build id of the object, program or shared library, that holds this code.
int find_build_id(dl_phdr_info* info, std::size_t, void* result) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&find_build_id);
  const auto holds = [&](const ElfW(Phdr) & header) {
    return header.p_type == PT_LOAD && here - (info->dlpi_addr + header.p_vaddr) < header.p_memsz;
  };
  if (std::none_of(info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum, holds)) return 0;
  for (int h = 0; h < info->dlpi_phnum; ++h) {
    const ElfW(Phdr)& header = info->dlpi_phdr[h];
    if (header.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* const name = at + sizeof *note;
      const char* const data = name + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID &&
          std::string_view(name, note->n_namesz) == std::string_view("GNU", 4))
        *static_cast<std::string*>(result) = std::string(data, note->n_descsz);
      at = data + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

}  // namespace

std::string program_build() {
  std::string id, text;
  ::dl_iterate_phdr(find_build_id, &id);
  for (const char c : id) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

const std::vector<std::pair<std::string, std::string>>& program_files() {
  static const std::vector<std::pair<std::string, std::string>> files = [] {
    std::vector<std::pair<std::string, std::string>> found;
    for (const char* folder : digested_data_folders) add_folder(folder, found);
    std::sort(found.begin(), found.end());
    return found;
  }();
  return files;
}

std::string program_digest() {
  std::string text = fmt::format("{}\n{}\n{}\n", version(), Engine::simgrid_version(), program_build());
  for (const auto& [file, digest] : program_files()) text += fmt::format("{} {}\n", file, digest);
  return sha256(text);
}

PointKey PointKey::of(std::string_view content) {
  return *read(std::string_view(Sha256().add(content).bytes()).substr(0, sizeof(PointKey)));
}

std::optional<PointKey> PointKey::read(std::string_view bytes) {
  PointKey key;
  if (bytes.size() != key.bytes_.size()) return std::nullopt;
  std::ranges::copy(bytes, key.bytes_.begin());
  return key;
}

PointKeys::PointKeys(const std::string& options) : common_(program_digest() + '\n' + options + '\n') {}

PointKey PointKeys::key(const std::string& content, const std::string& inputs) const {
  return PointKey::of(common_ + content + inputs);
}

}  // namespace convoy::runs

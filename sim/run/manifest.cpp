// SPDX-License-Identifier: MIT
#include "sim/run/manifest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "sim/replay/engine.h"

namespace convoy::inline runs {

std::string_view version() { return CONVOY_VERSION; }

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL has no SHA-256");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Manifest make_manifest(const Experiment& experiment, const std::string& file,
                       const std::vector<std::string>& settings) {
  Manifest manifest{
      std::string(version()), Engine::simgrid_version(), {}, sha256(experiment.content()), settings, {}};
  if (file.empty()) return manifest;
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  manifest.inputs = {{file, sha256(bytes)}};
  return manifest;
}

}  // namespace convoy::runs

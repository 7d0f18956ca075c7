// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/digest.h"

using namespace convoy;

TEST_CASE("sha256: the standard's examples") {
  // FIPS 180-2, appendix B.1, and the empty message
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256().add("a").add("bc").text() == sha256("abc"));
}

TEST_CASE("sha256: where a field ends is part of the digest") {
  CHECK(Sha256().add_field("ab").add_field("c").text() != Sha256().add_field("a").add_field("bc").text());
  CHECK(Sha256().add_field("ab").text() == Sha256().add_field("ab").text());
}

// SPDX-License-Identifier: MIT
// doctest.h is in the precompiled header already; here it is read once more for its implementation.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

int main(int argc, char** argv) { return doctest::Context(argc, argv).run(); }

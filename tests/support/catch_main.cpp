// SPDX-License-Identifier: Apache-2.0
// Catch2 2.13 only: its runner takes 10 s to compile, so every test program links this one object.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

// SPDX-License-Identifier: Apache-2.0
// A bare number is not a count of bytes: it could be elements.
// expect: from 'int' to 'spillway::
#include <spillway/core/bytes.hpp>

spillway::bytes from_integer() { return 4096; }

// SPDX-License-Identifier: Apache-2.0
// Compiling is the test.
#include <spillway/io/file.hpp>
#include <spillway/io/file_system_concept.hpp>
#include <spillway/io/posix_file_system.hpp>
#include <spillway/io/thread_engine.hpp>
#include <spillway/testing/file_system_archetypes.hpp>
#include <spillway/tier/file_tier.hpp>

namespace spillway {

using namespace testing;
using namespace testing::near_miss;

static_assert(FileSystem<minimal_file_system>);
static_assert(FileSystem<posix_file_system>);
static_assert(!FileSystem<file_system_not_movable>);
static_assert(!FileSystem<file_system_without_open>);
static_assert(!FileSystem<file_system_without_close>);
static_assert(!FileSystem<file_system_without_read>);
static_assert(!FileSystem<file_system_without_write>);
static_assert(!FileSystem<file_system_without_size>);
static_assert(!FileSystem<file_system_without_allocate>);
static_assert(!FileSystem<file_system_without_truncate>);
static_assert(!FileSystem<file_system_without_sync_data>);
static_assert(!FileSystem<file_system_without_sync>);
static_assert(!FileSystem<file_system_without_lock>);
static_assert(!FileSystem<file_system_without_direct_alignment>);
static_assert(!FileSystem<file_system_without_make_directory>);
static_assert(!FileSystem<file_system_without_rename>);
static_assert(!FileSystem<file_system_without_rename_exclusive>);
static_assert(!FileSystem<file_system_without_unlink>);
static_assert(!FileSystem<file_system_without_remove_directory>);
static_assert(!FileSystem<file_system_without_list>);
static_assert(!FileSystem<file_system_read_returns_count>);
static_assert(!FileSystem<file_system_write_takes_mutable_bytes>);

// Every member compiles: these ask for no more than the concept.
template class v0::file<minimal_file_system>;
template class v0::thread_engine<minimal_file_system>;
template class v0::file_tier<thread_engine<minimal_file_system>>;

}  // namespace spillway

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "launch.h"

namespace vgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy = "or set CONV_COMPILER_CACHE to a folder of your own";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string home() {
  if (const auto named = environment("HOME"); !named.empty()) return named;
  passwd entry, *found = nullptr;
  char text[4096];
  return getpwuid_r(getuid(), &entry, text, sizeof text, &found) == 0 && found ? entry.pw_dir : "";
}

// CONV_COMPILER_CACHE, or the folder platformdirs gives on Linux.
fs::path cache_root() {
  if (const auto named = environment("CONV_COMPILER_CACHE"); !named.empty()) return named;
  if (const auto base = environment("XDG_CACHE_HOME"); !base.empty()) return fs::path(base) / "conv_compiler";
  if (const auto folder = home(); !folder.empty()) return fs::path(folder) / ".cache" / "conv_compiler";
  return fs::temp_directory_path() / ("conv_compiler-" + std::to_string(getuid()));
}

void refuse_path(const fs::path& path, const std::string& rule) { refuse_decoding("cache " + path.string() + ": " + rule); }

void check_owner(const fs::path& path, const struct stat& status) {
  if (status.st_uid != geteuid() && status.st_uid != 0)
    refuse_path(path, "belongs to user " + std::to_string(status.st_uid) + ", who could put other programs there; remove it, " + kRemedy);
}

void check_mode(const fs::path& path, const struct stat& status) {
  if (!(status.st_mode & (S_IWGRP | S_IWOTH))) return;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  refuse_path(path, std::string("others may write it (mode ") + mode + "); see what is in it, then chmod go-w, " + kRemedy);
}

// `may_be_sticky`: a folder like /tmp, where everybody may make files and nobody may rename another's.
void check_folder(const fs::path& path, bool may_be_sticky) {
  struct stat link, status;
  if (lstat(path.c_str(), &link) != 0 || stat(path.c_str(), &status) != 0) refuse_path(path, std::strerror(errno));
  check_owner(path, link);
  check_owner(path, status);
  if (!S_ISDIR(status.st_mode)) refuse_path(path, std::string("is not a folder; remove it, ") + kRemedy);
  if (may_be_sticky && status.st_mode & S_ISVTX) return;
  check_mode(path, status);
}

void make_folder(const fs::path& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    refuse_path(path, std::string(std::strerror(errno)) + "; make its folder writable, " + kRemedy);
}

}  // namespace

void refuse_decoding(const std::string& text) { throw Error(Error::Kind::kDecode, "decoder: " + text); }

fs::path program_folder() {
  const fs::path root = cache_root(), folder = root / "vgpu";
  std::error_code ignored;  // making the folder says what is wrong
  if (root.has_parent_path()) fs::create_directories(root.parent_path(), ignored);
  make_folder(root);
  check_folder(root, true);
  make_folder(folder);
  check_folder(folder, false);
  return folder;
}

std::vector<uint8_t> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::vector<uint8_t>> read_entry(const fs::path& path) {
  // Not through a link, and without waiting where it is a pipe.
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO)) return std::nullopt;  // the decoder replaces it
  if (file < 0) refuse_path(path, std::string(std::strerror(errno)) + "; make it readable, " + kRemedy);
  const struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  struct stat status;
  if (fstat(file, &status) != 0) refuse_path(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse_path(path, std::string("is a folder; remove it, ") + kRemedy);
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  check_owner(path, status);
  check_mode(path, status);
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  futimens(file, nullptr);  // used now: the last to be dropped; a cache that we may only read is left as it is
  return bytes;
}

}  // namespace vgpu

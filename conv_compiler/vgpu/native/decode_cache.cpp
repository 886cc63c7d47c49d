// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cache folder of decoded programs, and the decoder run as a process of its own: hosts without Python can load
// kernels too.
#include "decode_cache.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "cache_folder.h"
#include "sha256.h"
#include "watch.h"

extern char** environ;

namespace vgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDecode = "conv_compiler.vgpu.decode";
constexpr const char* kIdentity = "conv_compiler.vgpu.identity";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string python() {
  const auto named = environment("CONV_COMPILER_PYTHON");
  return named.empty() ? "python3" : named;
}

// The folder to import conv_compiler from when this library lies in a source tree or a wheel's package folder;
// empty when the package is elsewhere and the interpreter finds it itself.
std::string package_root() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&decoded_program), &info) || !info.dli_fname) return "";
  std::error_code ignored;
  const fs::path library = fs::absolute(info.dli_fname, ignored);
  const fs::path vgpu = library.parent_path().parent_path();  // .../conv_compiler/vgpu/lib/libamdhip64.so
  return fs::exists(vgpu / "decode.py", ignored) ? vgpu.parent_path().parent_path().string() : "";
}

std::vector<std::string> decoder_environment() {
  std::vector<std::string> variables;
  std::string path = package_root();
  for (char** variable = environ; *variable; ++variable) {
    if (std::strncmp(*variable, "PYTHONPATH=", 11) != 0) variables.push_back(*variable);
    else if (path.empty()) path = *variable + 11;
    else path = path + ":" + (*variable + 11);
  }
  if (!path.empty()) variables.push_back("PYTHONPATH=" + path);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// A file of our own in the cache folder, gone when we are done with it.
class Scratch {
 public:
  Scratch(const fs::path& folder, const char* suffix) : path_((folder / "tmp-XXXXXX").string() + suffix) {
    file_ = mkstemps(path_.data(), static_cast<int>(std::strlen(suffix)));
    if (file_ < 0) refuse_decoding("cache folder " + folder.string() + ": " + std::strerror(errno) + "; make it writable or set CONV_COMPILER_CACHE");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    close(file_);
    unlink(path_.c_str());
  }
  int file() const { return file_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_;
};

void write_all(const Scratch& scratch, const uint8_t* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = write(scratch.file(), data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) refuse_decoding("cannot write " + scratch.path() + ": " + std::strerror(errno));
    done += static_cast<size_t>(n);
  }
}

// The last line of what the decoder wrote: Python ends a traceback with the reason.
std::string last_line(const std::string& path) {
  const auto bytes = read_file(path);
  std::string text(bytes.begin(), bytes.end());
  text.erase(text.find_last_not_of(" \n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

// Runs a module of the package in Python to its end. Both its outputs go to `log`.
void run_module(const char* module, const std::vector<std::string>& arguments, const Scratch& log) {
  // -P: a folder named conv_compiler in the working directory must not hide the package.
  std::vector<std::string> words = {python(), "-P", "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto variables = decoder_environment();
  const SignalWatch watch;  // before the child starts, and gone after it has ended
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, log.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log.file(), STDERR_FILENO);
  pid_t process = 0;
  const int error = posix_spawnp(&process, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                                 pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error) refuse_decoding(words[0] + ": " + std::strerror(error) + "; set CONV_COMPILER_PYTHON to a Python that has this package");
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return;  // the host reaps its children itself; whether the program exists will tell
    if (watch.interrupted()) kill(process, SIGTERM);
  }
  if (watch.interrupted()) refuse_decoding("interrupted by a signal");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    refuse_decoding(words[0] + " -m " + module + ": " + last_line(log.path()) +
           "; CONV_COMPILER_PYTHON names the Python that has this package and its requirements");
}

// The digests of the decoders of the interpreters that were asked, or that told theirs.
struct Identities {
  std::mutex mutex;
  std::map<std::string, std::string> of_python;
};
Identities& identities() {
  static Identities& only = *new Identities;
  return only;
}

constexpr size_t kDigits = 64;  // of a digest
bool is_digest(const std::string& text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The digest of the decoder that would run: its sources, its tables and their version. Asked once a process.
std::string decoder_identity(const fs::path& folder) {
  Identities& known = identities();
  std::lock_guard<std::mutex> lock(known.mutex);
  std::string& identity = known.of_python[python()];
  if (identity.empty()) {
    const Scratch log(folder, ".log");
    run_module(kIdentity, {}, log);
    const std::string answer = last_line(log.path());
    if (!is_digest(answer)) refuse_decoding(python() + " -m " + kIdentity + ": not a digest: " + answer);
    identity = answer;
  }
  return identity;
}

// The program in an entry as conv_compiler/vgpu/programs.py seals it; none where anything about it is not as it should be.
std::optional<std::vector<uint8_t>> unsealed(const std::vector<uint8_t>& entry, const std::string& rest) {
  static const std::string kMagic = "VGPUENT1";
  const size_t body = kMagic.size() + kDigits, program = body + rest.size();
  if (entry.size() < program) return std::nullopt;
  const std::string head(entry.begin(), entry.begin() + static_cast<ptrdiff_t>(program));
  if (head.compare(0, kMagic.size(), kMagic) != 0 || head.compare(body, rest.size(), rest) != 0) return std::nullopt;
  if (head.compare(kMagic.size(), kDigits, sha256(entry.data() + body, entry.size() - body)) != 0) return std::nullopt;
  return std::vector<uint8_t>(entry.begin() + static_cast<ptrdiff_t>(program), entry.end());
}

}  // namespace

void set_decoder_identity(const std::string& interpreter, const std::string& identity) {
  Identities& known = identities();
  std::lock_guard<std::mutex> lock(known.mutex);
  if (is_digest(identity)) known.of_python[interpreter] = identity;
}

std::vector<uint8_t> decoded_program(const uint8_t* elf, size_t size, const std::string& chip) {
  constexpr size_t kChipBytes = 16;
  const fs::path folder = program_folder();
  const std::string identity = decoder_identity(folder), digest = sha256(elf, size);
  // Half of the decoder's digest: a name with all of two would be near the longest that file systems take.
  const fs::path path = folder / (digest + "-" + chip + "-" + identity.substr(0, kDigits / 2) + ".prog");
  std::string rest = identity + digest + chip;
  rest.resize(2 * kDigits + kChipBytes, '\0');
  const auto known = [&]() -> std::optional<std::vector<uint8_t>> {
    const auto entry = read_entry(path);
    return entry ? unsealed(*entry, rest) : std::nullopt;
  };
  if (auto program = known()) return *program;
  const Scratch input(folder, ".hsaco"), log(folder, ".log");
  write_all(input, elf, size);
  // The decoder renames its finished file into place, so nobody ever reads half of one.
  run_module(kDecode, {chip, input.path(), path.string()}, log);
  if (auto program = known()) return *program;
  refuse_decoding("left no program of this decoder in " + path.string() + "; " + last_line(log.path()) +
                  "; where the package has changed since this process began, start it again");
}

}  // namespace vgpu

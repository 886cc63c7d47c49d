// The cache folder of decoded programs, and the decoder run as a process of its own: hosts without Python can load
// kernels too.
#include "decode_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "launch.h"
#include "sha256.h"
#include "watch.h"

extern char** environ;

namespace vgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "conv_compiler.vgpu.decode";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// CONV_COMPILER_CACHE/vgpu, or the folder platformdirs gives on Linux.
fs::path cache_folder() {
  if (const auto named = environment("CONV_COMPILER_CACHE"); !named.empty()) return fs::path(named) / "vgpu";
  if (const auto base = environment("XDG_CACHE_HOME"); !base.empty()) return fs::path(base) / "conv_compiler" / "vgpu";
  if (const auto home = environment("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "conv_compiler" / "vgpu";
  return fs::temp_directory_path() / ("conv_compiler-" + std::to_string(getuid())) / "vgpu";
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

// The whole file, or nothing when it cannot be read.
std::vector<uint8_t> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void refuse(const std::string& text) { throw Error(Error::Kind::kDecode, "decoder: " + text); }

// A file of our own in the cache folder, gone when we are done with it.
class Scratch {
 public:
  Scratch(const fs::path& folder, const char* suffix) : path_((folder / "tmp-XXXXXX").string() + suffix) {
    file_ = mkstemps(path_.data(), static_cast<int>(std::strlen(suffix)));
    if (file_ < 0) refuse("cache folder " + folder.string() + ": " + std::strerror(errno) + "; make it writable or set CONV_COMPILER_CACHE");
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
    if (n <= 0) refuse("cannot write " + scratch.path() + ": " + std::strerror(errno));
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

// Runs the decoder to its end. Both its outputs go to `log`.
void run_decoder(std::vector<std::string> words, const Scratch& log) {
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
  if (error) refuse(words[0] + ": " + std::strerror(error) + "; set CONV_COMPILER_PYTHON to a Python that has this package");
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return;  // the host reaps its children itself; whether the program exists will tell
    if (watch.interrupted()) kill(process, SIGTERM);
  }
  if (watch.interrupted()) refuse("interrupted by a signal");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    refuse(words[0] + " -m " + kModule + ": " + last_line(log.path()) +
           "; CONV_COMPILER_PYTHON names the Python that has this package and its requirements");
}

}  // namespace

std::vector<uint8_t> decoded_program(const uint8_t* elf, size_t size, const std::string& chip) {
  const fs::path folder = cache_folder();
  const fs::path program = folder / (sha256(elf, size) + "-" + chip + "-" + decoder_version() + ".prog");
  if (auto known = read_file(program); !known.empty()) return known;
  std::error_code ignored;  // the scratch file below says what is wrong with the folder
  fs::create_directories(folder, ignored);
  const Scratch input(folder, ".hsaco"), log(folder, ".log");
  write_all(input, elf, size);
  // The decoder renames its finished file into place, so nobody ever reads half of one.
  // -P: a folder named conv_compiler in the working directory must not hide the package.
  run_decoder({python(), "-P", "-m", kModule, chip, input.path(), program.string()}, log);
  auto decoded = read_file(program);
  if (decoded.empty()) refuse("left no program in " + program.string() + "; " + last_line(log.path()));
  return decoded;
}

}  // namespace vgpu

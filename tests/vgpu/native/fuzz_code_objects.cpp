// Reads damaged code objects up to where their instructions would be decoded, and packs arguments for their kernels.
//
//   fuzz_code_objects SEED FIRST COUNT CHIP CODE_OBJECT [CHIP CODE_OBJECT ...]
//
// Draw n is the same for the same SEED and objects, whatever FIRST is. Each is read twice: as a span of its length, and
// from the end of readable memory without a length. Needs no more than a compiler (test_code_object_fuzz.py has the
// command). Exit status 0 means every draw was read or refused with Error in time, in the same way both times.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "kernarg.h"
#include "mutations.h"
#include "object_file.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

constexpr unsigned kSeconds = 10;  // a draw
constexpr size_t kPageBytes = 4096;

volatile unsigned long long g_draw;

void tell() { std::fprintf(stderr, "at draw %llu\n", g_draw); }
void give_up(int signal) {
  std::fprintf(stderr, "signal %d ", signal);
  tell();
  std::_Exit(1);
}

// Memory that ends before a page that cannot be read.
class Edge {
 public:
  explicit Edge(size_t size) : room_((size + kPageBytes - 1) / kPageBytes * kPageBytes) {
    memory_ = static_cast<uint8_t*>(mmap(nullptr, room_ + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + room_, kPageBytes, PROT_NONE) != 0) std::abort();
  }
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;
  ~Edge() { munmap(memory_, room_ + kPageBytes); }
  const uint8_t* put(const fuzz::Bytes& bytes) {
    uint8_t* at = memory_ + room_ - bytes.size();
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    return at;
  }

 private:
  size_t room_;
  uint8_t* memory_;
};

// What the stand-in does with an object's kernels and symbols, short of running them.
void use(const vgpu::ObjectFile& file) {
  static std::vector<uint8_t> value(65536);
  vgpu::LaunchConfig config;
  for (const vgpu::KernelInfo& kernel : file.kernels) {
    const std::vector<void*> params(kernel.args.size(), value.data());
    const auto packed = vgpu::pack_kernarg(kernel, params.data());
    vgpu::fill_kernarg(kernel, packed.data(), config);
  }
  for (const vgpu::ElfSymbol& symbol : file.elf.symbols()) {
    const volatile uint8_t* at = file.image.at(symbol.address, symbol.size);
    if (at && symbol.size) static_cast<void>(at[0]), static_cast<void>(at[symbol.size - 1]);
  }
}

template <class Read>
std::string outcome(const std::string& chip, const Read& read) {
  try {
    const vgpu::ObjectFile file = vgpu::read_object(read(), chip);
    use(file);
    return "read";
  } catch (const vgpu::Error& error) {
    return error.what();
  }
}

// Bytes behind its end are no part of an object that is read without a length.
bool same(const std::string& spanned, const std::string& found) {
  return spanned == found || (spanned == "read") == (found == "read");
}

struct Subject {
  std::string chip;
  fuzz::Mutator mutator;
};

}  // namespace

int main(int count, char** words) {
  if (count < 6 || count % 2) {
    std::fprintf(stderr, "usage: fuzz_code_objects SEED FIRST COUNT CHIP CODE_OBJECT [CHIP CODE_OBJECT ...]\n");
    return 2;
  }
  for (int signal : {SIGALRM, SIGABRT}) std::signal(signal, give_up);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(tell);
#endif
  std::vector<Subject> subjects;
  for (int i = 4; i < count; i += 2) {
    std::ifstream file(words[i + 1], std::ios::binary);
    subjects.push_back({words[i], fuzz::Mutator({std::istreambuf_iterator<char>(file), {}})});
    const auto whole = outcome(words[i], [&] { return vgpu::Elf(subjects.back().mutator.whole()); });
    if (whole != "read") {
      std::fprintf(stderr, "%s: %s\n", words[i + 1], whole.c_str());
      return 1;
    }
  }
  const uint64_t seed = std::strtoull(words[1], nullptr, 10), first = std::strtoull(words[2], nullptr, 10);
  const uint64_t end = first + std::strtoull(words[3], nullptr, 10);
  std::map<std::string, uint64_t> outcomes;
  for (uint64_t draw = first; draw < end; ++draw) {
    g_draw = draw;
    alarm(kSeconds);
    fuzz::Random random(seed, draw);
    const Subject& subject = random.of(subjects);
    const fuzz::Bytes bytes = subject.mutator.damaged(random);
    const auto spanned = outcome(subject.chip, [&] { return vgpu::Elf(bytes); });
    Edge edge(bytes.size());
    const uint8_t* at = edge.put(bytes);
    const auto found = outcome(subject.chip, [&] { return vgpu::Elf::at(at); });
    if (!same(spanned, found)) {
      std::fprintf(stderr, "draw %llu: with its length: %s; without: %s\n", g_draw, spanned.c_str(), found.c_str());
      return 1;
    }
    ++outcomes[spanned.substr(0, spanned.find_first_of("0123456789;"))];
  }
  for (const auto& [text, times] : outcomes) std::printf("%8llu %s\n", static_cast<unsigned long long>(times), text.c_str());
  return 0;
}

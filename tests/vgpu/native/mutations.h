// Damaged copies of a code object, each told by a number: fields of its tables, bytes of its metadata, any bytes, lengths.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fuzz {

using Bytes = std::vector<uint8_t>;

// SplitMix64: the same numbers on every host.
class Random {
 public:
  Random(uint64_t seed, uint64_t draw) : state_(seed * 0x9e3779b97f4a7c15 ^ draw * 0xd1b54a32d192ed03) { next(); }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return next() % n; }
  template <class T>
  const T& of(const std::vector<T>& all) { return all[below(all.size())]; }

 private:
  uint64_t state_;
};

struct Field {
  size_t at;
  unsigned bytes;
};

// Widths of the fields of the ELF's structures, in their order.
inline const std::vector<unsigned> kHeader{4, 1, 1, 1, 1, 8, 2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2};
inline const std::vector<unsigned> kSegment{4, 4, 8, 8, 8, 8, 8, 8};
inline const std::vector<unsigned> kSection{4, 4, 8, 8, 8, 8, 4, 4, 8, 8};
inline const std::vector<unsigned> kSymbol{4, 1, 1, 2, 8, 8};
inline const std::vector<unsigned> kRelocation{8, 8, 8};
inline const std::vector<unsigned> kNote{4, 4, 4};
inline const std::vector<unsigned> kDescriptor{4, 4, 4, 4, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 4};

class Mutator {
 public:
  // `whole` is undamaged: what is read of it here is believed.
  explicit Mutator(Bytes whole) : whole_(std::move(whole)) {
    const auto header = at<Elf64_Ehdr>(0);
    add(0, kHeader);
    for (size_t i = 0; i < header.e_phnum; ++i) add(header.e_phoff + i * sizeof(Elf64_Phdr), kSegment);
    for (size_t i = 0; i < header.e_shnum; ++i) {
      const size_t row = header.e_shoff + i * sizeof(Elf64_Shdr);
      const auto section = at<Elf64_Shdr>(row);
      add(row, kSection);
      if (section.sh_type == SHT_DYNSYM) add_table(section, sizeof(Elf64_Sym), kSymbol);
      if (section.sh_type == SHT_RELA) add_table(section, sizeof(Elf64_Rela), kRelocation);
      if (section.sh_type == SHT_PROGBITS && (section.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) == SHF_ALLOC)
        add_table(section, 64, kDescriptor);
      if (section.sh_type != SHT_NOTE) continue;
      add(section.sh_offset, kNote);
      note_row_ = row;
      note_ = {section.sh_offset + 20, static_cast<unsigned>(section.sh_size - 20)};  // behind its header and name
    }
  }

  const Bytes& whole() const { return whole_; }

  Bytes damaged(Random& random) const {
    Bytes out = whole_;
    // Most have one fault, so that it is not hidden behind another one.
    for (uint64_t n = 1 + (random.below(3) == 0 ? random.below(4) : 0); n; --n) {
      const uint64_t kind = random.below(100);
      if (kind < 45) field(out, random);
      else if (kind < 80) metadata(out, random);
      else if (kind < 94) anywhere(out, random);
      else if (kind < 96) deep(out, random);
      else length(out, random);
      if (out.size() < whole_.size()) break;  // places are those of the whole
    }
    return Bytes(out.begin(), out.end());  // its allocation ends where it does
  }

 private:
  template <class T>
  T at(size_t offset) const {
    T value;
    std::memcpy(&value, whole_.data() + offset, sizeof(T));
    return value;
  }
  void add(size_t offset, const std::vector<unsigned>& widths) {
    for (unsigned width : widths) {
      fields_.push_back({offset, width});
      offset += width;
    }
  }
  void add_table(const Elf64_Shdr& section, size_t row, const std::vector<unsigned>& widths) {
    for (size_t n = 0; (n + 1) * row <= section.sh_size; ++n) add(section.sh_offset + n * row, widths);
  }

  uint64_t number(uint64_t old, Random& random) const {
    const uint64_t near[] = {1, 2, 4, 8, 16, 64, 4096, whole_.size()};
    switch (random.below(8)) {
      case 0: return random.below(4);
      case 1: return ~uint64_t{0} >> random.below(64);
      case 2: return ~uint64_t{0} - random.below(4096);
      case 3: return uint64_t{1} << random.below(64);
      case 4: return old ^ uint64_t{1} << random.below(64);
      case 5: return old + near[random.below(8)];
      case 6: return old - near[random.below(8)];
      default: return random.next() >> random.below(64);
    }
  }

  void field(Bytes& out, Random& random) const {
    const Field& field = random.of(fields_);
    uint64_t value = 0;
    std::memcpy(&value, out.data() + field.at, field.bytes);
    value = number(value, random);
    std::memcpy(out.data() + field.at, &value, field.bytes);
  }

  // MessagePack: tags where others were, runs of them, pieces from elsewhere, large numbers.
  void metadata(Bytes& out, Random& random) const {
    static const Bytes kTags{0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xc4, 0xc6, 0xc7, 0xc9, 0xca,
                             0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd3, 0xd4, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,
                             0xe0, 0xff};
    const size_t first = random.below(note_.bytes), left = note_.bytes - first;
    uint8_t* to = out.data() + note_.at + first;
    switch (random.below(5)) {
      case 0: *to = random.of(kTags); break;
      case 1: *to ^= 1u << random.below(8); break;
      case 2: std::memset(to, random.of(kTags), random.below(left) + 1); break;
      case 3: {
        const size_t from = random.below(note_.bytes);
        std::memmove(to, whole_.data() + note_.at + from, std::min<size_t>(random.below(64) + 1, std::min<size_t>(left, note_.bytes - from)));
        break;
      }
      default: {
        const uint64_t value = number(0, random);
        *to = random.of(kTags);
        std::memcpy(to + 1, &value, std::min<size_t>(8, left - 1));
      }
    }
  }

  void anywhere(Bytes& out, Random& random) const {
    for (uint64_t n = 1 + random.below(16); n; --n) out[random.below(out.size())] = static_cast<uint8_t>(random.next());
  }

  // The note with values in values in it, behind everything else, where no segment loads it.
  void deep(Bytes& out, Random& random) const {
    static const std::vector<Bytes> kOpenings{{0x91}, {0x81, 0xa0}, {0xdc, 0, 1}, {0xdf, 0, 0, 0, 1, 0xa0}};
    const size_t table = at<Elf64_Ehdr>(0).e_shoff;
    if (out.size() != whole_.size()) return;
    Bytes note(out.begin() + static_cast<long>(note_.at) - 20, out.begin() + static_cast<long>(note_.at));
    note.insert(note.end(), {0x81, 0xa1, 'x'});
    const Bytes& opening = random.of(kOpenings);
    for (uint64_t n = 1 + random.below(200000); n; --n) note.insert(note.end(), opening.begin(), opening.end());
    const auto contents = static_cast<uint32_t>(note.size() - 20);
    std::memcpy(note.data() + 4, &contents, sizeof(contents));
    auto row = at<Elf64_Shdr>(note_row_);
    row.sh_flags = row.sh_addr = 0;
    row.sh_offset = table;
    row.sh_size = note.size();
    std::memcpy(out.data() + note_row_, &row, sizeof(row));
    const uint64_t moved = table + note.size();
    std::memcpy(out.data() + offsetof(Elf64_Ehdr, e_shoff), &moved, sizeof(moved));
    out.insert(out.begin() + static_cast<long>(table), note.begin(), note.end());
  }

  void length(Bytes& out, Random& random) const {
    if (random.below(3)) out.resize(random.below(out.size()));
    else out.resize(out.size() + random.below(100), 0xa5);
  }

  Bytes whole_;
  std::vector<Field> fields_;
  size_t note_row_ = 0;
  Field note_{0, 0};
};

}  // namespace fuzz

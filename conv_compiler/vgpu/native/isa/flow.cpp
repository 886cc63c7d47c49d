// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Branches, the end of a wave, barriers, waits, and hints that have no effect here.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

#define BRANCH(NAME, CONDITION)                                                     \
  {                                                                                 \
    struct Op {                                                                     \
      static void run(Wave& w, const Inst& i) {                                     \
        if (CONDITION) jump(w, i);                                                  \
      }                                                                             \
    };                                                                              \
    row(NAME, &Op::run, Class::kBranch);                                            \
  }

void jump(Wave& w, const Inst& i) {
  w.pc = i.target;
  if (i.target <= i.index && ++w.iterations == w.next_look) look_up(w, i);
}

u64 vcc(const Wave& w) { return w.lanes == 64 ? w.s[kVcc] | u64(w.s[kVcc + 1]) << 32 : w.s[kVcc]; }

void nothing(Wave&, const Inst&) {}
void end(Wave& w, const Inst&) { w.stop = Stop::kEnd; }

void signal(Wave& w) {
  Group& g = *w.group;
  ++w.signals;
  w.signalled = true;
  if (++g.signalled >= g.live) {
    g.signalled = 0;
    ++g.phase;
  }
}
// Passes when every live wave has signalled; else the wave comes back to this instruction later.
void wait(Wave& w, const Inst& i) {
  if (w.group->phase > w.barriers) {
    ++w.barriers;
    w.signalled = false;
    if (w.barriers == w.group->last_barrier) w.stop = Stop::kEnd;
    return;
  }
  w.pc = i.index;
  --w.counts[static_cast<int>(i.cls)];
  w.stop = Stop::kYield;
}
void barrier_signal(Wave& w, const Inst& i) {
  if (i.a.kind != Source::kConst || i.a.lo[0] != ~0u) fail(w, i, "a barrier other than the workgroup's");
  signal(w);
}
void barrier_wait(Wave& w, const Inst& i) {
  if ((i.imm & 0xffff) != 0xffff) fail(w, i, "a barrier other than the workgroup's");
  wait(w, i);
}
void barrier(Wave& w, const Inst& i) {
  if (!w.signalled) signal(w);
  wait(w, i);
}
void sendmsg(Wave& w, const Inst& i) {
  constexpr int kDeallocVgprs = 3;
  if (i.imm != kDeallocVgprs) fail(w, i, "message other than dealloc_vgprs", -1, static_cast<u32>(i.imm));
}

// MODE bits 3:0 are the rounding modes, which must stay nearest even; 5:4 say whether single-precision
// denormals are kept (3) or flushed (0), 7:6 the same of half and double precision, which must be kept.
// 8 is DX10_CLAMP and 9 IEEE; gfx12 is as if they were 1 and 0.
constexpr u32 kModeRegister = 1;
void take_modes(Wave& w, const Inst& i) {
  const u32 rounding = w.mode & 15, f32_denormals = w.mode >> 4 & 3, other_denormals = w.mode >> 6 & 3;
  if (rounding || other_denormals != 3 || (f32_denormals != 0 && f32_denormals != 3)) {
    fail(w, i, "rounding or denormal mode that is not executed,", -1, w.mode & 0xff);
  }
  w.flush_f32 = f32_denormals == 0;
  const u64 others = w.mode & ~u64(0xff);
  const bool known = w.group->family == 12 ? others == kModeDx10Clamp : !(others & ~(kModeDx10Clamp | kModeIeee));
  if (!known) fail(w, i, "bits of MODE that are not executed,", -1, w.mode);
}
void set_mode(Wave& w, const Inst& i, u32 value) {
  const u32 where = static_cast<u32>(i.imm) & 0xffff, offset = where >> 6 & 31, size = (where >> 11 & 31) + 1;
  if ((where & 63) != kModeRegister) fail(w, i, "hardware register other than MODE", -1, where & 63);
  const u64 ones = ((u64(1) << size) - 1) << offset;
  w.mode = (w.mode & ~ones) | (u64(value) << offset & ones);
  take_modes(w, i);
}
void setreg(Wave& w, const Inst& i) { set_mode(w, i, scalar32(w, i.a)); }
void setreg_imm(Wave& w, const Inst& i) { set_mode(w, i, i.record->literal); }
void denorm_mode(Wave& w, const Inst& i) {
  w.mode = (w.mode & ~u64(0xf0)) | (static_cast<u32>(i.imm) & 15) << 4;
  take_modes(w, i);
}
void round_mode(Wave& w, const Inst& i) {
  w.mode = (w.mode & ~u64(0xf)) | (static_cast<u32>(i.imm) & 15);
  take_modes(w, i);
}

}  // namespace

void flow(const Table& add) {
  const auto row = [&](const char* name, Handler run, Class cls) {
    add(Entry{name, run, cls, Type::kNone, {Type::kRaw, Type::kNone, Type::kNone}, 0, 0});
  };
  BRANCH("s_branch", true)
  BRANCH("s_cbranch_scc0", !w.scc)
  BRANCH("s_cbranch_scc1", w.scc)
  BRANCH("s_cbranch_vccz", vcc(w) == 0)
  BRANCH("s_cbranch_vccnz", vcc(w) != 0)
  BRANCH("s_cbranch_execz", w.exec() == 0)
  BRANCH("s_cbranch_execnz", w.exec() != 0)
  row("s_endpgm|s_endpgm_saved", &end, Class::kOther);
  row("s_barrier", &barrier, Class::kBarrier);
  row("s_barrier_signal", &barrier_signal, Class::kBarrier);
  row("s_barrier_wait", &barrier_wait, Class::kBarrier);
  for (const char* name : {"s_waitcnt", "s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt",
                           "s_waitcnt_depctr", "s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt",
                           "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt", "s_wait_loadcnt_dscnt",
                           "s_wait_storecnt_dscnt", "s_wait_alu", "s_wait_idle", "s_wait_event", "s_nop", "s_delay_alu"}) {
    row(name, &nothing, Class::kWait);
  }
  for (const char* name : {"s_clause", "s_sleep", "s_setprio", "s_inst_prefetch", "s_set_inst_prefetch_distance", "s_code_end",
                           "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_ttracedata", "s_ttracedata_imm", "s_set_gpr_idx_off",
                           "s_prefetch_inst", "s_prefetch_data", "s_prefetch_inst_pc_rel", "buffer_inv", "buffer_wbl2",
                           "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_gl0_inv", "buffer_gl1_inv", "global_inv", "global_wb"}) {
    row(name, &nothing, Class::kOther);
  }
  row("s_sendmsg", &sendmsg, Class::kOther);
  row("s_setreg_b32", &setreg, Class::kOther);
  row("s_setreg_imm32_b32", &setreg_imm, Class::kOther);
  row("s_denorm_mode", &denorm_mode, Class::kOther);
  row("s_round_mode", &round_mode, Class::kOther);
}

}  // namespace VGPU_ISA
}  // namespace vgpu

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Branches and calls, the end of a wave, barriers, waits, messages, and hints that have no effect here.
#include <string>

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
// To the address in a register pair or `imm` dwords behind the instruction, which may be in another function.
void jump_to(Wave& w, const Inst& i, u64 address) {
  const u64 base = w.group->loaded_base;
  const u32 index = address >= base ? w.group->program->index_of(address - base) : UINT32_MAX;
  if (index == UINT32_MAX) fail(w, i, "jump to an address that is no instruction of this code object,", -1, address);
  w.pc = index;
  // A call may be of the function it is in: its loop, too, has a jump back.
  if (index <= i.index && ++w.iterations == w.next_look) look_up(w, i);
}
u64 next_address(const Wave& w, const Inst& i) {
  return w.group->program->address_of(i.index) + i.record->size + w.group->loaded_base;
}
void getpc(Wave& w, const Inst& i) { set64(w, i.d, next_address(w, i)); }
void setpc(Wave& w, const Inst& i) { jump_to(w, i, scalar64(w, i.a)); }
void swappc(Wave& w, const Inst& i) {
  const u64 to = scalar64(w, i.a);
  set64(w, i.d, next_address(w, i));
  jump_to(w, i, to);
}
void call(Wave& w, const Inst& i) {
  const u64 next = next_address(w, i);
  set64(w, i.d, next);
  jump_to(w, i, next + 4 * static_cast<u64>(static_cast<i64>(i.imm)));
}

// What the program sees of time: it passes, always by as much. A wave issues an instruction every fourth cycle, and the
// clock of real time ticks once in sixteen cycles.
u64 cycles(const Wave& w) {
  u64 executed = 0;
  for (u64 n : w.counts) executed += n;
  return 4 * executed;
}
u64 real_time(const Wave& w) { return cycles(w) / 16; }
void memtime(Wave& w, const Inst& i) { set64(w, i.d, cycles(w)); }
void memrealtime(Wave& w, const Inst& i) { set64(w, i.d, real_time(w)); }

// Messages go to the command processor or the host. No answer is waited for, so a program sees nothing of them.
constexpr u32 kMessageInterrupt = 1, kMessageDeallocVgprs = 3, kMessageSavewave = 4;
void sendmsg(Wave& w, const Inst& i) {
  const u32 message = static_cast<u32>(i.imm) & (w.group->family == 9 ? 15 : 255);
  const bool deallocates = message == kMessageDeallocVgprs && w.group->family != 9;
  if (message != 0 && message != kMessageInterrupt && !deallocates)
    fail(w, i, "message other than an interrupt or dealloc_vgprs,", -1, message);
}
// Those with an answer: of what they can ask for there is only the time.
constexpr u32 kMessageGetRealtime = 0x83;
void sendmsg_rtn(Wave& w, const Inst& i) {
  if (static_cast<u32>(i.imm) != kMessageGetRealtime) fail(w, i, "message other than a question for the time,", -1, static_cast<u32>(i.imm));
  if (i.d_dwords == 2) set64(w, i.d, real_time(w));
  else set32(w, i.d, static_cast<u32>(real_time(w)));
}

// LLVM's usage guide: 2 is llvm.trap, which ends the queue; 3 is llvm.debugtrap, which is passed without a debugger.
constexpr u32 kTrapAbort = 2, kTrapDebug = 3;
void trap(Wave& w, const Inst& i) {
  const u32 id = static_cast<u32>(i.imm) & 255;
  if (id == kTrapDebug) return;
  const std::string what = id == kTrapAbort ? "kernel trapped (an abort or a failed assertion)" : "kernel trapped, trap " + std::to_string(id) + ",";
  fail(w, i, what.c_str());
}
void halt(Wave& w, const Inst& i) {
  if (i.imm & 1) fail(w, i, "wave halted");
}
void set_kill(Wave& w, const Inst& i) {
  if (i.imm & 1) w.stop = Stop::kEnd;
}

// Hardware registers that may be read, by the number in the instruction. Source: the ISA guides; LLVM's AMDGPU usage
// guide for the ranges of addresses in SH_MEM_BASES.
u32 hardware_register(const Wave& w, const Inst& i, u32 id) {
  const u32 family = w.group->family;
  if (id == 1) return static_cast<u32>(w.mode);
  if (id == 15 && family == 9) return (kPrivateAperture & 0xffff0000u) >> 16 | (kSharedAperture & 0xffff0000u);
  if (id == 20 && family == 9 && w.group->cdna >= 3) return w.group->die;  // XCC_ID
  if (id == 29 && family == 11) return static_cast<u32>(cycles(w)) & 0xfffff;
  if (id == 29 && family == 12) return static_cast<u32>(cycles(w));
  if (id == 30 && family == 12) return static_cast<u32>(cycles(w) >> 32);
  fail(w, i, "hardware register that is not modelled,", -1, id);
}
void getreg(Wave& w, const Inst& i) {
  const u32 where = static_cast<u32>(i.imm) & 0xffff, offset = where >> 6 & 31, size = (where >> 11 & 31) + 1;
  const u64 value = hardware_register(w, i, where & 63);
  set32(w, i.d, static_cast<u32>(value >> offset & ((u64(1) << size) - 1)));
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
  const auto pair = [&](const char* name, Handler run, Class cls) {
    add(Entry{name, run, cls, Type::kU64, {Type::kU64, Type::kNone, Type::kNone}, 0, 0});
  };
  pair("s_getpc_b64", &getpc, Class::kSalu);
  pair("s_setpc_b64", &setpc, Class::kBranch);
  pair("s_swappc_b64", &swappc, Class::kBranch);
  pair("s_call_b64", &call, Class::kBranch);
  pair("s_memtime", &memtime, Class::kScalarLoad);
  pair("s_memrealtime", &memrealtime, Class::kScalarLoad);
  pair("s_sendmsg_rtn_b32|s_sendmsg_rtn_b64", &sendmsg_rtn, Class::kScalarLoad);
  row("s_trap", &trap, Class::kOther);
  row("s_sethalt", &halt, Class::kOther);
  row("s_setkill", &set_kill, Class::kOther);
  add(Entry{"s_getreg_b32", &getreg, Class::kOther, Type::kU32, {Type::kNone, Type::kNone, Type::kNone}, 0, 0});
  for (const char* name : {"s_clause", "s_sleep", "s_setprio", "s_inst_prefetch", "s_set_inst_prefetch_distance", "s_code_end",
                           "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_ttracedata", "s_ttracedata_imm", "s_set_gpr_idx_off",
                           "s_prefetch_inst", "s_prefetch_data", "s_prefetch_inst_pc_rel", "buffer_inv", "buffer_wbl2",
                           "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_gl0_inv", "buffer_gl1_inv", "global_inv", "global_wb", "global_wbinv", "s_gl1_inv", "s_dcache_inv_vol", "s_dcache_wb_vol",
                           "s_buffer_prefetch_data", "s_prefetch_data_pc_rel", "s_sleep_var", "s_wakeup", "s_incperflevel",
                           "s_decperflevel", "s_version"}) {
    row(name, &nothing, Class::kOther);
  }
  row("s_sendmsg|s_sendmsghalt", &sendmsg, Class::kOther);
}

}  // namespace VGPU_ISA
}  // namespace vgpu

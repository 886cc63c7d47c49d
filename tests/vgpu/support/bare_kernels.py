"""Kernels of a few instructions, launched on a checked device through the HIP calls: any access can be made."""

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_size_t, c_uint, c_void_p

from conv_compiler import vgpu
from tests.vgpu.support import code_objects

CHIP = "gfx90a"

# The instructions the kernels are made of, as LLVM assembles them for gfx90a (and for gfx908). s[4:5] points to the arguments.
ENCODED = {
    "s_load_dwordx2 s[2:3], s[4:5], 0x0": "82 00 06 c0 00 00 00 00",
    "s_load_dwordx2 s[12:13], s[4:5], 0x0": "02 03 06 c0 00 00 00 00",
    "s_load_dwordx2 s[8:9], s[4:5], 0x8": "02 02 06 c0 08 00 00 00",
    "s_load_dword s10, s[2:3], 0x0": "81 02 02 c0 00 00 00 00",
    "s_load_dword s10, s[2:3], 0x1000": "81 02 02 c0 00 10 00 00",
    "s_waitcnt vmcnt(0) lgkmcnt(0)": "70 00 8c bf",
    "s_mov_b64 s[2:3], 0": "80 01 82 be",
    "s_mov_b64 s[12:13], 0": "80 01 8c be",
    "s_mov_b64 exec, -1": "c1 01 fe be",
    "s_mov_b64 vcc, exec": "7e 01 ea be",
    "s_andn2_b64 s[20:21], s[22:23], exec": "16 7e 94 89",
    "s_andn2_b64 s[20:21], s[22:23], vcc": "16 6a 94 89",
    "s_or_b64 vcc, s[20:21], exec": "14 7e ea 87",
    "s_mov_b32 s15, 0x27000": "ff 00 8f be 00 70 02 00",
    "s_movk_i32 s14, 0x0": "00 00 0e b0",
    "s_movk_i32 s14, 0x1000": "00 10 0e b0",
    "s_movk_i32 s8, 0x0": "00 00 08 b0",
    "s_movk_i32 s8, 0x1000": "00 10 08 b0",
    "s_sub_u32 s8, s8, s12": "08 0c 88 80",
    "s_barrier": "00 00 8a bf",
    "s_movk_i32 s16, 0x5000": "00 50 10 b0",
    "s_sub_u32 s16, s16, 1": "10 81 90 80",
    "s_cmp_lg_u32 s16, 0": "10 80 07 bf",
    "s_cbranch_scc1 seven dwords back": "f9 ff 85 bf",
    "s_branch back": "fe ff 82 bf",  # to the instruction before it
    "s_endpgm": "00 00 81 bf",
    "v_mov_b32_e32 v1, 0": "80 02 02 7e",
    "v_mov_b32_e32 v2, 1": "81 02 04 7e",
    "v_mov_b32_e32 v4, s2": "02 02 08 7e",
    "v_mov_b32_e32 v5, s3": "03 02 0a 7e",
    "v_cndmask_b32_e32 v2, v1, v2, vcc": "01 05 04 00",
    "v_cmpx_gt_u32_e32 vcc, 64, v0": "c0 00 b8 7d",
    "global_load_dword v3, v1, s[2:3] offset:-4": "fc 9f 50 dc 01 00 02 03",
    "global_load_dword v3, v1, s[2:3]": "00 80 50 dc 01 00 02 03",
    "global_load_dword v3, v1, s[2:3] offset:4092": "fc 8f 50 dc 01 00 02 03",
    "global_load_dword v3, v[4:5], off offset:-32": "e0 9f 50 dc 04 00 7f 03",
    "global_atomic_add v1, v2, s[2:3]": "00 80 08 dd 01 02 02 00",
    "buffer_load_dword v3, off, s[12:15], s8": "00 00 50 e0 00 03 03 08",
    "v_lshlrev_b32_e32 v3, 2, v1": "82 02 06 24",
    "v_add_u32_e32 v3, v3, v0": "03 01 06 68",
    "v_lshlrev_b32_e32 v4, 4, v2": "84 04 08 24",
    "v_add_u32_e32 v3, v3, v4": "03 09 06 68",
    "v_lshlrev_b32_e32 v3, 2, v3": "82 06 06 24",
    "v_lshl_or_b32 v5, v1, 10, v0": "05 00 00 d2 01 15 01 04",
    "v_lshl_or_b32 v5, v2, 20, v5": "05 00 00 d2 02 29 15 04",
    "v_bfe_u32 v1, v0, 10, 10": "01 00 c8 d1 00 15 29 02",
    "v_bfe_u32 v2, v0, 20, 10": "02 00 c8 d1 00 29 29 02",
    "v_mov_b32_e32 v5, v0": "00 03 0a 7e",
    "v_and_b32_e32 v0, 0x3ff, v0": "ff 00 00 26 ff 03 00 00",
    "global_store_dword v3, v5, s[2:3]": "00 80 70 dc 03 05 02 00",
    "ds_add_u32 v1, v2": "00 00 00 d8 01 02 00 00",
    "ds_write_b32 v1, v2": "00 00 1a d8 01 02 00 00",
    "ds_write_b32 v1, v1": "00 00 1a d8 01 01 00 00",
    "ds_write_b32 v1, v8": "00 00 1a d8 01 08 00 00",
    "ds_write_b32 v1, v9": "00 00 1a d8 01 09 00 00",
    "ds_read_b32 v3, v1": "00 00 6c d8 01 00 00 03",
    "v_lshrrev_b32_e32 v6, 6, v0": "86 00 0c 20",
    "v_mov_b32_e32 v2, v6": "06 03 04 7e",
    "v_mov_b32_e32 v2, s6": "06 02 04 7e",
    "v_mov_b32_e32 v1, s6": "06 02 02 7e",
    "v_mov_b32_e32 v20, 0": "80 02 28 7e",
    "v_cmpx_le_u32_e32 vcc, 64, v0": "c0 00 b6 7d",
    "v_pk_mul_f32 v[8:9], v[20:21], v[20:21]": "08 40 b1 d3 14 29 02 18",
    "v_pk_mul_f32 v[8:9], v[20:21], v[20:21] op_sel_hi:[0,0]": "08 40 b1 d3 14 29 02 00",
    "v_pk_add_f32 v[8:9], v[20:21], v[20:21] op_sel:[1,1] op_sel_hi:[0,0]": "08 58 b2 d3 14 29 02 00",
    "v_pk_mov_b32 v[8:9], v[20:21], v[20:21] op_sel:[0,1]": "08 50 b3 d3 14 29 02 18",
    "global_store_dword v1, v2, s[2:3]": "00 80 70 dc 01 02 02 00",
    "global_store_byte v1, v2, s[2:3]": "00 80 60 dc 01 02 02 00",
    "global_atomic_add v3, v1, v2, s[2:3] glc": "00 80 09 dd 01 02 02 03",
    "buffer_wbinvl1_vol": "00 00 fc e0 00 00 00 00",
}
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"


class HipError(RuntimeError):
    """A HIP call failed; the text is the library's."""


class Hip:
    """The HIP calls on one device; memory it allocated is freed by `close`."""

    def __init__(self, *, checks: bool = True, chip: str = CHIP) -> None:
        self._library = ctypes.CDLL(str(vgpu.library_path()))
        self._library.hipGetErrorString.restype = c_char_p
        self._allocated: list[int] = []
        self._modules: list[c_void_p] = []
        self.call("hipSetDevice", int(vgpu.device_uri(chip, checks=checks).removeprefix("hip://")))

    def call(self, name: str, *arguments: object) -> None:
        error = getattr(self._library, name)(*arguments)
        if error:
            raise HipError(self._library.hipGetErrorString(error).decode())

    def close(self) -> None:
        for pointer in self._allocated:
            self.call("hipFree", c_void_p(pointer))
        for module in self._modules:
            self.call("hipModuleUnload", module)
        self.call("hipSetDevice", 0)

    def allocate(self, size: int, *, written: bool = True) -> int:
        """Address of new device memory of `size` bytes; zeros, or never written."""
        pointer = c_void_p()
        self.call("hipMalloc", byref(pointer), c_size_t(size))
        assert pointer.value
        self._allocated.append(pointer.value)
        if written:
            self.call("hipMemsetD8Async", pointer, 0, c_size_t(size), None)
        return pointer.value

    def load(self, code_object: bytes) -> c_void_p:
        module = c_void_p()
        self.call("hipModuleLoadData", byref(module), code_object)
        self._modules.append(module)
        return module

    def launch(
        self,
        vmfb: bytes,
        *pointers: int,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int],
    ) -> None:
        """Launch a module's only kernel; pointers it has beside those given are null."""
        function = c_void_p()
        module = self.load(vmfb[code_objects.find(vmfb).start :])
        name = code_objects.kernel_name(vmfb).encode()
        self.call("hipModuleGetFunction", byref(function), module, name)
        values = [c_void_p(pointer) for pointer in (*pointers, 0, 0, 0)]
        arguments = (c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        sizes = map(c_uint, (*grid, *block, 0))
        self.call("hipModuleLaunchKernel", function, *sizes, None, arguments, None)


def with_code(vmfb: bytes, *instructions: str) -> bytes:
    """The module with its only kernel's code replaced by instructions of ENCODED and an s_endpgm."""
    code = b"".join(bytes.fromhex(ENCODED[text]) for text in (*instructions, "s_endpgm"))
    at = code_objects.find(vmfb).text
    return vmfb[:at] + code + vmfb[at + len(code) :]

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program of HIP without its headers: it launches a kernel of three arrays of floats in two ways.
//
//   hip_program module FILE KERNEL SIZE GRID BLOCK    by HIP's module calls
//   hip_program stub   FILE KERNEL SIZE GRID BLOCK    as clang's host code does, FILE being an offload bundle
//
// It prints the device, then the third array's sum.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned x, y, z; } dim3;

int hipInit(unsigned);
int hipGetDeviceCount(int*);
int hipGetDevice(int*);
int hipSetDevice(int);
int hipDeviceGetName(char*, int, int);
int hipDriverGetVersion(int*);
int hipMalloc(void**, size_t);
int hipFree(void*);
int hipMemcpyHtoD(void*, void*, size_t);
int hipMemcpyDtoH(void*, void*, size_t);
int hipDeviceSynchronize(void);
int hipGetLastError(void);
int hipPeekAtLastError(void);
const char* hipGetErrorString(int);
int hipModuleLoad(void**, const char*);
int hipModuleUnload(void*);
int hipModuleGetFunction(void**, void*, const char*);
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                          void**);
int hipLaunchKernel(const void*, dim3, dim3, void**, size_t, void*);
int hipOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t);
void** __hipRegisterFatBinary(const void*);
void __hipUnregisterFatBinary(void**);
void __hipRegisterFunction(void**, const void*, char*, const char*, unsigned, void*, void*, void*, void*, int*);
int __hipPushCallConfiguration(dim3, dim3, size_t, void*);
int __hipPopCallConfiguration(dim3*, dim3*, size_t*, void**);

static void check(int error, const char* what) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  exit(1);
}

// What clang makes of a kernel's name in host code.
static int stub(void* a, void* b, void* c) {
  void* arguments[] = {&a, &b, &c};
  dim3 grid, block;
  size_t lds;
  void* stream;
  check(__hipPopCallConfiguration(&grid, &block, &lds, &stream), "pop");
  return hipLaunchKernel((const void*)stub, grid, block, arguments, lds, stream);
}

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char* bytes = malloc((size_t)size);
  if (fread(bytes, 1, (size_t)size, file) != (size_t)size) exit(3);
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const char *file = argv[2], *name = argv[3];
  const unsigned size = (unsigned)atoi(argv[4]), grid = (unsigned)atoi(argv[5]), block = (unsigned)atoi(argv[6]);
  int count = 0, device = -1, version = 0;
  char text[64];
  check(hipInit(0), "init");
  check(hipGetDeviceCount(&count), "count");
  check(hipSetDevice(0), "set device");
  check(hipGetDevice(&device), "device");
  check(hipDriverGetVersion(&version), "version");
  check(hipDeviceGetName(text, sizeof(text), device), "name");
  printf("%d %s\n", count, text);
  float* host = malloc(size * sizeof(float));
  void* arrays[3];
  for (int i = 0; i < 3; ++i) {
    for (unsigned j = 0; j < size; ++j) host[j] = (float)(i == 0 ? j % 7 : i == 1 ? j % 5 : 0);
    check(hipMalloc(&arrays[i], size * sizeof(float)), "malloc");
    check(hipMemcpyHtoD(arrays[i], host, size * sizeof(float)), "copy");
  }
  if (!strcmp(argv[1], "module")) {
    void *module, *function;
    check(hipModuleLoad(&module, file), "load");
    check(hipModuleGetFunction(&function, module, name), "function");
    void* arguments[] = {&arrays[0], &arrays[1], &arrays[2]};
    check(hipModuleLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, NULL, arguments, NULL), "launch");
    check(hipModuleUnload(module), "unload");
  } else {
    const struct { unsigned magic, version; const char* bundle; void* unused; } wrapper = {0x48495046, 1,
                                                                                        read_file(file), NULL};
    void** registered = __hipRegisterFatBinary(&wrapper);
    __hipRegisterFunction(registered, (const void*)stub, NULL, name, ~0u, NULL, NULL, NULL, NULL, NULL);
    int resident = 0;
    check(hipOccupancyMaxActiveBlocksPerMultiprocessor(&resident, (const void*)stub, (int)block, 0), "launch");
    if (resident < 1) return 4;
    check(__hipPushCallConfiguration((dim3){grid, 1, 1}, (dim3){block, 1, 1}, 0, NULL), "push");
    check(stub(arrays[0], arrays[1], arrays[2]), "launch");
    check(hipPeekAtLastError(), "peek");
    check(hipGetLastError(), "last");
    __hipUnregisterFatBinary(registered);
  }
  check(hipDeviceSynchronize(), "synchronize");
  check(hipMemcpyDtoH(host, arrays[2], size * sizeof(float)), "copy back");
  double sum = 0;
  for (unsigned j = 0; j < size; ++j) sum += host[j];
  printf("%g\n", sum);
  for (int i = 0; i < 3; ++i) check(hipFree(arrays[i]), "free");
  return 0;
}

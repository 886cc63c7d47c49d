// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graphs: nodes that run in the order they were added. A node's dependencies exist before it does, so that order
// obeys every edge; the edges themselves are not kept.
#include <functional>
#include <memory>
#include <vector>

#include "hip_error.h"
#include "hip_handles.h"
#include "hip_memory.h"
#include "hip_modules.h"
#include "hip_streams.h"

namespace vgpu::hip {

using Node = std::function<void()>;
using Nodes = std::vector<std::shared_ptr<const Node>>;

struct Graph {
  Nodes nodes;
  Alive alive{};
};

// What an instantiated graph runs; later changes to the graph do not reach it.
struct GraphExec {
  Nodes nodes;
  Alive alive{};
};

namespace {

hipError_t add(const char* call, const Node** out, Graph* graph, const std::function<Node()>& make) {
  return guarded(call, [&] {
    Graph& to = required(graph, "graph");
    auto node = std::make_shared<const Node>(make());
    required(out, "node") = node.get();
    to.nodes.push_back(std::move(node));
  });
}

void fill_rows(const hipMemsetParams& fill) {
  for (size_t row = 0; row < fill.height; ++row)
    fill_elements(static_cast<uint8_t*>(fill.dst) + row * fill.pitch, fill.value, fill.elementSize, fill.width);
}

void copy_rows(const HIP_MEMCPY3D& copy) {
  const auto* from = static_cast<const uint8_t*>(copy.srcHost ? copy.srcHost : copy.srcDevice);
  auto* to = static_cast<uint8_t*>(copy.dstHost ? copy.dstHost : copy.dstDevice);
  for (size_t z = 0; z < copy.Depth; ++z)
    for (size_t y = 0; y < copy.Height; ++y)
      copy_bytes(to + ((copy.dstZ + z) * copy.dstHeight + copy.dstY + y) * copy.dstPitch + copy.dstXInBytes,
                 from + ((copy.srcZ + z) * copy.srcHeight + copy.srcY + y) * copy.srcPitch + copy.srcXInBytes,
                 copy.WidthInBytes);
}

}  // namespace
}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipGraphCreate(Graph** graph, unsigned) {
  return guarded(__func__, [&] { required(graph, "graph") = new Graph; });
}

VGPU_API hipError_t hipGraphDestroy(Graph* graph) {
  return guarded(__func__, [&] { delete &required(graph, "graph"); });
}

VGPU_API hipError_t hipGraphInstantiate(GraphExec** exec, Graph* graph, const Node** bad_node, char*, size_t) {
  if (bad_node) *bad_node = nullptr;
  return guarded(__func__, [&] { required(exec, "graph exec") = new GraphExec{required(graph, "graph").nodes}; });
}

VGPU_API hipError_t hipGraphExecDestroy(GraphExec* exec) {
  return guarded(__func__, [&] { delete &required(exec, "graph exec"); });
}

VGPU_API hipError_t hipGraphLaunch(GraphExec* exec, Stream*) {
  return guarded(__func__, [&] {
    for (const auto& node : required(exec, "graph exec").nodes) (*node)();
  });
}

VGPU_API hipError_t hipGraphAddEmptyNode(const Node** node, Graph* graph, const void*, size_t) {
  return add(__func__, node, graph, []() -> Node { return [] {}; });
}

VGPU_API hipError_t hipGraphAddEventRecordNode(const Node** node, Graph* graph, const void*, size_t, Event* event) {
  return add(__func__, node, graph, [&]() -> Node {
    return [event = &required(event, "event")] { event->record(); };
  });
}

// Arguments are read now, as HIP does: the caller may reuse them as soon as this returns.
VGPU_API hipError_t hipGraphAddKernelNode(const Node** node, Graph* graph, const void*, size_t,
                                          const hipKernelNodeParams* params) {
  return add(__func__, node, graph, [&]() -> Node {
    const auto& p = required(params, "kernel parameters");
    auto launch = Launch::pack(required(static_cast<const Function*>(p.func), "function"), p.gridDim, p.blockDim,
                               p.sharedMemBytes, p.kernelParams, p.extra);
    return [launch = std::move(launch)] { launch.run(); };
  });
}

VGPU_API hipError_t hipGraphAddMemsetNode(const Node** node, Graph* graph, const void*, size_t,
                                          const hipMemsetParams* params) {
  return add(__func__, node, graph, [&]() -> Node {
    return [fill = required(params, "fill parameters")] { fill_rows(fill); };
  });
}

VGPU_API hipError_t hipDrvGraphAddMemcpyNode(const Node** node, Graph* graph, const void*, size_t,
                                             const HIP_MEMCPY3D* params, void*) {
  return add(__func__, node, graph, [&]() -> Node {
    return [copy = required(params, "copy parameters")] { copy_rows(copy); };
  });
}

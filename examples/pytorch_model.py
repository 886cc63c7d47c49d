# REQUIRES: torch
# RUN: %python %s | %filecheck
"""Train a PyTorch model whose weight gradients are computed here, and get the same bits twice."""

import copy

import torch

import conv_compiler.torch as ct

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3, stride=2)
)
images = torch.randn(4, 3, 16, 16)

ct.replace(model)
print("kernels:", ct.warm_up(model, images))
# CHECK: kernels: 2


def step(model):
    model(images).square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]


first, second = step(copy.deepcopy(model)), step(copy.deepcopy(model))
print("bitwise the same:", all(map(torch.equal, first, second)))
# CHECK: bitwise the same: True

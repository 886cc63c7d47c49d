# REQUIRES: jax
# RUN: %python %s | %filecheck
"""A JAX convolution whose weight gradient is computed here: arrays go both ways by DLPack."""

import jax
import jax.numpy as jnp

import conv_compiler as cc

LETTERS = ("NHWC", "OHWI", "NHWC")
problem = cc.ConvProblem(
    n=4, k=16, c=8, image=(14, 14), filter=(3, 3), pad_low=1, dtype="f32", layout="NHWC"
)
kernel = cc.load(cc.compile(problem))


def plain(image, weight):
    return jax.lax.conv_general_dilated(
        image, weight, (1, 1), [(1, 1), (1, 1)], dimension_numbers=LETTERS
    )


@jax.custom_vjp
def conv(image, weight):
    return plain(image, weight)


def backward(operands, gradient):
    image, weight = operands
    (d_image,) = jax.vjp(lambda image: plain(image, weight), image)[1](gradient)
    return d_image, kernel(image, gradient)


conv.defvjp(lambda image, weight: (plain(image, weight), (image, weight)), backward)

keys = jax.random.split(jax.random.key(0), 2)
image = jax.random.normal(keys[0], problem.input_shape)
weight = jax.random.normal(keys[1], problem.weight_shape)
gradients = [jax.grad(lambda w, c=c: c(image, w).sum())(weight) for c in (conv, plain)]
print("as JAX computes it:", bool(jnp.allclose(*gradients, rtol=1e-4, atol=1e-4)))
# CHECK: as JAX computes it: True

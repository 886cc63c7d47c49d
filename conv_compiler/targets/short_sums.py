# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that keep fewer bits of a sum than the type it is stored in, and what that loses."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Data drawn evenly from [-1, 1) have products of this deviation.
_DEVIATION = 1 / 3


@dataclass(frozen=True, kw_only=True)
class ShortSums:
    """An instruction that adds so many `products` to a sum, and how often its sums become f32.

    Of each product and of the sum before them it keeps `bits` behind the leading bit of the largest
    one, and of what they make `bits` again. Sums of `together` products are made so. These are
    added to others in f32. A product has `product_bits` of fraction, of a number from 1 to 4.
    """

    bits: int
    products: int
    together: int
    product_bits: int

    @property
    def steps(self) -> int:
        """Instructions of a sum that is made so."""
        return self.together // self.products

    @property
    def whole(self) -> int:
        """Up to which size of `together` products, in all, sums of whole numbers are exact."""
        return int(2 ** (self.bits + 1))

    def of_sizes(self) -> float:
        """The most that sums of `together` products lose, relative to their products' sizes: no
        number is larger than all of these."""
        return self.steps * (self.products + 2) * 2.0**-self.bits

    def of_products(self, count: int, confidence: float, *, evenly: bool) -> float:
        """The most that a sum of so many products of data from [-1, 1) loses.

        A number that is added loses up to 2**-bits of the largest one: a product, of 1 at most, or
        the sum before. Of s instructions the sums have 1/3 sqrt(s products) as their root mean
        square, which bounds their mean and their deviation. Over all tiles means add up, and
        deviations by `confidence` times the square root of their number.

        A product loses nothing unless it is smaller than the largest number by `bits` less those
        that it has. Of data drawn `evenly` from [-1, 1) a share x (1 - ln x) of the products is
        below x; of other data it may be all.
        """
        tile = 0.0
        for step in range(self.steps):
            before, after = (_DEVIATION * math.sqrt(self.products * n) for n in (step, step + 1))
            largest = 1 + before
            x = min(1.0, largest * 2.0 ** (self.product_bits + 1 - self.bits))
            share = x * (1 - math.log(x)) if evenly else 1.0
            tile += (1 + self.products * share) * largest + after
        tiles = -(-count // self.together)
        return 2.0**-self.bits * tile * (tiles + confidence * math.sqrt(tiles))


# R: each number that is added keeps 13 bits behind the leading one of the largest (DeepSeek-V3,
# arXiv 2412.19437, section 3.5.2). A sum has 13 bits of fraction (SageAttention2, arXiv
# 2411.10958, section 3.2). A tile of gemm_k is 128 channels. Two numbers of e4m3 have three bits of
# fraction each.
HOPPER_F8 = ShortSums(bits=13, products=32, together=128, product_bits=6)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a problem is computed: strategies, their tiles and costs, and the choice among them."""

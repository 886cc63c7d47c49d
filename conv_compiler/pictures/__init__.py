# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of problems, kernels and times: HTML, SVG and traces."""

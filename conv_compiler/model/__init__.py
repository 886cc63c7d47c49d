# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The performance model: how long a kernel takes on a chip, from its code object.

A model, not a measurement; docs/model.md says what it knows and what it leaves out. Import from the
modules: ranking tilings needs `estimate` and must not load the decoder.
"""

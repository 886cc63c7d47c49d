# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files on disk: whose a folder is, what may be overwritten, and the cache of artifacts."""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an AMD card is, does and takes, beside what the tables and the model say of it."""

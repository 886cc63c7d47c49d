"""Kernels in Triton: what its tutorials teach, written anew. The import needs Triton."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """A row a program; lanes beyond the row hold the sum's and the maximum's neutral element."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + at, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    """A row a program, in as many blocks as it needs: mean, variance, result."""
    row = tl.program_id(0) * columns
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        sums += tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + row + at, mask=at < columns, other=0.0).to(tl.float32)
        apart = tl.where(at < columns, value - mean, 0.0)
        squares += apart * apart
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + row + at, mask=inside).to(tl.float32)
        result = (value - mean) * scale * tl.load(weight + at, mask=inside)
        tl.store(out + row + at, result + tl.load(bias + at, mask=inside), mask=inside)


@triton.jit
def matmul(
    a,
    b,
    out,
    rows,
    columns,
    length,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    TOGETHER: tl.constexpr,
    TOTAL: tl.constexpr,
):
    """A tile a program; TOGETHER rows of tiles are next to one another in the order of programs."""
    number = tl.program_id(0)
    tiles_down, tiles_across = tl.cdiv(rows, M), tl.cdiv(columns, N)
    band = number // (TOGETHER * tiles_across)
    height = min(tiles_down - band * TOGETHER, TOGETHER)
    inside_band = number % (TOGETHER * tiles_across)
    m = (band * TOGETHER + inside_band % height) * M + tl.arange(0, M)
    n = inside_band // height * N + tl.arange(0, N)
    k = tl.arange(0, K)
    total = tl.zeros([M, N], TOTAL)
    for first in range(0, length, K):
        at = first + k
        left = tl.load(
            a + m[:, None] * length + at[None, :],
            mask=(m[:, None] < rows) & (at[None, :] < length),
            other=0,
        )
        right = tl.load(
            b + at[:, None] * columns + n[None, :],
            mask=(at[:, None] < length) & (n[None, :] < columns),
            other=0,
        )
        total = tl.dot(left, right, total, out_dtype=TOTAL)
    where = m[:, None] * columns + n[None, :]
    tl.store(out + where, total, mask=(m[:, None] < rows) & (n[None, :] < columns))


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    length,
    scale,
    D: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Softmax of each row of q k^T, times v, a block of keys after another: of what came before only
    a maximum, a sum and the result so far are kept."""
    head = tl.program_id(1) * length * D
    m = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    query = tl.load(q + head + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0)
    most = tl.full([M], -float("inf"), tl.float32)
    norm = tl.zeros([M], tl.float32)
    result = tl.zeros([M, D], tl.float32)
    end = (tl.program_id(0) + 1) * M if CAUSAL else length
    for first in range(0, end, N):
        n = first + tl.arange(0, N)
        key = tl.load(k + head + n[None, :] * D + d[:, None], mask=n[None, :] < length, other=0.0)
        value = tl.load(v + head + n[:, None] * D + d[None, :], mask=n[:, None] < length, other=0.0)
        score = tl.dot(query, key) * scale
        seen = n[None, :] < length
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None])
        score = tl.where(seen, score, -float("inf"))
        higher = tl.maximum(most, tl.max(score, axis=1))
        power = tl.exp(score - higher[:, None])
        shrink = tl.exp(most - higher)
        norm = norm * shrink + tl.sum(power, axis=1)
        result = result * shrink[:, None] + tl.dot(power.to(value.dtype), value)
        most = higher
    where = head + m[:, None] * D + d[None, :]
    tl.store(out + where, (result / norm[:, None]).to(tl.float16), mask=m[:, None] < length)


@triton.jit
def reductions(x, sums, most, places, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """Of a matrix: sums of columns, largest of each row and where it is."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    inside = (m[:, None] < rows) & (n[None, :] < columns)
    value = tl.load(x + m[:, None] * columns + n[None, :], mask=inside, other=0)
    tl.store(sums + n, tl.sum(value, axis=0), mask=n < columns)
    value = tl.where(inside, value, -(2**30))
    tl.store(most + m, tl.max(value, axis=1), mask=m < rows)
    tl.store(places + m, tl.argmax(value, axis=1), mask=m < rows)


@triton.jit
def product_of_rows(x, out, columns, BLOCK: tl.constexpr):
    """A reduction by a function of our own."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=1)
    tl.store(out + row, tl.reduce(value, 0, _times))


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def histogram(x, counts, most, n, BLOCK: tl.constexpr):
    """Counts by value and the largest value, by atomics of all programs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0)
    tl.atomic_add(counts + value, 1, mask=inside)
    tl.atomic_max(most, tl.max(value, axis=0))


@triton.jit
def locked_sum(x, lock, total, n, BLOCK: tl.constexpr):
    """The sum of all programs' parts: f32 atomics, and a number that each program raises by a
    compare-and-swap."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0)
    tl.atomic_add(total, part)
    number = tl.program_id(0)
    while tl.atomic_cas(lock, number, number + 1) != number:
        pass


@triton.jit
def scans(x, sums, highest, columns, BLOCK: tl.constexpr):
    """Running sums and, backwards, running maxima of each row."""
    row, at = tl.program_id(0) * columns, tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row + at, mask=inside, other=0)
    tl.store(sums + row + at, tl.cumsum(value, axis=0), mask=inside)
    value = tl.where(inside, value, -(2**30))
    tl.store(highest + row + at, tl.associative_scan(value, 0, _larger, reverse=True), mask=inside)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def dropout(x, out, n, seed, share, BLOCK: tl.constexpr):
    """Keeps an element where a random number of its index is above `share`."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    kept = tl.rand(seed, at) > share
    tl.store(out + at, tl.where(kept, value / (1 - share), 0.0), mask=at < n)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + at, tl.sort(tl.load(x + row + at)))

"""The Triton kernels that `decode.py` and `cases.py` put in the place of chains."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, w, out, width: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, width)
    v = tl.load(x + row * width + at).to(tl.float32)
    scaled = v * tl.rsqrt(tl.sum(v * v) / width + 1e-6)
    tl.store(out + row * width + at, scaled.to(out.dtype.element_ty) * tl.load(w + at))


@triton.jit
def add_rms_norm(x, y, w, total, out, width: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, width)
    joined = tl.load(x + row * width + at) + tl.load(y + row * width + at)
    tl.store(total + row * width + at, joined)
    v = joined.to(tl.float32)
    scaled = v * tl.rsqrt(tl.sum(v * v) / width + 1e-6)
    tl.store(out + row * width + at, scaled.to(out.dtype.element_ty) * tl.load(w + at))


@triton.jit
def rope(x, c, s, out, head_stride, token_stride, tokens, width: tl.constexpr):
    head, token, at = tl.program_id(0), tl.program_id(1), tl.arange(0, width)
    half: tl.constexpr = width // 2
    row = x + head * head_stride + token * token_stride
    other = tl.load(row + (at + half) % width)
    turned = tl.where(at < half, -other, other)
    cos, sin = tl.load(c + token * width + at), tl.load(s + token * width + at)
    tl.store(out + (head * tokens + token) * width + at, tl.load(row + at) * cos + turned * sin)


@triton.jit
def silu_mul(gate, up, out, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    g = tl.load(gate + at, mask=inside).to(tl.float32)
    silu = (g * tl.sigmoid(g)).to(out.dtype.element_ty)
    tl.store(out + at, silu * tl.load(up + at, mask=inside), mask=inside)


@triton.jit
def bias_relu(x, bias, out, count, width: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    v = tl.load(x + at, mask=inside) + tl.load(bias + at % width, mask=inside)
    tl.store(out + at, tl.maximum(v, 0.0), mask=inside)


@triton.jit
def polynomial(x, y, out, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    u = tl.load(x + at, mask=inside).to(tl.float32)
    v = tl.load(y + at, mask=inside).to(tl.float32)
    w = (u * 0.5 + v) * u
    w = w * tl.sigmoid(w) + v
    tl.store(out + at, w.to(out.dtype.element_ty), mask=inside)


@triton.jit
def masked_softmax(x, mask, out, scale, width: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, width)
    v = (tl.load(x + row * width + at) * scale + tl.load(mask + at)).to(tl.float32)
    e = tl.exp(v - tl.max(v))
    tl.store(out + row * width + at, (e / tl.sum(e)).to(out.dtype.element_ty))

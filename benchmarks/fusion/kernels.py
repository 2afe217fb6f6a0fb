"""Triton kernels that replace chains of kernels in `decode.py` and `cases.py`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, w, out, width: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, width)
    v = tl.load(x + row * width + index).to(tl.float32)
    scaled = v * tl.rsqrt(tl.sum(v * v) / width + 1e-6)
    tl.store(out + row * width + index, scaled.to(out.dtype.element_ty) * tl.load(w + index))


@triton.jit
def add_rms_norm(x, y, w, total, out, width: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, width)
    residual = tl.load(x + row * width + index) + tl.load(y + row * width + index)
    tl.store(total + row * width + index, residual)
    v = residual.to(tl.float32)
    scaled = v * tl.rsqrt(tl.sum(v * v) / width + 1e-6)
    tl.store(out + row * width + index, scaled.to(out.dtype.element_ty) * tl.load(w + index))


@triton.jit
def rope(x, c, s, out, head_stride, token_stride, tokens, width: tl.constexpr):
    head, token, index = tl.program_id(0), tl.program_id(1), tl.arange(0, width)
    half: tl.constexpr = width // 2
    row = x + head * head_stride + token * token_stride
    partner = tl.load(row + (index + half) % width)
    rotated = tl.where(index < half, -partner, partner)
    cos, sin = tl.load(c + token * width + index), tl.load(s + token * width + index)
    tl.store(out + (head * tokens + token) * width + index, tl.load(row + index) * cos + rotated * sin)


@triton.jit
def silu_mul(gate, up, out, count, block: tl.constexpr):
    index = tl.program_id(0) * block + tl.arange(0, block)
    in_range = index < count
    g = tl.load(gate + index, mask=in_range).to(tl.float32)
    silu = (g * tl.sigmoid(g)).to(out.dtype.element_ty)
    tl.store(out + index, silu * tl.load(up + index, mask=in_range), mask=in_range)


@triton.jit
def bias_relu(x, bias, out, count, width: tl.constexpr, block: tl.constexpr):
    index = tl.program_id(0) * block + tl.arange(0, block)
    in_range = index < count
    v = tl.load(x + index, mask=in_range) + tl.load(bias + index % width, mask=in_range)
    tl.store(out + index, tl.maximum(v, 0.0), mask=in_range)


@triton.jit
def polynomial(x, y, out, count, block: tl.constexpr):
    index = tl.program_id(0) * block + tl.arange(0, block)
    in_range = index < count
    u = tl.load(x + index, mask=in_range).to(tl.float32)
    v = tl.load(y + index, mask=in_range).to(tl.float32)
    w = (u * 0.5 + v) * u
    w = w * tl.sigmoid(w) + v
    tl.store(out + index, w.to(out.dtype.element_ty), mask=in_range)


@triton.jit
def masked_softmax(x, mask, out, scale, width: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, width)
    v = (tl.load(x + row * width + index) * scale + tl.load(mask + index)).to(tl.float32)
    e = tl.exp(v - tl.max(v))
    tl.store(out + row * width + index, (e / tl.sum(e)).to(out.dtype.element_ty))

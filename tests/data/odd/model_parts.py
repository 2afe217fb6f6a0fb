"""python3 model_parts.py MODE: plans, layouts, attention, recomputation, caches. It prints what it measured itself."""

import os
import sys
import time

mode = sys.argv[1]


def measure(step, count, synchronize, profiler=None):
    """Run five steps, then print the time of `count` more, which are captured."""
    for _ in range(5):
        step()
    synchronize()
    if profiler:
        profiler[0]()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    synchronize()
    print(f"{mode}: {(time.perf_counter() - begin) / count * 1e6:.0f} us per step", flush=True)
    if profiler:
        profiler[1]()


if mode in ("plans", "planned"):
    import cupy
    from cupy.cuda import runtime

    if mode == "plans":
        cupy.fft.config.get_plan_cache().set_size(0)
    state = [cupy.random.standard_normal((64, 4099)).astype(cupy.complex64)]

    def transform():
        state[0] = cupy.fft.ifft(cupy.fft.fft(state[0]) * 0.5)
        cupy.cuda.get_current_stream().synchronize()

    measure(transform, 20, cupy.cuda.Device().synchronize, (runtime.profilerStart, runtime.profilerStop))
    sys.exit()
if mode in ("donated", "copied"):
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.2"
    import jax
    import jax.numpy as jnp

    def write(cache, position, row):
        return jax.lax.dynamic_update_slice(cache, jnp.tanh(row), (0, position, 0))

    write = jax.jit(write, donate_argnums=(0,) if mode == "donated" else ())
    row = jnp.ones((32, 1, 1024), jnp.bfloat16)
    state = [jnp.zeros((32, 8192, 1024), jnp.bfloat16)]  # 512 MiB

    def decode():
        for position in range(4):
            state[0] = write(state[0], position, row)
        state[0].block_until_ready()

    measure(decode, 20, jax.effects_barrier)
    sys.exit()

import torch  # noqa: E402 - CuPy and JAX run without it
from torch import nn  # noqa: E402

torch.manual_seed(0)
profiler = torch.cuda.cudart().cudaProfilerStart, torch.cuda.cudart().cudaProfilerStop
device, dtype = "cuda", torch.bfloat16
if mode == "options":  # many small layers: the host bounds it
    layers = [nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU()) for _ in range(24)]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    x = torch.randn(256, 256, device=device)

    def train():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()

    measure(train, 20, torch.cuda.synchronize, profiler)
if mode in ("nchw", "nhwc"):
    layout = torch.channels_last if mode == "nhwc" else torch.contiguous_format
    layers = [nn.Conv2d(3, 128, 3, padding=1)]
    for _ in range(6):
        layers += [nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1)]
    model = nn.Sequential(*layers).to(device, dtype, memory_format=layout)
    x = torch.randn(64, 3, 112, 112, device=device, dtype=dtype).to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def train():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()

    measure(train, 10, torch.cuda.synchronize, profiler)
if mode.startswith("attention"):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
    backends |= {"cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}
    backend = backends.get(mode.removeprefix("attention_"))
    weight = (torch.randn(3, 1024, 1024, device=device, dtype=dtype) * 0.02).requires_grad_()
    x = torch.randn(4, 2048, 1024, device=device, dtype=dtype)
    mask = torch.rand(2048, 2048, device=device) > 0.1 if mode == "attention_mask" else None

    def layer(y):
        q, k, v = ((y @ w).view(4, 2048, 16, 64).transpose(1, 2) for w in weight)
        out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return out.transpose(1, 2).reshape(4, 2048, 1024)

    def forward():
        y = x
        for _ in range(4):
            y = layer(y)
        y.sum().backward()
        weight.grad = None

    def run():
        if backend is None:
            return forward()
        with sdpa_kernel(backend):
            return forward()

    measure(run, 10, torch.cuda.synchronize, profiler)
if mode in ("kept", "recomputed"):
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            y = nn.functional.dropout(nn.functional.gelu(self.up(self.norm(x))), 0.1)
            return x + self.down(y)

    blocks = nn.ModuleList(Block(1024) for _ in range(8)).to(device, dtype)
    optimizer = torch.optim.SGD(blocks.parameters(), lr=1e-4)
    x = torch.randn(16384, 1024, device=device, dtype=dtype, requires_grad=True)

    def train():
        optimizer.zero_grad(set_to_none=True)
        y = x
        for block in blocks:
            y = checkpoint(block, y, use_reentrant=False) if mode == "recomputed" else block(y)
        y.float().square().mean().backward()
        optimizer.step()

    measure(train, 10, torch.cuda.synchronize, profiler)
    print(f"{mode}: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most")
if mode in ("dynamic", "static"):
    import transformers
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=1024,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).to(device, dtype).eval()
    tokens = torch.randint(3, 8192, (1, 16), device=device)
    options = {"max_new_tokens": 48, "min_new_tokens": 48, "do_sample": False}
    if mode == "static":
        options["cache_implementation"] = "static"

    def generate():
        with torch.no_grad():
            model.generate(tokens, attention_mask=torch.ones_like(tokens), **options)

    measure(generate, 2, torch.cuda.synchronize, profiler)
    print(f"{mode}: transformers {transformers.__version__}, 48 tokens per step")

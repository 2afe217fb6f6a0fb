"""A small serving loop: continuous batching of a Llama-shaped decoder with random weights.

Requests arrive at given steps. A step prefills at most one waiting request, and decodes all running ones: up to two
eagerly as a batch of 2, more by a CUDA graph as a batch of 4. All tokens are read back at the end of a step. NVTX
ranges name the step, the phase, the batch and the requests; a start/end range lasts from a request's arrival to its
last token.
"""

# ruff: noqa: C901, E741, N802, N806, N812, PLR0912, PLR0915 - as models are written
import argparse
import json
import time

import torch
import torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("--layers", type=int, default=2)
p.add_argument("--hidden", type=int, default=512)
p.add_argument("--heads", type=int, default=8)
p.add_argument("--requests", type=int, default=10)
p.add_argument("--variant", choices=["a", "b"], default="a", help="b: graphs for both batches, prompts padded to 1024")
p.add_argument("--name", default="plain")
a = p.parse_args()
dev, dt = "cuda", torch.bfloat16
L, H, NH, V, MAX, SLOTS = a.layers, a.hidden, a.heads, 8192, 1100, 4
HD, FF = H // NH, int(H * 2.75) // 64 * 64
torch.manual_seed(0)


def W(*s):
    return (torch.randn(*s, device=dev) * 0.02).to(dt)


emb, head = W(V, H), W(V, H)
layers = [
    {
        "n1": torch.ones(H, device=dev, dtype=dt),
        "n2": torch.ones(H, device=dev, dtype=dt),
        "qkv": W(3 * H, H),
        "o": W(H, H),
        "g": W(FF, H),
        "u": W(FF, H),
        "d": W(H, FF),
        "kc": torch.zeros(SLOTS + 1, MAX, NH, HD, device=dev, dtype=dt),
        "vc": torch.zeros(SLOTS + 1, MAX, NH, HD, device=dev, dtype=dt),
    }
    for _ in range(L)
]
ar = torch.arange(MAX, device=dev)


def forward(tok, pos, slots, mask):
    """tok, pos: [B, T]; slots: [B]; mask: [B, 1, T, MAX]."""
    B, T = tok.shape
    x = F.embedding(tok, emb)
    for l in layers:
        h = F.rms_norm(x, (H,), l["n1"])
        q, k, v = F.linear(h, l["qkv"]).view(B, T, 3, NH, HD).unbind(2)
        l["kc"][slots[:, None], pos] = k
        l["vc"][slots[:, None], pos] = v
        o = F.scaled_dot_product_attention(
            q.transpose(1, 2), l["kc"][slots].transpose(1, 2), l["vc"][slots].transpose(1, 2), attn_mask=mask
        )
        x = x + F.linear(o.transpose(1, 2).reshape(B, T, H), l["o"])
        h = F.rms_norm(x, (H,), l["n2"])
        x = x + F.linear(F.silu(F.linear(h, l["g"])) * F.linear(h, l["u"]), l["d"])
    return F.linear(x[:, -1], head).argmax(-1)


def decode(tok, pos, slots):
    return forward(tok[:, None], pos[:, None], slots, (ar[None] <= pos[:, None])[:, None, None])


graphs = {}


def capture(size):
    tok, pos, slots = (
        torch.zeros(size, dtype=torch.long, device=dev),
        torch.zeros(size, dtype=torch.long, device=dev),
        torch.full((size,), SLOTS, device=dev),
    )
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            decode(tok, pos, slots)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        out = decode(tok, pos, slots)
    graphs[size] = (g, tok, pos, slots, out)


def serve():
    """Serve all requests; return for each its arrival and the times of its tokens, in ns."""
    waiting = [
        {
            "id": i,
            "arrives": (0, 0, 1, 9, 10, 12, 14, 30, 31, 40)[i % 10] + 50 * (i // 10),
            "prompt": (96, 160, 64)[i % 3],
            "out": (14, 18, 8, 12, 20, 6, 16, 10, 9, 12)[i % 10],
        }
        for i in range(a.requests)
    ]
    running, free, queued, finished, n = [], list(range(SLOTS)), [], [], 0
    while waiting or running or queued:
        for r in [r for r in waiting if r["arrives"] <= n]:
            waiting.remove(r)
            queued.append(r)
            r["t0"] = time.perf_counter_ns()
            r["times"] = []
            r["mark"] = torch.cuda.nvtx.range_start(f"request {r['id']}")
        if not queued and not running:
            n += 1
            continue
        torch.cuda.nvtx.range_push(f"step {n}")
        outputs, new_request = [], None
        if queued and free:
            r = new_request = queued.pop(0)
            r["slot"], r["len"] = free.pop(0), r["prompt"]
            T = 1024 if a.variant == "b" else r["prompt"]
            torch.cuda.nvtx.range_push(f"prefill tokens={r['prompt']} req={r['id']}")
            tok = torch.full((1, T), 7, device=dev)
            pos = ar[None, :T]
            first = forward(
                tok, pos, torch.tensor([r["slot"]], device=dev), (ar[None, :] <= pos[0, :, None])[None, None]
            )
            torch.cuda.nvtx.range_pop()
            outputs.append(([r], first))
        if running:
            size = 2 if len(running) <= 2 else 4
            pad = size - len(running)
            torch.cuda.nvtx.range_push(f"decode bs={size} req={','.join(str(r['id']) for r in running)}")
            values = [
                torch.tensor([r[key] for r in running] + [other] * pad)
                for key, other in (("last", 0), ("len", 0), ("slot", SLOTS))
            ]
            if size in graphs:
                g, *buffers, out = graphs[size]
                for buffer, value in zip(buffers, values, strict=False):
                    buffer.copy_(value)
                g.replay()
            else:
                out = decode(*[value.to(dev) for value in values])
            torch.cuda.nvtx.range_pop()
            outputs.append((list(running), out))
        for batch, out in outputs:
            tokens = out.tolist()
            now = time.perf_counter_ns()
            for r, token in zip(batch, tokens, strict=False):
                r["last"] = token
                r["len"] += r is not new_request
        now = time.perf_counter_ns()
        for batch, _ in outputs:
            for r in batch:
                r["times"].append(now)
        torch.cuda.nvtx.range_pop()
        if new_request:
            running.append(new_request)
        for r in [r for r in running if len(r["times"]) >= r["out"]]:
            torch.cuda.nvtx.range_end(r["mark"])
            running.remove(r)
            free.append(r["slot"])
            finished.append(r)
        n += 1
    return sorted(finished, key=lambda r: r["id"])


with torch.no_grad():
    capture(4)
    if a.variant == "b":
        capture(2)
    serve()
    serve()  # warm-up
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    finished = serve()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
ttft, itl = [], []
for r in finished:
    itl_us = [(y - x) / 1e3 for x, y in zip(r["times"], r["times"][1:], strict=False)]
    ttft.append((r["times"][0] - r["t0"]) / 1e3)
    itl += itl_us
    print("REQUEST", json.dumps({"name": a.name, "request": r["id"], "ttft_us": ttft[-1], "itl_us": itl_us}))


def percentile(values, share):
    values = sorted(values)
    return values[max(0, -int(-share * len(values) // 1) - 1)]


for metric, values in (("ttft", ttft), ("itl", itl)):
    for label, value in (
        ("min", min(values)),
        ("p50", percentile(values, 0.5)),
        ("p90", percentile(values, 0.9)),
        ("p95", percentile(values, 0.95)),
        ("p99", percentile(values, 0.99)),
        ("max", max(values)),
        ("mean", sum(values) / len(values)),
    ):
        print(f"RESULT {a.name}_{metric}_{label} {value:.3f} us")
print(f"RESULT {a.name}_tokens {len(ttft) + len(itl)} tokens")

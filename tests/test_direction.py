"""Whether more or less of a metric is better, by its unit and its name."""

from __future__ import annotations

import pytest

from nsys_insight.compare.direction import infer_direction

HIGHER = """
decode|tok/s  gemm|GFLOPS  gemm|GFLOP/s  gemm|TFLOP/s  copy|GB/s  copy|GiB/s  serve|req/s  train|samples/s  search|QPS
train|it/s  render|FPS  stencil|MLUPS  hash|Mops/s  energy|tokens/J  result|x  eff|GFLOPS/W
output_throughput  request_throughput  tokens_per_s  tokens_per_second  total_token_throughput  memory_bandwidth
bandwidth_utilization_pct|%  achieved_occupancy|%  l2_hit_rate|%  mfu  speedup  items_per_second  bytes_per_second
free_memory|MiB  time_saved_ms  requestsPerSec  decodeTokensPerSecond  GFLOPS  network_gbps  accuracy
spec_acceptance_rate  gpu_throughput_tokens_per_gpu_per_s  Throughput(tok/s)  prefill[tokens/s]  gbs_per_s|GB/s
"""
LOWER = """
step|ms  step|µs  step|us  step|ns  step|s  load|seconds  memory|bytes  peak|MiB  peak|GB  token|ms/token  iter|s/it
power|W  energy|J/token  op|ns/op  traffic|bytes/token  errors|errors/s  cost|cycles
wall_ns  time_ns  mean_ttft_ms  p99_itl_ms  median_tpot_ms  std_e2el_ms  model_load_s  latency  duration  real_time
cpuTime  peak_memory_bytes  memory_gb  cache_miss_rate|%  error_rate  idle_pct|%  perplexity  loss  registers_per_thread
time_to_first_token  seconds_per_iteration  throughput_time  latencyMs  spills  page_faults_per_s  launch overhead (us)
"""
SILENT = """
value  count  batch_size  num_prompts  total_output_tokens  completed  iterations  rate|%  threads  x  p99
result|points
request_rate  seq_len  input  a|  hidden_dim_count
"""


def list_cases(text):
    # Two spaces separate cases, because a name may contain one.
    return [case.strip() for line in text.split("\n") for case in line.split("  ") if case.strip()]


@pytest.mark.parametrize(("text", "expected"), [(HIGHER, "higher"), (LOWER, "lower"), (SILENT, None)])
def test_unit_and_name_decide_which_direction_is_better(text, expected):
    directions = {case: infer_direction(*case.split("|")) for case in list_cases(text)}
    assert {case: direction for case, direction in directions.items() if direction != expected} == {}
    assert len(directions) >= 15

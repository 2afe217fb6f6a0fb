"""python3 worker.py fork|spawn [stop]: a worker of multiprocessing uses the GPU; its parent does not."""

import multiprocessing
import sys

import torch


def work():
    x = torch.ones(1 << 20, device="cuda")
    for _step in range(40):
        with torch.cuda.nvtx.range("step"):
            for _ in range(3):
                x = x * 1.0001
            torch.cuda.synchronize()
    if "stop" in sys.argv:
        torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    process.start()
    process.join()

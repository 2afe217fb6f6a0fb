"""The command ``calibrate``: what calls of CUDA take on this machine, without nsys and under it."""

from __future__ import annotations

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.ingest import calibration
from nsys_insight.ingest.nsys import find_newest_nsys
from nsys_insight.text.units import time_text


def calibrate() -> None:
    """Measure what a launch, a memset and a copy take on this machine, without nsys and under it.

    Runs a small program twice, without nsys and under it: some seconds. It needs a GPU, Linux and a C compiler. The
    times are stored for this machine, and capture shows them. Estimates of diagnose do not use them: programs of one
    machine differ by more than machines do. So measure the program: capture --also-without.
    """
    result = calibration.measure(find_newest_nsys(to_capture=True))
    print(f"{'call':<8}{'without nsys':>14}{'under nsys':>14}")
    for name, without_ns in result.without_ns.items():
        print(f"{name:<8}{time_text(without_ns):>14}{time_text(result.under_nsys_ns[name]):>14}")
    terminal.note(f"stored in {calibration.store(result)}")


CALIBRATE = Command(
    "calibrate",
    lambda: calibrate,
    group="first",
    place=35,
    help="Measure what nsys costs on this machine",
    examples=("calibrate",),
)

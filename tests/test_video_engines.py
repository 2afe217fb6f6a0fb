"""Notes on the work of engines for video and images."""

from __future__ import annotations

import pytest
from opening import only_rules, open_trace
from synthetic import Trace

MS = 1_000_000
ENGINES = {0: "NVDEC", 1: "NVENC", 2: "NVJPEG", 3: "OFA"}


def plant(engines=ENGINES, *, names=ENGINES):
    """Four kernels of 1 ms, 9 ms apart; an engine works for 6 ms from the start of each."""
    trace = Trace()
    host = trace.thread()
    for number in range(4):
        host.launch("infer", start=number * 10 * MS, runs=MS).sync("stream")
        host.idle((number + 1) * 10 * MS - host.now)
    for number, engine in enumerate(engines):
        start = 10 * MS * number
        process = host.global_tid & ~0xFFFFFF
        trace.row("GPU_VIDEO_ENGINE_WORKLOAD", start=start, end=start + 6 * MS, globalPid=process, engineType=engine)
    for engine, name in names.items():
        trace.row("ENUM_VIDEO_ENGINE_TYPE", id=engine, name=name)
    return trace


def test_notes_name_engines_and_the_idle_time_in_which_they_work(tmp_path):
    with open_trace(plant().write(tmp_path / "trace.sqlite")) as trace:
        notes = [trace.answer(name).notes for name in ("top", "idle")]
        with only_rules():
            notes.append(trace.diagnose().notes)
        busy_ns = sum(row["time_ns"] for row in trace.idle().to_dicts() if row["cause"] == "busy")
        info = {row["metric"]: (row["value"], row["detail"]) for row in trace.info().to_dicts()}
        work = trace.sql("SELECT engine, sum(duration_ns)::BIGINT FROM video_work GROUP BY ALL ORDER BY ALL").rows()
    texts = [[text for text in entry if "engines for video" in text] for entry in notes]
    assert [len(note_list) for note_list in texts] == [1, 1, 1]
    assert texts[1] == texts[2]
    # top does not ask when the GPU is idle.
    assert texts[0][0].partition(":")[0] == texts[1][0].partition(":")[0]
    for engine in ENGINES.values():
        assert f"{engine} works 6 ms (1 time)" in texts[0][0]
    assert "for 20 ms of idle time, one of them works" in texts[1][0]
    assert busy_ns == 4 * MS
    assert info["video_engine_ranges"] == (4, "NVDEC, NVENC, NVJPEG, OFA")
    assert work == [(engine, 6 * MS) for engine in ENGINES.values()]


def test_a_trace_without_engines_says_nothing_of_them(tmp_path):
    with open_trace(plant(()).write(tmp_path / "trace.sqlite")) as trace:
        assert not any("engines for video" in note for note in trace.answer("idle").notes)


def test_an_engine_without_a_name_and_lost_work(tmp_path):
    trace = plant([7, 7], names={})
    trace.row("GPU_VIDEO_ENGINE_MISSING", rangeCount=12)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        (note,) = [note for note in opened_trace.answer("idle").notes if "engines for video" in note]
    assert "engine 7 works 12 ms (2 times)" in note
    assert "12 stretches of their work were not recorded" in note


@pytest.mark.parametrize(
    ("table", "library"),
    [("NVVIDEO_ENCODER_API", "NVENC"), ("NVVIDEO_DECODER_API", "NVDEC"), ("NVVIDEO_JPEG_API", "nvJPEG")],
)
def test_calls_of_the_engines_are_calls_of_libraries(table, library, tmp_path):
    trace = plant(())
    thread = trace.thread().global_tid
    trace.row(table, start=0, end=2 * MS, nameId=f"call of {library}", globalTid=thread, eventClass=80)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        rows = opened_trace.libraries().to_dicts()
    assert [(row["library"], row["name"], row["host_ns"]) for row in rows] == [(library, f"call of {library}", 2 * MS)]

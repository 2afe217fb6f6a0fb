"""`report --open`: two files on this machine, for a browser, until Ctrl-C."""

from __future__ import annotations

import http.client
import re
import threading

import command_line
import pytest

from nsys_insight.cli import local_server

ORIGIN = "https://ui.perfetto.dev"


@pytest.fixture
def server():
    """Serve two files; yield the server."""
    files = [
        local_server._File("report.html", b"<p>page</p>", "text/html"),
        local_server._File("trace.pftrace", b"timeline", "application/octet-stream", is_for_perfetto=True),
    ]
    with local_server._Server(files) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def request(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection(local_server.HOST, server.server_port)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_only_the_two_files_are_served_under_an_address_that_is_not_known(server):
    page, timeline = server.files
    assert server.server_address[0] == "127.0.0.1"
    assert re.fullmatch(r"/[\w-]{20,}/report\.html", page)
    assert request(server, page)[1] == b"<p>page</p>"
    assert request(server, timeline)[1] == b"timeline"
    assert request(server, page, "HEAD")[1] == b""
    for path in ("/", "/report.html", page.replace("report", "other"), f"{page}/../trace.pftrace"):
        assert request(server, path)[0].status == 404
    # A name of another site that leads to this machine.
    assert request(server, page, Host="example.org:9001")[0].status == 404


def test_perfetto_may_read_the_timeline_alone(server):
    page, timeline = server.files
    for method in ("GET", "OPTIONS"):
        answer, _ = request(server, timeline, method, Origin=ORIGIN)
        assert answer.getheader("Access-Control-Allow-Origin") == ORIGIN
        assert request(server, page, method)[0].getheader("Access-Control-Allow-Origin") is None


def test_a_second_server_takes_another_port_and_says_so(server, monkeypatch):
    notes = []
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    monkeypatch.setattr(local_server._Server, "serve_forever", interrupt)
    local_server.serve("page", b"timeline", notes.append)
    local_server.serve("page", None, notes.append)
    if server.server_port == local_server.PERFETTO_PORT:
        assert "in use" in notes[1]
    assert len(notes) == 3


def interrupt(_):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_the_command_serves_the_page_and_writes_no_file(sample, tmp_path, monkeypatch):
    served = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local_server, "serve", lambda *content: served.append(content))
    result = command_line.run("report", sample("churn"), "--open")
    assert (result.returncode, result.stdout, list(tmp_path.iterdir())) == (0, "", [])
    ((page, timeline, _),) = served
    assert page.startswith("<!DOCTYPE html>")
    assert len(timeline) > 10_000
    assert command_line.run("report", sample("churn"), "--open", "-o", "x.md").returncode == 2

/*
title = "Files that the program reads and writes"
topic = "program"
place = 43
page = false
question = "Which files does the program read and write, how many bytes, and how long does it take?"
examples = ["", "--limit 0"]
main = ["name", "operation", "host_ns", "calls", "size_bytes", "bytes_per_s"]
details = ["avg_bytes", "max_ns"]
description = """
Adds up the accesses to files by path and operation: opening, reading, writing, closing. Times of different threads
add up. Data that a page fault reads from a file mapped into memory (mmap) are in no access, and whether the data came
from a disk or from the page cache is not recorded. The numbers of processes and
threads in this table are not those of the other tables, so --process does not narrow this report."""
reading = """
Many small reads of one file: read larger blocks. Long reads while the GPU is idle: read the next batch in other
threads or processes (prefetch), or copy the files to a local disk."""
empty = """\
No accesses to files are recorded in this scope; to record them, capture with: nsys profile -t cuda,nvtx,osrt \
--osrt-file-access=true"""

[columns]
name = "Path of the file"
operation = "What was done, in nsys's words"
host_ns = "Sum of the durations"
calls = "How many accesses"
size_bytes = "Sum of the bytes read or written"
bytes_per_s = "size_bytes / host_ns"
avg_bytes = "Mean size of an access"
max_ns = "Longest access"
*/
SELECT
    name, operation, sum(duration_ns)::BIGINT AS host_ns, count(*) AS calls, sum(size_bytes)::BIGINT AS size_bytes,
    1e9 * sum(size_bytes) / nullif(sum(duration_ns), 0) AS bytes_per_s, avg(size_bytes) AS avg_bytes,
    max(duration_ns) AS max_ns
FROM file_accesses
GROUP BY ALL
ORDER BY host_ns DESC, name, operation

/*
title = "MPI calls"
topic = "ranks"
place = 2
page = false
question = "How long are ranks in MPI calls, with whom, how many bytes, and how much of it is waiting?"
examples = ["", "--group-by peer"]
main = ["name", "group", "total_ns", "calls", "waiting_ns", "transfer_ns", "sent_bytes", "received_bytes"]
details = ["min_ns", "avg_bytes"]
description = """
Adds up the MPI calls on the host by function, and by what --group-by selects. A call with several requests, such as
a Waitall, counts once. Times of different threads and ranks add up. waiting_ns is the time until the ranks that a call
needs have arrived: all ranks of a communicator in an Allreduce, the root in a Bcast, the sender in a Recv. transfer_ns
is the rest. Calls are matched by communicator and order, messages by ranks and tag as well. A Wait is matched
through its requests. Bytes are those that nsys records: for a collective, what the rank gives and gets, for a
Sendrecv what it sends. Both are unknown for calls that nsys records by name alone."""
reading = """
Much waiting_ns: the ranks do not arrive together. See the rank that waits least: --group-by rank. Much transfer_ns:
fewer and larger messages, a nonblocking call that overlaps with work, or device buffers with a CUDA-aware MPI
instead of copies through the host."""
empty = """\
No MPI calls are recorded in this scope; if the program uses MPI, capture with: nsys profile -t cuda,nvtx,mpi"""

[params.group_by]
default = "rank"
choices = ["rank", "peer", "communicator", "none"]
help = "What the calls of a function are split by: the rank, the rank and the other rank of a message, the communicator"

[columns]
name = "The MPI function"
group = "What --group-by selects; for peer, from a rank to the other, or from the other where it receives"
total_ns = "Sum of the durations of the calls"
calls = "Number of calls"
waiting_ns = "Time in which the calls wait for other ranks; NULL where none of them could be matched"
transfer_ns = "Time of the matched calls without waiting_ns"
matched_calls = "Calls for which waiting_ns is known"
sent_bytes = "Sum of what the ranks send; NULL where not recorded"
received_bytes = "Sum of what the ranks receive; NULL where not recorded"
avg_bytes = "Mean size of a call that sends or receives: the larger of the two"
avg_ns = "Mean duration"
min_ns = "Shortest"
max_ns = "Longest"

[notes]
unmatched.text = """
{unmatched} of {calls:call} could not be matched with those of other ranks: how much of them is waiting is unknown"""
unmatched.query = """
SELECT sum(calls - matched_calls) AS unmatched, sum(calls) AS calls
FROM answer
WHERE NOT regexp_matches(name, '^MPI_(I|Init|Finalize|Test|Start)') HAVING sum(calls - matched_calls) > 0"""

names.text = """
nsys recorded the names of MPI calls alone, as NVTX ranges: a version from 2022.4 on records sizes and ranks"""
names.query = """
SELECT count(*) AS rows FROM answer
HAVING count(*) > 0 AND NOT EXISTS (FROM mpi_calls WHERE rank IS NOT NULL)"""

least.text = "rank {rank_id} waits least, {least_ns}; the others {low_ns}< to {high_ns}>"
least.query = """
SELECT
    arg_min(rank, waiting_ns) AS rank_id, min(waiting_ns) AS least_ns, min(waiting_ns) FILTER (place > 1) AS low_ns,
    CASE WHEN count(*) > 2 THEN max(waiting_ns) END AS high_ns
FROM (
    SELECT c.rank, sum(w.waiting_ns)::BIGINT AS waiting_ns, row_number() OVER (ORDER BY sum(w.waiting_ns)) AS place
    FROM mpi_calls AS c JOIN _mpi_waits AS w USING (process_id, thread_id, start_ns, end_ns)
    WHERE c.rank IS NOT NULL
    GROUP BY c.rank
)
HAVING count(*) > 1 AND min(waiting_ns) < 0.5 * min(waiting_ns) FILTER (place > 1)
    AND max(waiting_ns) >= 0.01 * (SELECT max(end_ns) - min(start_ns) FROM mpi_calls)"""
*/
SELECT
    c.name,
    CASE $group_by
        WHEN 'rank' THEN coalesce('rank ' || c.rank, 'process ' || c.process_id)
        WHEN 'peer' THEN coalesce('rank ' || c.rank, 'process ' || c.process_id)
            || CASE WHEN is_mpi_receive(c.name) THEN ' from ' ELSE ' to ' END || c.peer_rank
        WHEN 'communicator' THEN c.communicator
    END AS "group",
    sum(c.duration_ns)::BIGINT AS total_ns, count(*) AS calls,
    sum(w.waiting_ns)::BIGINT AS waiting_ns,
    sum(c.duration_ns - w.waiting_ns)::BIGINT AS transfer_ns,
    count(w.waiting_ns) AS matched_calls,
    sum(c.sent_bytes)::BIGINT AS sent_bytes, sum(c.received_bytes)::BIGINT AS received_bytes,
    avg(greatest(c.sent_bytes, c.received_bytes)) AS avg_bytes,
    avg(c.duration_ns) AS avg_ns, min(c.duration_ns) AS min_ns, max(c.duration_ns) AS max_ns
FROM mpi_calls AS c
LEFT JOIN _mpi_waits AS w USING (process_id, thread_id, start_ns, end_ns)
GROUP BY ALL
ORDER BY total_ns DESC, c.name, "group"

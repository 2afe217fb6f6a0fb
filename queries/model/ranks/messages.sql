/*
description = """One row per message from one rank to another (ncclSend and ncclRecv) that is matched by communicator
    and order. Times are on the clock of the first trace."""
[columns]
communicator = "NCCL's id of the communicator"
sender = "The rank that sends"
receiver = "The rank that receives"
bytes = "Size of the message"
sent_ns = "When the sender arrived: its kernel started"
received_ns = "When the receiver arrived"
start_ns = "When the first of the two arrived: its kernel started"
arrived_ns = "When the other one arrived"
end_ns = "When both had ended"
send_ns = "How long the sender's kernel ran"
receive_ns = "How long the receiver's kernel ran"
send_waiting_ns = "How long the sender waited for the receiver; 0 where its kernel had ended by then"
receive_waiting_ns = "How long the receiver waited for the sender"
transfer_ns = """From the arrival of both to the end; NULL where the sender's kernel had ended before, or a kernel has
    several messages in one direction"""
*/
-- A message that fits into NCCL's buffers is sent before the receiver arrives. Then the sender has not waited, and the
-- duration of the transfer is unknown.
SELECT
    communicator, sender, receiver, bytes, sent_ns, received_ns, least(sent_ns, received_ns) AS start_ns,
    greatest(sent_ns, received_ns) AS arrived_ns,
    greatest(sent_end_ns, received_end_ns) AS end_ns, sent_end_ns - sent_ns AS send_ns,
    received_end_ns - received_ns AS receive_ns,
    CASE WHEN sent_end_ns > received_ns THEN greatest(received_ns - sent_ns, 0) ELSE 0 END AS send_waiting_ns,
    least(greatest(sent_ns - received_ns, 0), received_end_ns - received_ns) AS receive_waiting_ns,
    CASE WHEN is_alone AND least(sent_end_ns, received_end_ns) > greatest(sent_ns, received_ns)
        THEN greatest(sent_end_ns, received_end_ns) - greatest(sent_ns, received_ns) END AS transfer_ns
FROM facts.messages;

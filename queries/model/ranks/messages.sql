-- A message that fits into NCCL's buffers is sent before the receiver arrives. Then the sender has not waited, and the
-- duration of the transfer is unknown.
CREATE VIEW messages AS
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

COMMENT ON VIEW messages IS
    'One row per message from one rank to another (ncclSend and ncclRecv) that is matched by communicator and '
    'order. Times are on the clock of the first trace.';
COMMENT ON COLUMN messages.communicator IS 'NCCL''s id of the communicator';
COMMENT ON COLUMN messages.sender IS 'The rank that sends';
COMMENT ON COLUMN messages.receiver IS 'The rank that receives';
COMMENT ON COLUMN messages.bytes IS 'Size of the message';
COMMENT ON COLUMN messages.sent_ns IS 'When the sender arrived: its kernel started';
COMMENT ON COLUMN messages.received_ns IS 'When the receiver arrived';
COMMENT ON COLUMN messages.start_ns IS 'When the first of the two arrived: its kernel started';
COMMENT ON COLUMN messages.arrived_ns IS 'When the other one arrived';
COMMENT ON COLUMN messages.end_ns IS 'When both had ended';
COMMENT ON COLUMN messages.send_ns IS 'How long the sender''s kernel ran';
COMMENT ON COLUMN messages.receive_ns IS 'How long the receiver''s kernel ran';
COMMENT ON COLUMN messages.send_waiting_ns IS
    'How long the sender waited for the receiver; 0 where its kernel had ended by then';
COMMENT ON COLUMN messages.receive_waiting_ns IS 'How long the receiver waited for the sender';
COMMENT ON COLUMN messages.transfer_ns IS
    'From the arrival of both to the end; NULL where the sender''s kernel had ended before, or a kernel has several '
    'messages in one direction';

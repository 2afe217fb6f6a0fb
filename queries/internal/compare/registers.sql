-- The maximum number of registers of each kernel.
SELECT s.name, max(k.registers_per_thread)::BIGINT AS registers_per_thread
FROM kernel_events AS k JOIN strings AS s ON s.name_id = k.name_id
GROUP BY s.name

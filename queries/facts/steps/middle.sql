-- When the window begins and ends that holds this $share of the stream's operations, in its middle. One operation in a
-- few hundred tells where that is; the same ones each time.
SELECT quantile_disc(start_ns, 0.5 - $share / 2) AS from_ns, quantile_disc(start_ns, 0.5 + $share / 2) AS to_ns
FROM internal.step_ops
WHERE hash(start_ns) % 256 = 0

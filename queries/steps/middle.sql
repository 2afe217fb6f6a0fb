-- When the window begins and ends that holds this $share of the stream's operations, in its middle. One operation in a few
-- hundred tells where that is; the same ones each time.
SELECT unnest(quantile_disc(start_ns, [0.5 - $share / 2, 0.5 + $share / 2])) FROM step_ops WHERE hash(start_ns) % 256 = 0

-- Where the marked operation is followed by itself after just one period, in the middle of those places.
SELECT quantile_disc(pos, 0.5) AS pos
FROM (SELECT pos, lead(pos) OVER (ORDER BY pos) - pos AS gap FROM internal.step_stream WHERE token = $mark)
WHERE gap = $period

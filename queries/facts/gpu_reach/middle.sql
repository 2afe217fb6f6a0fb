-- How many operations there are, and about where the half of them has begun.
SELECT count(*) AS operations, approx_quantile(place, 0.5) AS place FROM _gpu_line

-- The mean number of threads of each kernel of the steady steps.
SELECT name, sum(calls * list_product(string_split(grid || 'x' || block, 'x')::DOUBLE[])) / sum(calls) AS threads
FROM _steady_shapes
GROUP BY name

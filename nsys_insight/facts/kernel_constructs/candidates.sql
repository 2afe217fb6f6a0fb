-- The entries of the catalog that a kernel may be, in the order in which they are tried.
SELECT c.construct, c.kernels
FROM constructs() AS c, (SELECT lower(string_agg(name, chr(10))) AS names FROM kernel_names) AS n
WHERE c.kernels IS NOT NULL AND len(list_filter(c.kernel_texts, lambda text: contains(n.names, text))) > 0
ORDER BY c.place

/* parameters = ["chained"] */
-- One chain for each call of `_chained_calls`: that of the call's own row, else the first one in a separate row.
SELECT process_id, correlation_id, chain_id FROM query_table(chained) WHERE is_separate_row IS NOT true
UNION ALL
SELECT process_id, correlation_id, min(chain_id) AS chain_id
FROM (FROM query_table(chained) WHERE is_separate_row)
ANTI JOIN (FROM query_table(chained) WHERE is_separate_row IS NOT true) USING (process_id, correlation_id)
GROUP BY ALL;
